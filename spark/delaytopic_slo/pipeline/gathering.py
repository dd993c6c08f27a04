"""From the tables of the last commit to plain rows for a report: sums, small enough for one process."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Row, Window
from pyspark.sql import functions as sf

from delaytopic_slo.ledger.ledger import Ledger
from delaytopic_slo.model.manifest import Commit, MinuteRange, Run
from delaytopic_slo.model.report import Counts, Listed
from delaytopic_slo.model.words import Finding
from delaytopic_slo.report.objectives import MinuteCounts
from delaytopic_slo.report.reporting import Gathered
from delaytopic_slo.tables.minutes import minutes_in, within
from delaytopic_slo.tables.schemas import COUNTS, FINDINGS, HISTOGRAM, TELLING, VERDICTS

MOST_LISTED = 100


def gather(ledger: Ledger, commit: Commit, window: MinuteRange, final_before: int) -> Gathered:
    """Read the tables. `final_before` is the minute from which on losses are provisional."""
    verdicts = ledger.read([commit.folder], "verdicts", VERDICTS)
    in_window = verdicts.filter(within([window]))
    histogram: defaultdict[int, dict[int, int]] = defaultdict(dict)
    for row in ledger.read([commit.folder], "histogram", HISTOGRAM).filter(within([window])).collect():
        histogram[row.minute][row.bucket] = row.records
    minutes = _by_minute(verdicts)
    lost = [m for m in minutes if window.start <= m.minute < window.end and m.minute >= final_before]
    return Gathered(
        minutes=minutes,
        partitions=_by_partition(in_window),
        histogram=dict(histogram),
        findings=_findings(ledger, commit, _telling(minutes, window)),
        provisional=sum(m.counts.lost for m in lost),
    )


def _sums() -> list[Column]:
    return [sf.sum(name).alias(name) for name in COUNTS]


def _by_minute(verdicts: DataFrame) -> list[MinuteCounts]:
    rows = verdicts.groupBy("minute").agg(*_sums(), sf.max("latest_ms").alias("latest_ms")).collect()
    return sorted(MinuteCounts(row.minute, Counts(**{n: row[n] for n in COUNTS}), row.latest_ms) for row in rows)


def _by_partition(verdicts: DataFrame) -> dict[int, Counts]:
    rows = sorted(verdicts.groupBy("partition").agg(*_sums()).collect())
    return {row.partition: Counts(**{name: row[name] for name in COUNTS}) for row in rows}


def _telling(minutes: Sequence[MinuteCounts], window: MinuteRange) -> list[int]:
    """Return the minutes of the window that have findings."""
    inside = [m for m in minutes if window.start <= m.minute < window.end]
    return [m.minute for m in inside if any(getattr(m.counts, name) for name in TELLING)]


def latest_findings(ledger: Ledger, commit: Commit, minutes: Sequence[int]) -> DataFrame:
    """Return the findings of these minutes, each minute's from the last run that graded it."""
    found = ledger.read([], "findings", FINDINGS)
    for run, of_run in _last_graded(commit.runs, minutes):
        rows = ledger.read([run.folder], "findings", FINDINGS)
        found = found.unionByName(rows.join(sf.broadcast(ledger.minutes(of_run)), "minute", "left_semi"))
    return found.select(*FINDINGS.names)


def _findings(ledger: Ledger, commit: Commit, minutes: Sequence[int]) -> dict[Finding, list[Listed]]:
    """Return the first of each by deadline."""
    order = ("deadline_ms", "partition", "offset")
    place = sf.row_number().over(Window.partitionBy("finding").orderBy(*order))
    first = latest_findings(ledger, commit, minutes).withColumn("place", place).filter(sf.col("place") <= MOST_LISTED)
    found: defaultdict[Finding, list[Listed]] = defaultdict(list)
    for row in sorted(first.collect(), key=lambda row: (row.finding, row.place)):
        found[Finding(row.finding)].append(_listed(row))
    return dict(found)


def _listed(row: Row) -> Listed:
    return Listed.model_validate({name: row[name] for name in Listed.model_fields})


def _last_graded(runs: Sequence[Run], minutes: Sequence[int]) -> list[tuple[Run, list[int]]]:
    """Return each run with those of the minutes that it was the last to grade."""
    left, found = set(minutes), []
    for run in reversed(runs):
        of_run = sorted(left & set(minutes_in(run.graded)))
        left -= set(of_run)
        if of_run:
            found.append((run, of_run))
    return found
