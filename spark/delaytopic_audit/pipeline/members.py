"""The DelayTopics of a run as small tables, which large ones are joined with by broadcast."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame

from delaytopic_audit.ledger.ledger import Ledger
from delaytopic_audit.model.manifest import Asked, Plan, Remarked, State
from delaytopic_audit.model.rules import Rules
from delaytopic_audit.model.words import MINUTE_MS, minute_of
from delaytopic_audit.tables.schemas import MEMBERS, PLACES


@dataclass(frozen=True)
class Bounds:
    """The minutes that can be graded: from `floor`, up to and without `closed`; before `graded_before` they were."""

    floor: int
    graded_before: int
    closed: int

    @property
    def open_from(self) -> int:
        """The first minute that is graded for the first time."""
        return max(self.floor, self.graded_before)


@dataclass(frozen=True)
class Judged:
    """A DelayTopic that a run judges, and what is known of it from before; nothing where its audit begins."""

    plan: Plan
    last: State | None

    @property
    def number(self) -> int:
        """The number by which tables know it."""
        return self.plan.number

    @property
    def bounds(self) -> Bounds:
        """The minutes of it that can be graded: each is closed once the grace after its end has passed.

        A closed minute stays so when a clock goes back, and a forgotten one when retention becomes longer.
        """
        plan, last = self.plan, self.last
        closed = minute_of(plan.planned_at_ms - plan.rules.grace_ms)
        before = last.closed_minute if last is not None else None
        closed = max(closed, before or 0)
        floor = max(last.floor_minute if last is not None else 0, closed - plan.rules.retention_ms // MINUTE_MS)
        return Bounds(floor, before if before is not None else floor, closed)


@dataclass(frozen=True)
class Members:
    """All DelayTopics that a ledger remembers after a run: those that it `judged`, and `others` as they were."""

    judged: Sequence[Judged]
    others: Sequence[State]

    @property
    def floor(self) -> int:
        """The first minute that any of them remembers."""
        floors = (*(each.bounds.floor for each in self.judged), *(state.floor_minute for state in self.others))
        return min(floors, default=0)

    @property
    def thresholds(self) -> list[int]:
        """All further thresholds of lateness, each once."""
        return sorted({each.lateness_ms for member in self.judged for each in member.plan.rules.thresholds})

    def table(self, ledger: Ledger) -> DataFrame:
        """Return their rules and bounds."""
        return ledger.table_of(MEMBERS, [*self._rows()])

    def _rows(self) -> Iterator[dict[str, Any]]:
        for each in self.judged:
            bounds = each.bounds
            minutes = {"floor": bounds.floor, "open_from": bounds.open_from, "closed": bounds.closed}
            yield {"delay_topic": each.number, "is_judged": True, **minutes, **_rules_row(each.plan.rules)}
        for state in self.others:
            minutes = {"floor": state.floor_minute, "open_from": state.closed_minute, "closed": state.closed_minute}
            yield {"delay_topic": state.plan.number, "is_judged": False, **minutes, **_rules_row(state.plan.rules)}


def places_of(judged: Iterable[Judged], ledger: Ledger) -> DataFrame:
    """Return where audits of source partitions began, and which offsets do not count; empty where there is no such."""
    return ledger.table_of(PLACES, [row for each in judged for row in _places(each)])


def _places(judged: Judged) -> Iterator[dict[str, Any]]:
    first = {each.partition: each.offset for each in judged.plan.scope if each.offset > 0}
    forgotten = judged.last.forgotten if judged.last is not None else []
    unjudged = judged.plan.unjudged
    for partition in sorted({*first, *(each.partition for each in forgotten), *(each.partition for each in unjudged)}):
        yield {
            "delay_topic": judged.number,
            "partition": partition,
            "first_offset": first.get(partition),
            "unjudged": _ranges(partition, unjudged),
            "forgotten": _ranges(partition, forgotten),
        }


def _ranges(partition: int, pieces: Iterable[Asked | Remarked]) -> list[dict[str, int]]:
    return [{"start": each.start, "end": each.end} for each in pieces if each.partition == partition]


def _rules_row(rules: Rules) -> dict[str, Any]:
    return {
        "allowed_ms": rules.lateness_ms,
        "grace_ms": rules.grace_ms,
        "clock_tolerance_ms": rules.clock_tolerance_ms,
        "max_skew_ms": rules.max_skew_ms,
        "thresholds": [each.lateness_ms for each in rules.thresholds],
    }
