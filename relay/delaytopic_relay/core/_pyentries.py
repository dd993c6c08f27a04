"""Schedules in Python: the implementation that `core.entries` chooses where the one in C is not there.

Both export the same names, and give the same: `relay/speedups` is the other one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Annotated, Final, NamedTuple, TypeGuard, TypeVar, final

import msgspec

from delaytopic_api.records import Headers

NO_CONTROL_HEADER = -1
SEVERAL_CONTROL_HEADERS = -2

ENTRY_BYTES: Final = 500
"""The memory of a schedule beside its key, value, headers and id: its objects (290 bytes) and its share of a slot."""
HEADER_BYTES: Final = 200
"""The bytes of a header beside its name and value: a pair, a text, bytes and a place in the list."""
ID_BYTES: Final = 450
"""The bytes of a schedule's id in memory: its state, two keys and two places in a table."""

Number = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
"""An integer of 64 bits with a sign: the other implementation has no longer ones."""

M = TypeVar("M")
C = TypeVar("C")


@final
class Schedule(msgspec.Struct, array_like=True, gc=False, forbid_unknown_fields=True):
    """One record to deliver at its due time, as the producer wrote it: key, value and all headers.

    `control` is the place of the native dialect's only control header in `headers`, or NO_CONTROL_HEADER, or
    SEVERAL_CONTROL_HEADERS: then the sender looks for them by name. Below those it names another dialect, which writes
    the record anew when it leaves. `timestamp_ms` is the record's own, for its receipt; None without one between 1970
    and the year 9999. The fields, in this order, are the wire format of a segment's entry.

    `rank` is the source offset that it counts as among the commands of its id, where that is not its own: a relay has
    written it again for one that was put off.

    No field is set once a schedule is made, and whoever asks for the headers leaves the list as it is.
    """

    due_ms: Number
    offset: Number
    key: bytes | None
    value: bytes | None
    headers: Headers | None
    control: Number = NO_CONTROL_HEADER
    id: bytes | None = None
    target: str | None = None
    expires_ms: Number | None = None
    timestamp_ms: Number | None = None
    rank: Number | None = None

    @property
    def plain(self) -> bool:
        """True if its record leaves as it came, but for a control header, to where all do and at any time.

        Names of headers are in ASCII, without a zero byte.
        """
        headers, control = self.headers or (), self.control
        if not NO_CONTROL_HEADER <= control < len(headers) or self.target is not None or self.expires_ms is not None:
            return False
        return all(name.isascii() and "\0" not in name for name, _ in headers)


class Summary(NamedTuple):
    """The first and the last due time of schedules, and their last offset."""

    first_ms: int
    last_ms: int
    last_offset: int


class Sizes(NamedTuple):
    """The memory, about, that the largest of some schedules takes, and all of them. No entry is longer than that."""

    largest: int
    total: int


class Group(NamedTuple):
    """The schedules that are due in one span of time, in the order in which they were given."""

    start_ms: int
    schedules: list[Schedule]


class Span(NamedTuple):
    """The schedules of one span, as in `Group`, with about the memory that they take, and their lowest offset."""

    start_ms: int
    schedules: list[Schedule]
    size: int
    lowest_offset: int


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(list[Schedule])
_due_ms = attrgetter("due_ms")
_offset = attrgetter("offset")
_id = attrgetter("id")
_new = tuple.__new__
_ONLY_SCHEDULES = frozenset({Schedule})


def read(
    messages: Sequence[M],
    careful: Callable[[M], C],
    implied_delay_ms: int,
    last_timestamp_ms: int,
    max_delay_ms: int,
    note: Callable[[Headers], None] | None,
) -> list[C]:
    """Read messages by the rules of the native dialect, as `careful` does, which reads one.

    The numbers are the bounds within which a record is plain; `note` hears of the headers of a plain one that resemble
    control headers. `careful` alone knows these here, too: this implementation has no shorter way.
    """
    return [careful(message) for message in messages]


