"""The report, made of gathered rows. Pure."""

from __future__ import annotations

import bisect
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from delaytopic_api.values import Duration
from delaytopic_audit.model.manifest import MinuteRange, Remarked, State
from delaytopic_audit.model.report import (
    Counts,
    ExcludedTime,
    FindingList,
    Lateness,
    Listed,
    Objective,
    PartitionCounts,
    Reading,
    Report,
    Span,
    ThresholdBudget,
    Verdict,
    Window,
    WorstMinute,
)
from delaytopic_audit.model.rules import Rules, Threshold
from delaytopic_audit.model.words import MINUTE_MS, Finding, bucket_value_ms
from delaytopic_audit.report.exhaustion import exhaustion
from delaytopic_audit.report.objectives import (
    NONE,
    MinuteCounts,
    added,
    bad_of,
    bad_of_all,
    budget,
    budget_before,
    burn_rates,
    by_threshold,
    due_of,
    faulty_hours,
    objectives,
)
from delaytopic_audit.report.periods import budget_period
from delaytopic_audit.report.text import instant

MOST_SPANS = 96
MOST_WORST = 10
BIN_EDGES_MS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 60_000, 600_000, 3_600_000)


@dataclass(frozen=True)
class Gathered:
    """The input of a report, of bounded size: all but `ages`, `faulty` and `first_minute` is of the report's window."""

    first_minute: int | None
    """The first minute of all that are graded."""
    ages: list[MinuteCounts]
    """Sums between the starts of the windows of burn rates, each at the earlier one."""
    spans: list[MinuteCounts]
    """Sums of the window's equal parts, each at its first minute."""
    worst: list[MinuteCounts]
    """The worst minutes, and perhaps others, in any order."""
    faulty: list[MinuteCounts]
    """Sums of the latest hours in which objectives of 100 % were broken, of all that are graded."""
    partitions: dict[int, Counts]
    excluded: dict[int, Counts]
    """The counts of records due within exclusions, by place in the rules' exclusions: see `objectives.OF_LATENESS`."""
    histogram: dict[int, dict[int, int]]
    """Records by start of span and bucket."""
    findings: dict[Finding, list[Listed]]
    """The first records of each finding, up to a bound."""
    provisional: int
    """Losses from the loss horizon on."""


