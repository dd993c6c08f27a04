"""Carries out the recovery of shards that came to this relay, in the order that keeps it exact.

First ownership (the caller has it), then: fence the last owner, read what is committed, commit the
offset to start from under our own name, claim the shelf, and only then read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from delaytopic_relay.backlog.fixed import FixedShard
from delaytopic_relay.backlog.kafka.manager import BucketShelving
from delaytopic_relay.backlog.kafka.partition import BucketShard
from delaytopic_relay.backlog.redis.partition import UNLIMITED_BYTES, Shard
from delaytopic_relay.backlog.signing import UNSIGNED, SegmentSigner
from delaytopic_relay.backlog.store import Position, Shelf
from delaytopic_relay.core.progress import Progress, decode_progress
from delaytopic_relay.engine.loop_events import Journal
from delaytopic_relay.engine.ports import Committed, Source, Target
from delaytopic_relay.engine.recovery import Plan, plan_fixed, plan_recovery
from delaytopic_relay.errors import CorruptState, ShelfMoved, Unavailable

AnyShard = Shard | BucketShard | FixedShard


class Recovered(NamedTuple):
    """A shard ready to go on; `gone`, `shortened` and `moves` as in `Plan`, `replay` counts the offsets read again."""

    shard: AnyShard
    committed: Progress
    gone: int
    shortened: bool
    replay: int
    moves: bool = False


class Takeover:
    """Recovers shards."""

    def __init__(
        self,
        source: Source,
        target: Target,
        shelf: Shelf | BucketShelving | None,
        token: str,
        horizon_ms: int,
        journal: Journal,
        may_be_fenced: Callable[[str], bool],
        signer: SegmentSigner = UNSIGNED,
    ) -> None:
        """`shelf` is None for a fixed delay; `token` names this relay on the shelf, with a number for each claim.

        An older copy of the shelf may hold an earlier claim of this very relay, with the same counter.
        `may_be_fenced` tells the `transactional.id`s of the own group from others.
        """
        self._source = source
        self._target = target
        self._shelf = shelf
        self._token = token
        self._horizon_ms = horizon_ms
        self._journal = journal
        self._may_be_fenced = may_be_fenced
        self._signer = signer
        self.share_bytes = UNLIMITED_BYTES
        """From so much on the shelf on, a shard's reading pauses."""
        self._fenced: set[str] = set()
        self._claims = 0

    def recover(self, shards: Iterable[int]) -> dict[int, Recovered]:
        """Recover what can be recovered now; the others are left out, and the journal says why."""
        wanted = sorted(shards)
        try:
            self._fence_last_owners(wanted)
            plans = self._plans(wanted, self._source.committed(wanted))
            self._commit({shard: plan.progress for shard, (plan, _) in plans.items()})
            if isinstance(self._shelf, BucketShelving):
                self._shelf.prepare([*plans])
        except Unavailable as error:
            self._journal.unavailable(error)
            return {}
        recovered: dict[int, Recovered] = {}
        for shard, (plan, position) in plans.items():
            try:
                recovered[shard] = self._start(shard, plan, position)
            except (Unavailable, ShelfMoved) as error:
                self._journal.stuck(shard, error)
            except CorruptState as error:
                self._reset(shard, error)
        return recovered

    def _reset(self, shard: int, why: CorruptState) -> None:
        """Forget what the shelf has of a shard that holds what no relay writes: it is filled again from the source."""
        self._journal.stuck(shard, why)
        assert self._shelf is not None
        assert not isinstance(self._shelf, BucketShelving)
        try:
            self._shelf.reset(shard, ())
        except Unavailable as error:
            self._journal.stuck(shard, error)

    def _fence_last_owners(self, shards: list[int]) -> None:
        """Fence the owners that the metadata names, if they are of the own group.

        Whoever may commit in the group can write any name there. One that is none of ours is skipped: the group's
        generation keeps a former owner from committing anyway, and what it left open ends with its transaction timeout.
        """
        for shard, committed in self._source.last_committed(shards).items():
            try:
                owner = decode_progress(*committed).owner
            except CorruptState:
                continue
            if not owner or owner == self._target.owner or owner in self._fenced:
                continue
            if self._may_be_fenced(owner):
                self._target.fence(owner)
                self._fenced.add(owner)
                self._journal.fenced(owner)
            else:
                where = f"the metadata of the committed offset of partition {shard}"
                self._journal.foreign(shard, f"{where} names {owner[:80]!r}, which is no relay of this group")

    def _plans(self, shards: list[int], committed: Mapping[int, Committed]) -> dict[int, tuple[Plan, Position | None]]:
        plans: dict[int, tuple[Plan, Position | None]] = {}
        for shard in shards:
            try:
                plans[shard] = self._plan(shard, committed.get(shard))
            except (Unavailable, CorruptState) as error:
                self._journal.stuck(shard, error)
        return plans

    def _plan(self, shard: int, committed: Committed | None) -> tuple[Plan, Position | None]:
        progress = decode_progress(*committed) if committed is not None else None
        bounds = self._source.bounds(shard)
        if self._shelf is None:
            fixed = plan_fixed(progress, bounds, self._target.owner)
            return Plan(fixed, Position("", 0, 0), 0, False), None
        by_hand = committed is not None and not committed.metadata
        if isinstance(self._shelf, BucketShelving):
            return self._shelf.plan(shard, progress, bounds, self._target.owner, by_hand=by_hand), None
        position = self._position(self._shelf, shard)
        self._claims += 1
        token = f"{self._token}-{self._claims}{self._signer.mark}"
        plan = plan_recovery(progress, position, bounds, self._target.owner, token, by_hand=by_hand)
        return plan._replace(moves=progress is not None and progress.buckets is not None), position

    def _position(self, shelf: Shelf, shard: int) -> Position | None:
        """Where the shelf is; None also where it holds what cannot be believed, which is forgotten then.

        Its position names the key that signs. A shelf without one, or with one that is not here, has segments that this
        relay would skip.
        """
        try:
            position = shelf.position(shard)
            if position is None or self._signer.knows(position.owner):
                return position
            raise CorruptState(f"the shelf of shard {shard} was filled without a signing key, or with another one")
        except CorruptState as error:
            shelf.reset(shard, ())
            self._journal.stuck(shard, error)
            return None

    def _commit(self, progress: Mapping[int, Progress]) -> None:
        if not progress:
            return
        if self._target.owner:
            self._target.begin()
            self._target.commit(progress, self._source.group_metadata())
        else:
            self._source.commit(progress)

    def _start(self, number: int, plan: Plan, position: Position | None) -> Recovered:
        start, shard = plan.progress.offset, self._shard(number, plan, position)
        self._source.read_from(number, start)
        replay = plan.progress.position - start
        return Recovered(shard, plan.progress, plan.gone, plan.shortened, replay, plan.moves)

    def _shard(self, number: int, plan: Plan, position: Position | None) -> AnyShard:
        start = plan.progress.offset
        if self._shelf is None:
            return FixedShard(number, plan.progress, start, self._horizon_ms)
        if isinstance(self._shelf, BucketShelving):
            return self._shelf.open(number, plan.progress, start)
        shard = Shard(number, plan.progress, start, plan.claim, self._horizon_ms, self.share_bytes)
        shard.stored(self._shelf.put(number, position, plan.claim, [], {}))
        return shard
