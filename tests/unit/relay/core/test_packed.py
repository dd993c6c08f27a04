"""The extension gives what Python gives: commands of messages, entries of segments, fields of records."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, cast

import msgspec
import pytest
from confluent_kafka import Message
from hypothesis import example, given
from hypothesis import strategies as st
from tests.support.fuzzing import fuzz, nightly_for, peak_memory_bytes
from tests.support.relay.extension import extension, packed_of, read_packed, schedule_of
from tests.support.relay.native_records import DAY_MS, KEY, OFFSET, POLICY, TIMESTAMP_MS, VALUE, Header, Timestamp

from delaytopic_api.records import CONTROL_HEADERS, Headers
from delaytopic_relay.core import packed as switch
from delaytopic_relay.core.commands import MAX_HEADERS, Cancel, Command, Reject, Schedule, SourceMessage
from delaytopic_relay.dialects.native import NativeDialect, NativePolicy
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
encode = msgspec.msgpack.Encoder().encode
decode = msgspec.msgpack.Decoder(list[Schedule]).decode


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


def in_python(
    policy: NativePolicy, messages: Sequence[SourceMessage], misspelt: Callable[[str], None] | None = None
) -> list[Command]:
    dialect = NativeDialect(policy, misspelt)
    return [dialect.read(each) for each in messages]


def pack(schedules: Sequence[Schedule]) -> bytes:
    """The entries of schedules that are packed, all of them."""
    packed = extension.pack(schedules)
    assert packed is not None
    return packed


def one_packed(schedule: Schedule) -> Schedule:
    [packed] = packed_of([schedule])
    return packed


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
def test_the_extension_reads_messages_as_python_does_and_hears_the_same_names(
    messages: list[SourceMessage], policy: NativePolicy, hears: bool
) -> None:
    heard: list[str] = []
    heard_in_python: list[str] = []

    commands = read_packed(policy, messages, heard.append if hears else None)

    expected = in_python(policy, messages, heard_in_python.append if hears else None)
    assert commands == expected
    assert [schedule_of(command) for command in commands] == expected
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
def test_a_plain_record_stays_packed(headers: list[Header] | None) -> None:
    [command] = read_packed(POLICY, [message(headers)])

    assert type(command) is extension.Packed


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
def test_a_record_that_is_less_plain_is_a_schedule_of_python(headers: list[Header]) -> None:
    [command] = read_packed(POLICY, [message(headers)])

    assert type(command) is Schedule


def test_messages_may_come_in_any_sequence() -> None:
    messages = [message(offset=offset) for offset in range(3)]

    assert read_packed(POLICY, tuple(messages)) == in_python(POLICY, messages)


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
        read_packed(POLICY, [message(), scripted(**{part: error})])


@pytest.mark.parametrize("error", [SystemError("no"), UnicodeDecodeError("utf-8", b"", 0, 1, "no")])
def test_unreadable_headers_are_refused_as_python_refuses_them(error: Exception) -> None:
    unreadable = scripted(headers=error)

    commands = read_packed(POLICY, [unreadable, message()])

    assert commands == in_python(POLICY, [unreadable, message()])
    assert [type(command) for command in commands] == [Reject, extension.Packed]


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
def test_parts_of_other_types_are_left_to_python(changes: dict[str, Any]) -> None:
    odd = scripted(**changes)

    [command] = read_packed(POLICY, [odd])

    assert type(command) is not extension.Packed
    assert command == in_python(POLICY, [odd])[0]


def test_an_error_of_the_careful_way_passes_through() -> None:
    messages = [message(), message([("deliver-id", b"x")])]

    with pytest.raises(Broken):
        extension.read(messages, refuse, 0, LAST_INSTANT_MS, 0, None)


def test_an_error_of_whoever_hears_names_passes_through() -> None:
    with pytest.raises(Broken):
        extension.read([message([("Deliver-At", b"")])], refuse, 0, LAST_INSTANT_MS, 0, refuse)


def test_headers_that_change_while_a_message_is_asked_for_its_parts_are_read_as_they_are_then() -> None:
    headers: list[Header] = [("a", b"1")]

    def grow() -> bytes:
        headers.extend([("b", b"2" * 1_000)] * 100)
        return b"k"

    [command] = read_packed(POLICY, [scripted(key=grow, headers=headers)])

    assert command == Schedule(TIMESTAMP_MS, OFFSET, b"k", VALUE, headers, timestamp_ms=TIMESTAMP_MS)


def test_messages_that_vanish_from_their_list_while_it_is_read_are_read_all_the_same() -> None:
    messages: list[SourceMessage] = [message([("deliver-id", b"x")], offset=offset) for offset in range(50)]

    def careful(each: SourceMessage) -> Command:
        messages.clear()
        return Cancel(each.offset() or 0, b"x")

    commands = extension.read(messages, careful, 0, LAST_INSTANT_MS, 0, None)

    assert commands == [Cancel(offset, b"x") for offset in range(50)]


@pytest.mark.parametrize(
    "arguments", [(), (1,), ([], None, 0, 0, 0), ([], None, 2**64, 0, 0, None), (1, None, 0, 0, 0, None)]
)
def test_arguments_that_make_no_sense_are_refused(arguments: tuple[Any, ...]) -> None:
    with pytest.raises((TypeError, OverflowError)):
        extension.read(*arguments)


# -- entries that are written

EDGES = (0, 1, 127, 128, 255, 256, 32_767, 32_768, 65_535, 65_536, 2**31 - 1, 2**31, 2**32 - 1, 2**32, LAST_INSTANT_MS)
LENGTHS = (0, 1, 30, 31, 32, 33, 254, 255, 256, 257, 65_534, 65_535, 65_536, 65_537)


def assert_packed_alike(messages: Sequence[SourceMessage], policy: NativePolicy = LONGEST) -> None:
    commands = read_packed(policy, messages)

    assert {type(command) for command in commands} == {extension.Packed}
    assert pack(cast("list[Schedule]", commands)) == encode(in_python(policy, messages))


@pytest.mark.parametrize("due_ms", EDGES)
def test_a_due_time_takes_the_same_bytes_as_in_python(due_ms: int) -> None:
    assert_packed_alike([message([("deliver-at", b"%d" % due_ms)], (1, 0)), message(None, (1, 0))])


@pytest.mark.parametrize("offset", [*EDGES, 2**63 - 1])
def test_an_offset_takes_the_same_bytes_as_in_python(offset: int) -> None:
    assert_packed_alike([message(offset=offset, timestamp=(1, 0))])


@pytest.mark.parametrize("edge", [1, 32, 33, 128, 129, 2**15, 2**15 + 1, 2**31, 2**31 + 1, 2**63])
def test_a_number_below_zero_takes_the_same_bytes_as_in_python(edge: int) -> None:
    assert_packed_alike([scripted(offset=-edge, timestamp=(1, 0))])


@pytest.mark.parametrize("length", LENGTHS)
def test_keys_values_and_headers_of_a_length_take_the_same_bytes_as_in_python(length: int) -> None:
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
def test_as_many_headers_take_the_same_bytes_as_in_python(count: int, control: int) -> None:
    headers: list[Header] = [("n", b"v")] * (count - 1) + [("last", None)] * min(count, 1)
    if headers:
        headers[control] = ("deliver-at", b"0")

    assert_packed_alike([message(headers, (1, 0))])


@pytest.mark.parametrize("count", [0, 1, 15, 16, 17, 65_535, 65_536])
def test_as_many_schedules_take_the_same_bytes_as_in_python(count: int) -> None:
    schedule = Schedule(1, 2, None, None, None)

    assert pack([one_packed(schedule)] * count) == encode([schedule] * count)


@pytest.mark.parametrize("others", [[Schedule(1, 2, None, None, None)], [None], [b"", 5]])
def test_what_is_not_all_packed_is_not_packed_together(others: list[Any]) -> None:
    packed = one_packed(Schedule(1, 2, None, None, None))

    assert extension.pack([packed, *others, packed]) is None


def test_no_sequence_is_refused() -> None:
    with pytest.raises(TypeError):
        extension.pack(cast(Any, 5))


# -- entries that are read

INT64 = st.sampled_from([*EDGES, -1, -33, 2**63 - 1, -(2**63)]) | st.integers(-(2**63), 2**63 - 1)
SHORT = st.none() | st.binary(max_size=40)
PLAIN_NAMES = st.text(st.characters(min_codepoint=1, max_codepoint=127), max_size=40)
PLAIN_HEADERS: st.SearchStrategy[Headers | None] = st.none() | st.lists(st.tuples(PLAIN_NAMES, SHORT), max_size=20)


@st.composite
def plain_schedules(draw: st.DrawFn) -> Schedule:
    headers = draw(PLAIN_HEADERS)
    control = draw(st.integers(-1, len(headers or ()) - 1))
    timestamp_ms = draw(st.none() | st.integers(0, 2**63 - 1))
    return Schedule(draw(INT64), draw(INT64), draw(SHORT), draw(SHORT), headers, control, timestamp_ms=timestamp_ms)


ANY_SCHEDULES = st.builds(
    Schedule,
    INT64,
    INT64,
    SHORT,
    SHORT,
    st.none() | st.lists(st.tuples(st.text(max_size=5), SHORT), max_size=3),
    st.integers(-12, 4),
    st.none() | st.binary(max_size=5),
    st.none() | st.text(max_size=5),
    st.none() | INT64,
    st.none() | INT64,
)


@given(st.lists(plain_schedules(), max_size=20))
def test_plain_entries_are_unpacked_into_equal_schedules_and_pack_into_the_same_bytes(
    schedules: list[Schedule],
) -> None:
    data = encode(schedules)

    packed = extension.unpack(data)

    assert packed == schedules
    assert [schedule_of(each) for each in packed or ()] == schedules
    assert {type(each) for each in packed or ()} <= {extension.Packed}
    assert pack(packed or ()) == data


@given(st.lists(plain_schedules() | ANY_SCHEDULES, min_size=1, max_size=4))
def test_entries_are_unpacked_only_if_each_can_stay_packed(schedules: list[Schedule]) -> None:
    packed = extension.unpack(encode(schedules))

    assert packed == (schedules if all(map(is_plain, schedules)) else None)


def is_plain(schedule: Schedule) -> bool:
    headers = schedule.headers or []
    beyond = (schedule.id, schedule.target, schedule.expires_ms, schedule.rank)
    return (
        beyond == (None,) * 4
        and (schedule.timestamp_ms or 0) >= 0
        and -1 <= schedule.control < max(len(headers), 0)
        and all(name.isascii() and "\0" not in name for name, _ in headers)
    )


PLAIN = Schedule(5, 6, b"key", b"value", [("trace", b"1"), ("deliver-at", b"5")], 1)


@pytest.mark.parametrize(
    "changes",
    [
        {"id": b"x"},
        {"id": b""},
        {"target": "other"},
        {"expires_ms": 0},
        {"timestamp_ms": -1},
        {"timestamp_ms": 2**63},
        {"rank": 5},
        {"control": -2},
        {"control": 2},
        {"control": -(2**40)},
        {"control": 2**32 + 1},
        {"headers": None},
        {"headers": [("gr\u00f6\u00dfe", b""), ("", b"")]},
        {"headers": [("a\0b", b""), ("", b"")]},
        {"headers": [("a", b"")] * (MAX_HEADERS + 1)},
        {"due_ms": 2**63},
        {"offset": 2**64 - 1},
    ],
)
def test_an_entry_with_anything_beyond_is_left_to_python(changes: dict[str, Any]) -> None:
    changed = msgspec.structs.replace(PLAIN, **changes)

    assert extension.unpack(encode([PLAIN, changed])) is None


def test_an_entry_that_ends_at_any_byte_is_left_to_python() -> None:
    data = encode([PLAIN, msgspec.structs.replace(PLAIN, headers=[("n" * 40, b"v" * 300)], control=-1)])

    assert [extension.unpack(data[:end]) for end in range(len(data))] == [None] * len(data)


@pytest.mark.parametrize("more", [b"\0", b"\xc0", encode([PLAIN])])
def test_entries_with_something_behind_them_are_left_to_python(more: bytes) -> None:
    assert extension.unpack(encode([PLAIN]) + more) is None


@pytest.mark.parametrize(
    "data", [b"", b"\xc0", b"\x05", b"\xdc", b"\xdc\xff", b"\xdd\xff\xff\xff\xff", b"\x81\x01\x02"]
)
def test_what_is_no_list_of_entries_is_left_to_python(data: bytes) -> None:
    assert extension.unpack(data) is None


def test_entries_are_read_out_of_whatever_holds_bytes() -> None:
    data = encode([PLAIN])

    assert extension.unpack(memoryview(b"\x01" + data)[1:]) == extension.unpack(data) == [PLAIN]


@pytest.mark.parametrize("data", [None, "text", memoryview(b"abcd")[::2]])
def test_what_holds_no_bytes_is_refused(data: Any) -> None:
    with pytest.raises((TypeError, BufferError)):
        extension.unpack(data)


LONGER = b"\x91\x9b\xcd\x00\x05\xd3" + b"\0" * 7 + b"\x06\xc5\x00\x03key\xc6\x00\x00\x00\x05value\xdc\x00\x02"
LONGER += b"\x92\xd9\x05trace\xc4\x011\x92\xaadeliver-at\xc4\x015\xd2\x00\x00\x00\x01" + b"\xc0" * 5
"""The entry of `PLAIN`, with lengths and numbers longer than they need to be."""


def test_entries_that_another_program_writes_longer_equal_their_schedules_and_each_other() -> None:
    longer = extension.unpack(LONGER)

    assert decode(LONGER) == [PLAIN]
    assert longer == [PLAIN]
    assert longer == extension.unpack(encode([PLAIN]))


@st.composite
def mutated_entries(draw: st.DrawFn) -> bytes:
    """Draw entries of which a piece was replaced, or some bytes."""
    data = bytearray(encode(draw(st.lists(plain_schedules() | ANY_SCHEDULES, max_size=4))))
    for _ in range(draw(st.integers(0, 2))):
        first = draw(st.integers(0, len(data)))
        last = draw(st.integers(first, min(len(data), first + 4)))
        data[first:last] = draw(st.binary(max_size=6))
    return bytes(data)


@nightly_for(60)
def test_mutated_entries_are_unpacked_as_python_decodes_them_or_left_to_it(
    seconds: int, record_property: Callable[[str, object], None]
) -> None:
    counts = {"packed": 0, "left to Python": 0, "bytes": 0}

    def read(data: bytes) -> None:
        counts["bytes"] += len(data)
        packed = extension.unpack(data)
        if packed is None:
            counts["left to Python"] += 1
            return
        counts["packed"] += 1
        assert [schedule_of(each) for each in packed] == packed == decode(data)
        assert decode(pack(packed)) == packed

    tried = fuzz(mutated_entries() | st.binary(max_size=60), read, seconds)

    record_property("hostile", {"entries": tried, **counts, "peak_memory_bytes": peak_memory_bytes()})
    assert min(counts.values()) > 0


# -- objects


@pytest.mark.parametrize("field", [*Schedule.__struct_fields__, "length", "anything"])
def test_no_field_can_be_set(field: str) -> None:
    with pytest.raises(AttributeError):
        setattr(one_packed(PLAIN), field, 5)


def test_none_can_be_made_by_hand() -> None:
    with pytest.raises(TypeError):
        cast(Any, extension.Packed)()


def test_fields_are_new_objects_that_their_reader_may_change() -> None:
    packed = one_packed(PLAIN)
    before = packed.headers
    assert before is not None

    before.clear()

    assert packed.headers == PLAIN.headers
    assert packed == PLAIN


def test_the_length_is_that_of_the_entry() -> None:
    [packed] = packed_of([PLAIN])

    assert cast(Any, packed).length == len(encode(PLAIN))


def test_it_is_shown_by_its_place_and_size() -> None:
    assert repr(one_packed(PLAIN)) == f"<Packed offset=6 due_ms=5, {len(encode(PLAIN))} bytes>"


@pytest.mark.parametrize("field", ["due_ms", "offset", "key", "value", "headers", "control"])
def test_a_schedule_of_another_field_is_unequal_either_way_round(field: str) -> None:
    others = {"due_ms": 0, "offset": 0, "key": b"", "value": None, "headers": [("a", b""), ("b", b"")], "control": 0}
    other, packed = msgspec.structs.replace(PLAIN, **{field: others[field]}), one_packed(PLAIN)

    assert [packed == other, other == packed, packed == one_packed(other)] == [False] * 3
    assert [packed != other, other != packed, packed != one_packed(other)] == [True] * 3


def test_the_same_fields_are_equal_either_way_round() -> None:
    plain, packed, other = PLAIN, one_packed(PLAIN), one_packed(PLAIN)

    assert [packed == plain, plain == packed, packed == other] == [True] * 3
    assert [packed != plain, plain != packed, packed != other] == [False] * 3


@pytest.mark.parametrize("field", ["id", "target", "expires_ms", "timestamp_ms", "rank"])
def test_a_schedule_with_one_field_more_is_unequal_either_way_round(field: str) -> None:
    other, packed = msgspec.structs.replace(PLAIN, **{field: cast(Any, b"")}), one_packed(PLAIN)

    assert [packed == other, other == packed] == [False, False]


@pytest.mark.parametrize("other", [None, 5, b"", (5, 6), Cancel(6, b"x"), encode(PLAIN), object()])
def test_other_things_are_unequal_either_way_round(other: object) -> None:
    packed = one_packed(PLAIN)

    assert [packed == other, other == packed] == [False, False]


def test_packed_schedules_have_no_order_and_no_hash() -> None:
    packed = one_packed(PLAIN)

    with pytest.raises(TypeError):
        sorted(cast(Any, [packed, packed]))
    with pytest.raises(TypeError):
        hash(packed)


# -- memory

ROUNDS = 10_000
BYTES_A_ROUND = 200
"""Less than any object of a record that would be left behind in each round."""


def ignore(_: str) -> None:
    """Hears of a name."""


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4_096


def test_nothing_is_left_behind_by_reading_packing_unpacking_grouping_and_looking() -> None:
    key, value, note = b"k" * 500, b"v" * 500, [("Deliver-At", b"1" * 500)]
    own: list[Header] = [("trace", b"2" * 500), ("deliver-at", b"%d" % TIMESTAMP_MS)]
    messages = [message(own, key=key, value=value), message(note), message([("deliver-id", b"x")]), message(None)]
    equal = in_python(POLICY, messages)
    ends_early = encode([PLAIN] * 50)[:-1]
    constants: list[Any] = [None, key, value, *own, *own[0], *note, *messages, *equal, extension.Packed, "deliver-at"]

    def work() -> None:
        commands = read_packed(POLICY, messages, ignore)
        packed = packed_of(cast("list[Schedule]", [equal[0], equal[3]]))
        assert extension.pack(packed) is not None
        assert extension.pack(cast("list[Schedule]", commands)) is None
        assert extension.unpack(ends_early) is None
        assert commands == equal
        assert packed == [commands[0], commands[3]] != [equal[3], equal[0]]
        assert extension.summary(packed) is not None
        assert extension.ordered([*packed, *packed]) is not None
        assert extension.by_span(packed, DAY_MS) is not None
        assert extension.by_span(cast("list[Schedule]", commands), DAY_MS) is None
        assert all(map(hasattr, [packed[0]] * 12, (*Schedule.__struct_fields__, "length")))
        assert repr(packed[0])
        with pytest.raises(Broken):
            extension.read(messages, refuse, 0, LAST_INSTANT_MS, 0, None)

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


# -- many at once

MOST_SPANS = 1 << 13
"""As many spans, from the first to the last, as the extension groups by."""
FEW_KEYS = st.lists(st.builds(Schedule, st.integers(0, 3), st.integers(0, 5), st.none(), SHORT, st.none()), max_size=12)


def by_key(schedule: Schedule) -> tuple[int, int]:
    return schedule.due_ms, schedule.offset


def entry_bytes(schedule: Schedule) -> int:
    """Return the length of its entry: an array of one begins with one byte."""
    return len(encode([schedule])) - 1


@given(FEW_KEYS | st.lists(plain_schedules(), max_size=12))
def test_schedules_are_ordered_by_due_time_and_offset_and_of_copies_one_stays(schedules: list[Schedule]) -> None:
    packed = packed_of(schedules)

    ordered = extension.ordered(packed)

    assert ordered is not None
    assert [*map(by_key, ordered)] == sorted({*map(by_key, schedules)})
    assert all(any(each is one for one in packed) for each in ordered)
    assert packed == schedules


@given(st.lists(plain_schedules(), min_size=1, max_size=12))
def test_a_summary_has_the_first_and_last_due_time_the_last_offset_the_longest_entry_and_the_length_of_all(
    schedules: list[Schedule],
) -> None:
    due_ms = [schedule.due_ms for schedule in schedules]
    last_offset = max(schedule.offset for schedule in schedules)
    lengths = [entry_bytes(schedule) for schedule in schedules]

    summary = extension.summary(packed_of(schedules))

    assert summary == (min(due_ms), max(due_ms), last_offset, max(lengths), sum(lengths))


@given(FEW_KEYS | st.lists(plain_schedules(), max_size=12), st.integers(1, 5) | st.just(1_000))
def test_schedules_are_grouped_by_the_span_that_they_are_due_in(schedules: list[Schedule], width_ms: int) -> None:
    packed = packed_of(schedules)
    spans: dict[int, list[Schedule]] = {}
    for schedule in schedules:
        spans.setdefault(schedule.due_ms // width_ms * width_ms, []).append(schedule)
    expected = [
        (start_ms, spans[start_ms], sum(map(entry_bytes, spans[start_ms])), min(s.offset for s in spans[start_ms]))
        for start_ms in sorted(spans)
    ]

    found = extension.by_span(packed, width_ms)

    if expected and (expected[0][0] < 0 or expected[-1][0] - expected[0][0] >= MOST_SPANS * width_ms):
        assert found is None
    else:
        assert found == expected
    assert packed == schedules


@pytest.mark.parametrize("last_ms", [MOST_SPANS - 1, MOST_SPANS])
def test_more_spans_than_so_many_are_left_to_python(last_ms: int) -> None:
    found = extension.by_span(packed_of([Schedule(due_ms, 7, None, None, None) for due_ms in (0, last_ms)]), 1)

    assert (found is None) == (last_ms == MOST_SPANS)


@pytest.mark.parametrize("width_ms", [0, -1])
def test_a_span_of_no_time_groups_nothing(width_ms: int) -> None:
    assert extension.by_span([one_packed(PLAIN)], width_ms) is None


@pytest.mark.parametrize("others", [[], [PLAIN], [None], [Cancel(1, b"x")]])
def test_what_is_not_all_packed_has_no_summary_no_order_and_no_spans(others: list[Any]) -> None:
    packed = one_packed(PLAIN) if others else None
    mixed = [packed, *others] if packed is not None else []

    assert extension.summary(mixed) is None
    assert extension.ordered(mixed) == (None if others else [])
    assert extension.by_span(mixed, 1) == (None if others else [])


@pytest.mark.parametrize("function", [extension.summary, extension.ordered, lambda many: extension.by_span(many, 1)])
def test_many_are_asked_for_as_a_sequence(function: Callable[[Any], object]) -> None:
    with pytest.raises(TypeError):
        function(5)


# -- the switch


def test_a_relay_that_is_to_have_the_extension_and_has_none_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(switch.VARIABLE, "1")
    monkeypatch.setattr(switch, "AVAILABLE", False)
    monkeypatch.setattr(switch, "_reason", "no module of this name")

    with pytest.raises(ConfigurationError) as raised:
        switch.check_extension()

    assert str(raised.value) == (
        "the environment variable DELAYTOPIC_PACKED is 1, but the extension cannot be imported "
        "(no module of this name): install a build that has it, or set DELAYTOPIC_PACKED to 0"
    )


@pytest.mark.parametrize("value", ["2", "true", " 1"])
def test_a_switch_that_is_neither_on_nor_off_is_refused(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv(switch.VARIABLE, value)

    with pytest.raises(ConfigurationError) as raised:
        switch.check_extension()

    assert str(raised.value) == f"the environment variable DELAYTOPIC_PACKED is {value!r}: it may be 1 or 0"


@pytest.mark.parametrize("value", ["", "0"])
def test_a_relay_that_is_not_to_have_the_extension_needs_none(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv(switch.VARIABLE, value)
    monkeypatch.setattr(switch, "AVAILABLE", False)

    assert switch.check_extension() is False
