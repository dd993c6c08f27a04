"""Carries out the recovery of shards that came to this relay, in the order that keeps it exact.

First ownership (the caller has it), then: look which topic the source is, fence the last owner, read what is
committed, judge whether that is of this topic, commit the offset to start from under our own name, claim the backlog,
begin our own rules where the source ends if they are others than those in force, and only then read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from delaytopic_relay.backlog.protocol import Backlog, Shard
from delaytopic_relay.core.commands import NOTHING_DELIVERED, Record
from delaytopic_relay.core.progress import Progress, decode_progress
from delaytopic_relay.core.recovery import (
    MOST_TAKEOVERS,
    NOTHING_ACCEPTED,
    Acceptance,
    Begin,
    Bounds,
    FormerLife,
    Found,
    Plan,
    SourceTopic,
    count_takeovers,
    is_foreign,
    judge,
    oldest_needed_ms,
)
from delaytopic_relay.core.rules import Generation, mark_of, moved, succeed
from delaytopic_relay.engine.reading import Reading
from delaytopic_relay.engine.unreadable import too_large
from delaytopic_relay.errors import (
    BacklogMoved,
    CorruptState,
    KafkaUnavailable,
    SourceReplaced,
    StandsStill,
    Unavailable,
)
from delaytopic_relay.ports import Clock, Committed, Examiner, LoopEvents, Place, Seen, Source, Target

_INSTANCE = re.compile(r"[^/]{1,255}-[0-9]{1,10}-[0-9a-f]{8}")
"""Host, process and a random part, as `Service` names a relay."""


def transactional_id(group_id: str, instance: str) -> str:
    """Name the producer of one relay, beginning with its group."""
    return f"{group_id}/{instance}"


def is_of_group(owner: str, group_id: str) -> bool:
    """Tell whether a `transactional.id` has the exact form of a relay of this group.

    An instance has no slash, so that no id of another group has this form, whatever the groups are called.
    """
    return owner.startswith(f"{group_id}/") and _INSTANCE.fullmatch(owner, len(group_id) + 1) is not None


class Recovered(NamedTuple):
    """A shard ready to go on, and the plan by which it was recovered."""

    shard: Shard
    plan: Plan
    look_ahead_until: int | None = None
    """The offset up to which the source is looked through before it is read; None where it need not be."""


class Origin(NamedTuple):
    """The source topic that a relay was opened with, its group, and what a person has said about it."""

    topic: SourceTopic
    group: str = ""
    accepted: Acceptance = NOTHING_ACCEPTED


class Takeover:
    """Recovers shards."""

    def __init__(
        self,
        source: Source,
        target: Target,
        backlog: Backlog,
        events: LoopEvents,
        may_be_fenced: Callable[[str], bool],
        reading: Reading,
        origin: Origin,
        clock: Clock,
    ) -> None:
        """`may_be_fenced` tells the `transactional.id`s of the own group from others."""
        self.examiner: Examiner | None = None
        """Asked where relays have ended one after another; without one, what they ended by is read as anything else."""
        self._counted: set[int] = set()
        """The partitions whose takeover by this relay is committed, and counted."""
        self._origin = origin
        self._clock = clock
        self.still: dict[int, StandsStill] = {}
        """The partitions that stand still until a person says how they go on, and why."""
        self.missing: dict[int, int] = {}
        """Source offsets that were to be read, and were gone when a partition was recovered."""
        self._lost: dict[int, int] = {}
        """The pending records that were lost with a former topic, of partitions that are not recovered yet."""
        self._source = source
        self._target = target
        self._backlog = backlog
        self._events = events
        self._may_be_fenced = may_be_fenced
        self._reading = reading
        self._fenced: dict[int, str] = {}
        """The former owner of each partition that was fenced since the partition came to us. Without it, one that works
        on elsewhere would be fenced with each try."""

    def recover(self, partitions: Iterable[int]) -> dict[int, Recovered]:
        """Recover what can be recovered now; the others are left out, and the journal says why.

        Raises `StateInDoubt`, `SourceReplaced`, and `QueueImpossible` where a fixed delay needs a backlog.
        """
        wanted = sorted(partitions)
        for partition in wanted:
            self.still.pop(partition, None)
            self.missing.pop(partition, None)
        try:
            look = self._source.look(wanted)
            last = self._source.last_committed(wanted)
            seen = look()
            self._check_it_is_the_same(seen.topic)
            self._fence_last_owners(last, seen.topic)
            plans, writes = self._plans(wanted, self._source.committed(wanted), seen)
            self._commit({partition: plan.progress for partition, plan in plans.items()}, writes)
            self._counted.update(plans)
            self._backlog.prepare([*plans])
        except Unavailable as error:
            self._events.unavailable(error)
            return {}
        opened = self._open(plans)
        try:
            self._begin_rules(opened)
        except Unavailable as error:
            self._events.unavailable(error)
            return {}
        recovered: dict[int, Recovered] = {}
        for partition, (shard, plan) in opened.items():
            try:
                look_ahead_until = self._look_ahead_until(partition, plan)
                begin = plan.progress.offset if look_ahead_until is None else plan.progress.position
                self._source.read_from(partition, begin)
            except Unavailable as error:
                self._events.stuck(partition, error)
            else:
                shard.looks_ahead = look_ahead_until is not None
                self._lost.pop(partition, None)
                if plan.missing_offsets:
                    self.missing[partition] = plan.missing_offsets
                recovered[partition] = Recovered(shard, plan, look_ahead_until)
        return recovered

    def _open(self, plans: Mapping[int, Plan]) -> dict[int, tuple[Shard, Plan]]:
        opened: dict[int, tuple[Shard, Plan]] = {}
        for partition, plan in plans.items():
            try:
                opened[partition] = (self._backlog.open(partition, plan), plan)
            except (Unavailable, BacklogMoved) as error:
                self._events.stuck(partition, error)
        return opened

    def _look_ahead_until(self, partition: int, plan: Plan) -> int | None:
        """Return the source's end, behind all that former owners have written into it.

        None where nothing was written there that is not read yet, and counts before it is. Of a dialect that puts off
        that is not asked.
        """
        if not plan.progress.on_their_way and not any(each.rules.postpones for each in plan.progress.generations):
            return None
        end = self._source.end(partition)
        return end if end > plan.progress.position else None

    def release(self, partitions: Iterable[int]) -> None:
        """Commit for partitions that leave, and were ours until a tick was aborted, that nobody is to be fenced.

        Their successor would fence this relay, which works on for others. What is committed is read when no transaction
        is in doubt: of the last one the broker may still write the markers, and an older state must not replace it.
        Raises `StateInDoubt` and `Unavailable`.
        """
        wanted, us = sorted(partitions), self._target.owner
        if not wanted or not us:
            return
        ours: dict[int, Progress] = {}
        for partition, committed in self._source.committed(wanted).items():
            with suppress(CorruptState):
                progress = decode_progress(*committed)
                if progress.owner == us:
                    ours[partition] = progress._replace(owner="")
        self._commit(ours)

    def forget(self, partitions: Iterable[int]) -> None:
        """Forget what was done for partitions that leave: until they come back, a fenced owner may begin anew."""
        for partition in partitions:
            self._fenced.pop(partition, None)
            self.still.pop(partition, None)
            self.missing.pop(partition, None)
            self._counted.discard(partition)
            if self.examiner is not None:
                self.examiner.forget(partition)

    def _check_it_is_the_same(self, topic: SourceTopic) -> None:
        """Raise `SourceReplaced` if the source is another topic than the backlog was opened for."""
        if not topic.same_as(self._origin.topic):
            raise SourceReplaced(
                f"{topic.name} was made anew: its topic id is {topic.topic_id}, and was "
                f"{self._origin.topic.topic_id} when this relay began"
            )

    def _fence_last_owners(self, last: Mapping[int, Committed], topic: SourceTopic) -> None:
        """Fence the owners that the metadata names, if they are of the own group, and it is of this topic or accepted.

        Whoever may commit in the group can write any name there. One that is none of ours is skipped: the group's
        generation keeps a former owner from committing anyway, and what it left open ends with its transaction timeout.
        """
        fenced: set[str] = set()
        accepted = self._origin.accepted.topic_id
        for partition, committed in last.items():
            try:
                progress = decode_progress(*committed)
            except CorruptState:
                continue
            if is_foreign(progress, topic) and accepted != topic.topic_id:
                continue
            owner = progress.owner
            if not owner or owner == self._target.owner or self._fenced.get(partition) == owner:
                continue
            if self._may_be_fenced(owner):
                if owner not in fenced:
                    self._target.fence(owner)
                    self._events.fenced(owner)
                fenced.add(owner)
                self._fenced[partition] = owner
            else:
                where = f"the metadata of the committed offset of partition {partition}"
                self._events.foreign(partition, f"{where} names {owner[:80]!r}, which is no relay of this group")

    def _plans(
        self, partitions: list[int], committed: Mapping[int, Committed], seen: Seen
    ) -> tuple[dict[int, Plan], list[Record]]:
        """Return the plans, and what is to be written in the transaction that commits them."""
        plans: dict[int, Plan] = {}
        writes: list[Record] = []
        cut = self._cut(partitions, committed, seen)
        for partition in partitions:
            try:
                plans[partition] = self._plan(partition, committed.get(partition), seen, cut, writes)
            except StandsStill as error:
                self.still[partition] = error
                self._events.stuck(partition, error)
            except (Unavailable, CorruptState) as error:
                self._events.stuck(partition, error)
        return plans, writes

    def _plan(
        self, partition: int, committed: Committed | None, seen: Seen, cut: Mapping[int, bool], writes: list[Record]
    ) -> Plan:
        progress = decode_progress(*committed) if committed is not None else None
        if partition not in cut:
            raise KafkaUnavailable(
                f"partition {partition}: its leader epoch could not be compared with the committed one"
            )
        bounds = self._source.bounds(partition)
        offset_reset = committed is not None and not committed.metadata
        former = self._former_life(partition, progress, offset_reset=offset_reset)
        end = bounds.end
        if offset_reset and progress is not None and progress.position > end:
            end = self._source.end(partition)  # a tool goes by the end behind what is in open transactions
        found = Found(partition, self._origin.group, progress, offset_reset, end, cut[partition], former)
        begin = judge(found, seen.topic, self._origin.accepted, self._clock.now_ms())
        if begin is Begin.ANEW:
            marks = former.marks if former is not None else ()
            self._forget_former(partition, progress, marks, writes)
            progress = None
        offset_reset = offset_reset and begin is not Begin.WITH_REPEATS
        plan = self._backlog.plan(partition, progress, bounds, self._target.owner, offset_reset=offset_reset)
        plan = self._of_this_topic(partition, plan, seen, bounds)
        plan = self._examined(partition, progress, plan, bounds)
        return self._with_missing(partition, self._with_rules(plan), bounds)

    def _examined(self, partition: int, was: Progress | None, plan: Plan, bounds: Bounds) -> Plan:
        """Return a plan that counts its takeover.

        Where relays have ended one after another, what is to be read is examined first. Raises `StandsStill` if it
        cannot be read, and `Unavailable` until that is known.
        """
        planned, again = plan.progress, partition in self._counted
        takeovers = count_takeovers(was, planned, bounds.end, again=again)
        if takeovers >= MOST_TAKEOVERS and self.examiner is not None:
            found = self.examiner.examine(partition, planned.offset, planned.position)
            if found is not None:
                raise too_large(self._origin.topic.name, partition, found)
            takeovers = 0
        return plan._replace(progress=planned._replace(takeovers=takeovers))

    def _cut(self, partitions: Sequence[int], committed: Mapping[int, Committed], seen: Seen) -> Mapping[int, bool]:
        """Return of each partition whether its log was truncated below P, and grew again; without an answer it is left
        out.

        Only a log that ends with another epoch than the last record below P has can have been.
        """
        doubtful: dict[int, Place] = {}
        for partition, each in committed.items():
            with suppress(CorruptState):
                progress = decode_progress(*each)
                position, (_, _, epoch, gap) = progress.position, progress.identity
                known = seen.epochs.get(partition) == epoch if epoch >= 0 else not gap
                if not known and not is_foreign(progress, seen.topic):
                    doubtful[partition] = Place(position, epoch, max(0, position - gap))
        found = self._source.cut_below(doubtful) if doubtful else {}
        return {each: found.get(each, False) for each in partitions if each not in doubtful or each in found}

    def _former_life(self, partition: int, progress: Progress | None, *, offset_reset: bool) -> FormerLife | None:
        if progress is not None and not offset_reset:
            return None
        return self._backlog.former_life(partition, offset_reset=offset_reset)

    def _forget_former(
        self, partition: int, progress: Progress | None, marks: Collection[str], writes: list[Record]
    ) -> None:
        """Have the backlog forget the former topic, and note what is lost with it: what only memory held, too."""
        committed = [progress.identity.topic] if progress is not None else []
        known = {*marks, *committed, self._origin.topic.identity.topic}
        forgotten = self._backlog.forget(partition, known, progress)
        in_memory = max(0, progress.position - progress.offset) if progress is not None else 0
        lost = forgotten.records + in_memory
        self._lost[partition] = max(self._lost.get(partition, 0), lost)
        writes += forgotten.writes

    def _of_this_topic(self, partition: int, plan: Plan, seen: Seen, bounds: Bounds) -> Plan:
        """Return a plan that names the topic, and the leader epoch below its position, as far as these are known."""
        was, now = plan.progress.identity, seen.topic.identity
        identity = was._replace(cluster=now.cluster or was.cluster, topic=now.topic or was.topic)
        if identity.epoch < 0 and not identity.gap and self._is_the_end(partition, plan.progress.position, bounds):
            # An offset that was set, or taken from the backlog, has no epoch, and none is read before the next record.
            identity = identity._replace(epoch=seen.epochs.get(partition, -1))
        progress = plan.progress._replace(identity=identity)
        return plan._replace(progress=progress, lost_records=self._lost.get(partition))

    def _is_the_end(self, partition: int, position: int, bounds: Bounds) -> bool:
        """Tell whether a log has records below a position, and nothing behind it, not even in open transactions."""
        return bounds.low < position == bounds.end == self._source.end(partition)

    def _with_missing(self, partition: int, plan: Plan, bounds: Bounds) -> Plan:
        """Return a plan that counts what an empty backlog lacks, unless all of that was done: it is too old to wait."""
        if not plan.doubtful_offsets:
            return plan
        needed = self._source.first_at(partition, oldest_needed_ms(plan.progress))
        missing = plan.missing_offsets + (plan.doubtful_offsets if needed is not None and needed <= bounds.low else 0)
        return plan._replace(missing_offsets=missing, doubtful_offsets=0)

    def _with_rules(self, plan: Plan) -> Plan:
        self._reading.check(plan.progress.generations)
        if plan.progress.generations:
            return plan
        # Nothing was read yet: whoever reads first commits by which rules.
        rules, declared_ms = self._reading.declared
        first = Generation(0, declared_ms, NOTHING_DELIVERED, rules)
        return plan._replace(progress=plan.progress._replace(generations=(first,)))

    def _begin_rules(self, opened: dict[int, tuple[Shard, Plan]]) -> None:
        """Begin a generation of rules where the source ends, in shards where this relay has later ones than are in
        force.

        Their backlogs are claimed by now: no former owner can put anything there that it reads behind that end, by the
        former rules. Nothing is read before the generation is committed. Raises `Unavailable` and `StateInDoubt`.
        """
        begun: dict[int, Progress] = {}
        for partition, (shard, plan) in [*opened.items()]:
            was, declared = plan.progress, self._reading.declared
            if was.generations[-1].rules == moved(declared.rules, was.generations[-1].rules):
                continue
            end = self._source.end(partition)
            found = succeed(was.generations, was.floor, declared, was.position, was.cursor, end)
            new = was._replace(generations=found.kept, floor=found.floor, offset=max(was.offset, found.floor))
            try:
                if mark_of(found.kept[-1]) != mark_of(was.generations[-1]):
                    self._backlog.follow(shard, (was.generations[-1], found.kept[-1]))
            except (Unavailable, BacklogMoved) as error:
                self._events.stuck(partition, error)
                del opened[partition]
                continue
            opened[partition] = (shard, plan._replace(progress=new, rules_wait=found.waits))
            if new != was:
                begun[partition] = new
        self._commit(begun)
        for partition, new in begun.items():
            opened[partition][0].follow(new.generations, new.floor)

    def _commit(self, progress: Mapping[int, Progress], writes: Sequence[Record] = ()) -> None:
        """Commit, in one transaction with what a backlog in Kafka writes."""
        if not progress:
            return
        if self._target.owner:
            self._target.begin()
            if writes:
                self._target.store(writes)
                self._target.flush()
            self._target.commit(progress, self._source.group_metadata())
        else:
            self._source.commit(progress)
