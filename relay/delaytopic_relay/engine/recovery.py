"""Carries out the recovery of shards that came to this relay, in the order that keeps it exact.

First ownership (the caller has it), then: fence the last owner, read what is committed, commit the
offset to start from under our own name, claim the backlog, begin our own rules where the source ends if they are
others than those in force, and only then read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import NamedTuple

from delaytopic_relay.backlog.protocol import Backlog, Shard
from delaytopic_relay.core.commands import NOTHING_DELIVERED
from delaytopic_relay.core.progress import Progress, decode_progress
from delaytopic_relay.core.recovery import Plan
from delaytopic_relay.core.rules import Generation, succeed
from delaytopic_relay.engine.reading import Reading
from delaytopic_relay.errors import BacklogMoved, CorruptState, Unavailable
from delaytopic_relay.ports import Committed, LoopEvents, Source, Target

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
    scout_until: int | None = None
    """The offset up to which the source is looked through before it is read; None where it need not be."""


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
    ) -> None:
        """`may_be_fenced` tells the `transactional.id`s of the own group from others."""
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

        Raises `StateInDoubt`, and `QueueImpossible` where a fixed delay needs a backlog.
        """
        wanted = sorted(partitions)
        try:
            self._fence_last_owners(wanted)
            plans = self._plans(wanted, self._source.committed(wanted))
            self._commit({partition: plan.progress for partition, plan in plans.items()})
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
                scout_until = self._scout_until(partition, plan)
                begin = plan.progress.offset if scout_until is None else plan.progress.position
                self._source.read_from(partition, begin)
            except Unavailable as error:
                self._events.stuck(partition, error)
            else:
                shard.scouts = scout_until is not None
                recovered[partition] = Recovered(shard, plan, scout_until)
        return recovered

    def _open(self, plans: Mapping[int, Plan]) -> dict[int, tuple[Shard, Plan]]:
        opened: dict[int, tuple[Shard, Plan]] = {}
        for partition, plan in plans.items():
            try:
                opened[partition] = (self._backlog.open(partition, plan), plan)
            except (Unavailable, BacklogMoved) as error:
                self._events.stuck(partition, error)
        return opened

    def _scout_until(self, partition: int, plan: Plan) -> int | None:
        """Return the source's end, behind all that former owners have written into it.

        None where no dialect writes commands into the source, which count before they are read.
        """
        if not any(each.rules.postpones for each in plan.progress.generations):
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

    def _fence_last_owners(self, partitions: list[int]) -> None:
        """Fence the owners that the metadata names, if they are of the own group.

        Whoever may commit in the group can write any name there. One that is none of ours is skipped: the group's
        generation keeps a former owner from committing anyway, and what it left open ends with its transaction timeout.
        """
        fenced: set[str] = set()
        for partition, committed in self._source.last_committed(partitions).items():
            try:
                owner = decode_progress(*committed).owner
            except CorruptState:
                continue
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

    def _plans(self, partitions: list[int], committed: Mapping[int, Committed]) -> dict[int, Plan]:
        plans: dict[int, Plan] = {}
        for partition in partitions:
            try:
                plans[partition] = self._plan(partition, committed.get(partition))
            except (Unavailable, CorruptState) as error:
                self._events.stuck(partition, error)
        return plans

    def _plan(self, partition: int, committed: Committed | None) -> Plan:
        progress = decode_progress(*committed) if committed is not None else None
        bounds = self._source.bounds(partition)
        offset_reset = committed is not None and not committed.metadata
        plan = self._backlog.plan(partition, progress, bounds, self._target.owner, offset_reset=offset_reset)
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
        for partition, (shard, plan) in opened.items():
            was, declared = plan.progress, self._reading.declared
            if was.generations[-1].rules == declared.rules:
                continue
            end = self._source.end(partition)
            found = succeed(was.generations, was.floor, declared, was.position, was.cursor, end)
            new = was._replace(generations=found.kept, floor=found.floor, offset=max(was.offset, found.floor))
            opened[partition] = (shard, plan._replace(progress=new, rules_wait=found.waits))
            if new != was:
                begun[partition] = new
        self._commit(begun)
        for partition, new in begun.items():
            opened[partition][0].follow(new.generations, new.floor)

    def _commit(self, progress: Mapping[int, Progress]) -> None:
        if not progress:
            return
        if self._target.owner:
            self._target.begin()
            self._target.commit(progress, self._source.group_metadata())
        else:
            self._source.commit(progress)
