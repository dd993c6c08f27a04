from __future__ import annotations

import copy
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from delaytopic_api import Duration, InvalidText

LONGEST_MS = 100_000 * 3_600_000 - 1


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("0s", 0),
        ("1ms", 1),
        ("500ms", 500),
        ("90s", 90_000),
        ("1h30m", 5_400_000),
        ("1h1m1s1ms", 3_661_001),
        ("5m500ms", 300_500),
        ("1s1h", 3_601_000),
        ("1m1m1m1m", 240_000),
        ("99999h", 99_999 * 3_600_000),
        ("100000h", 100_000 * 3_600_000),
        ("1s1s1s1s1s", 5_000),
        ("+1s", 1_000),
        ("0", 0),
        ("1.5h", 5_400_000),
        ("0.00001h", 36),
        (".5s", 500),
        ("1.s", 1_000),
        ("1.250s", 1_250),
        ("1000us", 1),
        ("2000\u00b5s", 2),
        ("3000\u03bcs", 3),
        ("4000000ns", 4),
    ],
)
def test_a_duration_is_numbers_with_units_as_go_reads_them(text: str, ms: int) -> None:
    assert Duration(text).ms == ms


@pytest.mark.parametrize(
    "text",
    [
        *("", "5", "5x", "h", "-1s", "-0s", "1 s", "1s ", "1H", "1s\n", "\u0661s", "P1D", ".s", "+", "00", "1s" * 15),
        *("0.5ms", "1.0005s", "1us", "1500us", "1ns", "0.000001h"),
    ],
)
def test_anything_else_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(InvalidText) as refused:
        Duration(text)

    assert str(refused.value) == f'"{text}" is not a duration; write it like 500ms, 90s or 1h30m'


def test_more_than_a_duration_of_kubernetes_holds_is_refused() -> None:
    with pytest.raises(InvalidText, match='"2562048h" is too long for a duration'):
        Duration("2562048h")


@pytest.mark.parametrize(("text", "hours"), [("30d", "720h"), ("1d", "24h"), ("2w", "336h")])
def test_days_and_weeks_are_answered_with_hours(text: str, hours: str) -> None:
    with pytest.raises(InvalidText) as refused:
        Duration(text)

    assert str(refused.value) == f'"{text}" is not a duration; the longest unit is the hour: write {hours}'


@given(st.integers(min_value=0, max_value=LONGEST_MS))
def test_a_number_of_milliseconds_survives_the_way_through_text(ms: int) -> None:
    assert Duration.of_ms(ms).ms == ms


@pytest.mark.parametrize(("ms", "text"), [(0, "0s"), (999, "999ms"), (5_400_000, "1h30m"), (3_661_001, "1h1m1s1ms")])
def test_milliseconds_become_the_shortest_text(ms: int, text: str) -> None:
    assert Duration.of_ms(ms) == text


@pytest.mark.parametrize("ms", [-1, LONGEST_MS + 1])
def test_milliseconds_out_of_range_are_refused(ms: int) -> None:
    with pytest.raises(InvalidText, match=f"{ms} ms is not a duration"):
        Duration.of_ms(ms)


@given(st.lists(st.tuples(st.integers(0, 99_999), st.sampled_from(["h", "m", "s", "ms"])), min_size=1, max_size=4))
def test_the_parts_of_a_duration_add_up(parts: list[tuple[int, str]]) -> None:
    units_ms = {"h": 3_600_000, "m": 60_000, "s": 1_000, "ms": 1}

    duration = Duration("".join(f"{number}{unit}" for number, unit in parts))

    assert duration.ms == sum(number * units_ms[unit] for number, unit in parts)


@given(st.text())
def test_any_text_is_a_duration_or_refused(text: str) -> None:
    try:
        duration = Duration(text)
    except InvalidText:
        return
    assert duration == text


def test_a_copy_keeps_its_value() -> None:
    duration = Duration("1h30m")

    copies = [copy.deepcopy(duration), pickle.loads(pickle.dumps(duration))]

    assert [(one, one.ms) for one in copies] == [("1h30m", 5_400_000)] * 2
