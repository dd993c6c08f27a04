"""Mutants of taking over: ownership, fencing, what is read again and what is left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tests.simulation.mutants.breaking import BrokenTarget, HastySource, Mutant, Patch, with_target
from tests.simulation.world.target_client import Client, SimulatedTarget

from delaytopic_relay.backlog.redis import backlog as redis_backlog
from delaytopic_relay.backlog.redis.backlog import RedisBacklog
from delaytopic_relay.backlog.redis.shard import RedisShard
from delaytopic_relay.backlog.store import StoreVersion
from delaytopic_relay.core.commands import NOTHING_DELIVERED, Schedule
from delaytopic_relay.core.progress import Progress
from delaytopic_relay.core.recovery import Plan, plan_recovery
from delaytopic_relay.engine.loop import Loop
from delaytopic_relay.engine.recovery import Takeover
from delaytopic_relay.errors import CommitUnknown, Fenced
from delaytopic_relay.ports import Committed


def no_lower_commit() -> Sequence[Patch]:
    original = Takeover._commit

    def commit(self: Takeover, progress: Mapping[int, Progress], writes: Any = ()) -> None:
        known = self._source.last_committed(sorted(progress))
        higher = {
            partition: new._replace(offset=max(new.offset, known[partition].offset)) if partition in known else new
            for partition, new in progress.items()
        }
        original(self, higher, writes)

    original_claim = RedisBacklog._claim

    def claim(self: Any, partition: int, progress: Progress) -> StoreVersion:
        start = max(progress.offset, self.committed.get(partition, 0))
        return original_claim(self, partition, progress._replace(offset=start))

    return [(Takeover, "_commit", commit), *_remembering_what_is_committed(), (RedisBacklog, "_claim", claim)]


def _remembering_what_is_committed() -> Sequence[Patch]:
    original_init, original_plan = RedisBacklog.__init__, RedisBacklog.plan

    def init(self: Any, *arguments: Any, **keywords: Any) -> None:
        original_init(self, *arguments, **keywords)
        self.committed = {}

    def plan(self: Any, partition: int, committed: Progress | None, *arguments: Any, **keywords: Any) -> Plan:
        if committed is not None:
            self.committed[partition] = committed.offset
        return original_plan(self, partition, committed, *arguments, **keywords)

    return [(RedisBacklog, "__init__", init), (RedisBacklog, "plan", plan)]


def backlog_believed() -> Sequence[Patch]:
    def plan(committed: Progress | None, filled: int | None, *arguments: Any, **keywords: Any) -> Plan:
        if committed is not None and filled is not None:
            return plan_recovery(committed, committed.offset, *arguments, **keywords)
        return plan_recovery(committed, filled, *arguments, **keywords)

    return [(redis_backlog, "plan_recovery", plan)]


def no_token() -> Sequence[Patch]:
    original = RedisBacklog._claim

    def claim(self: RedisBacklog, partition: int, progress: Progress) -> StoreVersion:
        return self._versions.get(partition) or original(self, partition, progress)

    return [(RedisBacklog, "_claim", claim)]


def delivers_while_replaying() -> Sequence[Patch]:
    return [(RedisShard, "replaying", property(lambda self: False))]


def forgets_the_cursor() -> Sequence[Patch]:
    original = RedisShard.__init__

    def init(self: RedisShard, partition: int, progress: Progress, *arguments: Any, **keywords: Any) -> None:
        original(self, partition, progress._replace(cursor=NOTHING_DELIVERED), *arguments, **keywords)

    return [(RedisShard, "__init__", init)]


def skips_all_below_position() -> Sequence[Patch]:
    original = RedisShard.ingest

    def ingest(self: RedisShard, commands: Sequence[Any], *arguments: Any, **keywords: Any) -> Any:
        kept = [c for c in commands if not (isinstance(c, Schedule) and c.offset < self.replay_until)]
        return original(self, kept, *arguments, **keywords)

    return [(RedisShard, "ingest", ingest)]


def reads_offsets_in_doubt() -> Sequence[Patch]:
    original = Takeover.__init__

    def init(self: Takeover, source: Any, *arguments: Any, **keywords: Any) -> None:
        hasty: Any = HastySource(source)
        original(self, hasty, *arguments, **keywords)

    return [(Takeover, "__init__", init), (Takeover, "_fence_last_owners", lambda self, last, topic: None)]


def reads_before_owning() -> Sequence[Patch]:
    original = Takeover.__init__

    class Remembering:
        def __init__(self, source: Any) -> None:
            self._source = source
            self._seen: dict[int, Committed] = {}

        def __getattr__(self, name: str) -> Any:
            return getattr(self._source, name)

        def committed(self, partitions: Sequence[int]) -> dict[int, Committed]:
            for partition, committed in self._source.committed(partitions).items():
                self._seen.setdefault(partition, committed)
            return {partition: self._seen[partition] for partition in partitions if partition in self._seen}

    def init(self: Takeover, source: Any, *arguments: Any, **keywords: Any) -> None:
        remembering: Any = Remembering(source)
        original(self, remembering, *arguments, **keywords)

    return [(Takeover, "__init__", init)]


def keeps_revoked() -> Sequence[Patch]:
    return [(Loop, "revoked", lambda self, partitions: None)]


def keeps_lost() -> Sequence[Patch]:
    return [(Loop, "lost", lambda self, partitions: None)]


def not_replaced() -> Sequence[Patch]:
    original = Loop._reset

    def reset(self: Loop, lost: Any) -> None:
        original(self, lost)
        if isinstance(lost, Fenced):
            self._target_is_spent = False

    return [(Loop, "_reset", reset)]


def keeps_epoch_after_unknown() -> Sequence[Patch]:
    class Stubborn(BrokenTarget):
        """After a commit without an answer, goes on with the same producer and a new transaction."""

        def commit(self, progress: Any, group: Any) -> None:
            try:
                self.target.commit(progress, group)
            except CommitUnknown:
                assert isinstance(self.target, SimulatedTarget)
                self.target._state = Client.READY
                raise

        def replace(self) -> None:
            try:
                self.target.begin()
            except (CommitUnknown, Fenced):
                self.target.replace()
            else:
                self.target.abort()

    return with_target(Stubborn)


MUTANTS = (
    Mutant(
        "no-lower-commit",
        "starts to read below L, and states that neither in Kafka nor in the backlog",
        no_lower_commit,
    ),
    Mutant("backlog-believed", "starts to read at L although the backlog states a lower offset", backlog_believed),
    Mutant("no-token", "does not write a fresh owner token to the backlog", no_token),
    Mutant("delivers-while-replaying", "delivers before reading has passed P", delivers_while_replaying),
    Mutant("forgets-the-cursor", "takes over without the cursor C", forgets_the_cursor),
    Mutant(
        "skips-below-position", "when reading again, leaves out all below P, not only up to C", skips_all_below_position
    ),
    Mutant("offsets-in-doubt", "neither fences the last owner nor waits for offsets in doubt", reads_offsets_in_doubt),
    Mutant("reads-before-owning", "goes by committed offsets read before it owned the shard", reads_before_owning),
    Mutant("keeps-revoked", "keeps shards that the group took away", keeps_revoked),
    Mutant("keeps-lost", "keeps shards that it lost", keeps_lost),
    Mutant("not-replaced", "goes on with a producer that is fenced", not_replaced),
    Mutant(
        "same-epoch",
        "opens a new transaction under the old epoch after a commit without an answer",
        keeps_epoch_after_unknown,
    ),
)
