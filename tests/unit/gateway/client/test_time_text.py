from __future__ import annotations

from datetime import UTC, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from delaytopic_gateway.client.time_text import clock_text, duration, instant_ms
from delaytopic_process.errors import InputError

NOON_MS = 1_795_262_400_000  # 2026-11-21T12:00:00Z


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1795262400000", NOON_MS),
        ("2026-11-21T12:00:00Z", NOON_MS),
        ("2026-11-21t13:00:00.25+01:00", NOON_MS + 250),
        ("2026-11-21 12:00Z", NOON_MS),
    ],
)
def test_instants_are_epoch_milliseconds_or_rfc_3339(text: str, expected: int) -> None:
    assert instant_ms(text) == expected


@pytest.mark.parametrize("text", ["tomorrow", "2026-11-21T12:00:00", "2026-13-21T12:00:00Z", "-5", "", "١٢"])
def test_other_texts_are_no_instants(text: str) -> None:
    with pytest.raises(InputError, match=f'"{text}" is not a time'):
        instant_ms(text)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("0", "1973 or before"),
        ("1795262400", "1973 or before; if it is in seconds, write 1795262400000 for it"),
        ("1795262400000000", "after the year 9999; if it is in microseconds, write 1795262400000 for it"),
        ("1795262400000000000", "after the year 9999; if it is in nanoseconds, write 1795262400000 for it"),
    ],
)
def test_a_number_in_another_unit_is_refused_with_the_one_to_write(text: str, meant: str) -> None:
    with pytest.raises(InputError, match=f"^{text} as epoch milliseconds is (a time in )?{meant}$"):
        instant_ms(text)


def test_a_number_that_is_too_large_in_every_unit_is_refused() -> None:
    with pytest.raises(InputError, match=r"^9{30} as epoch milliseconds is after the year 9999$"):
        instant_ms("9" * 30)
    with pytest.raises(InputError, match=r'^"9{5000}" is not a time'):
        instant_ms("9" * 5_000)


def test_a_wrong_duration_shows_how_to_write_one() -> None:
    with pytest.raises(InputError, match='"5x" is not a duration; write it like 500ms, 90s or 1h30m'):
        duration("5x")


def test_the_date_is_shown_unless_it_is_today() -> None:
    assert clock_text(NOON_MS + 5, now_ms=NOON_MS, zone=UTC) == "12:00:00.005"
    assert clock_text(NOON_MS + 86_400_000, now_ms=NOON_MS, zone=UTC) == "2026-11-22 12:00:00.000"
    assert clock_text(NOON_MS, now_ms=NOON_MS, zone=timezone(timedelta(hours=-3))) == "09:00:00.000"
    assert clock_text(None, now_ms=NOON_MS) == "-"


@given(st.integers(0, 4_000_000_000_000))
def test_a_shown_instant_is_the_same_when_read_back(instant: int) -> None:
    shown = clock_text(instant, now_ms=instant + 200_000_000, zone=UTC)

    assert instant_ms(f"{shown}Z") == instant


def test_a_time_that_no_calendar_has_is_shown_as_its_number() -> None:
    assert clock_text(-(2**63), now_ms=NOON_MS) == "-9223372036854775808 ms"
    assert clock_text(2**63 - 1, now_ms=NOON_MS) == "9223372036854775807 ms"
