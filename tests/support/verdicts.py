"""What is wrong with the final logs of a history, promise by promise."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from tests.support.relay_in_world import deliveries, native_policy
from tests.support.storm import REFUSED, History

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


def fates(history: History) -> list[Fate]:
    """What became of every record of the source."""
    read = NativeDialect(native_policy(history.storm.delay_ms)).read
    times = Counter((delivery.shard, delivery.offset, delivery.dead) for delivery in deliveries(history.world))
    return [
        Fate(shard, read(record), times[shard, record.place, False], times[shard, record.place, True])
        for shard, log in history.world.source.items()
        for record in log
    ]


def early(history: History) -> list[str]:
    """P3: records sent before their time."""
    due_ms = {
        (fate.shard, fate.command.offset): fate.command.due_ms
        for fate in fates(history)
        if isinstance(fate.command, Schedule)
    }
    return [
        f"early: {delivery}"
        for delivery in deliveries(history.world)
        if not delivery.dead and delivery.sent_ms < due_ms[delivery.shard, delivery.offset]
    ]


def lost(history: History) -> list[str]:
    """P1: records without a delivery, a dead letter or a later command for their id."""
    newest = latest_commands(history)
    return [
        f"lost: {fate}"
        for fate in fates(history)
        if fate.delivered + fate.dead == 0 and fate.command.offset == newest.get(name_of(fate), fate.command.offset)
        if not isinstance(fate.command, Cancel)
    ]


def twice(history: History) -> list[str]:
    """P2: records with more than one delivery or dead letter."""
    return [f"twice: {fate}" for fate in fates(history) if fate.delivered + fate.dead > 1]


def misplaced(history: History) -> list[str]:
    """Dead letters that should have been delivered, and the other way round."""
    return [
        f"misplaced: {fate}"
        for fate in fates(history)
        if (fate.delivered > 0 and is_bad(fate.command)) or (fate.dead > 0 and not is_bad(fate.command))
    ]


def is_bad(command: Command) -> bool:
    """Whether this record can only become a dead letter."""
    return isinstance(command, Reject) or (isinstance(command, Schedule) and command.value == REFUSED)


def not_withdrawn(history: History) -> list[str]:
    """Latest wins: schedules delivered although a later command for their id was taken in before they were due."""
    return [
        f"not withdrawn: {fate}, by {shard}:{offset}, taken in at {at_ms}"
        for fate in fates(history)
        if isinstance(fate.command, Schedule) and fate.command.id is not None and fate.delivered > 0
        for shard, offset in later_commands(history, fate)
        if (at_ms := taken_in_ms(history, shard, offset)) is not None and at_ms < fate.command.due_ms
    ]


def taken_in_ms(history: History, shard: int, offset: int) -> int | None:
    """When it was first committed that this record was taken in."""
    times_ms = (taken.at_ms for taken in history.taken if taken.shard == shard and taken.position > offset)
    return next(times_ms, None)


def later_commands(history: History, fate: Fate) -> Iterator[tuple[int, int]]:
    """The later schedules and cancels of the same id."""
    for other in fates(history):
        if name_of(other) == name_of(fate) and other.command.offset > fate.command.offset:
            yield other.shard, other.command.offset


def name_of(fate: Fate) -> tuple[int, bytes] | None:
    """The shard and id of a command that has one."""
    name = None if isinstance(fate.command, Reject) else fate.command.id
    return None if name is None else (fate.shard, name)


def latest_commands(history: History) -> dict[tuple[int, bytes] | None, int]:
    """The offset of the last command of each id."""
    named = ((name_of(fate), fate.command.offset) for fate in fates(history))
    return {name: offset for name, offset in named if name is not None}
