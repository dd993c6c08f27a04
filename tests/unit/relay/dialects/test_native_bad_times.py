from __future__ import annotations

import pytest
from confluent_kafka import TIMESTAMP_NOT_AVAILABLE
from tests.support.relay.native_records import (
    DAY_MS,
    NO_TIMESTAMP,
    TIMESTAMP_MS,
    Header,
    fixed,
    native,
    record,
    reject,
)

from delaytopic_api.records import DeadLetterReason

AN_INSTANT = (
    "epoch milliseconds in digits (1795269686270) or RFC 3339 with an offset (2026-11-21T14:01:26.270Z),"
    " between 1970 and the year 9999"
)
A_DELAY = "milliseconds in digits (90000) or a duration (90s, 1h30m, 500ms)"

NO_NUMBER: list[bytes | None] = [
    None,
    b"",
    b" ",
    b"-1",
    b"+1795269686270",
    b" 1795269686270",
    b"1795269686270\n",
    b"1_795_269_686_270",
    b"1795269686270.5",
    b"1.8e12",
    b"0x1a2",
    b"NaN",
    b"1" + b"0" * 30,
    b"9" * 5_000,
    b"253402300800000",
    b"\xff\xfe",
    "١٧٩٥".encode(),
    b"1795269686270\x00",
    b"tomorrow",
]
NO_RFC_3339: list[bytes] = [
    b"2026-11-21T14:01:26",
    b"2026-11-21 14:01:26Z",
    b"2026-11-21",
    b"2026-11-21T14:01Z",
    b"20261121T140126Z",
    b"2026-W47-6T14:01:26Z",
    b"2026-11-21T14:01:26+0100",
    b"2026-11-21T14:01:26+01",
    b"2026-11-21T14:01:26+24:00",
    b"2026-11-21T14:01:26,5Z",
    b"2026-11-21T14:01:26.Z",
    b"2026-11-21T14:01:26.0000000001Z",
    b"2026-11-21T24:00:00Z",
    b"2026-11-21T23:59:60Z",
    b"2026-02-29T00:00:00Z",
    b"2026-13-01T00:00:00Z",
    b"0000-01-01T00:00:00Z",
    b"0001-01-01T00:00:00+23:59",
    b"1969-12-31T23:59:59.999Z",
    b"9999-12-31T23:59:59-00:01",
    b"10000-01-01T00:00:00Z",
    b"2026-11-21T14:01:26 Z",
]
NO_DURATION: list[bytes] = [
    b"-90s",
    b"90 s",
    b"1.5h",
    b"1d",
    b"90S",
    b"s",
    b"PT90S",
    b"123456s",
    b"1h1m1s1ms1s",
    b"90s" * 100_000,
    "90\u00b5s".encode(),
    "٩s".encode(),
]


def shown(value: bytes | None) -> str:
    if value is None:
        return "null"
    text = repr(value)[1:] if value else "empty"
    return text if len(text) <= 64 else f"{text[:64]}..."


@pytest.mark.parametrize("text", [*NO_NUMBER, *NO_RFC_3339])
@pytest.mark.parametrize("name", ["deliver-at", "deliver-expires-at"])
def test_what_is_no_instant_is_malformed(name: str, text: bytes | None) -> None:
    message = record((name, text))

    command = native().read(message)

    detail = f"header {name} must be {AN_INSTANT}, but is {shown(text)}"
    assert command == reject(message, DeadLetterReason.MALFORMED_HEADER, detail)


