"""What a listing takes from one shard: copied between two turns of the loop, bounded, and plain afterwards. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from types import MappingProxyType
from typing import NamedTuple

from delaytopic_relay.backlog.fixed import FixedShard
from delaytopic_relay.backlog.kafka.bucket import WaitingBucket
from delaytopic_relay.backlog.kafka.partition import BucketShard
from delaytopic_relay.backlog.redis.partition import Shard
from delaytopic_relay.backlog.store import IdEntry, Position
from delaytopic_relay.core.calendar import Calendar
from delaytopic_relay.core.commands import NOTHING_DELIVERED, Key, Schedule
from delaytopic_relay.core.id_table import IdTable
from delaytopic_relay.engine.takeover import AnyShard
from delaytopic_relay.pending.query import ListingQuery

MOST_LOOKED_AT = 10_000
"""Schedules in the memory of one shard: up to 3 ms of the loop's time for a burst, else some tenths of one."""


NO_IDS: Mapping[bytes, IdEntry] = MappingProxyType({})


class ShardCopy(NamedTuple):
    """The state of a shard at one moment, as far as a listing needs it."""

    partition: int
    schedules: list[Schedule]
    """Of those in memory the first that are in effect, one more than the list may have; in no order."""
    cut_ms: int | None = None
    """What is in memory and due from then on could not be looked at; None when all could that is needed."""
    shelf_from_ms: int | None = None
    """What is due before is in memory; None when everything is."""
    shelf_position: Position | None = None
    """Where the shelf has to be; None for a shard without one."""
    cursor: Key = NOTHING_DELIVERED
    """What is at or below it is done."""
    taken_in: int = 0
    """What is at or above this offset is not taken in, whoever put it on the shelf."""
    replaying: bool = False
    """Whether a part of what was in memory once is still to be read again."""
    buckets: Sequence[WaitingBucket] = ()
    """What waits in bucket topics."""
    ids: Mapping[bytes, IdEntry] = NO_IDS
    """What is known of the ids in bucket topics; the loop goes on changing it."""


class Copies(NamedTuple):
    """What the loop holds: shards, and why others wait to be recovered."""

    shards: Mapping[int, ShardCopy]
    waiting: Mapping[int, str]


def may_be_copied(shard: AnyShard) -> bool:
    """Whether nothing is on its way to the shelf: memory and shelf together are the whole."""
    return isinstance(shard, FixedShard) or not shard.must_put


def copy_of(shard: AnyShard, query: ListingQuery) -> ShardCopy:
    """Copy what the query may need; changes nothing."""
    wanted = query.limit + 1
    if isinstance(shard, FixedShard):
        looked_at = islice(shard.upcoming(), wanted)
        return ShardCopy(shard.partition, [entry for entry in looked_at if entry.due_ms < query.due_before_ms])
    schedules, cut_ms = _in_memory(shard.calendar, shard.ids, query.due_before_ms, wanted)
    copy = ShardCopy(
        shard.partition,
        schedules,
        cut_ms,
        cursor=shard.cursor,
        taken_in=max(shard.position, shard.replay_until),
        replaying=shard.replaying,
    )
    return _with_buckets(copy, shard) if isinstance(shard, BucketShard) else _with_shelf(copy, shard)


def _with_buckets(copy: ShardCopy, shard: BucketShard) -> ShardCopy:
    buckets = shard.waiting_buckets()
    from_ms = min((bucket.first_ms for bucket in buckets), default=None)
    return copy._replace(shelf_from_ms=from_ms, buckets=buckets, ids=shard.pending_ids)


def _with_shelf(copy: ShardCopy, shard: Shard) -> ShardCopy:
    return copy._replace(shelf_from_ms=shard.waits_from_ms, shelf_position=shard.shelf_position)


def _in_memory(calendar: Calendar, ids: IdTable, before_ms: int, wanted: int) -> tuple[list[Schedule], int | None]:
    """The first schedules of the calendar that are in effect, and from when on some could not be looked at."""
    found: list[Schedule] = []
    allowance = MOST_LOOKED_AT
    for start_ms, slot in calendar.upcoming():
        if start_ms >= before_ms or len(found) >= wanted:
            break
        if len(slot.entries) - slot.head > allowance and not slot.in_order:
            return found, start_ms
        last = slot.head + (min(allowance, wanted) if slot.in_order and not len(ids) else allowance)
        found += _in_effect(slot.entries[slot.head : last], ids, before_ms)
        if last < len(slot.entries) and len(found) < wanted:
            return found, slot.entries[last].due_ms
        allowance -= min(last, len(slot.entries)) - slot.head
    return found, None


def _in_effect(schedules: list[Schedule], ids: IdTable, before_ms: int) -> Iterable[Schedule]:
    """Those of a slot that would be delivered; of copies one."""
    in_effect = {
        (schedule.due_ms, schedule.offset): schedule
        for schedule in schedules
        if schedule.due_ms < before_ms and (schedule.id is None or ids.in_effect(schedule))
    }
    return in_effect.values()
