"""A shard of a DelayTopic with a fixed delay: source order is due order, so a queue is all it takes.

No shelf and no calendar: what is further away than the horizon stays on the source topic, and the
caller pauses the partition while `full` says so.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

from delaytopic_relay.core.calendar import bytes_of
from delaytopic_relay.core.commands import Command, Key, Reject, Schedule
from delaytopic_relay.core.departures import NOTHING, Departures
from delaytopic_relay.core.progress import Progress


class FixedShard:
    """The state machine of one source partition whose records all wait equally long.

    A record that cannot be delivered keeps its place in the queue, so that everything below the
    committed offset is done, and nothing at or above it.
    """

    def __init__(self, partition: int, progress: Progress, start: int, horizon_ms: int) -> None:
        """`progress` is what is committed, `start` where reading begins."""
        self.partition = partition
        self.position = start
        self.cursor = progress.cursor
        self.committed_offset = progress.offset
        self.replay_until = progress.position
        self._taken_cursor = progress.cursor
        self._horizon_ms = horizon_ms
        self._queue: deque[Schedule | Reject] = deque()
        self._sizes: deque[int] = deque()
        self._last_due_ms = 0
        self.size = 0
        self.far_bytes = 0
        self.replaying = False

    def without_departures(self, commands: Sequence[Command], now_ms: int) -> Sequence[Command]:
        """Those of a chunk that can be taken in while only what is due by then may leave: all, they only queue."""
        return commands

    @property
    def pending(self) -> int:
        """Records in memory that are not yet done."""
        return len(self._queue)

    def take_in(self, commands: Sequence[Command], next_position: int) -> Departures:
        """Append a chunk, leaving out what an earlier owner has done."""
        queue = self._queue
        for command in commands:
            if type(command) is Schedule:
                if command.offset < self.replay_until and (command.due_ms, command.offset) <= self._taken_cursor:
                    continue
                self._last_due_ms = command.due_ms
            elif type(command) is not Reject:
                continue
            queue.append(command)
            self._sizes.append(bytes_of(command))
            self.size += self._sizes[-1]
        self.position = max(self.position, next_position)
        return NOTHING

    def take_due(self, now_ms: int, limit: int) -> Departures:
        """Remove and return what is due, and the refused records before it."""
        queue = self._queue
        due: list[Schedule] = []
        rejects: list[Reject] = []
        while queue and len(due) < limit:
            head = queue[0]
            if type(head) is Schedule:
                if head.due_ms > now_ms:
                    break
                due.append(head)
            elif type(head) is Reject:
                rejects.append(head)
            queue.popleft()
            self.size -= self._sizes.popleft()
        if due:
            self.cursor = max(self.cursor, Key(due[-1].due_ms, due[-1].offset))
        return Departures(due, rejects)

    def reached_end(self, end: int) -> None:
        """The source has no further records below `end`."""
        self.position = max(self.position, end)

    def full(self, now_ms: int, *, paused: bool) -> bool:
        """Whether the queue reaches beyond the horizon (half of it, once paused), so that reading on can wait."""
        reach_ms = self._horizon_ms // 2 if paused else self._horizon_ms
        return bool(self._queue) and self._last_due_ms > now_ms + reach_ms

    def progress(self, owner: str) -> Progress:
        """What to commit once all that was handed out is sent."""
        offset = self._queue[0].offset if self._queue else self.position
        return Progress(offset, offset, self.cursor, owner)

    def due_times(self) -> Iterator[int]:
        """When each queued record is due, in order."""
        return (entry.due_ms for entry in self._queue if type(entry) is Schedule)

    def upcoming(self) -> Iterator[Schedule]:
        """The queued records in order, to look at and not to change."""
        return (entry for entry in self._queue if type(entry) is Schedule)

    def wake_ms(self) -> int | None:
        """When the first record is due; None for an empty queue."""
        if not self._queue:
            return None
        head = self._queue[0]
        return head.due_ms if type(head) is Schedule else 0
