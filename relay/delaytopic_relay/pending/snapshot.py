"""Copies of shards for a list: taken between two turns of the loop, bounded, and plain afterwards. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import NamedTuple

from delaytopic_relay.backlog.protocol import Shard
from delaytopic_relay.core.commands import Schedule
from delaytopic_relay.core.done import Done
from delaytopic_relay.core.partition import Stored, Wanted
from delaytopic_relay.pending.query import EVERYTHING, PendingQuery


class ShardCopy(NamedTuple):
    """The state of a shard at one moment, as far as a listing needs it."""

    partition: int
    schedules: list[Schedule]
    """The first of those in memory that are in effect, one more than the list may have; in no order."""
    cut_ms: int | None = None
    """The due time from which on memory could not be looked at; None when all could that is needed."""
    stored: Stored = Stored()
    """The part that is not in memory."""
    done: Done = Done()
    """The schedules that are done, of those that were taken in."""
    ingested: int = 0
    """The offset from which on nothing is taken in yet, whoever stored it."""
    replaying: bool = False
    """True while a part of what was in memory once is still to be read again."""


class Copies(NamedTuple):
    """The loop's shards, and why others wait to be recovered."""

    shards: Mapping[int, ShardCopy]
    waiting: Mapping[int, str]


def may_be_copied(shard: Shard) -> bool:
    """Return whether nothing is on its way to the backlog: memory and backlog together are the whole."""
    return not shard.must_put


def copy_of(shard: Shard, query: PendingQuery) -> ShardCopy:
    """Copy what the query may need; changes nothing."""
    selection, takes = query.selection, None
    if selection != EVERYTHING:
        takes = partial(selection.takes, shard.partition)
    wanted = Wanted(selection.from_ms, query.due_before_ms, query.limit + 1, takes)
    schedules, cut_ms = shard.first_in_memory(wanted)
    ingested = max(shard.position, shard.replay_until)
    return ShardCopy(
        shard.partition, schedules, cut_ms, shard.stored(), shard.done, ingested, replaying=shard.replaying
    )
