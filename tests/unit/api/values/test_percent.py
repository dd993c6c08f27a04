from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from delaytopic_api import InvalidText, Percent


@pytest.mark.parametrize(
    ("text", "ratio"),
    [
        ("0%", Fraction(0)),
        ("60%", Fraction(3, 5)),
        ("99.9%", Fraction(999, 1000)),
        ("99.9999%", Fraction(999_999, 1_000_000)),
        ("100%", Fraction(1)),
    ],
)
def test_a_percentage_is_an_exact_ratio(text: str, ratio: Fraction) -> None:
    assert Percent(text).ratio == ratio


@pytest.mark.parametrize("text", ["", "99.9", "%", "101%", "100.0%", "-1%", "9.99999%", "1 %", "1%\n", "0.5"])
def test_anything_else_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(InvalidText) as refused:
        Percent(text)

    assert str(refused.value) == f'"{text}" is not a percentage; write it like 60% or 99.9%'


@given(st.integers(0, 99), st.integers(0, 9999))
def test_four_decimals_are_kept_exactly(whole: int, decimals: int) -> None:
    assert Percent(f"{whole}.{decimals:04}%").ratio == Fraction(whole * 10_000 + decimals, 1_000_000)
