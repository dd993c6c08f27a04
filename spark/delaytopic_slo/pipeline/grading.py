"""The second half of a run: digests, and verdicts of the minutes that are closed or were opened again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from delaytopic_slo.ledger.ledger import Ledger
from delaytopic_slo.model.manifest import Commit, MinuteRange, Plan, Run
from delaytopic_slo.model.rules import Rules
from delaytopic_slo.model.words import MINUTE_MS, Kind, minute_of
from delaytopic_slo.pipeline.ports import Progress
from delaytopic_slo.tables.digests import digests, disagreeing_minutes, merged
from delaytopic_slo.tables.frames import is_kind
from delaytopic_slo.tables.judging import judged_alike, judged_one_by_one, withdrawals
from delaytopic_slo.tables.minutes import deadline_within, ranges_of, within
from delaytopic_slo.tables.schemas import COMMANDS, DIGESTS, HISTOGRAM, RECORDS, VERDICTS, WITHDRAWALS
from delaytopic_slo.tables.verdicts import findings, histogram, sums, telling_minutes, verdicts


@dataclass(frozen=True)
class Grading:
    """The minutes that a run graded."""

    closed_minute: int
    graded: list[MinuteRange]
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


def bounds_of(plan: Plan, last: Commit | None) -> Bounds:
    """Return the minutes that can be graded: each is closed once the grace after its end has passed.

    A closed minute stays so when a clock goes back, and a forgotten one when retention becomes longer.
    """
    closed = minute_of(plan.planned_at_ms - plan.rules.grace_ms)
    before = last.closed_minute if last is not None else None
    closed = max(closed, before or 0)
    floor = max(last.floor_minute if last is not None else 0, closed - plan.rules.retention_ms // MINUTE_MS)
    return Bounds(floor, before if before is not None else floor, closed)


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
    totals = {
        row.minute: row.records for row in delta.groupBy("minute").agg(sf.sum("records").alias("records")).collect()
    }
    state = merged(ledger.read(before, "digests", DIGESTS), delta).filter(sf.col("minute") >= bounds.floor)
    state = ledger.write(folder, "digests", state)
    delta.unpersist()
    newly = state.filter(within([MinuteRange(bounds.graded_before, bounds.closed)])).select("minute").distinct()
    again = {minute for minute in totals if bounds.floor <= minute < bounds.graded_before}
    graded = ranges_of({row.minute for row in newly.collect()} | again)
    progress(f"grading {sum(end - start for start, end in graded):,} minutes")
    parts = _judged(plan.rules, ledger, folder, state, runs, graded, progress)
    kept = ~within(graded) & (sf.col("minute") >= bounds.floor)
    _write_verdicts(plan.rules, ledger, folder, before, reduce(DataFrame.unionByName, parts), kept)
    for frame in parts:
        frame.unpersist()
    return Grading(
        closed_minute=bounds.closed,
        graded=graded,
        first_minute=min(totals, default=None),
        last_minute=max(totals, default=None),
        restated_minutes=len(again),
        beyond_retention=sum(records for minute, records in totals.items() if minute < bounds.floor),
    )


def _write_verdicts(
    rules: Rules, ledger: Ledger, folder: str, before: list[str], judged: DataFrame, kept: Column
) -> None:
    """Write what was judged, beside those rows of the run before that are `kept`."""
    summed = sums(judged, rules).persist()
    for table, schema, rows in (
        ("verdicts", VERDICTS, verdicts(summed)),
        ("histogram", HISTOGRAM, histogram(summed)),
    ):
        ledger.write(folder, table, ledger.read(before, table, schema).filter(kept).unionByName(rows))
    telling = judged.filter(within(ranges_of(telling_minutes(summed))))
    ledger.write(folder, "findings", findings(telling, rules))
    summed.unpersist()


def _judged(
    rules: Rules,
    ledger: Ledger,
    folder: str,
    state: DataFrame,
    runs: Sequence[Run],
    graded: Sequence[MinuteRange],
    progress: Progress,
) -> list[DataFrame]:
    """Return every record of the graded minutes; record by record only where digests disagree or ids were withdrawn.

    To join is worth remembering: that part is persisted.
    """
    records = _records_of(ledger, runs, graded)
    withdrawn = _withdrawn(rules, ledger, folder, records, runs)
    disagreeing = disagreeing_minutes(state.filter(within(graded))).collect()
    ended = withdrawn.select("minute").distinct().collect()
    odd = ranges_of({row.minute for row in (*disagreeing, *ended)})
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
    return ledger.write(folder, "withdrawn", withdrawals(schedules, commands, rules.grace_ms))


def _records_of(ledger: Ledger, runs: Sequence[Run], graded: Sequence[MinuteRange]) -> DataFrame:
    """Return the rows of these minutes, from the runs that have any of them."""
    folders = [run.folder for run in runs if any(_overlap(run, bounds) for bounds in graded)]
    return ledger.read(folders, "records", RECORDS).filter(deadline_within(graded))


def _overlap(run: Run, bounds: MinuteRange) -> bool:
    if run.first_minute is None or run.last_minute is None:
        return False
    return run.first_minute < bounds.end and bounds.start <= run.last_minute
