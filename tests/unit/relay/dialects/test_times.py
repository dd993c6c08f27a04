"""Times of dialects: the short way to read most instants gives what the pattern gives, and all are shown briefly."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.properties import QUICK

from delaytopic_relay.dialects.times import instant_text, rfc_3339_ms

SECOND_MS = 1_795_269_686_000


@QUICK
@given(st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31)), st.sampled_from("Zz"), st.integers(0, 9))
def test_an_instant_in_utc_is_what_it_is_with_an_offset(instant: datetime, utc: str, digits: int) -> None:
    text = f"{instant:%H:%M:%S}.{instant.microsecond:06d}000"[: 9 + digits if digits else 8]
    written = f"{instant.year:04d}-{instant:%m-%d}T{text}"

    assert rfc_3339_ms(f"{written}{utc}".encode()) == rfc_3339_ms(f"{written}+00:00".encode())


@QUICK
@given(st.integers(0, 9_999_999))
def test_a_fraction_counts_up_to_the_next_millisecond(microseconds: int) -> None:
    instant = datetime.fromtimestamp(SECOND_MS // 1_000, UTC) + timedelta(microseconds=microseconds)

    found = rfc_3339_ms(f"{instant:%Y-%m-%dT%H:%M:%S.%fZ}".encode())

    assert found == SECOND_MS - (-microseconds // 1_000)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"Z",
        b"2026-11-21T14:01:26",
        b"2026-11-21T14:01Z",
        b"2026-11-21 14:01:26Z",
        b"2026-11-21T14:01:60Z",
        b"2026-11-21T24:00:00Z",
        b"0000-01-01T00:00:00Z",
        b"2026-11-21T14:01:26+00:99",
        b"2026-11-21T14:01:26+24:00",
        b"2026-02-30T14:01:26Z",
        b"2026-11-21T14:01:26.Z",
        b"2026-11-21T14:01:26,5Z",
        b"2026-11-21T14:01:26.+5Z",
        b"2026-11-21T14:01:26.1234567890Z",
        b"2026-11-21T14:01:26.5ZZ",
        b"2026-11-21T14:01:26+00:00Z",
        b"2026-11-21T14:01:265Z",
        "2026-11-21T14:01:2\u0666Z".encode(),
    ],
)
def test_what_is_no_instant_is_none(text: bytes) -> None:
    assert rfc_3339_ms(text) is None


@pytest.mark.parametrize(
    ("time_ms", "text"),
    [
        (SECOND_MS + 7, "2026-11-21T14:01:26.007Z"),
        (-1, "epoch -1 ms"),
        ((1 << 63) - 1, "epoch 9223372036854775807 ms"),
        (10**4_299, "a time that 64 bits cannot hold"),
    ],
)
def test_a_time_that_no_calendar_has_is_shown_too_and_takes_little_room(time_ms: int, text: str) -> None:
    assert instant_text(time_ms) == text
