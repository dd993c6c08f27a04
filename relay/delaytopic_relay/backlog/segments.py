"""Segments: schedules of one slice packed into bytes, the unit that a backlog stores.

Wire format: one version byte, then a msgpack array of entries, each an array of the fields of
`Schedule` in their order. Readable from any language; a newer version is refused with its number.
`signing` puts a tag in front where the backend has a key.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from delaytopic_relay.backlog.slices import LEVELS, NARROW_MS, is_narrow, slice_of
from delaytopic_relay.backlog.store import Segment, Slice
from delaytopic_relay.core import entries
from delaytopic_relay.core.commands import Schedule
from delaytopic_relay.errors import ForeignRecord, SegmentError

VERSION = b"\x01"
REBUILD = "delete what the backlog holds of this shard, and it is filled again from the source topic"

LARGEST_SEGMENT = 500
"""Records in a segment at the most, so that a slice can be loaded in small portions."""
LARGEST_BYTES = 1 << 20
"""The bound of a segment, but for one that has a single record: what a backlog answers at once is bounded."""


def encode_segment(schedules: list[Schedule]) -> bytes:
    """Pack the schedules of one slice."""
    return VERSION + entries.pack(schedules)


def decode_segment(data: bytes) -> list[Schedule]:
    """Unpack a segment; raises `SegmentError` for another version, and `ForeignRecord` for what is no segment."""
    if data[:1] != VERSION:
        raise SegmentError(
            f"a segment starts with version byte {data[:1].hex() or 'nothing'}, this relay reads {VERSION.hex()}: "
            f"run the version that wrote it, or {REBUILD}"
        )
    try:
        return entries.unpack(memoryview(data)[1:])
    except ValueError as error:
        raise ForeignRecord(f"{len(data)} bytes are no segment ({error})") from error


def decode_slice_segment(data: bytes, slice_: Slice) -> list[Schedule]:
    """Decode as `decode_segment` does; a segment with schedules of another slice is foreign, too.

    In a narrow slice they would do no harm. A wide one spreads its schedules over narrower ones, and never ends with
    others.
    """
    schedules = decode_segment(data)
    start_ms, end_ms = slice_.start_ms, slice_.end_ms
    if not is_narrow(slice_) and not all(start_ms <= schedule.due_ms < end_ms for schedule in schedules):
        raise ForeignRecord("it has schedules of another slice")
    return schedules


def pack(schedules: Sequence[Schedule], now_ms: int) -> list[Segment]:
    """Group schedules by slice, in the order given, and pack each group into one segment."""
    return [
        segment
        for slice_, group in _by_slice(schedules, now_ms)
        for part in _parts(group)
        for segment in _segments(slice_, part)
    ]


def _segments(slice_: Slice, part: list[Schedule]) -> Iterable[Segment]:
    """Packing and looking is several times cheaper than counting beforehand."""
    data = encode_segment(part)
    if len(data) <= LARGEST_BYTES or len(part) == 1:
        return (Segment(slice_, len(part), data),)
    middle = len(part) // 2
    return (*_segments(slice_, part[:middle]), *_segments(slice_, part[middle:]))


def _by_slice(schedules: Sequence[Schedule], now_ms: int) -> list[tuple[Slice, list[Schedule]]]:
    nearest_wide_ms = now_ms + LEVELS[-2].from_ms
    by_second = entries.grouped(schedules, NARROW_MS)
    if by_second and by_second[-1].start_ms + NARROW_MS <= nearest_wide_ms:
        return [(Slice(start_ms, NARROW_MS), group) for start_ms, group in by_second]
    groups: dict[tuple[int, int], list[Schedule]] = {}
    for schedule in schedules:
        due_ms = schedule.due_ms
        slice_ = (due_ms - due_ms % NARROW_MS, NARROW_MS) if due_ms < nearest_wide_ms else slice_of(due_ms, now_ms)
        group = groups.get(slice_)
        if group is None:
            groups[slice_] = [schedule]
        else:
            group.append(schedule)
    return [(Slice(*slice_), group) for slice_, group in groups.items()]


def _parts(group: list[Schedule]) -> Iterable[list[Schedule]]:
    if len(group) <= LARGEST_SEGMENT:
        return (group,)
    return (group[first : first + LARGEST_SEGMENT] for first in range(0, len(group), LARGEST_SEGMENT))
