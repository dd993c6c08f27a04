from __future__ import annotations

from typing import NoReturn

import pytest
from confluent_kafka import Message
from tests.support.relay.native_records import (
    KEY,
    OFFSET,
    POLICY,
    TIMESTAMP_MS,
    VALUE,
    Header,
    native,
    record,
    schedule,
)

from delaytopic_api.records import DeadLetterReason
from delaytopic_relay.core.commands import MAX_HEADERS, NO_CONTROL_HEADER, SEVERAL_CONTROL_HEADERS, Reject, Schedule
from delaytopic_relay.dialects.native import NativeDialect

USER_HEADERS: list[Header] = [
    ("trace", b"1"),
    ("trace", None),
    ("", b""),
    ("dup", b"a"),
    ("dup", b"a"),
    ("gr\u00f6\u00dfe", b"\xff"),
]


@pytest.mark.parametrize(
    ("headers", "control"),
    [
        ([], NO_CONTROL_HEADER),
        (USER_HEADERS, NO_CONTROL_HEADER),
        ([*USER_HEADERS, ("deliver-after", b"0")], 6),
        ([("deliver-after", b"0"), *USER_HEADERS], 0),
        ([*USER_HEADERS, ("deliver-to", b"audit")], 6),
        ([("deliver-after", b"0"), *USER_HEADERS, ("deliver-after", b"0")], SEVERAL_CONTROL_HEADERS),
    ],
)
def test_the_headers_are_passed_on_as_they_are_with_the_place_of_the_only_control_header(
    headers: list[Header], control: int
) -> None:
    message = record(*headers)

    command = native().read(message)

    assert isinstance(command, Schedule)
    assert (command.headers, command.control) == (headers or None, control)


@pytest.mark.parametrize("key", [None, b"", b"\x00\xff"])
@pytest.mark.parametrize("value", [None, b"", b"\x00\xff"])
@pytest.mark.parametrize("header", [("deliver-after", b"5"), ("deliver-after", b"5ms"), ("deliver-after", b"soon")])
def test_null_and_empty_keys_and_values_stay_what_they_are(
    key: bytes | None, value: bytes | None, header: Header
) -> None:
    message = record(header, key=key, value=value)

    command = native().read(message)

    assert not isinstance(command, Reject) or command.reason is DeadLetterReason.MALFORMED_HEADER
    assert isinstance(command, Schedule | Reject)
    assert (command.key, command.value) == (key, value)


@pytest.mark.parametrize(
    "name", ["Deliver-At", "DELIVER-AFTER", "deliver_at", " deliver-at", "deliver-att", "x-deliver-at", "delay-receipt"]
)
def test_only_exact_names_are_control_headers_all_others_are_the_users(name: str) -> None:
    message = record((name, b"not a time"))

    command = native().read(message)

    assert command == schedule(message, TIMESTAMP_MS)


class UndecodableNames(Message):
    """A record with a header name that is not UTF-8, as the client shows it: `headers()` fails."""

    def headers(self) -> NoReturn:
        raise SystemError("<method 'headers'> returned a result with an exception set")


def test_a_record_whose_header_names_are_not_utf_8_is_dead_lettered_without_headers() -> None:
    message = UndecodableNames(offset=OFFSET, key=KEY, value=VALUE, timestamp=(1, TIMESTAMP_MS))

    command = native().read(message)

    detail = (
        "a header name is not UTF-8: the Kafka client cannot read this record's headers, so they are missing here;"
        " the record in the source topic has them"
    )
    assert command == Reject(OFFSET, KEY, VALUE, None, DeadLetterReason.MALFORMED_HEADER, detail)


@pytest.mark.parametrize("control", [[], [("deliver-after", b"0")]])
def test_a_record_with_more_headers_than_a_relay_carries_is_dead_lettered_without_them(control: list[Header]) -> None:
    allowed: list[Header] = [*control, *[("", None)] * (MAX_HEADERS - len(control))]

    most, more = native().read(record(*allowed)), native().read(record(*allowed, ("", None)))

    assert isinstance(most, Schedule)
    assert more == Reject(
        OFFSET,
        KEY,
        VALUE,
        None,
        DeadLetterReason.TOO_MANY_HEADERS,
        "it has more than 256 headers, which no relay carries: they are missing here; the record in the source topic "
        "has them",
    )


@pytest.mark.parametrize(
    ("headers", "heard"),
    [
        ([("Deliver-After", b"5s")], ["Deliver-After"]),
        ([("trace", b"1"), ("deliver_at", b"5"), ("Deliver-Id", b"x")], ["deliver_at"]),
        ([("deliver-after", b"5s"), ("Deliver-Id", b"x")], []),
        ([("trace", b"1"), ("", b""), ("delay-receipt", b"x")], []),
        ([*[("a", b"")] * 16, ("Deliver-After", b"5s")], []),
    ],
)
def test_a_record_without_a_control_header_whose_header_resembles_one_is_heard_of_and_read_as_it_is(
    headers: list[Header], heard: list[str]
) -> None:
    names: list[str] = []
    message = record(*headers)

    command = NativeDialect(POLICY, names.append).read(message)

    assert (names, command) == (heard, native().read(message))
