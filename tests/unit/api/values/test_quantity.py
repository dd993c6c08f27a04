from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from delaytopic_api import InvalidText, Quantity


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("1", 1),
        ("+1", 1),
        ("256Mi", 256 * 2**20),
        ("1.5Gi", 3 * 2**29),
        ("1.", 1),
        (".5k", 500),
        ("500M", 500_000_000),
        ("1E", 10**18),
        ("1e3", 1_000),
        ("1E3", 1_000),
        ("12e-1", 2),
        ("100m", 1),
        ("1001m", 2),
        ("1n", 1),
        ("7Ei", 7 * 2**60),
    ],
)
def test_a_quantity_is_a_number_with_a_suffix_rounded_up_as_kubernetes_does(text: str, value: int) -> None:
    assert Quantity(text).value == value


@pytest.mark.parametrize(
    "text", ["", "Mi", "1 Mi", "1mi", "1KB", "1,5Gi", "1e", "1e+", "--1", "0x10", "1Mi\n", "\u0661"]
)
def test_anything_else_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(InvalidText) as refused:
        Quantity(text)

    assert str(refused.value) == f'"{text}" is not a quantity; write it like 256Mi, 1.5Gi or 500M'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("-1Mi", '"-1Mi" is not allowed; a quantity is not negative'),
        ("8Ei", '"8Ei" is too large; a quantity is less than 8Ei'),
        ("1e99", '"1e99" is too large; a quantity is less than 8Ei'),
    ],
)
def test_a_quantity_lies_between_nothing_and_what_kubernetes_can_count(text: str, message: str) -> None:
    with pytest.raises(InvalidText) as refused:
        Quantity(text)

    assert str(refused.value) == message


@given(st.integers(min_value=0, max_value=2**63 - 1))
def test_a_whole_number_means_itself(number: int) -> None:
    assert (Quantity.of(number), Quantity.of(number).value) == (str(number), number)


@given(st.integers(0, 10**6), st.sampled_from(["Ki", "Mi", "Gi", "Ti"]))
def test_each_binary_suffix_is_1024_of_the_one_before(number: int, suffix: str) -> None:
    power = ["Ki", "Mi", "Gi", "Ti"].index(suffix) + 1

    assert Quantity(f"{number}{suffix}").value == number * 1024**power


@pytest.mark.parametrize("value", [True, 1.5, None, ["1Mi"]])
def test_what_is_neither_text_nor_a_whole_number_is_refused(value: object) -> None:
    with pytest.raises(InvalidText, match=r"must be text such as 256Mi, 1.5Gi or 500M, not "):
        Quantity.of(value)
