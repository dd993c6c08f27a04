"""Both implementations of what waits give the same: commands of messages, entries of segments, fields of records."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, cast

import pytest
from confluent_kafka import Message
from hypothesis import example, given
from hypothesis import strategies as st
from tests.support.fuzzing import fuzz, nightly_for, peak_memory_bytes
from tests.support.relay.native_records import DAY_MS, KEY, OFFSET, POLICY, TIMESTAMP_MS, VALUE, Header, Timestamp
from tests.support.relay.speedups import BOTH, FIELDS, comparable, in_c, in_python, of, read

from delaytopic_api.records import CONTROL_HEADERS, Headers
from delaytopic_relay.core import entries as switch
from delaytopic_relay.core.commands import MAX_HEADERS, Cancel, Command, Reject, Schedule, SourceMessage
from delaytopic_relay.core.entries import ENTRY_BYTES, HEADER_BYTES, ID_BYTES
from delaytopic_relay.dialects.native import NativePolicy
from delaytopic_relay.dialects.times import LAST_INSTANT_MS
from delaytopic_relay.errors import ConfigurationError

POLICIES = (
    POLICY,
    POLICY._replace(default_delay_ms=300_000),
    POLICY._replace(delay_ms=30_000),
    POLICY._replace(delay_ms=0),
    POLICY._replace(ids_enabled=False, max_delay_ms=0),
)
LONGEST = POLICY._replace(max_delay_ms=LAST_INSTANT_MS)
"""The policy under which every instant is within the longest delay of a record from the beginning of 1970."""


def message(
    headers: Sequence[Header] | None = None,
    timestamp: Timestamp = (1, TIMESTAMP_MS),
    key: bytes | None = KEY,
    value: bytes | None = VALUE,
    offset: int = OFFSET,
) -> SourceMessage:
    """A record as the client hands it over."""
    made = Message(
        topic="source",
        partition=3,
        offset=offset,
        key=key,
        value=value,
        headers=None if headers is None else [*headers],
        timestamp=timestamp,
    )
    return cast(SourceMessage, made)


def all_comparable(commands: Sequence[object]) -> list[object]:
    return [*map(comparable, commands)]


# -- messages

KEYS = st.none() | st.binary(max_size=40) | st.sampled_from([b"", b"k" * 255, b"k" * 256, b"k" * 65_536])
NAMES = st.one_of(
    st.sampled_from(
        [
            *sorted(CONTROL_HEADERS),
            "deliver-foo",
            "deliver-",
            "Deliver-At",
            "X-Deliver-At",
            "deliver_at",
            "delay-receipt",
        ]
    ),
    st.sampled_from(
        ["", "trace", "d", "x", "gr\u00f6\u00dfe", "\u20ac" * 20, "deliver-at\0", "a\0b", "n" * 31, "n" * 32]
    ),
    st.text(max_size=12),
    st.text("\x00\x7f abDX-", max_size=40),
)
DIGITS = st.one_of(
    st.integers(-10, 10),
    st.integers(TIMESTAMP_MS - 5, TIMESTAMP_MS + 40 * DAY_MS),
    st.integers(LAST_INSTANT_MS - 9, LAST_INSTANT_MS + 9),
    st.integers(0, 30).map(lambda length: 10**length),
    st.integers(),
).map(lambda number: b"%d" % number)
TEXTS = st.one_of(
    st.none(),
    DIGITS,
    st.builds(lambda digits, zeros: b"0" * zeros + digits, DIGITS, st.integers(0, 20)),
    st.binary(max_size=20),
    st.sampled_from([b"", b"+5", b" 5", b"5 ", b"5\n", b"5\0", b"-0", b"1_000", b"5.0", b"0x5", b"90s", b"1h30m"]),
    st.sampled_from(["\u0663".encode(), "\u00b2".encode(), "\uff15".encode(), b"9" * 4_500, b"2026-11-21T14:01:26Z"]),
    st.sampled_from([b"cancel", b"schedule", b"shop.mails", b"other"]),
)
HEADERS: st.SearchStrategy[list[Header] | None] = st.one_of(
    st.none(),
    st.lists(st.tuples(NAMES, TEXTS), max_size=6),
    st.lists(st.tuples(st.sampled_from(["deliver-at", "deliver-after"]), TEXTS), min_size=1, max_size=1),
    # Up to more than a relay carries
    st.builds(
        lambda header, times, more: [header] * times + more,
        st.tuples(NAMES, TEXTS),
        st.integers(0, 300),
        st.lists(st.tuples(NAMES, TEXTS), max_size=2),
    ),
)
INSTANTS = st.one_of(
    st.just(TIMESTAMP_MS),
    st.integers(-2, 2),
    st.integers(LAST_INSTANT_MS - 31 * DAY_MS, LAST_INSTANT_MS + 9),
    st.sampled_from([0, LAST_INSTANT_MS, LAST_INSTANT_MS - POLICY.max_delay_ms, 2**63 - 1, -(2**63)]),
)
MESSAGES = st.builds(
    message,
    HEADERS,
    st.tuples(st.sampled_from([0, 1, 2]), INSTANTS),
    KEYS,
    KEYS,
    st.integers(-2, 2) | st.integers(0, 2**63 - 1),
)


@given(st.lists(MESSAGES, max_size=4), st.sampled_from([*POLICIES, LONGEST]), st.booleans())
@example([message([("Deliver-At", b"5"), ("deliver-at", b"5")])], POLICY, True)
@example([message([("a", b"")] * 16 + [("Deliver-At", b"5")])], POLICY, True)
@example([message([("deliver-after", b"9" * 18)], (1, 0)), message([("deliver-at", b"9" * 19)], (1, 0))], LONGEST, True)
@example([message([("deliver-at", b"0")])], POLICY._replace(delay_ms=30_000), True)
def test_messages_are_read_alike_and_the_same_names_are_heard(
    messages: list[SourceMessage], policy: NativePolicy, hears: bool
) -> None:
    heard: list[str] = []
    heard_in_python: list[str] = []

    commands = read(in_c, policy, messages, heard.append if hears else None)

    expected = read(in_python, policy, messages, heard_in_python.append if hears else None)
    assert all_comparable(commands) == all_comparable(expected)
    assert heard == heard_in_python


@pytest.mark.parametrize(
    "headers",
    [
        None,
        [],
        [("trace", b"1"), ("trace", None), ("", b"")],
        [("deliver-at", b"%d" % TIMESTAMP_MS)],
        [("trace", b"1"), ("deliver-after", b"000000000000000005")],
        [("Deliver-At", b"soon"), ("delay-receipt", b"x")],
        [("n", b"")] * MAX_HEADERS,
    ],
)
def test_a_plain_record_is_read_without_python(headers: list[Header] | None) -> None:
    [command] = in_c.read([message(headers)], refuse, 0, LAST_INSTANT_MS, DAY_MS, None)

    assert type(command) is in_c.Schedule


@pytest.mark.parametrize(
    "headers",
    [
        [("gr\u00f6\u00dfe", b"")],
        [("a\0b", b"")],
        [("deliver-to", b"audit")],
        [("deliver-at", b"0"), ("deliver-id", b"x")],
        [("deliver-after", b"5s")],
        [("deliver-after", b"0000000000000000005")],
    ],
)
def test_a_record_that_is_less_plain_is_left_to_the_careful_way(headers: list[Header]) -> None:
    with pytest.raises(Broken):
        in_c.read([message(headers)], refuse, 0, LAST_INSTANT_MS, DAY_MS, None)


@BOTH
def test_messages_may_come_in_any_sequence(entries: Any) -> None:
    messages = [message(offset=offset) for offset in range(3)]

    assert read(entries, POLICY, tuple(messages)) == read(entries, POLICY, messages)


# -- messages that fail


class Scripted(NamedTuple):
    """A record whose methods return, or raise, what a test says."""

    parts: dict[str, Any]

    def _part(self, name: str) -> Any:
        part = self.parts[name]
        if isinstance(part, BaseException):
            raise part
        return part() if callable(part) else part

    def topic(self) -> str | None:
        return "source"

    def partition(self) -> int | None:
        return 3

    def offset(self) -> int | None:
        return cast("int | None", self._part("offset"))

    def timestamp(self) -> tuple[int, int]:
        return cast("tuple[int, int]", self._part("timestamp"))

    def key(self) -> bytes | None:
        return cast("bytes | None", self._part("key"))

    def value(self) -> bytes | None:
        return cast("bytes | None", self._part("value"))

    def headers(self) -> Headers | None:
        return cast("Headers | None", self._part("headers"))


def scripted(**changes: Any) -> Scripted:
    parts: dict[str, Any] = {"offset": OFFSET, "timestamp": (1, TIMESTAMP_MS), "key": KEY, "value": VALUE}
    return Scripted({**parts, "headers": None, **changes})


class Broken(Exception):
    """An error that only tests raise."""


def refuse(*_: object) -> NoReturn:
    raise Broken("refused")


@pytest.mark.parametrize("part", ["offset", "timestamp", "key", "value", "headers"])
@pytest.mark.parametrize("error", [Broken("no"), KeyboardInterrupt()])
def test_an_error_of_a_message_passes_through(part: str, error: BaseException) -> None:
    with pytest.raises(type(error)):
        read(in_c, POLICY, [message(), scripted(**{part: error})])


@pytest.mark.parametrize("error", [SystemError("no"), UnicodeDecodeError("utf-8", b"", 0, 1, "no")])
def test_unreadable_headers_are_refused_as_python_refuses_them(error: Exception) -> None:
    unreadable = scripted(headers=error)

    commands = read(in_c, POLICY, [unreadable, message()])

    assert all_comparable(commands) == all_comparable(read(in_python, POLICY, [unreadable, message()]))
    assert type(commands[0]) is Reject


@pytest.mark.parametrize(
    "changes",
    [
        {"offset": None},
        {"offset": 2**63},
        {"offset": True},
        {"key": bytearray(b"k")},
        {"value": "text"},
        {"headers": ()},
        {"headers": [("a", bytearray(b"1"))]},
        {"headers": [["a", b"1"]]},
        {"timestamp": (1, 2**70)},
        {"timestamp": (0, None)},
        {"timestamp": (2**70, 5)},
        {"timestamp": [1, 5]},
    ],
)
def test_parts_of_other_types_are_left_to_the_careful_way(changes: dict[str, Any]) -> None:
    with pytest.raises(Broken):
        in_c.read([scripted(**changes)], refuse, 0, LAST_INSTANT_MS, DAY_MS, None)


def test_an_error_of_the_careful_way_passes_through() -> None:
    messages = [message(), message([("deliver-id", b"x")])]

    with pytest.raises(Broken):
        in_c.read(messages, refuse, 0, LAST_INSTANT_MS, 0, None)


def test_an_error_of_whoever_hears_names_passes_through() -> None:
    with pytest.raises(Broken):
        in_c.read([message([("Deliver-At", b"")])], refuse, 0, LAST_INSTANT_MS, 0, refuse)


def test_headers_that_change_while_a_message_is_asked_for_its_parts_are_read_as_they_are_then() -> None:
    headers: list[Header] = [("a", b"1")]

    def grow() -> bytes:
        headers.extend([("b", b"2" * 1_000)] * 100)
        return b"k"

    [command] = read(in_c, POLICY, [scripted(key=grow, headers=headers)])

    expected = Schedule(TIMESTAMP_MS, OFFSET, b"k", VALUE, headers, timestamp_ms=TIMESTAMP_MS)
    assert comparable(command) == comparable(expected)


def test_messages_that_vanish_from_their_list_while_it_is_read_are_read_all_the_same() -> None:
    messages: list[SourceMessage] = [message([("deliver-id", b"x")], offset=offset) for offset in range(50)]

    def careful(each: SourceMessage) -> Command:
        messages.clear()
        return Cancel(each.offset() or 0, b"x")

    commands = in_c.read(messages, careful, 0, LAST_INSTANT_MS, 0, None)

    assert commands == [Cancel(offset, b"x") for offset in range(50)]


@pytest.mark.parametrize(
    "arguments", [(), (1,), ([], None, 0, 0, 0), ([], None, 2**64, 0, 0, None), (1, None, 0, 0, 0, None)]
)
def test_arguments_that_make_no_sense_are_refused(arguments: tuple[Any, ...]) -> None:
    with pytest.raises((TypeError, OverflowError)):
        in_c.read(*arguments)


# -- entries that are written

EDGES = (0, 1, 127, 128, 255, 256, 32_767, 32_768, 65_535, 65_536, 2**31 - 1, 2**31, 2**32 - 1, 2**32, LAST_INSTANT_MS)
LENGTHS = (0, 1, 30, 31, 32, 33, 254, 255, 256, 257, 65_534, 65_535, 65_536, 65_537)


def assert_packed_alike(messages: Sequence[SourceMessage], policy: NativePolicy = LONGEST) -> None:
    commands = cast("list[Schedule]", read(in_c, policy, messages))

    assert in_c.pack(of(in_c, commands)) == in_python.pack(of(in_python, commands))


@pytest.mark.parametrize("due_ms", EDGES)
def test_a_due_time_takes_the_same_bytes_in_both(due_ms: int) -> None:
    assert_packed_alike([message([("deliver-at", b"%d" % due_ms)], (1, 0)), message(None, (1, 0))])


@pytest.mark.parametrize("offset", [*EDGES, 2**63 - 1])
def test_an_offset_takes_the_same_bytes_in_both(offset: int) -> None:
    assert_packed_alike([message(offset=offset, timestamp=(1, 0))])


@pytest.mark.parametrize("edge", [1, 32, 33, 128, 129, 2**15, 2**15 + 1, 2**31, 2**31 + 1, 2**63])
def test_a_number_below_zero_takes_the_same_bytes_in_both(edge: int) -> None:
    assert_packed_alike([scripted(offset=-edge, timestamp=(1, 0))])


@pytest.mark.parametrize("length", LENGTHS)
def test_keys_values_and_headers_of_a_length_take_the_same_bytes_in_both(length: int) -> None:
    content = b"x" * length
    messages = [
        message(timestamp=(1, 0), key=content),
        message(timestamp=(1, 0), value=content),
        message([("n" * length, b"")], (1, 0)),
        message([("n", content)], (1, 0), None, None),
    ]

    assert_packed_alike(messages)


@pytest.mark.parametrize("count", [0, 1, 15, 16, 17, 255, 256])
@pytest.mark.parametrize("control", [0, -1])
def test_as_many_headers_take_the_same_bytes_in_both(count: int, control: int) -> None:
    headers: list[Header] = [("n", b"v")] * (count - 1) + [("last", None)] * min(count, 1)
    if headers:
        headers[control] = ("deliver-at", b"0")

    assert_packed_alike([message(headers, (1, 0))])


@pytest.mark.parametrize("count", [0, 1, 15, 16, 17, 65_535, 65_536])
def test_as_many_schedules_take_the_same_bytes_in_both(count: int) -> None:
    schedule = Schedule(1, 2, None, None, None)

    assert in_c.pack(of(in_c, [schedule]) * count) == in_python.pack(of(in_python, [schedule]) * count)


# -- entries that are read

INT64 = st.sampled_from([*EDGES, -1, -33, 2**63 - 1, -(2**63)]) | st.integers(-(2**63), 2**63 - 1)
SHORT = st.none() | st.binary(max_size=40)
NAME = st.text(max_size=5) | st.text(st.characters(max_codepoint=127), max_size=40)
INT64_OR_NONE = st.none() | INT64
SCHEDULES = st.builds(
    Schedule,
    INT64,
    INT64,
    SHORT,
    SHORT,
    st.none() | st.lists(st.tuples(NAME, SHORT), max_size=20),
    st.integers(-12, 20) | INT64,
    SHORT,
    st.none() | st.text(max_size=40),
    INT64_OR_NONE,
    INT64_OR_NONE,
    INT64_OR_NONE,
)
NEAR_SCHEDULES = st.builds(
    Schedule, st.integers(0, 3), st.integers(0, 5), st.none(), SHORT, st.none(), st.just(-1), SHORT
)
MANY = st.lists(NEAR_SCHEDULES, max_size=12) | st.lists(SCHEDULES, max_size=3)
PLAIN = Schedule(5, 6, b"key", b"value", [("trace", b"1"), ("deliver-at", b"5")], 1)


@given(st.lists(SCHEDULES, max_size=4))
@example([Schedule(1, 2, None, None, [("a", b"")] * 300)])
def test_schedules_are_packed_into_the_same_bytes_and_unpacked_again(schedules: list[Schedule]) -> None:
    data = in_python.pack(of(in_python, schedules))

    assert in_c.pack(of(in_c, schedules)) == data
    assert in_c.pack(in_c.unpack(data)) == data
    assert all_comparable(in_c.unpack(data)) == all_comparable(in_python.unpack(data)) == all_comparable(schedules)


@given(SCHEDULES)
def test_schedules_are_plain_alike_however_they_came_about(schedule: Schedule) -> None:
    [made], [packed] = of(in_c, [schedule]), of(in_python, [schedule])
    [unpacked] = in_c.unpack(in_c.pack([made]))

    assert (made.plain, unpacked.plain) == (packed.plain, packed.plain)
    assert in_c.all_plain([made, made]) == in_python.all_plain([packed, packed]) == packed.plain


@pytest.mark.parametrize(
    ("changes", "plain"),
    [
        ({}, True),
        ({"id": b"x", "rank": 5, "timestamp_ms": 5}, True),
        ({"control": -1}, True),
        ({"headers": None, "control": -1}, True),
        ({"target": "other"}, False),
        ({"expires_ms": 0}, False),
        ({"control": -2}, False),
        ({"control": 2}, False),
        ({"headers": None}, False),
        ({"headers": [("gr\u00f6\u00dfe", b""), ("", b"")]}, False),
        ({"headers": [("a\0b", b""), ("", b"")]}, False),
    ],
)
@BOTH
def test_a_record_that_leaves_as_it_came_is_plain(entries: Any, changes: dict[str, Any], plain: bool) -> None:
    fields = {field: getattr(PLAIN, field) for field in FIELDS}

    assert entries.Schedule(**{**fields, **changes}).plain is plain


HEAD = b"\x91\x9b\x05\x06"


@pytest.mark.parametrize(
    "data",
    [
        *(in_c.pack(of(in_c, [PLAIN]))[:end] for end in range(len(in_c.pack(of(in_c, [PLAIN]))))),
        *(in_c.pack(of(in_c, [PLAIN])) + more for more in (b"\0", b"\xc0")),
        *(b"\xc0", b"\x05", b"\xdc", b"\xdc\xff", b"\xdd\xff\xff\xff\xff", b"\x81\x01\x02", b"\x91\xc0", b"\x91\x05"),
        b"\x91\x94\x01\x02\xc0\xc0",
        b"\x91\x9c\x01\x02\xc0\xc0\xc0\xff" + b"\xc0" * 6,
        b"\x91\x95\xcf\xff\xff\xff\xff\xff\xff\xff\xff\x02\xc0\xc0\xc0",
        b"\x91\x95\xcb\x40\0\0\0\0\0\0\0\x02\xc0\xc0\xc0",
        b"\x91\x95\x01\x02\xa1a\xc0\xc0",
        b"\x91\x95\x01\x02\xc0\xc0\x91\x92\xa1\xff\xc0",
        b"\x91\x95\x01\x02\xc0\xc0\x91\x92\xa3\xed\xa0\x80\xc0",
        b"\x91\x95\x01\x02\xc0\xc0\x91\x93\xa1a\xc0\xc0",
        b"\x91\x95\x01\x02\xc0\xc0\x91\xc0",
        b"\x91\x98\x01\x02\xc0\xc0\xc0\xff\xc0\xa1\xff",
        b"\x91\x96\x01\x02\xc0\xc0\xc0\xc0",
    ],
)
@BOTH
def test_what_is_no_list_of_entries_is_refused(entries: Any, data: bytes) -> None:
    assert unpacked(entries, data) is None


@pytest.mark.parametrize("fields", range(5, 12))
@BOTH
def test_an_entry_with_fewer_fields_lacks_the_last_ones(entries: Any, fields: int) -> None:
    values = [
        b"\x05",
        b"\x06",
        b"\xc4\x01k",
        b"\xc0",
        b"\xc0",
        b"\x01",
        b"\xc4\x01i",
        b"\xa1t",
        b"\x07",
        b"\x08",
        b"\x09",
    ]
    expected = [5, 6, b"k", None, None, 1, b"i", "t", 7, 8, 9][:fields]

    [found] = entries.unpack(b"\x91" + bytes([0x90 | fields]) + b"".join(values[:fields]))

    assert found == entries.Schedule(*expected)
    assert entries.unpack(entries.pack([found])) == [found]


LONGER = b"\x91\xdc\x00\x0b\xcd\x00\x05\xd3" + b"\0" * 7 + b"\x06\xc5\x00\x03key\xc6\x00\x00\x00\x05value\xdc\x00\x02"
LONGER += b"\xdc\x00\x02\xd9\x05trace\xc4\x011\x92\xaadeliver-at\xc4\x015\xd2\x00\x00\x00\x01" + b"\xc0" * 5
"""The entry of `PLAIN`, with lengths and numbers longer than they need to be."""


@BOTH
def test_entries_that_another_program_writes_longer_equal_their_schedules(entries: Any) -> None:
    assert entries.unpack(LONGER) == of(entries, [PLAIN])
    assert entries.unpack(entries.pack(entries.unpack(LONGER))) == of(entries, [PLAIN])


@BOTH
def test_entries_are_read_out_of_whatever_holds_bytes(entries: Any) -> None:
    data = entries.pack(of(entries, [PLAIN]))

    assert entries.unpack(memoryview(b"\x01" + data)[1:]) == entries.unpack(data) == of(entries, [PLAIN])


@pytest.mark.parametrize("data", [None, memoryview(b"abcd")[::2]])
@BOTH
def test_what_holds_no_bytes_is_refused(entries: Any, data: Any) -> None:
    with pytest.raises((TypeError, BufferError)):
        entries.unpack(data)


@st.composite
def mutated_entries(draw: st.DrawFn) -> bytes:
    """Draw entries of which a piece was replaced, or some bytes."""
    data = bytearray(in_python.pack(of(in_python, draw(st.lists(SCHEDULES, max_size=4)))))
    for _ in range(draw(st.integers(0, 2))):
        first = draw(st.integers(0, len(data)))
        last = draw(st.integers(first, min(len(data), first + 4)))
        data[first:last] = draw(st.binary(max_size=6))
    return bytes(data)


def unpacked(entries: Any, data: bytes) -> list[object] | None:
    try:
        return all_comparable(entries.unpack(data))
    except ValueError:
        return None


@nightly_for(60)
def test_mutated_entries_are_unpacked_or_refused_alike(
    seconds: int, record_property: Callable[[str, object], None]
) -> None:
    counts = {"unpacked": 0, "refused": 0, "bytes": 0}

    def compare(data: bytes) -> None:
        counts["bytes"] += len(data)
        found = unpacked(in_c, data)
        counts["refused" if found is None else "unpacked"] += 1
        assert found == unpacked(in_python, data)

    tried = fuzz(mutated_entries() | st.binary(max_size=60), compare, seconds)

    record_property("hostile", {"entries": tried, **counts, "peak_memory_bytes": peak_memory_bytes()})
    assert min(counts.values()) > 0


# -- objects


@pytest.mark.parametrize("field", [*FIELDS, "plain", "anything"])
def test_no_field_can_be_set(field: str) -> None:
    with pytest.raises(AttributeError):
        setattr(of(in_c, [PLAIN])[0], field, 5)


@BOTH
def test_fields_may_be_given_by_name(entries: Any) -> None:
    fields = {field: getattr(PLAIN, field) for field in FIELDS}

    assert entries.Schedule(**fields) == entries.Schedule(*fields.values()) == of(entries, [PLAIN])[0]
    assert entries.Schedule(1, 2, None, None, None) == entries.Schedule(1, 2, None, None, headers=None, control=-1)


@pytest.mark.parametrize(
    ("positional", "named"),
    [
        ((), {}),
        ((1, 2, None, None), {}),
        ((1, 2, None, None, None), {"nothing": 5}),
        ((1, 2, None, None, None), {"headers": None}),
        (range(12), {}),
    ],
)
@BOTH
def test_fields_that_are_missing_unknown_or_given_twice_are_refused(
    entries: Any, positional: Sequence[Any], named: dict[str, Any]
) -> None:
    with pytest.raises(TypeError):
        entries.Schedule(*positional, **named)


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"due_ms": None}, TypeError),
        ({"due_ms": 2**63}, OverflowError),
        ({"offset": -(2**63) - 1}, OverflowError),
        ({"control": None}, TypeError),
        ({"key": "text"}, TypeError),
        ({"value": bytearray(b"x")}, TypeError),
        ({"headers": "text"}, TypeError),
        ({"headers": [["a", b""]]}, TypeError),
        ({"headers": [("a", b"", b"")]}, TypeError),
        ({"headers": [(b"a", b"")]}, TypeError),
        ({"headers": [("a", "")]}, TypeError),
        ({"headers": [("\ud800", b"")]}, UnicodeEncodeError),
        ({"id": "x"}, TypeError),
        ({"target": b"x"}, TypeError),
        ({"target": "\ud800"}, UnicodeEncodeError),
        ({"rank": "5"}, TypeError),
    ],
)
def test_fields_of_other_types_make_no_schedule(changes: dict[str, Any], error: type[Exception]) -> None:
    fields = {field: getattr(PLAIN, field) for field in FIELDS}

    with pytest.raises(error):
        in_c.Schedule(**{**fields, **changes})


def test_none_can_be_made_without_an_entry() -> None:
    with pytest.raises(TypeError):
        object.__new__(in_c.Schedule)
    with pytest.raises(TypeError):
        type("Other", (in_c.Schedule,), {})


def test_fields_are_new_objects_that_their_reader_may_change() -> None:
    [schedule] = of(in_c, [PLAIN])
    before = schedule.headers
    assert before is not None

    before.clear()

    assert schedule.headers == PLAIN.headers


@BOTH
def test_it_is_shown_with_all_fields(entries: Any) -> None:
    assert repr(of(entries, [PLAIN])[0]) == (
        "Schedule(due_ms=5, offset=6, key=b'key', value=b'value', headers=[('trace', b'1'), ('deliver-at', b'5')], "
        "control=1, id=None, target=None, expires_ms=None, timestamp_ms=None, rank=None)"
    )


@given(SCHEDULES, SCHEDULES)
def test_schedules_are_equal_if_all_their_fields_are(one: Schedule, other: Schedule) -> None:
    for first, second in ((one, one), (one, other)):
        (a, b), same = of(in_c, [first, second]), comparable(first) == comparable(second)
        assert (a == b, a != b) == (same, not same)


@pytest.mark.parametrize("other", [None, 5, b"", (5, 6), Cancel(6, b"x"), object()])
@BOTH
def test_other_things_are_unequal_either_way_round(entries: Any, other: object) -> None:
    [schedule] = of(entries, [PLAIN])

    assert [schedule == other, other == schedule] == [False, False]


@BOTH
def test_schedules_have_no_order_and_no_hash(entries: Any) -> None:
    [schedule] = of(entries, [PLAIN])

    with pytest.raises(TypeError):
        sorted(cast(Any, [schedule, schedule]))
    with pytest.raises(TypeError):
        hash(schedule)


@given(SCHEDULES, INT64)
@BOTH
def test_a_schedule_gets_another_due_time_and_keeps_the_rest(entries: Any, schedule: Schedule, due_ms: int) -> None:
    [before] = of(entries, [schedule])

    after = entries.due_at(before, due_ms)

    assert comparable(after) == (due_ms, *cast("tuple[object]", comparable(schedule))[1:])
    assert after.plain == before.plain
    assert entries.unpack(entries.pack([after])) == [after]
    assert comparable(before) == comparable(schedule)


# -- many at once


def by_key(schedule: Schedule) -> tuple[int, int]:
    return schedule.due_ms, schedule.offset


@given(MANY)
@BOTH
def test_schedules_are_ordered_by_due_time_and_offset_and_of_copies_one_stays(
    entries: Any, schedules: list[Schedule]
) -> None:
    given_ones = of(entries, schedules)

    ordered = entries.ordered(given_ones)

    assert [*map(by_key, ordered)] == sorted({*map(by_key, schedules)})
    assert all(any(each is one for one in given_ones) for each in ordered)
    assert given_ones == of(entries, schedules)


@given(MANY)
@BOTH
def test_a_summary_has_the_first_and_last_due_time_and_the_last_offset(entries: Any, schedules: list[Schedule]) -> None:
    if not schedules:
        with pytest.raises(ValueError, match=r"no schedules|empty"):
            entries.summary([])
        return
    due_ms = [schedule.due_ms for schedule in schedules]

    found = entries.summary(of(entries, schedules))

    assert found == in_python.Summary(min(due_ms), max(due_ms), max(schedule.offset for schedule in schedules))
    assert type(found) is in_python.Summary


@given(MANY)
@BOTH
def test_sizes_are_those_of_the_largest_and_of_all_and_no_entry_is_longer(
    entries: Any, schedules: list[Schedule]
) -> None:
    given_ones = of(entries, schedules)
    each = [entries.size(schedule) for schedule in given_ones]

    assert entries.sizes(given_ones) == in_python.Sizes(max(each, default=0), sum(each))
    assert all(len(entries.pack([one])) <= size for one, size in zip(given_ones, each, strict=True))


def test_the_size_counts_keys_values_headers_and_the_id_and_what_stands_beside_them() -> None:
    bare, full = (
        Schedule(1, 0, None, None, None),
        Schedule(10, 1, b"key", b"value", [("", b""), ("name", None)], id=b"a"),
    )
    parts = len(b"key" + b"value" + b"name" + b"a") + 2 * HEADER_BYTES

    assert [*map(in_python.size, of(in_python, [bare, full]))] == [ENTRY_BYTES, ENTRY_BYTES + parts + ID_BYTES]
    lengths = [len(in_c.pack(of(in_c, [each]))) - 1 for each in (bare, full)]
    assert [*map(in_c.size, of(in_c, [bare, full]))] == [100 + lengths[0], 100 + lengths[1] + ID_BYTES]


@given(MANY, st.integers(1, 5) | st.just(1_000))
@BOTH
def test_schedules_are_grouped_by_the_span_that_they_are_due_in(
    entries: Any, schedules: list[Schedule], width_ms: int
) -> None:
    # What is due in the very first of 64 bits has no beginning there
    given_ones = [each for each in of(entries, schedules) if each.due_ms > -(2**62)]
    spans: dict[int, list[Schedule]] = {}
    for schedule in given_ones:
        spans.setdefault(schedule.due_ms // width_ms * width_ms, []).append(schedule)

    found, groups = entries.by_span(given_ones, width_ms), entries.grouped(given_ones, width_ms)

    assert found == [
        in_python.Span(
            start_ms, spans[start_ms], entries.sizes(spans[start_ms]).total, min(s.offset for s in spans[start_ms])
        )
        for start_ms in sorted(spans)
    ]
    assert groups == [(start_ms, schedules) for start_ms, schedules, _, _ in found]
    assert {type(each) for each in found} <= {in_python.Span}


class Empties:
    """Garbage that empties a list when it is collected."""

    def __init__(self, found: list[Schedule]) -> None:
        self.found, self.itself = found, self

    def __del__(self) -> None:
        self.found.clear()


@pytest.mark.parametrize(
    "work",
    [in_c.ordered, lambda found: in_c.by_span(found, 1), lambda found: in_c.grouped(found, 1)],
    ids=["ordered", "by_span", "grouped"],
)
@pytest.mark.usefixtures("_collects_at_once")
def test_schedules_that_vanish_from_their_list_meanwhile_are_in_the_answer(work: Callable[[Any], object]) -> None:
    schedules = of(in_c, [Schedule(n, n, b"k" * 50, None, None) for n in range(100)])
    expected = work([*schedules])
    gc.disable()
    # Python keeps some for another time, which it gives out without a look for garbage
    lists: list[list[None]] = [[] for _ in range(100)]
    Empties(schedules)
    gc.enable()

    found = work(schedules)

    assert found == expected
    assert schedules == []
    assert len(lists) == 100


@pytest.fixture
def _collects_at_once() -> Iterator[None]:
    before = gc.get_threshold()
    gc.set_threshold(1)
    yield
    gc.set_threshold(*before)


@pytest.mark.parametrize("function", ["by_span", "grouped"])
@BOTH
def test_a_span_of_no_time_is_refused(entries: Any, function: str) -> None:
    with pytest.raises((ValueError, ZeroDivisionError)):
        getattr(entries, function)(of(entries, [PLAIN]), 0)


@pytest.mark.parametrize(
    ("others", "unnamed"),
    [([], True), ([PLAIN], True), ([Schedule(1, 2, None, None, None, id=b"")], False), ([Cancel(1, b"x")], False)],
)
@BOTH
def test_commands_are_unnamed_if_all_are_schedules_without_an_id(
    entries: Any, others: list[Any], unnamed: bool
) -> None:
    mixed = [
        *of(entries, [PLAIN]),
        *(of(entries, [each])[0] if isinstance(each, Schedule) else each for each in others),
    ]

    assert entries.unnamed(mixed) is unnamed
    assert entries.unnamed([]) is True


@pytest.mark.parametrize("function", ["pack", "summary", "sizes", "ordered", "all_plain"])
@pytest.mark.parametrize("argument", [5, [None], [Cancel(1, b"x")]])
def test_what_is_no_sequence_of_schedules_is_refused(function: str, argument: Any) -> None:
    with pytest.raises(TypeError):
        getattr(in_c, function)(argument)


# -- memory

ROUNDS = 2_000
BYTES_A_ROUND = 300
"""Less than any object of a record that would be left behind in each round."""


def ignore(_: str) -> None:
    """Hears of a name."""


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4_096


def test_nothing_is_left_behind_by_whatever_is_done_with_schedules() -> None:
    key, value, note = b"k" * 500, b"v" * 500, [("Deliver-At", b"1" * 500)]
    own: list[Header] = [("trace", b"2" * 500), ("deliver-at", b"%d" % TIMESTAMP_MS)]
    messages = [message(own, key=key, value=value), message(note), message([("deliver-id", b"x")]), message(None)]
    whole = (5, 6, key, value, own, 1, b"i" * 500, "t\u00e9" * 200, 7, 8, 9)
    ends_early = in_python.pack(of(in_python, [PLAIN]) * 50)[:-1]
    constants: list[Any] = [None, key, value, *own, *own[0], *note, *messages, *whole, in_c.Schedule, "deliver-at"]

    def work() -> None:
        read(in_c, POLICY, messages, ignore)
        made = [in_c.Schedule(*whole), in_c.Schedule(*whole[:5], rank=None)]
        assert unpacked(in_c, ends_early) is None
        assert in_c.unpack(in_c.pack(made)) == made != made[::-1]
        assert in_c.due_at(made[0], 10**12) != made[0]
        assert in_c.summary(made)
        assert in_c.sizes(made)
        assert in_c.ordered([*made, *made])
        assert in_c.by_span(made, DAY_MS)
        assert in_c.grouped(made, DAY_MS)
        assert in_c.unnamed(made) is in_c.all_plain(made) is False
        assert all(map(hasattr, [made[0]] * 12, (*FIELDS, "plain")))
        assert repr(made[0])
        for wrong in ({"headers": [("a", 5)]}, {"target": 5}, {"rank": "x"}, {"nothing": 5}):
            with pytest.raises(TypeError):
                in_c.Schedule(1, 2, None, None, **{"headers": None, **cast(Any, wrong)})
        with pytest.raises(TypeError):
            in_c.pack([*made, None])
        with pytest.raises(Broken):
            in_c.read(messages, refuse, 0, LAST_INSTANT_MS, 0, None)

    for _ in range(ROUNDS // 10):
        work()
    gc.collect()
    counts, before = [sys.getrefcount(each) for each in constants], resident_bytes()
    for _ in range(ROUNDS):
        work()
    gc.collect()

    # A few may be held for a while by what runs beside this.
    assert max(abs(sys.getrefcount(each) - count) for each, count in zip(constants, counts, strict=True)) < ROUNDS // 10
    assert resident_bytes() - before < ROUNDS * BYTES_A_ROUND


# -- the switch


def test_a_relay_that_is_to_have_the_speedups_and_has_none_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(switch, "_asked_for", "1")
    monkeypatch.setattr(switch, "_missing", "no module of this name")

    with pytest.raises(ConfigurationError) as raised:
        switch.check_speedups()

    assert str(raised.value) == (
        "the environment variable DELAYTOPIC_SPEEDUPS is 1, but the speedups cannot be imported "
        "(no module of this name): install a build that has them, or set DELAYTOPIC_SPEEDUPS to 0"
    )


@pytest.mark.parametrize("value", ["2", "true", " 1"])
def test_a_switch_that_is_neither_on_nor_off_is_refused(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setattr(switch, "_asked_for", value)

    with pytest.raises(ConfigurationError) as raised:
        switch.check_speedups()

    assert str(raised.value) == f"the environment variable DELAYTOPIC_SPEEDUPS is {value!r}: it may be 1 or 0"


@pytest.mark.parametrize("value", ["", "0"])
def test_a_relay_that_need_not_have_the_speedups_starts_without(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setattr(switch, "_asked_for", value)
    monkeypatch.setattr(switch, "_missing", "no module of this name")

    switch.check_speedups()


@pytest.mark.parametrize(("value", "speedups"), [("0", False), ("1", True), ("", True)])
def test_the_variable_chooses_the_implementation(value: str, speedups: bool) -> None:
    code = "from delaytopic_relay.core import entries; print(entries.SPEEDUPS, entries.Schedule.__module__)"
    environment = {**os.environ, switch.VARIABLE: value}

    run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)

    module = "delaytopic_relay._speedups" if speedups else "delaytopic_relay.core._pyentries"
    assert run.stdout.split() == [str(speedups), module]