@pytest.mark.parametrize("text", [*NO_NUMBER, *NO_DURATION])
def test_what_is_no_delay_is_malformed(text: bytes | None) -> None:
    message = record(("deliver-after", text))

    command = native().read(message)

    detail = f"header deliver-after must be {A_DELAY}, but is {shown(text)}"
    assert command == reject(message, DeadLetterReason.MALFORMED_HEADER, detail)


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        (("deliver-at", b"1795269686270"), ("deliver-after", b"soon")),
        (("deliver-after", b"1h"), ("deliver-at", b"soon")),
    ],
)
def test_a_time_header_that_cannot_be_read_is_malformed_even_beside_one_that_can(good: Header, bad: Header) -> None:
    message = record(good, bad)

    command = native().read(message)

    allowed = AN_INSTANT if bad[0] == "deliver-at" else A_DELAY
    detail = f"header {bad[0]} must be {allowed}, but is 'soon'"
    assert command == reject(message, DeadLetterReason.MALFORMED_HEADER, detail)


def test_a_repeated_header_whose_last_value_cannot_be_read_is_malformed() -> None:
    message = record(("deliver-after", b"2s"), ("deliver-after", None))

    command = native().read(message)

    detail = f"header deliver-after must be {A_DELAY}, but is null"
    assert command == reject(message, DeadLetterReason.MALFORMED_HEADER, detail)


@pytest.mark.parametrize(
    ("header", "due", "delay"),
    [
        (("deliver-at", b"%d" % (TIMESTAMP_MS + 30 * DAY_MS + 1)), "2026-12-21T14:00:00.001Z", "720h1ms"),
        (("deliver-after", b"721h"), "2026-12-21T15:00:00.000Z", "721h"),
        (("deliver-at", b"9999-12-31T23:59:59Z"), "9999-12-31T23:59:59.000Z", "more than 99999h"),
        (("deliver-after", b"253402300799999"), "epoch 255197570399999 ms", "more than 99999h"),
    ],
)
def test_what_is_due_beyond_the_longest_delay_is_refused(header: Header, due: str, delay: str) -> None:
    message = record(header)

    command = native().read(message)

    detail = (
        f"the record is due at {due}, {delay} after its timestamp 2026-11-21T14:00:00.000Z;"
        " this DelayTopic allows at most 720h (schedule.maxDelay)"
    )
    assert command == reject(message, DeadLetterReason.BEYOND_MAX_DELAY, detail)


@pytest.mark.parametrize("timestamp", NO_TIMESTAMP)
@pytest.mark.parametrize(
    "header", [("deliver-at", b"1795269686270"), ("deliver-after", b"1h"), ("deliver-after", b"5")]
)
def test_a_time_header_needs_a_record_timestamp_to_count_from(header: Header, timestamp: tuple[int, int]) -> None:
    message = record(header, timestamp=timestamp)

    command = native().read(message)

    detail = (
        f"header {header[0]} needs a record timestamp between 1970 and the year 9999 to count from,"
        " and this record has none"
    )
    assert command == reject(message, DeadLetterReason.MALFORMED_HEADER, detail)


@pytest.mark.parametrize("rule", [{"default_delay_ms": 300_000}, {"delay_ms": 30_000}])
def test_a_delay_of_the_topic_needs_a_record_timestamp_too(rule: dict[str, int]) -> None:
    message = record(timestamp=(TIMESTAMP_NOT_AVAILABLE, 0))

    command = native(**rule).read(message)

    detail = (
        "the delay of this DelayTopic needs a record timestamp between 1970 and the year 9999 to count from,"
        " and this record has none"
    )
    assert command == reject(message, DeadLetterReason.MALFORMED_HEADER, detail)


@pytest.mark.parametrize(
    "header",
    [
        ("deliver-at", b"1795269686270"),
        ("deliver-at", b"0"),
        ("deliver-at", b"soon"),
        ("deliver-after", b"30s"),
        ("deliver-after", b"0"),
        ("deliver-id", b"a"),
        ("deliver-action", b"schedule"),
        ("deliver-action", b"explode"),
    ],
)
def test_a_fixed_delay_leaves_nothing_for_a_record_to_say_of_its_time(header: Header) -> None:
    message = record(header)

    command = fixed().read(message)

    detail = f"this DelayTopic delays every record by 30s: remove header {header[0]}"
    assert command == reject(message, DeadLetterReason.CONTRADICTORY_HEADERS, detail)
