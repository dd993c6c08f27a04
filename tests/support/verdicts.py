"""What is wrong with the final logs of a history, promise by promise."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from tests.support.relay_in_world import deliveries, native_policy
from tests.support.storm import REFUSED, History

from delaytopic_api.headers import RECEIPT
from delaytopic_api.receipt import Receipt
from delaytopic_relay.dialects.native import NativeDialect
from delaytopic_relay.schedule import Cancel, Command, Reject, Schedule


class Fate(NamedTuple):
    """One source record, and how often it was delivered and dead-lettered."""

    shard: int
    command: Command
    delivered: int
    dead: int

    def __str__(self) -> str:
        return f"{self.shard}:{self.command.offset}"

    @property
    def name(self) -> tuple[int, bytes] | None:
        """The shard and id of a command that has an id."""
        name = None if isinstance(self.command, Reject) else self.command.id
        return None if name is None else (self.shard, name)

    @property
    def is_bad(self) -> bool:
        """Whether this record can only become a dead letter."""
        if isinstance(self.command, Schedule):
            return self.command.value == REFUSED
        return True


class Verdicts:
    """All verdicts on one history."""

    def __init__(self, history: History) -> None:
        self.history = history
        self.deliveries = deliveries(history.world)
        read = NativeDialect(native_policy(history.storm.delay_ms)).read
        times = Counter((delivery.shard, delivery.offset, delivery.dead) for delivery in self.deliveries)
        self.fates = [
            Fate(shard, read(record), times[shard, record.place, False], times[shard, record.place, True])
            for shard, log in history.world.source.items()
            for record in log
        ]
        self.by_name: dict[tuple[int, bytes], list[int]] = {}
        """The offsets of all schedules and cancels of each id of each shard."""
        for fate in self.fates:
            if (name := fate.name) is not None:
                self.by_name.setdefault(name, []).append(fate.command.offset)

    def lost(self) -> list[str]:
        """P1: records without a delivery, a dead letter or a later command for their id."""
        return [
            f"lost: {fate}"
            for fate in self.fates
            if fate.delivered + fate.dead == 0 and not isinstance(fate.command, Cancel) and not self.later(fate)
        ]

    def twice(self) -> list[str]:
        """P2: records with more than one delivery or dead letter."""
        return [f"twice: {fate}" for fate in self.fates if fate.delivered + fate.dead > 1]

    def early(self) -> list[str]:
        """P3: records sent before their time, by the clock of the relay that sent them."""
        commands = {(fate.shard, fate.command.offset): fate.command for fate in self.fates}
        found: list[str] = []
        for delivery, (_, record) in zip(self.deliveries, self.history.world.delivered, strict=True):
            command = commands[delivery.shard, delivery.offset]
            if not delivery.dead and isinstance(command, Schedule):
                receipt = Receipt.parse(dict(record.headers)[RECEIPT])
                if receipt.sent_ms < command.due_ms:
                    found.append(f"early: {receipt}")
        return found

    def misplaced(self) -> list[str]:
        """Dead letters that should have been delivered, and the other way round; cancels that were."""
        return [
            f"misplaced: {fate}"
            for fate in self.fates
            if (fate.delivered > 0 and fate.is_bad) or (fate.dead > 0 and not fate.is_bad)
        ]

    def not_withdrawn(self) -> list[str]:
        """Latest wins: schedules delivered although a later command for their id was taken in before they were due."""
        found: list[str] = []
        for fate in self.fates:
            if fate.delivered == 0 or not isinstance(fate.command, Schedule):
                continue
            for offset in self.later(fate):
                at_ms = self.taken_in_ms(fate.shard, offset)
                if at_ms is not None and at_ms < fate.command.due_ms:
                    found.append(f"not withdrawn: {fate}, by offset {offset}, taken in at {at_ms}")
        return found

    def later(self, fate: Fate) -> list[int]:
        """The offsets of the later schedules and cancels of the same id."""
        name = fate.name
        return [] if name is None else [offset for offset in self.by_name[name] if offset > fate.command.offset]

    def taken_in_ms(self, shard: int, offset: int) -> int | None:
        """When it was first committed that this record was taken in."""
        times_ms = (taken.at_ms for taken in self.history.taken if taken.shard == shard and taken.position > offset)
        return next(times_ms, None)