def window_of(state: State, length_ms: int | None) -> MinuteRange:
    """Return the window of this length that ends with the last closed minute; of the budget's length without one."""
    if length_ms is None:
        return budget_period(state.plan.rules, state.closed_minute)._replace(end=state.closed_minute)
    return MinuteRange(state.closed_minute - max(1, length_ms // MINUTE_MS), state.closed_minute)


def final_before(state: State) -> int:
    """Return the minute before which losses are final."""
    return (state.plan.planned_at_ms - state.plan.rules.loss_horizon_ms) // MINUTE_MS


def span_width(window: MinuteRange) -> int:
    """Return the number of minutes of each of the equal parts that a window is drawn in, but for the last."""
    return -(-(window.end - window.start) // MOST_SPANS)


def make_report(state: State, window: MinuteRange, gathered: Gathered, now_ms: int) -> Report:
    """Return the report of one window."""
    rules = state.plan.rules
    counts = added(span.counts for span in gathered.spans)
    excluded = added(span.excluded for span in gathered.spans)
    graded = objectives(gathered.spans, rules)
    excluded_times = _exclusions(rules, window, gathered.excluded)
    missed = [objective for objective in graded if objective.verdict is Verdict.MISSED]
    first = gathered.first_minute if gathered.first_minute is not None else window.end
    budgets = [_threshold_budget(each, state, gathered.ages, first) for each in rules.thresholds]
    latest = max((span.latest_ms for span in gathered.spans if span.latest_ms is not None), default=None)
    left = budget(gathered.ages, rules, state.closed_minute, first)
    rates = burn_rates(gathered.ages, rules, state.closed_minute)
    return Report(
        delay_topic=state.plan.delay_topic,
        verdict=Verdict.MISSED if missed else Verdict.MET,
        sentence=_sentence(counts, missed) + _slots(counts) + _excused(excluded),
        generated_at_ms=now_ms,
        source=state.plan.source,
        target=state.plan.target,
        window=Window(from_ms=window.start * MINUTE_MS, to_ms=window.end * MINUTE_MS),
        lateness_objective_ms=rules.lateness_ms,
        objectives=graded,
        counts=counts,
        lateness=_lateness(_total(gathered.histogram.values()), latest),
        budget=left,
        budget_before=budget_before(gathered.ages, rules, state.closed_minute, first),
        burn_rates=rates,
        exclusions=excluded_times,
        exhaustion=exhaustion(left, rates, state.closed_minute * MINUTE_MS),
        thresholds=budgets,
        bin_edges_ms=list(BIN_EDGES_MS),
        spans=_spans(window, gathered.spans, gathered.histogram),
        worst_minutes=_worst(gathered.worst),
        partitions=[PartitionCounts(partition=p, counts=c) for p, c in gathered.partitions.items()],
        findings=_findings(counts, gathered),
        faulty_hours=faulty_hours(gathered.faulty, rules),
        notes=[*_notes(state, window, first), *_counted_later(budgets, window), *map(_told, excluded_times)],
        reading=_reading(state),
    )


def _threshold_budget(
    threshold: Threshold, state: State, ages: Sequence[MinuteCounts], first_minute: int
) -> ThresholdBudget:
    """Return the error budget of a further threshold."""
    rules, end_minute = state.plan.rules.by(threshold), state.closed_minute
    counted = next(each.minute for each in state.counted if each.lateness_ms == threshold.lateness_ms)
    begin, sums = max(counted, first_minute), by_threshold(ages, threshold)
    left, rates = budget(sums, rules, end_minute, begin), burn_rates(sums, rules, end_minute)
    return ThresholdBudget(
        objective=threshold.name,
        lateness_ms=threshold.lateness_ms,
        counts_from_ms=counted * MINUTE_MS if counted > first_minute else None,
        budget=left,
        budget_before=budget_before(sums, rules, end_minute, begin),
        burn_rates=rates,
        exhaustion=exhaustion(left, rates, end_minute * MINUTE_MS),
    )


def _counted_later(budgets: Iterable[ThresholdBudget], window: MinuteRange) -> list[str]:
    return [
        f"{each.objective} counts from {instant(each.counts_from_ms)} UTC: what was due before was graded without it."
        for each in budgets
        if each.counts_from_ms is not None and each.counts_from_ms > window.start * MINUTE_MS
    ]


def no_verdict(delay_topic: str, reasons: Sequence[str], now_ms: int) -> Report:
    """Return the report of a run that could not judge."""
    sentence = "This audit could not judge."
    return Report(
        delay_topic=delay_topic,
        verdict=Verdict.CANNOT_JUDGE,
        sentence=sentence,
        reasons=list(reasons),
        generated_at_ms=now_ms,
    )


def percentile_ms(counts: Iterable[tuple[int, int]], share: float) -> float | None:
    """Return the lateness that this share did not exceed, None without records; `counts` are (bucket, records)."""
    ordered = sorted(counts)
    total = sum(records for _, records in ordered)
    rank = math.ceil(share * total)
    seen = 0
    for bucket, records in ordered:
        seen += records
        if records and seen >= rank:
            return bucket_value_ms(bucket)
    return None


def _sentence(counts: Counts, missed: Sequence[Objective]) -> str:
    if missed:
        return "; ".join(f"{objective.name}: {objective.sentence}" for objective in missed) + "."
    if not counts.asked:
        return "No record had its deadline in this window."
    return f"{counts.asked:,} records: every one arrived or is accounted for, once, and on time as agreed."


def _slots(counts: Counts) -> str:
    """Return what became of the slots of records that recur, where there are any."""
    missed = f", missed {counts.slots_missed:,}" if counts.slots_missed else ""
    return f" Slots of what recurs: {counts.slots:,}{missed}." if counts.slots or missed else ""


def _excused(excluded: Counts) -> str:
    due = due_of(excluded)
    return f" {due:,} records were due within exclusions, where lateness does not count." if due else ""


def _exclusions(rules: Rules, window: MinuteRange, excluded: Mapping[int, Counts]) -> list[ExcludedTime]:
    """Return those that meet the window."""
    return [
        ExcludedTime(
            from_ms=each.from_ms,
            until_ms=each.until_ms,
            reason=each.reason,
            records=due_of(excluded.get(place, NONE)),
            bad=bad_of(excluded.get(place, NONE)),
        )
        for place, each in enumerate(rules.exclusions)
        if each.from_ms < window.end * MINUTE_MS and window.start * MINUTE_MS < each.until_ms
    ]


def _told(excluded: ExcludedTime) -> str:
    return (
        f"Excluded from lateness: {instant(excluded.from_ms)} to {instant(excluded.until_ms)} UTC, {excluded.reason}."
        f" {excluded.records:,} records were due then; {excluded.bad:,} of them were late or lost."
    )


def _lateness(buckets: Mapping[int, int], latest_ms: int | None) -> Lateness:
    exact = (percentile_ms(buckets.items(), share) for share in (0.5, 0.9, 0.99, 0.999))
    p50, p90, p99, p999 = (None if value is None else round(value, 1) for value in exact)
    return Lateness(p50_ms=p50, p90_ms=p90, p99_ms=p99, p999_ms=p999, max_ms=latest_ms)


def _total(histograms: Iterable[Mapping[int, int]]) -> Counter[int]:
    total: Counter[int] = Counter()
    for buckets in histograms:
        total.update(buckets)
    return total


def _spans(
    window: MinuteRange, minutes: Sequence[MinuteCounts], histogram: Mapping[int, Mapping[int, int]]
) -> list[Span]:
    """Return at most so many equal parts, of whole minutes."""
    width = span_width(window)
    grouped: defaultdict[int, list[MinuteCounts]] = defaultdict(list)
    for minute in minutes:
        grouped[(minute.minute - window.start) // width].append(minute)
    return [
        _span(MinuteRange(start, min(start + width, window.end)), grouped[place], histogram)
        for place, start in enumerate(range(window.start, window.end, width))
    ]


def _span(bounds: MinuteRange, minutes: Sequence[MinuteCounts], histogram: Mapping[int, Mapping[int, int]]) -> Span:
    buckets = _total([histogram.get(m.minute, {}) for m in minutes])
    bins = [0] * (len(BIN_EDGES_MS) + 1)
    for bucket, records in buckets.items():
        bins[bisect.bisect_left(BIN_EDGES_MS, bucket_value_ms(bucket))] += records
    latest = max((m.latest_ms for m in minutes if m.latest_ms is not None), default=None)
    excluded = added(m.excluded for m in minutes)
    return Span(
        from_ms=bounds.start * MINUTE_MS,
        to_ms=bounds.end * MINUTE_MS,
        counts=added(m.counts for m in minutes),
        excluded=excluded if due_of(excluded) else None,
        lateness=_lateness(buckets, latest),
        bins=bins,
    )


def _worst(minutes: Sequence[MinuteCounts]) -> list[WorstMinute]:
    """Return the worst minutes: first those with faults that no speed heals, then those with the most late records."""

    def order(minute: MinuteCounts) -> tuple[int, int, int]:
        c = minute.counts
        return (
            -(sum(bad_of_all(c).values())),
            -minute.timely.late,
            minute.minute,
        )

    bad = sorted((m for m in minutes if order(m)[:2] != (0, 0)), key=order)
    return [
        WorstMinute(minute_ms=m.minute * MINUTE_MS, counts=m.counts, latest_ms=m.latest_ms) for m in bad[:MOST_WORST]
    ]


def _findings(counts: Counts, gathered: Gathered) -> list[FindingList]:
    found = []
    for finding in Finding:
        records = getattr(counts, str(finding).replace("-", "_"))
        if records:
            provisional = gathered.provisional if finding is Finding.LOST else 0
            listed = gathered.findings.get(finding, [])
            found.append(FindingList(finding=finding, records=records, provisional=provisional, listed=listed))
    return found


def _notes(state: State, window: MinuteRange, first_minute: int) -> list[str]:
    plan, notes = state.plan, list(state.plan.remarks)
    if state.floor_minute > window.start:
        notes.append("The ledger remembers less than the window (--retention): what was due before is not judged.")
    elif first_minute > window.start:
        notes.append("The audit is younger than the window: what was due before it began is not judged.")
    notes += _graded_otherwise(state, window)
    behind = [clock for clock in state.clocks if clock.least_ms < -plan.rules.clock_tolerance_ms]
    for clock in behind:
        notes.append(
            f"Clocks disagree: the broker of {clock.topic} partition {clock.partition} is at least"
            f" {-clock.least_ms} ms behind a relay's clock. A record counts as early only beyond that."
        )
    if plan.trusts_any_clock:
        notes.append("Times are taken as they are written (--any-clock): with CreateTime, whoever wrote them chose.")
    notes += [f"{_offsets(each)} are not judged, nor is what arrived of them: {each.reason}." for each in plan.unjudged]
    notes += [f"{_offsets(each)} may be judged wrongly: {each.reason}." for each in plan.doubtful]
    if state.out_of_scope:
        notes.append(f"{state.out_of_scope:,} arrivals are of records from before the audit began; they do not count.")
    if state.ancient:
        notes.append(
            f"{state.ancient:,} source records were due in 1973 or before, which mostly is a time in seconds that is"
            " read as milliseconds. They leave at once, and are judged from when they were appended."
        )
    if state.beyond_retention:
        length = Duration.of_ms(plan.rules.retention_ms)
        notes.append(f"{state.beyond_retention:,} records are of minutes older than the ledger's retention ({length}).")
    if state.restated_minutes:
        notes.append(f"{state.restated_minutes:,} minutes that were graded before were graded again: more was found.")
    return notes


def _offsets(piece: Remarked) -> str:
    return f"Offsets {piece.start} to {piece.end - 1} of {piece.topic} partition {piece.partition}"


def _graded_otherwise(state: State, window: MinuteRange) -> list[str]:
    return [
        f"Until {instant(each.minute * MINUTE_MS)} UTC records counted as late beyond"
        f" {Duration.of_ms(each.lateness_ms)}, the DelayTopic's lateness of that time."
        for each in state.formerly
        if each.minute > window.start
    ]


def _reading(state: State) -> Reading:
    read = {topic.topic for topic in state.read}
    return Reading(
        run=state.plan.sequence,
        planned_at_ms=state.plan.planned_at_ms,
        ranges=[piece for piece in state.plan.ranges if piece.topic in read],
        topics=state.read,
        clocks=state.clocks,
        out_of_scope=state.out_of_scope,
        ancient=state.ancient,
        beyond_retention=state.beyond_retention,
        restated_minutes=state.restated_minutes,
    )
