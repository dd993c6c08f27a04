"""The second half of a run: digests, and verdicts of the minutes that are closed or were opened again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import NamedTuple

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as sf

from delaytopic_audit.ledger.ledger import Ledger
from delaytopic_audit.ledger.parts import Rewrite, next_parts
from delaytopic_audit.model.manifest import OF_PART, Commit, CountedFrom, GradedUntil, MinuteRange, Part, Plan, Run
from delaytopic_audit.model.rules import Rules
from delaytopic_audit.model.words import MINUTE_MS, Kind, minute_of
from delaytopic_audit.pipeline.ports import Progress
from delaytopic_audit.tables.digests import compared, digests, merged
from delaytopic_audit.tables.frames import is_kind, is_put_off
from delaytopic_audit.tables.judging import judged_alike, judged_one_by_one, postponements, withdrawals
from delaytopic_audit.tables.minutes import deadline_within, ranges_of, within
from delaytopic_audit.tables.schemas import COMMANDS, DIGESTS, PARTS, RECORDS, WITHDRAWALS
from delaytopic_audit.tables.verdicts import findings, histogram, sums, telling_minutes, verdicts


@dataclass(frozen=True)
class Grading:
    """The minutes that a run graded, and where their verdicts are."""

    closed_minute: int
    parts: list[Part]
    first_minute: int | None
    last_minute: int | None
    restated_minutes: int
    beyond_retention: int


@dataclass(frozen=True)
class Bounds:
    """The minutes that can be graded: from `floor`, up to and without `closed`; before `graded_before` they were."""

    floor: int
    graded_before: int
    closed: int

    @property
    def closing(self) -> MinuteRange:
        """The minutes that are graded for the first time."""
        return MinuteRange(max(self.floor, self.graded_before), self.closed)


def bounds_of(plan: Plan, last: Commit | None) -> Bounds:
    """Return the minutes that can be graded: each is closed once the grace after its end has passed.

    A closed minute stays so when a clock goes back, and a forgotten one when retention becomes longer.
    """
    closed = minute_of(plan.planned_at_ms - plan.rules.grace_ms)
    before = last.closed_minute if last is not None else None
    closed = max(closed, before or 0)
    floor = max(last.floor_minute if last is not None else 0, closed - plan.rules.retention_ms // MINUTE_MS)
    return Bounds(floor, before if before is not None else floor, closed)


def counted_from(plan: Plan, last: Commit | None) -> list[CountedFrom]:
    """Return from which minute on each further threshold counts: one that is new, from the first that is closed now.

    What was graded without it kept no latenesses. Minutes before that are graded again would not be all of them, but
    those in which something came late.
    """
    known = {each.lateness_ms: each.minute for each in last.counted} if last is not None else {}
    first = bounds_of(plan, last).closing.start
    return [
        CountedFrom(lateness_ms=each.lateness_ms, minute=known.get(each.lateness_ms, first))
        for each in plan.rules.thresholds
    ]


def graded_formerly(plan: Plan, last: Commit | None) -> list[GradedUntil]:
    """Return the latenesses of rules before these, as far as minutes that were graded by them are remembered."""
    if last is None:
        return []
    bounds, former = bounds_of(plan, last), last.plan.rules.lateness_ms
    known = [each for each in last.formerly if each.minute > bounds.floor]
    if former != plan.rules.lateness_ms and last.closed_minute > bounds.floor:
        known.append(GradedUntil(lateness_ms=former, minute=last.closed_minute))
    return known


def grade(
    plan: Plan,
    ledger: Ledger,
    folder: str,
    records: DataFrame,
    runs: Sequence[Run],
    last: Commit | None,
    progress: Progress,
) -> Grading:
    """Write the run's digests, verdicts, histogram and findings. `runs` are those before and this one, unfinished."""
    bounds = bounds_of(plan, last)
    before = [last.folder] if last is not None else []
    delta = digests(records).persist()
    totals = _totals(delta, bounds)
    # Of minutes that were graded before, no digests are kept: what comes for them is joined.
    state = merged(ledger.read(before, "digests", DIGESTS), delta).filter(sf.col("minute") >= bounds.closing.start)
    state = ledger.write(folder, "digests", state)
    delta.unpersist()
    again = set(totals.again)
    differs = {row.minute: row.differs for row in compared(state.filter(within([bounds.closing]))).collect()}
    graded = ranges_of(differs.keys() | again)
    progress(f"grading {sum(end - start for start, end in graded):,} minutes")
    # All of them, and not only those that something came for: none has digests any more.
    before_closing = [MinuteRange(start, min(end, bounds.closing.start)) for start, end in graded]
    disagreeing = {minute for minute, odd in differs.items() if odd}
    judged = _judged(plan.rules, ledger, folder, _Graded(graded, disagreeing, before_closing), runs, progress)
    kept, written = next_parts(last.parts if last is not None else [], bounds.floor, bounds.closing, graded)
    stays = ~within(graded) & (sf.col("minute") >= bounds.floor)
    parts = _write_parts(plan.rules, ledger, folder, written, reduce(DataFrame.unionByName, judged), stays)
    for frame in judged:
        frame.unpersist()
    return Grading(
        closed_minute=bounds.closed,
        parts=sorted([*kept, *parts], key=lambda part: part.start),
        first_minute=totals.first,
        last_minute=totals.last,
        restated_minutes=len(again),
        beyond_retention=totals.forgotten or 0,
    )


