"""The schedules that are done: those up to the cursor, and those that a clock which was ahead has delivered. Pure.

A clock that was ahead moves the cursor ahead of the time. When it comes back, the cursor goes back with it, so that
what is produced meanwhile waits for its own time. What was delivered before its time stays done: it lies below the
source offset up to which all was taken in then.
"""

from __future__ import annotations

from typing import Final, NamedTuple, Self

from delaytopic_relay.core.bucket_state import number_of
from delaytopic_relay.core.commands import NOTHING_DELIVERED, DueKey

AHEAD_MS = 2_000
"""A cursor may be ahead of the clock by so much, as those of two relays are never quite the same: what may not leave
yet is waited for. From there on the cursor goes back."""


class Ahead(NamedTuple):
    """The schedules above the cursor that are done: with source offsets below `before`, and keys up to `until`."""

    before: int
    until: DueKey


class Done(NamedTuple):
    """The schedules, of those that were taken in, that are done. What is at or above the position is not."""

    cursor: DueKey = NOTHING_DELIVERED
    ahead: Ahead | None = None

    @property
    def last_ms(self) -> int:
        """No schedule that is due later is done."""
        return self.cursor.due_ms if self.ahead is None else max(self.cursor.due_ms, self.ahead.until.due_ms)

    def has(self, due_ms: int, offset: int) -> bool:
        """Tell whether a schedule is done, by its key."""
        # Only compared: a named tuple would cost as much as all the rest here.
        key, ahead = (due_ms, offset), self.ahead
        return key <= self.cursor or (ahead is not None and offset < ahead.before and key <= ahead.until)

    def moved(self, cursor: DueKey) -> Self:
        """Return the same with the cursor at a higher key, if that is one."""
        if cursor <= self.cursor:
            return self
        return self._replace(cursor=cursor, ahead=self.ahead if self.ahead and self.ahead.until > cursor else None)

    def back_at(self, now_ms: int, position: int) -> Self:
        """Return the same with the cursor back at the clock, if it is ahead of it; all below `position` was taken in.

        It goes back once: until it has passed what was delivered then, it waits for a clock that comes back once more.
        """
        if self.ahead is not None or self.cursor.due_ms <= now_ms + AHEAD_MS:
            return self
        return self._replace(cursor=DueKey(now_ms, -1), ahead=Ahead(position, self.cursor))


NOTHING_DONE: Final = Done()


def encode_ahead(ahead: Ahead | None) -> str:
    """Return the text: three numbers; "" for None."""
    return "" if ahead is None else f"{ahead.before}:{ahead.until.due_ms}:{ahead.until.offset}"


def decode_ahead(text: str) -> Ahead | None:
    """Read it back. Raises `ValueError`."""
    if not text:
        return None
    before, due_ms, offset = map(number_of, text.split(":"))
    return Ahead(before, DueKey(due_ms, offset))
