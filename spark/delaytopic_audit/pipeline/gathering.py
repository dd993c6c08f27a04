"""From the tables of the last commit to plain rows for a report: sums, as few for a month as for an hour."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final

from pyspark.sql import Column, DataFrame, Row, Window
from pyspark.sql import functions as sf

from delaytopic_api.documents import MOST_FAULTY_HOURS
from delaytopic_audit.ledger.ledger import Ledger
from delaytopic_audit.model.manifest import Commit, MinuteRange
from delaytopic_audit.model.report import Counts, Listed, ObjectiveName
from delaytopic_audit.model.rules import Exclusion, Rules
from delaytopic_audit.model.words import MINUTE_MS, Finding, minute_of
from delaytopic_audit.report.objectives import HOUR_MS, OF_LATENESS, MinuteCounts, boundaries, without_budget
from delaytopic_audit.report.reporting import MOST_WORST, Gathered, span_width
from delaytopic_audit.tables.minutes import within
from delaytopic_audit.tables.schemas import COUNTS, PARTS, TELLING

MOST_LISTED = 100
_FAULTS: Final = {
    ObjectiveName.TIMELY: ("late",),
    ObjectiveName.COMPLETE: ("lost", "misdirected"),
    ObjectiveName.UNIQUE: ("duplicated", "unwanted", "unknown"),
    ObjectiveName.NOT_EARLY: ("early",),
}
"""By usual objective the counts that break it; whatever is lost is late, too."""
_BY_SPAN: Final = 0b011
_BY_AGE: Final = 0b101
_BY_PARTITION: Final = 0b110
"""Of groupings by span, age and partition: which of them a row is not grouped by."""


def gather(ledger: Ledger, commit: Commit, window: MinuteRange, final_before: int) -> Gathered:
    """Read the tables. `final_before` is the minute from which on losses are provisional.

    Most audits find that all is well: what the sums rule out is not looked for.
    """
    rules = commit.plan.rules
    verdicts = _by_threshold(current(ledger, commit, "verdicts"), commit)
    verdicts = verdicts.withColumn("is_excluded", _is_excluded(rules))
    inside = verdicts.filter(within([window]))
    rows = _sums(verdicts, window, rules, commit.closed_minute, final_before).collect()
    by_span = [row for row in rows if row.grouping == _BY_SPAN and row.span is not None]
    by_age = [row for row in rows if row.grouping == _BY_AGE]
    by_partition = [row for row in rows if row.grouping == _BY_PARTITION and row.partition is not None]
    promised = _promised(rules)
    return Gathered(
        first_minute=min((row.first_minute for row in by_age), default=None),
        ages=_in_order(_counts(row.age, row, rules) for row in by_age if row.age is not None),
        spans=_in_order(_counts(row.span, row, rules) for row in by_span),
        worst=_worst(inside, rules) if _any_of(TELLING, by_span) else [],
        faulty=_faulty(verdicts, promised, rules) if _any_of(promised, by_age) else [],
        partitions={row.partition: _counts(0, row, rules).counts for row in sorted(by_partition, key=_partition)},
        excluded=_excluded(inside, window, rules),
        histogram=_histogram(ledger, commit, window),
        findings=_findings(ledger, commit, window) if _any_of(TELLING, by_span) else {},
        provisional=sum(row.provisional or 0 for row in by_span),
    )


def current(ledger: Ledger, commit: Commit, table: str) -> DataFrame:
    """Return one of the tables of graded minutes, as of this commit."""
    rows = ledger.read([part.folder for part in commit.parts], table, PARTS[table])
    return rows.filter(sf.col("minute") >= commit.floor_minute)


def _by_threshold(verdicts: DataFrame, commit: Commit) -> DataFrame:
    """Add the counts of lateness by each further threshold; null in minutes that do not count for it."""
    first_minutes = {each.lateness_ms: each.minute for each in commit.counted}
    columns: dict[str, Column] = {}
    for threshold in commit.plan.rules.thresholds:
        length_ms = threshold.lateness_ms
        within_it = sf.try_element_at("within", sf.lit(length_ms).cast("long"))
        counts = (sf.col("minute") >= first_minutes[length_ms]) & within_it.isNotNull()
        by_name = {"on_time": within_it, "late": sf.col("delivered") - within_it}
        for name in OF_LATENESS:
            columns[of_threshold(name, length_ms)] = sf.when(counts, by_name.get(name, sf.col(name)))
    return verdicts.withColumns(columns) if columns else verdicts


def of_threshold(name: str, lateness_ms: int) -> str:
    """Return the column of a count of lateness by a further threshold."""
    return f"{name}_{lateness_ms}"


def _of_lateness(rules: Rules) -> list[str]:
    """Return the columns of the counts of lateness, by the usual threshold and by further ones."""
    further = (of_threshold(name, each.lateness_ms) for each in rules.thresholds for name in OF_LATENESS)
    return [*OF_LATENESS, *further]


def _names(rules: Rules) -> list[str]:
    """Return the columns of all counts."""
    return [*COUNTS, *(name for name in _of_lateness(rules) if name not in COUNTS)]


def _sums(verdicts: DataFrame, window: MinuteRange, rules: Rules, closed_minute: int, final_before: int) -> DataFrame:
    """Add up by span, by age and by partition, in one pass."""
    age, partition = _age(rules, closed_minute), sf.when(within([window]), sf.col("partition"))
    keys = (_span(window), age.alias("age"), partition.alias("partition"))
    lost_of_late = sf.when(sf.col("minute") >= final_before, sf.col("lost"))
    rows = verdicts.select(
        "minute", *keys, lost_of_late.alias("provisional"), *_names(rules), "latest_ms", "is_excluded"
    )
    return rows.groupingSets([["span"], ["age"], ["partition"]], "span", "age", "partition").agg(
        sf.grouping_id().cast("int").alias("grouping"),
        sf.min("minute").alias("first_minute"),
        sf.sum("provisional").alias("provisional"),
        *_totals(rules),
    )


def _span(window: MinuteRange) -> Column:
    """Return the first minute of the span that a minute is in; null outside of the window."""
    width, minute = span_width(window), sf.col("minute")
    start = minute - sf.pmod(minute - window.start, sf.lit(width))
    return sf.when(within([window]), start).alias("span")


def _age(rules: Rules, end_minute: int) -> Column:
    """Return the latest start of a window of burn rates or of a budget before a minute; null before all of them."""
    starts = boundaries(rules, end_minute)
    age = sf.when(sf.col("minute") >= starts[0], sf.lit(starts[0]))
    for later, earlier in pairwise(starts):
        age = age.when((sf.col("minute") >= earlier) & (sf.col("minute") < later), sf.lit(earlier))
    return age


def _is_excluded(rules: Rules) -> Column:
    return within([_minutes_of(each) for each in rules.exclusions])


def _minutes_of(exclusion: Exclusion) -> MinuteRange:
    return MinuteRange(minute_of(exclusion.from_ms), minute_of(exclusion.until_ms))


def _totals(rules: Rules) -> list[Column]:
    excluded = (
        sf.sum(sf.when(sf.col("is_excluded"), sf.col(name))).alias(f"excluded_{name}") for name in _of_lateness(rules)
    )
    return [*(sf.sum(name).alias(name) for name in _names(rules)), sf.max("latest_ms").alias("latest_ms"), *excluded]


def _counts(minute: int, row: Row, rules: Rules) -> MinuteCounts:
    excluded = Counts(**{name: row[f"excluded_{name}"] or 0 for name in OF_LATENESS})
    counts = Counts(**{name: row[name] for name in COUNTS})
    further = {each.lateness_ms: _counts_by(minute, row, each.lateness_ms) for each in rules.thresholds}
    return MinuteCounts(minute, counts, row.latest_ms, excluded, further)


def _counts_by(minute: int, row: Row, lateness_ms: int) -> MinuteCounts:
    """Return the counts of lateness by a further threshold."""
    names = {name: of_threshold(name, lateness_ms) for name in OF_LATENESS}
    excluded = Counts(**{name: row[f"excluded_{column}"] or 0 for name, column in names.items()})
    return MinuteCounts(minute, Counts(**{name: row[column] or 0 for name, column in names.items()}), None, excluded)


def _in_order(sums: Iterable[MinuteCounts]) -> list[MinuteCounts]:
    return sorted(sums, key=lambda each: each.minute)


def _excluded(inside: DataFrame, window: MinuteRange, rules: Rules) -> dict[int, Counts]:
    """Add up what was due within each exclusion that meets the window, by its place in the rules."""
    met = {place: _minutes_of(each) for place, each in enumerate(rules.exclusions)}
    met = {place: each for place, each in met.items() if each.start < window.end and window.start < each.end}
    if not met:
        return {}
    place = sf.coalesce(*(sf.when(within([each]), sf.lit(place)) for place, each in met.items()))
    sums = inside.filter(sf.col("is_excluded")).groupBy(place.alias("place")).agg(*_totals(rules))
    return {row.place: _counts(0, row, rules).excluded for row in sums.collect()}


def _partition(row: Row) -> int:
    return int(row.partition)


def _worst(verdicts: DataFrame, rules: Rules) -> list[MinuteCounts]:
    """Return the worst minutes, in the order of the report's."""
    minutes = verdicts.groupBy("minute").agg(*_totals(rules))
    faults = sum(
        (sf.col(name) for name in ("misdirected", "early", "duplicated", "unwanted", "unknown")), sf.col("lost")
    )
    counted = minutes.withColumn("faults", faults).withColumn("too_late", _late())
    bad = counted.filter((sf.col("faults") > 0) | (sf.col("too_late") > 0))
    first = bad.orderBy(sf.desc("faults"), sf.desc("too_late"), "minute").limit(MOST_WORST)
    return [_counts(row.minute, row, rules) for row in first.collect()]


