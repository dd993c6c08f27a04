"""Objectives, error budgets and burn rates from exact counts. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from types import MappingProxyType
from typing import Final, NamedTuple

from delaytopic_api.documents import MOST_FAULTY_HOURS, TIMELY
from delaytopic_api.values import Duration, Guarantee
from delaytopic_audit.model.manifest import MinuteRange
from delaytopic_audit.model.report import Budget, BurnRate, Counts, FaultyHour, Objective, ObjectiveName, Verdict
from delaytopic_audit.model.rules import Rules, Threshold
from delaytopic_audit.model.words import MINUTE_MS
from delaytopic_audit.report.periods import LONGEST_MS, budget_period, period_before

HOUR_MS = 3_600_000
_BURN_WINDOWS_MS = (3_600_000, 6 * 3_600_000, 24 * 3_600_000, 72 * 3_600_000)
_ALL = Fraction(1)
OF_LATENESS: Final = ("on_time", "late", "lost", "misdirected")
"""The counts that an objective of lateness is graded by."""
NONE: Final = Counts()
NO_THRESHOLDS: Final[Mapping[int, MinuteCounts]] = MappingProxyType({})


class MinuteCounts(NamedTuple):
    """The fates of the records of one minute, over all partitions; or of several, under the first of them."""

    minute: int
    counts: Counts
    latest_ms: int | None
    excluded: Counts = NONE
    """The counts of lateness of minutes within exclusions."""
    thresholds: Mapping[int, MinuteCounts] = NO_THRESHOLDS
    """The counts of lateness by further thresholds, as far as they count for those."""

    @property
    def timely(self) -> Counts:
        """The counts that lateness is graded by."""
        return without(self.counts, self.excluded)


def without(counts: Counts, excluded: Counts) -> Counts:
    """Return the counts without what is excluded from objectives of lateness."""
    return counts.model_copy(update={name: getattr(counts, name) - getattr(excluded, name) for name in OF_LATENESS})


def added(parts: Iterable[Counts]) -> Counts:
    """Add up the counts."""
    totals = dict.fromkeys(Counts.model_fields, 0)
    for part in parts:
        for name in totals:
            totals[name] += getattr(part, name)
    return Counts(**totals)


def by_threshold(sums: Iterable[MinuteCounts], threshold: Threshold) -> list[MinuteCounts]:
    """Return the sums as a further threshold counts lateness."""
    return [each.thresholds[threshold.lateness_ms] for each in sums if threshold.lateness_ms in each.thresholds]


def bad_of(counts: Counts) -> int:
    """Count the records that spend the budget: late, lost, or on another topic."""
    return counts.late + counts.lost + counts.misdirected


def due_of(counts: Counts) -> int:
    """Count the records that had to arrive and were not excused."""
    return counts.on_time + bad_of(counts)


def objectives(sums: Iterable[MinuteCounts], rules: Rules) -> list[Objective]:
    """Grade all objectives. Exclusions do not count for those of lateness; nothing excuses a loss or a double."""
    sums = list(sums)
    further = (_timely(added(m.timely for m in by_threshold(sums, each)), each) for each in rules.thresholds)
    others = _of_all_records(added(each.counts for each in sums), rules)
    timely = Threshold(name=TIMELY, lateness_ms=rules.lateness_ms, objective=rules.objective)
    return [_timely(added(each.timely for each in sums), timely), *further, *others]


def _timely(timely: Counts, threshold: Threshold) -> Objective:
    told = (
        (timely.late, f"arrived more than {Duration.of_ms(threshold.lateness_ms)} late"),
        (timely.lost + timely.misdirected, "did not arrive"),
    )
    graded = _objective(
        threshold.name, threshold.objective.ratio, timely.on_time, bad_of(timely), _told(told), promised=True
    )
    return graded.model_copy(update={"lateness_ms": threshold.lateness_ms})


def _of_all_records(counts: Counts, rules: Rules) -> list[Objective]:
    """Grade the objectives that hold for all records, whatever is excluded."""
    arrived = counts.delivered + counts.misdirected
    missing = counts.lost + counts.misdirected
    bad = bad_of_all(counts)
    promised = rules.guarantee is Guarantee.EXACTLY_ONCE
    said = {
        ObjectiveName.COMPLETE: (
            (counts.lost, "lost"),
            (counts.misdirected, "on another topic than asked for"),
            (counts.chains_broken, "were to recur and do not"),
            (counts.slots_skipped, "slots skipped"),
        ),
        ObjectiveName.UNIQUE: (
            (counts.duplicated, "arrived more than once"),
            (counts.unwanted, "arrived although withdrawn or refused"),
            (counts.unknown, "arrived without a source record"),
            (counts.slots_repeated, "arrived for a slot that had its delivery"),
        ),
        ObjectiveName.NOT_EARLY: ((counts.early, "arrived before they were due"),),
        ObjectiveName.TOLD: (
            (counts.untold, "ended without an outcome"),
            (counts.told_twice, "with more than one outcome"),
            (counts.untrue, "with an outcome that is not true"),
        ),
    }
    figures = {
        ObjectiveName.COMPLETE: (_ALL, counts.asked - missing),
        ObjectiveName.UNIQUE: (_ALL, max(0, arrived - counts.duplicated - counts.unwanted - counts.slots_repeated)),
        ObjectiveName.NOT_EARLY: (_ALL, max(0, arrived - counts.early)),
    }
    if rules.tells:
        figures[ObjectiveName.TOLD] = (_ALL, max(0, counts.told - counts.told_twice - counts.untrue))
    return [
        _objective(name, *numbers, bad[name], _told(said[name]), promised=promised or name is not ObjectiveName.UNIQUE)
        for name, numbers in figures.items()
    ]


def _bad_by_objective(minute: MinuteCounts, rules: Rules) -> dict[str, int]:
    further = {each.name: sum(bad_of(m.timely) for m in by_threshold([minute], each)) for each in rules.thresholds}
    return {ObjectiveName.TIMELY: bad_of(minute.timely), **further, **bad_of_all(minute.counts)}


def bad_of_all(counts: Counts) -> dict[str, int]:
    """Count what breaks each objective that holds for all records."""
    return {
        ObjectiveName.COMPLETE: counts.lost + counts.misdirected + counts.chains_broken + counts.slots_skipped,
        ObjectiveName.UNIQUE: counts.duplicated + counts.unwanted + counts.unknown + counts.slots_repeated,
        ObjectiveName.NOT_EARLY: counts.early,
        ObjectiveName.TOLD: counts.untold + counts.told_twice + counts.untrue,
    }


def _told(parts: Sequence[tuple[int, str]]) -> str:
    return ", ".join(f"{number:,} {text}" for number, text in parts if number) or "no fault"


def budget(minutes: Sequence[MinuteCounts], rules: Rules, end_minute: int, first_minute: int) -> Budget:
    """Return the budget over the objective's window, which ends at `end_minute`; the audit began at `first_minute`."""
    return _budget(minutes, rules, budget_period(rules, end_minute), min(first_minute, end_minute))


