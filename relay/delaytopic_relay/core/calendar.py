"""The calendar: one shard's schedules within the horizon, by due time.

A dict of short slots, each sorted once when it comes due, beats a heap and a timing wheel several
times over in Python: an insert is an append.
"""

from __future__ import annotations

import heapq
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from operator import attrgetter

from delaytopic_relay.core.commands import Reject, Schedule
from delaytopic_relay.core.entries import ENTRY_BYTES, HEADER_BYTES, by_span, ordered, size

SLOT_BITS = 5
"""A slot spans 32 ms: short enough that what arrives in the current one is cheap to sort in."""
SLOT_MS = 1 << SLOT_BITS

_due_ms = attrgetter("due_ms")


class Slot:
    """The schedules of one slot; sorted and free of copies from `head` on once `in_order` is set."""

    __slots__ = ("entries", "head", "in_order", "lowest_offset", "size")

    def __init__(self) -> None:
        self.entries: list[Schedule] = []
        self.head = 0
        self.in_order = False
        self.lowest_offset: int | None = None
        self.size = 0

    def ordered(self) -> list[Schedule]:
        """The entries by (due, offset); entries with an equal key are copies, and one is kept."""
        if not self.in_order:
            self.entries, self.head, self.in_order = ordered(self.entries[self.head :]), 0, True
        return self.entries


class Calendar:
    """Schedules in memory, given out in the order of their keys.

    `size` is about what they take in memory (bytes), given back evenly as a slot empties.
    """

    def __init__(self) -> None:
        self._slots: dict[int, Slot] = {}
        self._numbers: list[int] = []
        self.count = 0
        self.size = 0

    def add(self, schedules: Sequence[Schedule], *, only_here: bool) -> None:
        """Insert; `only_here` says that no backlog has them, so that they hold back the committed offset."""
        slots = self._slots
        for start_ms, group, size_bytes, lowest in by_span(schedules, SLOT_MS):
            number = start_ms >> SLOT_BITS
            slot = slots.get(number)
            if slot is None:
                slot = self._new_slot(number)
            slot.entries += group
            slot.in_order = False
            slot.size += size_bytes
            if only_here and (slot.lowest_offset is None or lowest < slot.lowest_offset):
                slot.lowest_offset = lowest
            self.size += size_bytes
        self.count += len(schedules)

    def _new_slot(self, number: int) -> Slot:
        slot = self._slots[number] = Slot()
        heapq.heappush(self._numbers, number)
        return slot

    def take(self, until_ms: int, limit: int) -> list[Schedule]:
        """Remove and return up to `limit` schedules due at or before `until_ms`, ordered, without copies."""
        taken: list[Schedule] = []
        while self._numbers and len(taken) < limit:
            number = self._numbers[0]
            if number << SLOT_BITS > until_ms:
                break
            slot = self._slots[number]
            before = len(slot.entries) - slot.head
            entries = slot.ordered()
            self.count -= before - (len(entries) - slot.head)
            end = bisect_right(entries, until_ms, lo=slot.head, key=_due_ms)
            end = min(end, slot.head + limit - len(taken))
            if end == slot.head:
                break
            taken += entries[slot.head : end] if slot.head or end < len(entries) else entries
            self._release(number, slot, end)
        return taken

    def _release(self, number: int, slot: Slot, end: int) -> None:
        going, staying = end - slot.head, len(slot.entries) - end
        released = slot.size * going // (going + staying) if staying else slot.size
        slot.size -= released
        self.size -= released
        self.count -= going
        slot.head = end
        if not staying:
            heapq.heappop(self._numbers)
            del self._slots[number]

    def next_due_ms(self) -> int | None:
        """Return when the first schedule is due; None when there is none."""
        if not self._numbers:
            return None
        slot = self._slots[self._numbers[0]]
        before = len(slot.entries) - slot.head
        entries = slot.ordered()
        self.count -= before - (len(entries) - slot.head)
        return entries[slot.head].due_ms

    def lowest_offset(self) -> int | None:
        """A lower bound of the source offsets that only this memory holds; None when there is none."""
        return min(
            (slot.lowest_offset for slot in self._slots.values() if slot.lowest_offset is not None), default=None
        )

    def upcoming(self) -> Iterator[tuple[int, Slot]]:
        """Pairs of (slot start in ms, slot) in the order of time, to look at and not to change."""
        numbers = self._numbers.copy()
        while numbers:
            number = heapq.heappop(numbers)
            yield number << SLOT_BITS, self._slots[number]

    def counts(self) -> Iterator[tuple[int, int]]:
        """Pairs of (slot start in ms, schedules in it), unordered."""
        return ((number << SLOT_BITS, len(slot.entries) - slot.head) for number, slot in self._slots.items())


def bytes_of(entry: Schedule | Reject) -> int:
    """Return about how much memory a schedule or a refused record takes, with every header."""
    if type(entry) is Schedule:
        return size(entry)
    total = ENTRY_BYTES + len(entry.value or b"") + len(entry.key or b"")
    for name, content in entry.headers or ():
        total += HEADER_BYTES + len(name) + len(content or b"")
    return total