def _promised(rules: Rules) -> list[str]:
    """Return the counts that break objectives of 100 %."""
    promised = without_budget(rules)
    usual = [name for objective, names in _FAULTS.items() if promised[objective] for name in names]
    return [*usual, *(of_threshold("late", each.lateness_ms) for each in rules.thresholds if promised[each.name])]


def _any_of(names: Sequence[str], rows: Sequence[Row]) -> bool:
    return any(row[name] for row in rows for name in names)


def _faulty(verdicts: DataFrame, names: Sequence[str], rules: Rules) -> list[MinuteCounts]:
    """Return the latest hours in which objectives of 100 % were broken, as many as a status lists."""
    faults = sum((_late(name) if name.startswith("late") else sf.col(name) for name in names), sf.lit(0))
    hours = verdicts.withColumn("hour", sf.col("minute") - sf.pmod("minute", sf.lit(HOUR_MS // MINUTE_MS)))
    sums = hours.groupBy("hour").agg(*_totals(rules)).filter(faults > 0)
    latest = sums.orderBy(sf.desc("hour")).limit(MOST_FAULTY_HOURS)
    return [_counts(row.hour, row, rules) for row in latest.collect()]


def _late(name: str = "late") -> Column:
    """Return the late records that no exclusion has, of sums."""
    return sf.coalesce(sf.col(name), sf.lit(0)) - sf.coalesce(sf.col(f"excluded_{name}"), sf.lit(0))


def _histogram(ledger: Ledger, commit: Commit, window: MinuteRange) -> dict[int, dict[int, int]]:
    inside = current(ledger, commit, "histogram").filter(within([window]))
    summed = inside.groupBy(_span(window), "bucket").agg(sf.sum("records").alias("records"))
    found: defaultdict[int, dict[int, int]] = defaultdict(dict)
    for row in summed.collect():
        found[row.span][row.bucket] = row.records
    return dict(found)


def _findings(ledger: Ledger, commit: Commit, window: MinuteRange) -> dict[Finding, list[Listed]]:
    """Return the first of each by deadline."""
    order = ("deadline_ms", "partition", "offset")
    place = sf.row_number().over(Window.partitionBy("finding").orderBy(*order))
    inside = current(ledger, commit, "findings").filter(within([window]))
    first = inside.withColumn("place", place).filter(sf.col("place") <= MOST_LISTED)
    found: defaultdict[Finding, list[Listed]] = defaultdict(list)
    for row in sorted(first.collect(), key=lambda row: (row.finding, row.place)):
        found[Finding(row.finding)].append(_listed(row))
    return dict(found)


def _listed(row: Row) -> Listed:
    return Listed.model_validate({name: row[name] for name in Listed.model_fields})
