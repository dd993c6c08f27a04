"""The DelayTopics of a run as small tables, which large ones are joined with by broadcast."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql import DataFrame

from delaytopic_api.relay import Ending
from delaytopic_api.values import Guarantee
from delaytopic_audit.ledger.ledger import Ledger
from delaytopic_audit.model.manifest import Asked, Plan, Remarked, State
from delaytopic_audit.model.words import MINUTE_MS, minute_of
from delaytopic_audit.tables.schemas import AWAITED, MEMBERS, PLACES

LEARNING_MS: Final = 3_600_000
"""A rollout after which relays know of an edit of `outcomes`: nothing that ended before is missed."""


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


def telling_of(judged: Judged, first_told_ms: int | None) -> dict[Ending, int]:
    """Return the endings that are to be told, each with the time from which on an untold one is a fault.

    An audit that begins takes the first record that it reads there for a sign that relays know; one that goes on counts
    from the first run that asks for an ending.
    """
    known = judged.last.telling if judged.last is not None else {}
    begins = judged.last is None and first_told_ms is not None
    since_ms = (first_told_ms if begins and first_told_ms is not None else judged.plan.planned_at_ms) + LEARNING_MS
    return {ending: known.get(ending, since_ms) for ending in judged.plan.told}


@dataclass(frozen=True)
class Members:
    """All DelayTopics that a ledger remembers after a run: those that it `judged`, and `others` as they were."""

    judged: Sequence[Judged]
    others: Sequence[State]
    telling: Mapping[int, Mapping[Ending, int]]
    """The endings that are to be told, and since when, by the numbers of those that are judged."""

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

    def awaited(self, ledger: Ledger) -> DataFrame:
        """Return the minutes whose outcomes the run before awaited, by DelayTopic."""
        minutes = ((each.number, each.last.awaited_minutes) for each in self.judged if each.last is not None)
        rows = [{"delay_topic": number, "minute": minute} for number, its in minutes for minute in its]
        return ledger.table_of(AWAITED, rows)

    def _rows(self) -> Iterator[dict[str, Any]]:
        for each in self.judged:
            bounds = each.bounds
            minutes = {"floor": bounds.floor, "open_from": bounds.open_from, "closed": bounds.closed}
            telling = self.telling.get(each.number, {})
            yield {"delay_topic": each.number, "is_judged": True, **minutes, **_rules_row(each.plan, telling)}
        for state in self.others:
            minutes = {"floor": state.floor_minute, "open_from": state.closed_minute, "closed": state.closed_minute}
            yield {
                "delay_topic": state.plan.number,
                "is_judged": False,
                **minutes,
                **_rules_row(state.plan, state.telling),
            }


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


def _rules_row(plan: Plan, telling: Mapping[Ending, int]) -> dict[str, Any]:
    rules = plan.rules
    return {
        "allowed_ms": rules.lateness_ms,
        "grace_ms": rules.grace_ms,
        "clock_tolerance_ms": rules.clock_tolerance_ms,
        "max_skew_ms": rules.max_skew_ms,
        "thresholds": [each.lateness_ms for each in rules.thresholds],
        "tells_once": rules.guarantee is Guarantee.EXACTLY_ONCE,
        "telling": [(str(ending), since_ms) for ending, since_ms in telling.items()],
        "settled_ms": plan.planned_at_ms - rules.grace_ms,
    }
