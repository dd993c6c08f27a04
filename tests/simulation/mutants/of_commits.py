"""Mutants of what is committed, when, and together with what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tests.simulation.mutants.breaking import BrokenTarget, Mutant, Patch, with_target

from delaytopic_relay.backlog.fixed import FixedShard
from delaytopic_relay.backlog.redis.asks import Put, Write
from delaytopic_relay.backlog.redis.manager import RedisManager
from delaytopic_relay.backlog.redis.shard import RedisShard
from delaytopic_relay.core.calendar import Calendar
from delaytopic_relay.core.commands import DueKey, Record
from delaytopic_relay.core.progress import Progress
from delaytopic_relay.delivery.batches import Batch
from delaytopic_relay.engine.loop import Loop
from delaytopic_relay.errors import CommitUnknown, StateInDoubt
from delaytopic_relay.ports import GroupMetadata


def position_too_far() -> Sequence[Patch]:
    original = RedisShard.progress

    def progress(self: RedisShard, owner: str) -> Progress:
        was = original(self, owner)
        return was._replace(position=was.position + 1)

    return [(RedisShard, "progress", progress)]


def offset_past_memory() -> Sequence[Patch]:
    return [(Calendar, "lowest_offset", lambda self: None)]


def cursor_goes_back() -> Sequence[Patch]:
    original = RedisShard.ingest

    def ingest(self: RedisShard, *arguments: Any, **keywords: Any) -> Any:
        leaving = original(self, *arguments, **keywords)
        if leaving.schedules:
            last = leaving.schedules[-1]
            self.done = self.done._replace(cursor=DueKey(last.due_ms, last.offset))
        return leaving

    return [(RedisShard, "ingest", ingest)]


def cursor_one_too_far() -> Sequence[Patch]:
    original = RedisShard.progress

    def progress(self: RedisShard, owner: str) -> Progress:
        was = original(self, owner)
        next_due_ms = self.calendar.next_due_ms()
        cursor = was.cursor if next_due_ms is None else DueKey(next_due_ms, 0)
        return was._replace(cursor=max(was.cursor, cursor))

    return [(RedisShard, "progress", progress)]


def fixed_offset_past_the_queue() -> Sequence[Patch]:
    original = FixedShard.progress

    def progress(self: FixedShard, owner: str) -> Progress:
        return original(self, owner)._replace(offset=self.position)

    return [(FixedShard, "progress", progress)]


def puts_late() -> Sequence[Patch]:
    original_close, original_put = Loop._close_tick, RedisManager.put_all

    def close(self: Loop, *arguments: Any, **keywords: Any) -> None:
        original_close(self, *arguments, **keywords)
        if isinstance(self._manager, RedisManager):
            shards: Any = self.shards.values()
            original_put(self._manager, shards)

    return [(Loop, "_close_tick", close), (RedisManager, "put_all", lambda self, shards: ())]


def forgets_meanwhile() -> Sequence[Patch]:
    original = RedisShard.acknowledged

    def acknowledged(self: RedisShard, put: Put) -> None:
        original(self, put)
        if put.kind is Write.EARLY:
            self._far, self.far_bytes = [], 0

    return [(RedisShard, "acknowledged", acknowledged)]


def drop_before_commit() -> Sequence[Patch]:
    original = RedisManager.put_all

    def put_all(self: RedisManager, shards: Any) -> Any:
        shards = list(shards)
        stored = original(self, shards)
        self.drop_done(shards)
        return stored

    return [(RedisManager, "put_all", put_all)]


class OffsetsFirst(BrokenTarget):
    def commit(self, progress: Mapping[int, Progress], group: GroupMetadata) -> None:
        self.source.commit(progress)
        self.target.commit({}, group)


class OffsetsLast(BrokenTarget):
    def commit(self, progress: Mapping[int, Progress], group: GroupMetadata) -> None:
        self.target.commit({}, group)
        self.source.commit(progress)


class Optimist(BrokenTarget):
    """Takes a commit without an answer for one that happened."""

    def commit(self, progress: Mapping[int, Progress], group: GroupMetadata) -> None:
        try:
            self.target.commit(progress, group)
        except CommitUnknown:
            self.target.replace()


class Believer(BrokenTarget):
    """Takes a commit that was refused for one that happened."""

    def commit(self, progress: Mapping[int, Progress], group: GroupMetadata) -> None:
        try:
            self.target.commit(progress, group)
        except CommitUnknown:
            raise
        except StateInDoubt:
            self.target.abort()
            self.target.replace()


class Repeater(BrokenTarget):
    """Sends a batch again, by hand, when its commit went unanswered."""

    sent: tuple[Record | Batch, ...] = ()

    def begin(self) -> None:
        self.sent = ()
        self.target.begin()

    def send(self, records: Sequence[Record | Batch]) -> None:
        self.sent += tuple(records)
        self.target.send(records)

    def commit(self, progress: Mapping[int, Progress], group: GroupMetadata) -> None:
        try:
            self.target.commit(progress, group)
        except CommitUnknown:
            self.target.replace()
            self.target.begin()
            self.target.send(self.sent)
            self.target.commit(progress, group)


def not_settled() -> Sequence[Patch]:
    return [(Loop, "_flush", lambda self: [])]


def commits_after_a_failed_tick() -> Sequence[Patch]:
    original = Loop._reset

    def reset(self: Loop, lost: StateInDoubt) -> None:
        owned = dict(self.partitions.owned)
        original(self, lost)
        if isinstance(lost, CommitUnknown):
            return
        for partition, each in owned.items():
            self.partitions.recovered(partition, each)
        self._source.resume(owned)

    return [(Loop, "_reset", reset)]


MUTANTS = (
    Mutant("position-too-far", "commits a position P one above what was taken in", position_too_far),
    Mutant("offset-past-memory", "commits L past schedules that only its memory holds", offset_past_memory),
    Mutant("cursor-goes-back", "lets a record that leaves at once move the cursor C back", cursor_goes_back),
    Mutant("cursor-too-far", "commits a cursor C at what is due next, not at what was delivered", cursor_one_too_far),
    Mutant("fixed-offset-past-queue", "fixed delay: commits L past its queue", fixed_offset_past_the_queue),
    Mutant(
        "forgets-meanwhile",
        "forgets what it took in while a write of what came before was under way",
        forgets_meanwhile,
    ),
    Mutant("puts-late", "puts in the backlog after the commit that relies on it", puts_late),
    Mutant("drop-before-commit", "drops slices from the backlog before the commit", drop_before_commit),
    Mutant(
        "offsets-first", "commits the offsets outside the transaction, before it", lambda: with_target(OffsetsFirst)
    ),
    Mutant("offsets-last", "commits the offsets outside the transaction, after it", lambda: with_target(OffsetsLast)),
    Mutant("optimist", "goes on after a commit without an answer as if it had happened", lambda: with_target(Optimist)),
    Mutant("believer", "goes on after a refused commit as if it had happened", lambda: with_target(Believer)),
    Mutant("repeater", "sends a batch again by hand after a commit without an answer", lambda: with_target(Repeater)),
    Mutant("not-settled", "commits without waiting for what it produced", not_settled),
    Mutant("keeps-memory", "keeps its memory after an aborted transaction", commits_after_a_failed_tick),
)