def budget_before(minutes: Sequence[MinuteCounts], rules: Rules, end_minute: int, first_minute: int) -> Budget | None:
    """Return the budget of the calendar's period before; None without a calendar, or when the audit began later."""
    period = period_before(rules, end_minute)
    return _budget(minutes, rules, period, first_minute) if period is not None and first_minute < period.end else None


def _budget(minutes: Sequence[MinuteCounts], rules: Rules, period: MinuteRange, first_minute: int) -> Budget:
    inside = [m for m in minutes if period.start <= m.minute < period.end]
    counts = added(m.timely for m in inside)
    total, spent = due_of(counts), bad_of(counts)
    allowed = (1 - rules.objective.ratio) * total
    return Budget(
        window=Duration.of_ms((period.end - period.start) * MINUTE_MS if rules.calendar else rules.window_ms),
        calendar=str(rules.calendar) if rules.calendar is not None else None,
        time_zone=rules.time_zone,
        from_ms=max(period.start, first_minute) * MINUTE_MS,
        until_ms=period.end * MINUTE_MS if rules.calendar is not None else None,
        total=total,
        allowed=float(allowed),
        spent=spent,
        excluded=due_of(added(m.excluded for m in inside)),
        remaining=_remaining(allowed, spent) if total else None,
    )


