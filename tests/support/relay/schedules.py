"""Short ways to write commands down in tests."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from delaytopic_api.records import DeadLetterReason
from delaytopic_relay.core import _pyentries
from delaytopic_relay.core.commands import Cancel, DueKey, Reject, Schedule

FIELDS: Final = _pyentries.Schedule.__struct_fields__
"""The fields of a schedule, of either implementation."""


def schedule(due_ms: int, offset: int, name: bytes | None = None, value: bytes | None = b"v") -> Schedule:
    """A schedule without headers."""
    return Schedule(due_ms, offset, b"k", value, None, id=name)


def changed(schedule: Schedule, **fields: Any) -> Schedule:
    """Return the same schedule with other fields."""
    return Schedule(**{**{field: getattr(schedule, field) for field in FIELDS}, **fields})


def cancel(offset: int, name: bytes) -> Cancel:
    """A cancel of an id."""
    return Cancel(offset, name)


def reject(offset: int, detail: str = "no") -> Reject:
    """A record that no dialect could read."""
    return Reject(offset, b"k", b"v", None, DeadLetterReason.MALFORMED_HEADER, detail)


def key_of(entry: Schedule) -> DueKey:
    """The place in the order of delivery."""
    return DueKey(entry.due_ms, entry.offset)


def offsets(entries: Iterable[Schedule | Reject]) -> list[int]:
    """The source offsets, in order."""
    return [entry.offset for entry in entries]
