"""The model of ids, as simple as possible, that shards are compared with."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.support.relay.backlog.shard_run import Delivered
from tests.support.relay.schedules import key_of

from delaytopic_relay.core.commands import NOTHING_DELIVERED, Cancel, Command, DueKey, Schedule


@dataclass
class LatestWins:
    """All pending schedules in one list; of an id only the latest command counts."""

    pending: list[Schedule] = field(default_factory=list)
    latest: dict[bytes, int] = field(default_factory=dict)
    waiting: dict[bytes, Schedule] = field(default_factory=dict)
    cursor: DueKey = NOTHING_DELIVERED
    delivered: list[Delivered] = field(default_factory=list)
    superseded: int = 0
    cancelled: int = 0
    too_late: int = 0

    def ingest(self, commands: list[Command], now_ms: int) -> None:
        """Everything that arrived since the last time, in one chunk; what was due before the cursor leaves at once."""
        past: list[DueKey] = []
        for command in commands:
            if isinstance(command, Cancel):
                self._cancel(command)
            elif isinstance(command, Schedule):
                self._schedule(command, past)
        self.delivered += [Delivered(now_ms, key) for key in sorted(past)]

    def _cancel(self, command: Cancel) -> None:
        self.latest[command.id] = command.offset
        if self.waiting.pop(command.id, None) is None:
            self.too_late += 1
        else:
            self.cancelled += 1

    def _schedule(self, command: Schedule, past: list[DueKey]) -> None:
        if command.id is not None:
            self.latest[command.id] = command.offset
            self.superseded += self.waiting.pop(command.id, None) is not None
        if key_of(command) <= self.cursor:
            past.append(key_of(command))
            return
        self.pending.append(command)
        if command.id is not None:
            self.waiting[command.id] = command

    def deliver(self, now_ms: int) -> None:
        """Everything due leaves in order, but for what a later command withdrew."""
        due = sorted((entry for entry in self.pending if entry.due_ms <= now_ms), key=key_of)
        self.pending = [entry for entry in self.pending if entry.due_ms > now_ms]
        for entry in due:
            self.cursor = max(self.cursor, key_of(entry))
            if entry.id is None or self.latest[entry.id] == entry.offset:
                self.delivered.append(Delivered(now_ms, key_of(entry)))
                if entry.id is not None:
                    del self.waiting[entry.id]
