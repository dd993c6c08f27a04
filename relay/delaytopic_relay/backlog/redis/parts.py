"""Cutting a large put into several scripts, so that none holds up Redis for long. Pure.

Every part is a compare-and-swap of its own, from the version before to the version after:

    expected -> (owner+1) -> (owner+2) -> ... -> new

The versions in between carry the offset that was true before the put, so a successor that finds one starts
where it would have without the put, and a marked owner, so that they equal no version that a caller names.
They make a half-done put safe: version `owner+2` says that parts one and two are in the backlog, whoever sent
them, so a repeat goes on behind what it finds, and a server that lost a part in between is noticed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from delaytopic_relay.backlog.store import Segment, StoreVersion
from delaytopic_relay.core.id_states import IdEntry

MAX_ITEMS = 1000  # segments and ids in a script; above 7,999 arguments at once, Lua's unpack fails
MAX_BYTES = 2 << 20  # of segments in a script: some 5 ms of Redis' one thread


class Part(NamedTuple):
    """The writes of one script."""

    segments: Sequence[Segment]
    ids: Sequence[tuple[bytes, IdEntry]]


def split(segments: Sequence[Segment], ids: Mapping[bytes, IdEntry]) -> list[Part]:
    """The parts of a put, at least one, in order; the same put always gives the same parts."""
    if len(segments) + len(ids) <= MAX_ITEMS and sum(len(segment.data) for segment in segments) <= MAX_BYTES:
        return [Part(segments, tuple(ids.items()))]
    entries = tuple(ids.items())
    parts = [Part(run, ()) for run in _runs(segments)]
    parts += [Part((), entries[first : first + MAX_ITEMS]) for first in range(0, len(entries), MAX_ITEMS)]
    return parts


def versions_between(expected: StoreVersion | None, new: StoreVersion, parts: int) -> list[StoreVersion | None]:
    """The versions before, between and after this many parts: `parts + 1` of them."""
    offset = min(expected.offset, new.offset) if expected else 0
    between = [StoreVersion(f"{new.owner}+{done}", new.counter, offset) for done in range(1, parts)]
    return [expected, *between, new]


def _runs(segments: Sequence[Segment]) -> Iterator[Sequence[Segment]]:
    first = size = 0
    for index, segment in enumerate(segments):
        if index > first and (index - first == MAX_ITEMS or size + len(segment.data) > MAX_BYTES):
            yield segments[first:index]
            first, size = index, 0
        size += len(segment.data)
    if first < len(segments):
        yield segments[first:]