def pack(schedules: Sequence[Schedule]) -> bytes:
    """Pack schedules: a msgpack array of entries, each an array of the fields of `Schedule` in their order."""
    return _encoder.encode(schedules)


def unpack(data: bytes | memoryview) -> list[Schedule]:
    """Unpack what `pack` made. Raises `ValueError` for anything else."""
    try:
        return _decoder.decode(data)
    except msgspec.MsgspecError as error:
        raise ValueError(str(error)) from error


def unnamed(commands: Sequence[object]) -> TypeGuard[Sequence[Schedule]]:
    """Return whether all commands are schedules without an id; no commands are."""
    if not _ONLY_SCHEDULES.issuperset(map(type, commands)):
        return False
    return [*map(_id, commands)].count(None) == len(commands)


def all_plain(schedules: Sequence[Schedule]) -> bool:
    """Return whether all schedules are plain."""
    return all(schedule.plain for schedule in schedules)


def summary(schedules: Sequence[Schedule]) -> Summary:
    """Look at all of them at once. Raises `ValueError` if there are none."""
    due_ms = [*map(_due_ms, schedules)]
    return Summary(min(due_ms), max(due_ms), max(map(_offset, schedules)))


def size(schedule: Schedule) -> int:
    """Return about how much memory a schedule takes, with every header. Its entry is not longer."""
    total = ENTRY_BYTES + len(schedule.value or b"") + len(schedule.key or b"")
    for name, content in schedule.headers or ():
        total += HEADER_BYTES + len(name) + len(content or b"")
    return total if schedule.id is None else total + ID_BYTES + len(schedule.id)


def sizes(schedules: Sequence[Schedule]) -> Sizes:
    """Return about how much memory schedules take."""
    largest = total = 0
    for schedule in schedules:
        # As `size`, without the call: this is done for every record, more than once.
        memory = ENTRY_BYTES
        if schedule.value is not None:
            memory += len(schedule.value)
        if schedule.key is not None:
            memory += len(schedule.key)
        for name, content in schedule.headers or ():
            memory += HEADER_BYTES + len(name)
            if content is not None:
                memory += len(content)
        if schedule.id is not None:
            memory += ID_BYTES + len(schedule.id)
        total += memory
        if memory > largest:  # noqa: PLR1730 - max() is a call
            largest = memory
    return Sizes(largest, total)


def grouped(schedules: Sequence[Schedule], width_ms: int) -> list[Group]:
    """Group schedules by the span of `width_ms` that they are due in, in the order of time."""
    groups: dict[int, list[Schedule]] = {}
    for schedule in schedules:
        number = schedule.due_ms // width_ms
        group = groups.get(number)
        if group is None:
            groups[number] = [schedule]
        else:
            group.append(schedule)
    return [Group(number * width_ms, groups[number]) for number in sorted(groups)]


def by_span(schedules: Sequence[Schedule], width_ms: int) -> list[Span]:
    """Group schedules as `grouped` does, and look at those of each group."""
    return [
        _new(Span, (start_ms, group, sizes(group).total, min(map(_offset, group))))
        for start_ms, group in grouped(schedules, width_ms)
    ]


def ordered(schedules: Sequence[Schedule]) -> list[Schedule]:
    """Return schedules by (due, offset); those with an equal key are copies, and one is kept."""
    entries = sorted(schedules, key=_offset)
    entries.sort(key=_due_ms)
    offsets = [*map(_offset, entries)]
    if len(set(offsets)) == len(offsets):
        return entries
    return [
        entry
        for index, entry in enumerate(entries)
        if index == 0 or entry.offset != offsets[index - 1] or entry.due_ms != entries[index - 1].due_ms
    ]


def due_at(schedule: Schedule, due_ms: int) -> Schedule:
    """Return the same schedule with another due time."""
    return msgspec.structs.replace(schedule, due_ms=due_ms)