def _totals(delta: DataFrame, bounds: Bounds) -> Row:
    """Return the first and the last minute, the records of forgotten ones, and the minutes that were graded before."""
    graded_before = within([MinuteRange(bounds.floor, bounds.graded_before)])
    (row,) = delta.agg(
        sf.min("minute").alias("first"),
        sf.max("minute").alias("last"),
        sf.sum(sf.when(sf.col("minute") < bounds.floor, sf.col("records"))).alias("forgotten"),
        sf.collect_set(sf.when(graded_before, sf.col("minute"))).alias("again"),
    ).collect()
    return row


def _minutes_of(rows: DataFrame) -> set[int]:
    return {row.minute for row in rows.select("minute").distinct().collect()}


def _write_parts(
    rules: Rules, ledger: Ledger, folder: str, written: Sequence[Rewrite], judged: DataFrame, stays: Column
) -> list[Part]:
    """Write the tables of these parts: what was judged, beside those of their sources' rows that stay."""
    summed = sums(judged, rules).persist()
    telling = judged.filter(within(ranges_of(telling_minutes(summed))))
    new = {"verdicts": verdicts(summed, rules), "histogram": histogram(summed), "findings": findings(telling, rules)}
    parts = []
    for start, end, runs, sources in written:
        part = Part(folder=f"{folder}/{start}-{end}", start=start, end=end, runs=runs)
        for table in OF_PART:
            rows = new[table].filter(within([MinuteRange(start, end)]))
            before = ledger.read([source.folder for source in sources], table, PARTS[table])
            ledger.write(part.folder, table, before.filter(stays).unionByName(rows) if sources else rows)
        parts.append(part)
    summed.unpersist()
    return parts


class _Graded(NamedTuple):
    """The minutes to grade; of those closed now the ones whose digests disagree, and those that were graded before."""

    minutes: list[MinuteRange]
    disagreeing: set[int]
    again: list[MinuteRange]


def _judged(
    rules: Rules,
    ledger: Ledger,
    folder: str,
    graded: _Graded,
    runs: Sequence[Run],
    progress: Progress,
) -> list[DataFrame]:
    """Return every record of the graded minutes, record by record where digests do not prove that all is well.

    That is where they disagree, where ids were withdrawn, and in minutes that were graded before. To join is worth
    remembering: that part is persisted.
    """
    records = _records_of(ledger, runs, graded.minutes)
    withdrawn = _withdrawn(rules, ledger, folder, records, runs)
    again = {minute for start, end in graded.again for minute in range(start, end)}
    odd = ranges_of(again | graded.disagreeing | _minutes_of(withdrawn))
    if not odd:
        return [judged_alike(records, rules)]
    progress(f"joining {sum(end - start for start, end in odd):,} minutes record by record")
    alike = judged_alike(records.filter(~deadline_within(odd)), rules)
    return [alike, judged_one_by_one(records.filter(deadline_within(odd)), withdrawn, rules).persist()]


def _withdrawn(rules: Rules, ledger: Ledger, folder: str, records: DataFrame, runs: Sequence[Run]) -> DataFrame:
    with_commands = [run.folder for run in runs if run.commands]
    if not with_commands:
        return ledger.read([], "withdrawn", WITHDRAWALS)
    schedules = records.filter(is_kind(Kind.SCHEDULE))
    commands = ledger.read(with_commands, "commands", COMMANDS)
    puts_off = not commands.filter(is_kind(Kind.POSTPONE) | is_put_off()).isEmpty()
    ended = (postponements if puts_off else withdrawals)(schedules, commands, rules.grace_ms)
    return ledger.write(folder, "withdrawn", ended)


def _records_of(ledger: Ledger, runs: Sequence[Run], graded: Sequence[MinuteRange]) -> DataFrame:
    """Return the rows of these minutes, from the runs that have any of them."""
    folders = [run.folder for run in runs if any(_overlap(run, bounds) for bounds in graded)]
    return ledger.read(folders, "records", RECORDS).filter(deadline_within(graded))


def _overlap(run: Run, bounds: MinuteRange) -> bool:
    if run.first_minute is None or run.last_minute is None:
        return False
    return run.first_minute < bounds.end and bounds.start <= run.last_minute
