"""Mutants of edited rules: by which rules a record is read, from where on, and for how long."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tests.simulation.mutants.breaking import Mutant, Patch

from delaytopic_relay.backlog.kafka import backlog as bucket_backlog
from delaytopic_relay.backlog.redis import backlog as redis_backlog
from delaytopic_relay.core.commands import Command, Leaving, Reject
from delaytopic_relay.core.partition import ShardCore
from delaytopic_relay.core.progress import Progress
from delaytopic_relay.core.recovery import Plan, plan_recovery
from delaytopic_relay.core.rules import Generation, Generations, succeed
from delaytopic_relay.engine import recovery
from delaytopic_relay.engine.reading import Reading
from delaytopic_relay.engine.recovery import Takeover


def reads_all_by_its_own_rules() -> Sequence[Patch]:
    original = Reading.follow

    def follow(self: Reading, partition: int, generations: Sequence[Generation]) -> None:
        original(self, partition, [generations[-1]._replace(since=0, rules=self.declared.rules)])

    return [(Reading, "follow", follow)]


def begins_at_the_position() -> Sequence[Patch]:
    def too_early(kept: Any, floor: Any, declared: Any, position: int, cursor: Any, end: int) -> Any:
        return succeed(kept, floor, declared, position, cursor, position)

    return [(recovery, "succeed", too_early)]


def begins_before_the_claim() -> Sequence[Patch]:
    original = Takeover._plan

    def plan(self: Takeover, partition: int, *arguments: Any, **keywords: Any) -> Plan:
        found = original(self, partition, *arguments, **keywords)
        was, end = found.progress, self._source.end(partition)
        begun = succeed(was.generations, was.floor, self._reading.declared, was.position, was.cursor, end)
        return found._replace(progress=was._replace(generations=begun.kept, floor=begun.floor))

    # What comes in between is noticed twice: the claim fails, and Redis is of other rules then.
    return [(Takeover, "_plan", plan), *believes_a_backlog_of_other_rules()]


def reads_on_before_the_commit() -> Sequence[Patch]:
    original = Takeover._begin_rules

    def begin_rules(self: Takeover, opened: Any) -> None:
        commit: Any = self._commit
        forgetful: Any = self
        forgetful._commit = lambda progress, writes=(): None
        try:
            original(self, opened)
        finally:
            forgetful._commit = commit

    return [(Takeover, "_begin_rules", begin_rules), *believes_a_backlog_of_other_rules()]


def forgets_rules_at_the_offset() -> Sequence[Patch]:
    original = ShardCore.progress

    def progress(self: ShardCore, owner: str) -> Progress:
        found = original(self, owner)
        kept = [*found.generations]
        while len(kept) > 1 and found.offset >= kept[1].since:
            del kept[0]
        return found._replace(generations=tuple(kept), floor=max(found.floor, kept[0].since if kept else 0))

    return [(ShardCore, "progress", progress)]


def forgets_the_floor() -> Sequence[Patch]:
    original = Generations.end_done

    def end_done(self: Generations, position: int, cursor: Any) -> None:
        floor = self.floor
        original(self, position, cursor)
        self.floor = floor

    return [(Generations, "end_done", end_done)]


def reads_below_the_floor() -> Sequence[Patch]:
    def plan(committed: Progress | None, *arguments: Any, **keywords: Any) -> Plan:
        found = plan_recovery(committed._replace(floor=0) if committed is not None else None, *arguments, **keywords)
        floor = committed.floor if committed is not None else 0
        return found._replace(progress=found.progress._replace(floor=floor))

    return [(redis_backlog, "plan_recovery", plan), (bucket_backlog, "plan_recovery", plan)]


def forgets_what_rules_gave() -> Sequence[Patch]:
    def gave(self: Generations, schedules: Iterable[Any], span: Any = None) -> None:
        return None

    return [(Generations, "gave", gave)]


def goes_back_to_former_rules() -> Sequence[Patch]:
    def overwriting(kept: Sequence[Generation], floor: Any, declared: Any, *arguments: Any, **keywords: Any) -> Any:
        return succeed([kept[-1]._replace(since=0)], floor, declared, *arguments, **keywords)

    return [(recovery, "succeed", overwriting)]


def writes_dead_letters_again() -> Sequence[Patch]:
    original = ShardCore.ingest

    def ingest(self: ShardCore, commands: Sequence[Command], *arguments: Any, **keywords: Any) -> Leaving:
        leaving = original(self, commands, *arguments, **keywords)
        leaving.rejects.extend(c for c in commands if isinstance(c, Reject) and c.offset < self.replay_until)
        return leaving

    return [(ShardCore, "ingest", ingest)]


def believes_a_backlog_of_other_rules() -> Sequence[Patch]:
    return [(redis_backlog, "_names", lambda version, generation: True)]


def _of_rules(name: str, sentence: str, patches: Callable[[], Sequence[Patch]], backend: str = "Edits") -> Mutant:
    return Mutant(name, sentence, patches, backend)


MUTANTS = (
    _of_rules(
        "todays-rules", "reads what was produced before an edit by the rules of after it", reads_all_by_its_own_rules
    ),
    _of_rules(
        "rules-at-position", "begins edited rules at the position, not at the source's end", begins_at_the_position
    ),
    _of_rules(
        "rules-before-claim",
        "begins edited rules, claims the backlog after that, and believes a Redis of other rules",
        begins_before_the_claim,
    ),
    _of_rules(
        "rules-uncommitted",
        "reads by edited rules before these are committed, and believes a Redis of other rules",
        reads_on_before_the_commit,
    ),
    _of_rules(
        "rules-dropped-at-offset", "forgets former rules when L has passed their end", forgets_rules_at_the_offset
    ),
    _of_rules("rules-without-floor", "forgets former rules that are done, and commits no floor", forgets_the_floor),
    _of_rules("below-the-floor", "reads again what lies below the floor", reads_below_the_floor),
    _of_rules(
        "rules-gave-nothing", "does not note how long it takes until former rules are done", forgets_what_rules_gave
    ),
    _of_rules(
        "rules-overwritten",
        "reads all from the first offset on by the latest committed rules",
        goes_back_to_former_rules,
    ),
    _of_rules("letters-again", "writes the dead letter again of what it reads again", writes_dead_letters_again),
    _of_rules(
        "other-rules-believed",
        "believes a Redis that was filled by other rules than those in force",
        believes_a_backlog_of_other_rules,
        "EditsBuckets",
    ),
)
