from __future__ import annotations

import pytest
from confluent_kafka import TIMESTAMP_LOG_APPEND_TIME
from tests.support.relay.native_records import (
    DAY_MS,
    NO_TIMESTAMP,
    TIMESTAMP_MS,
    fixed,
    native,
    record,
    schedule,
)

from delaytopic_relay.core.commands import SEVERAL_CONTROL_HEADERS

AT_MS = TIMESTAMP_MS + 86_270


@pytest.mark.parametrize(
    "text",
    [
        b"1795269686270",
        b"0001795269686270",
        b"2026-11-21T14:01:26.27Z",
        b"2026-11-21T14:01:26.270Z",
        b"2026-11-21t14:01:26.270z",
        b"2026-11-21T14:01:26.270000000Z",
        b"2026-11-21T14:01:26.270+00:00",
        b"2026-11-21T14:01:26.270-00:00",
        b"2026-11-21T15:01:26.270+01:00",
        b"2026-11-22T00:31:26.270+10:30",
        b"2026-11-21T06:01:26.270-08:00",
    ],
)
def test_deliver_at_is_epoch_milliseconds_or_rfc_3339_with_an_offset(text: bytes) -> None:
    message = record(("deliver-at", text))

    command = native().read(message)

    assert command == schedule(message, AT_MS, control=0)


@pytest.mark.parametrize(
    ("text", "delay_ms"),
    [
        (b"0", 0),
        (b"90000", 90_000),
        (b"90s", 90_000),
        (b"1h30m", 5_400_000),
        (b"500ms", 500),
        (b"0s", 0),
        (b"1h1m1s1ms", 3_661_001),
        (b"720h", 30 * DAY_MS),
    ],
)
def test_deliver_after_counts_from_the_record_timestamp(text: bytes, delay_ms: int) -> None:
    message = record(("deliver-after", text))

    command = native().read(message)

    assert command == schedule(message, TIMESTAMP_MS + delay_ms, control=0)


def test_deliver_after_counts_from_the_broker_time_of_a_topic_with_log_append_time() -> None:
    message = record(("deliver-after", b"1000"), timestamp=(TIMESTAMP_LOG_APPEND_TIME, TIMESTAMP_MS))

    command = native().read(message)

    assert command == schedule(message, TIMESTAMP_MS + 1_000, control=0)


@pytest.mark.parametrize(
    ("text", "due_ms"),
    [
        (b"2026-11-21T14:00:00.0001Z", TIMESTAMP_MS + 1),
        (b"2026-11-21T14:00:00.000000001Z", TIMESTAMP_MS + 1),
        (b"2026-11-21T14:00:00.9999Z", TIMESTAMP_MS + 1_000),
    ],
)
def test_a_fraction_below_a_millisecond_counts_up_so_that_nothing_is_early(text: bytes, due_ms: int) -> None:
    message = record(("deliver-at", text))

    command = native().read(message)

    assert command == schedule(message, due_ms, control=0)


@pytest.mark.parametrize(
    ("text", "due_ms"), [(b"0", 0), (b"1700000000000", 1_700_000_000_000), (b"1970-01-01T00:00:00Z", 0)]
)
def test_a_due_time_that_is_past_is_kept(text: bytes, due_ms: int) -> None:
    message = record(("deliver-at", text))

    command = native().read(message)

    assert command == schedule(message, due_ms, control=0)


@pytest.mark.parametrize("reverse", [False, True])
def test_deliver_at_wins_over_deliver_after(reverse: bool) -> None:
    headers = [("deliver-at", b"1795269686270"), ("deliver-after", b"1h")]
    message = record(*(reversed(headers) if reverse else headers))

    command = native().read(message)

    assert command == schedule(message, AT_MS, control=SEVERAL_CONTROL_HEADERS)


def test_of_a_header_that_appears_twice_the_last_one_wins() -> None:
    message = record(("deliver-after", b"1h"), ("trace", b"1"), ("deliver-after", b"2s"))

    command = native().read(message)

    assert command == schedule(message, TIMESTAMP_MS + 2_000, control=SEVERAL_CONTROL_HEADERS)


def test_a_repeated_header_that_lost_is_not_read() -> None:
    message = record(("deliver-after", b"soon"), ("deliver-after", b"2s"))

    command = native().read(message)

    assert command == schedule(message, TIMESTAMP_MS + 2_000, control=SEVERAL_CONTROL_HEADERS)


def test_a_record_without_a_time_header_is_due_at_its_timestamp() -> None:
    message = record(("trace", b"1"))

    command = native().read(message)

    assert command == schedule(message, TIMESTAMP_MS)


def test_a_record_without_a_time_header_waits_for_the_default_delay() -> None:
    message = record(("trace", b"1"))

    command = native(default_delay_ms=300_000).read(message)

    assert command == schedule(message, TIMESTAMP_MS + 300_000)


def test_the_default_delay_holds_beside_control_headers_that_name_no_time() -> None:
    message = record(("deliver-id", b"a"))

    command = native(default_delay_ms=300_000).read(message)

    assert command == schedule(message, TIMESTAMP_MS + 300_000, control=0, id=b"a")


def test_a_fixed_delay_is_every_records() -> None:
    message = record(("trace", b"1"))

    command = fixed().read(message)

    assert command == schedule(message, TIMESTAMP_MS + 30_000)


@pytest.mark.parametrize("timestamp", NO_TIMESTAMP)
def test_a_record_without_a_usable_timestamp_and_without_a_time_header_leaves_at_once(
    timestamp: tuple[int, int],
) -> None:
    message = record(timestamp=timestamp)

    command = native().read(message)

    assert command == schedule(message, 0)


def test_the_longest_delay_allowed_is_allowed() -> None:
    message = record(("deliver-at", b"%d" % (TIMESTAMP_MS + 30 * DAY_MS)))

    command = native().read(message)

    assert command == schedule(message, TIMESTAMP_MS + 30 * DAY_MS, control=0)