def burn_rates(minutes: Sequence[MinuteCounts], rules: Rules, end_minute: int) -> list[BurnRate]:
    """Return the burn rates over the usual windows, and the objective's own."""
    return [_burn_rate(minutes, rules, length, end_minute) for length in burn_windows_ms(rules)]


def burn_windows_ms(rules: Rules) -> list[int]:
    """Return the lengths of the windows of burn rates, shortest first: the usual ones, and the objective's own.

    A period of a calendar has no window that ends now: of it, there are the usual ones that are shorter.
    """
    own_ms = LONGEST_MS[rules.calendar] if rules.calendar is not None else rules.window_ms
    usual = {length for length in _BURN_WINDOWS_MS if length < own_ms}
    return sorted(usual if rules.calendar is not None else {*usual, own_ms})


def boundaries(rules: Rules, end_minute: int) -> list[int]:
    """Return the minutes at which windows of burn rates and budgets begin, latest first."""
    before = period_before(rules, end_minute)
    starts = {end_minute - length_ms // MINUTE_MS for length_ms in burn_windows_ms(rules)}
    starts |= {budget_period(rules, end_minute).start, *([before.start] if before is not None else [])}
    return sorted(starts, reverse=True)


def without_budget(rules: Rules) -> dict[str, bool]:
    """Tell of each objective whether it is promised of all records."""
    return {
        ObjectiveName.TIMELY: rules.objective.ratio == _ALL,
        **{each.name: each.objective.ratio == _ALL for each in rules.thresholds},
        ObjectiveName.COMPLETE: True,
        ObjectiveName.UNIQUE: rules.guarantee is Guarantee.EXACTLY_ONCE,
        ObjectiveName.NOT_EARLY: True,
        ObjectiveName.TOLD: rules.tells,
    }


def faulty_hours(minutes: Iterable[MinuteCounts], rules: Rules) -> list[FaultyHour]:
    """List the latest hours in which objectives of 100 % were broken, as many as a DelayTopic's status takes."""
    promised = without_budget(rules)
    records: Counter[tuple[int, str]] = Counter()
    for minute in minutes:
        for name, bad in _bad_by_objective(minute, rules).items():
            if bad and promised[name]:
                records[minute.minute * MINUTE_MS // HOUR_MS * HOUR_MS, name] += bad
    latest = sorted(records.items(), key=lambda item: (-item[0][0], item[0][1]))[:MOST_FAULTY_HOURS]
    return [FaultyHour(hour_ms=hour_ms, objective=name, records=number) for (hour_ms, name), number in latest]


def percent_text(share: Fraction) -> str:
    """Return a share as percent, cut off after four decimals: what is not whole never shows as 100%."""
    hundredths = share * 100 * 10_000
    return f"{hundredths.numerator // hundredths.denominator / 10_000:.4f}".rstrip("0").rstrip(".") + "%"


def _objective(name: str, objective: Fraction, good: int, bad: int, sentence: str, *, promised: bool) -> Objective:
    total = good + bad
    attained = Fraction(good, total) if total else None
    met = attained is None or attained >= objective
    return Objective(
        name=str(name),
        objective=percent_text(objective),
        attainment=percent_text(attained) if attained is not None else None,
        good=good,
        bad=bad,
        verdict=(Verdict.MET if met else Verdict.MISSED) if promised else Verdict.NOT_PROMISED,
        sentence=sentence if total else "nothing was due",
    )


def _burn_rate(minutes: Sequence[MinuteCounts], rules: Rules, length_ms: int, end_minute: int) -> BurnRate:
    counts = added(m.timely for m in minutes if end_minute - length_ms // MINUTE_MS <= m.minute < end_minute)
    total, bad = due_of(counts), bad_of(counts)
    allowed = 1 - rules.objective.ratio
    rate = None if not total else float(Fraction(bad, total) / allowed) if allowed else (float(bad > 0) or 0.0)
    return BurnRate(window=Duration.of_ms(length_ms), total=total, bad=bad, rate=rate)


def _remaining(allowed: Fraction, spent: int) -> float:
    """Return the share left; with an objective of 100%, whole while nothing is spent, and overspent by one record."""
    if not allowed:
        return -float(spent) if spent else 1.0
    return float(1 - spent / allowed)
