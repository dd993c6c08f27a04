"""The entries of segments, and records that stay packed as entries from when they are read until they leave.

An optional extension in C (`relay/packed`) keeps a record that is as most are, a `Packed`, in the bytes of its entry,
and makes an object of a field only when somebody asks for it. It reads the messages of the native dialect, packs and
unpacks entries, and sends them. What is less plain it leaves to Python, which does all of it where the extension is not
there, and is what the extension is compared with.

It is used where the environment variable `DELAYTOPIC_PACKED` is 1, and nowhere else.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import msgspec

from delaytopic_relay.core.commands import Schedule
from delaytopic_relay.errors import ConfigurationError

VARIABLE: Final = "DELAYTOPIC_PACKED"
PACKED_BYTES: Final = 100
"""The memory of a `Packed` beside its entry: the object's head, and its place in a slot."""

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(list[Schedule])


if TYPE_CHECKING:
    from delaytopic_relay import _packed

    extension = _packed
    Packed = _packed.Packed
    AVAILABLE: bool
    _reason: str
else:
    try:
        if os.environ.get(VARIABLE) != "1":
            raise ImportError(f"{VARIABLE} is not 1")
        from delaytopic_relay import _packed as extension

        Packed, AVAILABLE, _reason = extension.Packed, True, ""
    except ImportError as error:
        extension, AVAILABLE, _reason = None, False, str(error)

        class Packed(Schedule, array_like=True, gc=False):
            """Stands for the type that is missing; there is none of it."""


def check_extension() -> bool:
    """Return whether records stay packed. Raises `ConfigurationError` if they are to, and cannot."""
    asked_for = os.environ.get(VARIABLE, "")
    if asked_for not in {"", "0", "1"}:
        raise ConfigurationError(f"the environment variable {VARIABLE} is {asked_for!r}: it may be 1 or 0")
    if asked_for == "1" and not AVAILABLE:
        missing = f"the environment variable {VARIABLE} is 1, but the extension cannot be imported ({_reason})"
        raise ConfigurationError(f"{missing}: install a build that has it, or set {VARIABLE} to 0")
    return AVAILABLE


def plain(schedule: Schedule) -> Schedule:
    """Return the same schedule with all its fields as objects."""
    if type(schedule) is not Packed:
        return schedule
    parts = schedule.due_ms, schedule.offset, schedule.key, schedule.value, schedule.headers, schedule.control
    return Schedule(*parts, timestamp_ms=schedule.timestamp_ms)


def encode_entries(schedules: Sequence[Schedule]) -> bytes:
    """Pack schedules: a msgpack array of entries, each an array of the fields of `Schedule` in their order."""
    if AVAILABLE:
        packed = extension.pack(schedules)
        # Some of them are not packed already, so that all go the same way.
        return _encoder.encode([*map(plain, schedules)]) if packed is None else packed
    return _encoder.encode(schedules)


def decode_entries(data: memoryview) -> list[Schedule]:
    """Unpack what `encode_entries` made. Raises `msgspec.MsgspecError`, `UnicodeDecodeError`."""
    if AVAILABLE:
        packed = extension.unpack(data)
        if packed is not None:
            return packed
    return _decoder.decode(data)


class Summary(NamedTuple):
    """The first and the last due time of packed schedules, their last offset, and the length of the longest entry and
    of all.
    """

    first_ms: int
    last_ms: int
    last_offset: int
    longest: int
    entry_bytes: int


def summary(commands: Sequence[object]) -> Summary | None:
    """Look at all of them at once; None if there are none, or one is no packed schedule."""
    found = extension.summary(commands) if AVAILABLE else None
    return Summary(*found) if found is not None else None


Span: TypeAlias = tuple[int, list[Schedule], int, int]
"""The schedules that are due in one span of time: its start, they themselves, the length of their entries, and their
lowest offset."""


def by_span(schedules: Sequence[Schedule], width_ms: int) -> list[Span] | None:
    """Group packed schedules by the span of `width_ms` that they are due in, in the order of time.

    In a span they keep their order. None if one is not packed, or the spans from the first to the last are thousands.
    """
    return extension.by_span(schedules, width_ms) if AVAILABLE else None


def in_due_order(schedules: Sequence[Schedule]) -> list[Schedule] | None:
    """Return packed schedules by (due, offset), of copies one; None if one of them is not packed."""
    return extension.ordered(schedules) if AVAILABLE else None
