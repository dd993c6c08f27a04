"""Plain rows for reports, made of the tables of the last commit: sums, as few for a month as for an hour."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql import Column, DataFrame, Row, Window
from pyspark.sql import functions as sf

from delaytopic_api.documents import MOST_FAULTY_HOURS
from delaytopic_audit.ledger.ledger import Ledger
from delaytopic_audit.model.manifest import Commit, MinuteRange, State
from delaytopic_audit.model.report import Counts, Listed, ObjectiveName
from delaytopic_audit.model.rules import Exclusion, Rules
from delaytopic_audit.model.words import MINUTE_MS, Finding, minute_of
from delaytopic_audit.report.objectives import HOUR_MS, OF_LATENESS, MinuteCounts, boundaries, without_budget
from delaytopic_audit.report.reporting import MOST_WORST, Gathered, final_before, span_width
from delaytopic_audit.tables.schemas import COUNTS, PARTS, TELLING, WINDOWS

MOST_LISTED = 100
_FAULTS: Final = {
    ObjectiveName.TIMELY: ("late",),
    ObjectiveName.COMPLETE: ("lost", "misdirected", "chains_broken", "slots_skipped"),
    ObjectiveName.UNIQUE: ("duplicated", "unwanted", "unknown", "slots_repeated"),
    ObjectiveName.NOT_EARLY: ("early",),
    ObjectiveName.TOLD: ("untold", "told_twice", "untrue"),
}
"""The counts that break each usual objective; whatever is lost is late, too."""
_BY_SPAN: Final = 0b0011
_BY_AGE: Final = 0b0101
_BY_PARTITION: Final = 0b0110
"""The groupings by DelayTopic, span, age and partition that a row does not have."""


@dataclass(frozen=True)
class Reported:
    """A DelayTopic to report on, and the window of its report."""

    state: State
    window: MinuteRange

    @property
    def number(self) -> int:
        """The number by which tables know it."""
        return self.state.plan.number

    @property
    def rules(self) -> Rules:
        """Its rules."""
        return self.state.plan.rules


def gather(ledger: Ledger, commit: Commit, reported: Sequence[Reported]) -> dict[int, Gathered]:
    """Read the tables for all of these in one pass each; the result is by number.

    Most audits find that all is well: what the sums rule out is not looked for.
    """
    windows = sf.broadcast(ledger.table_of(WINDOWS, [_window_row(each) for each in reported]))
    further = sorted({each.lateness_ms for one in reported for each in one.rules.thresholds})
    sums = _Sums(further)
    verdicts = sums.by_threshold(_current(ledger, commit, "verdicts", windows))
    verdicts = verdicts.withColumn("is_excluded", sf.exists("excluded", _has_minute))
    inside = verdicts.filter(_is_inside())
    rows = _by_number(sums.of(verdicts).collect())
    own = {each.number: _Own(each, rows.get(each.number, [])) for each in reported}
    telling = [number for number, each in own.items() if _any_of(TELLING, each.by_span)]
    faulty = [number for number, each in own.items() if _any_of(_promised(each.reported.rules), each.by_age)]
    worst_rows = _by_number(sums.worst(inside, telling).collect() if telling else [])
    faulty_rows = _by_number(sums.faulty(verdicts, faulty).collect() if faulty else [])
    excluded_rows = _by_number(
        sums.excluded(inside).collect() if any(each.rules.exclusions for each in reported) else []
    )
    histogram_rows = _by_number(_histogram(_current(ledger, commit, "histogram", windows)).collect())
    of_findings = _current(ledger, commit, "findings", windows)
    finding_rows = _by_number(_findings(of_findings, telling).collect() if telling else [])
    return {
        number: Gathered(
            first_minute=min((row.first_minute for row in each.by_age), default=None),
            ages=_in_order(_counts(row.age, row, each.reported.rules) for row in each.by_age if row.age is not None),
            spans=_in_order(_counts(row.span, row, each.reported.rules) for row in each.by_span),
            worst=[_counts(row.minute, row, each.reported.rules) for row in worst_rows.get(number, [])],
            faulty=[_counts(row.hour, row, each.reported.rules) for row in faulty_rows.get(number, [])],
            partitions={
                row.partition: _counts(0, row, each.reported.rules).counts
                for row in sorted(each.by_partition, key=_partition)
            },
            excluded={
                row.place - 1: _counts(0, row, each.reported.rules).excluded for row in excluded_rows.get(number, [])
            },
            histogram=_buckets(histogram_rows.get(number, [])),
            findings=_listed_by_finding(finding_rows.get(number, [])),
            provisional=sum(row.provisional or 0 for row in each.by_span),
        )
        for number, each in own.items()
    }


def current(ledger: Ledger, commit: Commit, table: str) -> DataFrame:
    """Return one of the tables of graded minutes, as of this commit."""
    windows = ledger.table_of(WINDOWS, [_window_row(Reported(state, MinuteRange(0, 1))) for state in commit.states])
    return _current(ledger, commit, table, sf.broadcast(windows)).select(*PARTS[table].names)


def _current(ledger: Ledger, commit: Commit, table: str, windows: DataFrame) -> DataFrame:
    """Return the rows that count of some DelayTopics, with their windows beside them."""
    rows = ledger.read([part.folder for part in commit.parts], table, PARTS[table])
    return rows.join(windows, "delay_topic").filter(sf.col("minute") >= sf.col("floor"))


def _window_row(reported: Reported) -> dict[str, Any]:
    state, window, rules = reported.state, reported.window, reported.rules
    return {
        "delay_topic": reported.number,
        "floor": state.floor_minute,
        "start": window.start,
        "end": window.end,
        "width": span_width(window),
        "final_before": final_before(state),
        "ages": boundaries(rules, state.closed_minute),
        "excluded": [_minutes_of(each)._asdict() for each in rules.exclusions],
        "counted": [(each.lateness_ms, each.minute) for each in state.counted],
        "promised": _promised(rules),
    }


@dataclass(frozen=True)
class _Own:
    """The sums of one DelayTopic."""

    reported: Reported
    rows: Sequence[Row]

    @property
    def by_span(self) -> list[Row]:
        return [row for row in self.rows if row.grouping == _BY_SPAN and row.span is not None]

    @property
    def by_age(self) -> list[Row]:
        return [row for row in self.rows if row.grouping == _BY_AGE]

    @property
    def by_partition(self) -> list[Row]:
        return [row for row in self.rows if row.grouping == _BY_PARTITION and row.partition is not None]


def _by_number(rows: Iterable[Row]) -> dict[int, list[Row]]:
    found: defaultdict[int, list[Row]] = defaultdict(list)
    for row in rows:
        found[row.delay_topic].append(row)
    return dict(found)


def of_threshold(name: str, lateness_ms: int) -> str:
    """Return the column of a count of lateness by a further threshold."""
    return f"{name}_{lateness_ms}"


def _is_inside() -> Column:
    return (sf.col("minute") >= sf.col("start")) & (sf.col("minute") < sf.col("end"))


@dataclass(frozen=True)
class _Sums:
    """Sums of verdicts; `further` are the thresholds of any DelayTopic, which are null for others."""

    further: Sequence[int]

    def by_threshold(self, verdicts: DataFrame) -> DataFrame:
        """Add the counts of lateness by each further threshold; null in minutes that do not count for it."""
        columns: dict[str, Column] = {}
        for length_ms in self.further:
            key = sf.lit(length_ms).cast("long")
            within_it = sf.try_element_at("within", key)
            counts = (sf.col("minute") >= sf.try_element_at("counted", key)) & within_it.isNotNull()
            by_name = {"on_time": within_it, "late": sf.col("delivered") - within_it}
            for name in OF_LATENESS:
                columns[of_threshold(name, length_ms)] = sf.when(counts, by_name.get(name, sf.col(name)))
        return verdicts.withColumns(columns) if columns else verdicts

    def of(self, verdicts: DataFrame) -> DataFrame:
        """Add up by span, by age and by partition, in one pass."""
        partition = sf.when(_is_inside(), sf.col("partition"))
        # The latest start of a window of burn rates or of a budget before the minute; null before all of them.
        age = sf.get(sf.filter("ages", lambda start: start <= sf.col("minute")), sf.lit(0))
        rows = verdicts.select(
            *("delay_topic", "minute", _span(), age.alias("age"), partition.alias("partition")),
            sf.when(sf.col("minute") >= sf.col("final_before"), sf.col("lost")).alias("provisional"),
            *(*self._names(), "latest_ms", "is_excluded"),
        )
        sets = [["delay_topic", name] for name in ("span", "age", "partition")]
        return rows.groupingSets(sets, "delay_topic", "span", "age", "partition").agg(
            sf.grouping_id().cast("int").alias("grouping"),
            sf.min("minute").alias("first_minute"),
            sf.sum("provisional").alias("provisional"),
            *self._totals(),
        )

    def worst(self, verdicts: DataFrame, numbers: Sequence[int]) -> DataFrame:
        """Return the worst minutes of each of these DelayTopics, in the order of the report's."""
        minutes = verdicts.filter(_is_of(numbers)).groupBy("delay_topic", "minute").agg(*self._totals())
        names = (name for usual in _FAULTS.values() for name in usual if name != "late")
        faults = sum((sf.col(name) for name in names), sf.lit(0))
        counted = minutes.withColumn("faults", faults).withColumn("too_late", _late("late"))
        bad = counted.filter((sf.col("faults") > 0) | (sf.col("too_late") > 0))
        return _first(bad, MOST_WORST, sf.desc("faults"), sf.desc("too_late"), sf.asc("minute"))

    def faulty(self, verdicts: DataFrame, numbers: Sequence[int]) -> DataFrame:
        """Return the latest hours in which objectives of 100 % were broken, as many as a status lists."""
        late = {name: _late(name) for name in ("late", *(of_threshold("late", each_ms) for each_ms in self.further))}
        names = [*(name for usual in _FAULTS.values() for name in usual if name != "late"), *late]
        faults = (
            sf.when(sf.array_contains("promised", sf.lit(name)), late.get(name, sf.col(name))).otherwise(0)
            for name in names
        )
        hour = sf.col("minute") - sf.pmod("minute", sf.lit(HOUR_MS // MINUTE_MS))
        sums = (
            verdicts.filter(_is_of(numbers))
            .groupBy("delay_topic", hour.alias("hour"))
            .agg(*self._totals(), sf.any_value("promised").alias("promised"))
            .filter(sum(faults, sf.lit(0)) > 0)
        )
        return _first(sums, MOST_FAULTY_HOURS, sf.desc("hour"))

    def excluded(self, inside: DataFrame) -> DataFrame:
        """Add up what was due within each exclusion, by its `place` in the rules, from 1: the first that has it."""
        place = sf.array_position(sf.transform("excluded", _has_minute), True)
        rows = inside.filter(sf.col("is_excluded"))
        return rows.groupBy("delay_topic", place.alias("place")).agg(*self._totals())

    def _of_lateness(self) -> list[str]:
        """Return the columns of the counts of lateness, by the usual threshold and by further ones."""
        return [*OF_LATENESS, *(of_threshold(name, each_ms) for each_ms in self.further for name in OF_LATENESS)]

    def _names(self) -> list[str]:
        """Return the columns of all counts."""
        return [*COUNTS, *(name for name in self._of_lateness() if name not in COUNTS)]

    def _totals(self) -> list[Column]:
        excluded = (
            sf.sum(sf.when(sf.col("is_excluded"), sf.col(name))).alias(f"excluded_{name}")
            for name in self._of_lateness()
        )
        totals = (sf.sum(name).alias(name) for name in self._names())
        return [*totals, sf.max("latest_ms").alias("latest_ms"), *excluded]


def _has_minute(bounds: Column) -> Column:
    return (bounds["start"] <= sf.col("minute")) & (sf.col("minute") < bounds["end"])


def _is_of(numbers: Sequence[int]) -> Column:
    return sf.col("delay_topic").isin(list(numbers))


def _first(rows: DataFrame, most: int, *order: Column) -> DataFrame:
    """Return the first rows of each DelayTopic, in order."""
    place = sf.row_number().over(Window.partitionBy("delay_topic").orderBy(*order))
    return rows.withColumn("place", place).filter(sf.col("place") <= most).orderBy("delay_topic", "place")


def _span() -> Column:
    """Return the first minute of the span that a minute is in; null outside of the window."""
    start = sf.col("minute") - sf.pmod(sf.col("minute") - sf.col("start"), sf.col("width"))
    return sf.when(_is_inside(), start).alias("span")


def _minutes_of(exclusion: Exclusion) -> MinuteRange:
    return MinuteRange(minute_of(exclusion.from_ms), minute_of(exclusion.until_ms))


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


def _partition(row: Row) -> int:
    return int(row.partition)


def _promised(rules: Rules) -> list[str]:
    """Return the counts that break objectives of 100 %."""
    promised = without_budget(rules)
    usual = [name for objective, names in _FAULTS.items() if promised[objective] for name in names]
    return [*usual, *(of_threshold("late", each.lateness_ms) for each in rules.thresholds if promised[each.name])]


def _any_of(names: Sequence[str], rows: Sequence[Row]) -> bool:
    return any(row[name] for row in rows for name in names)


def _late(name: str) -> Column:
    """Return the late records that no exclusion has, of sums."""
    return sf.coalesce(sf.col(name), sf.lit(0)) - sf.coalesce(sf.col(f"excluded_{name}"), sf.lit(0))


def _histogram(rows: DataFrame) -> DataFrame:
    inside = rows.filter(_is_inside())
    return inside.groupBy("delay_topic", _span(), "bucket").agg(sf.sum("records").alias("records"))


def _buckets(rows: Iterable[Row]) -> dict[int, dict[int, int]]:
    found: defaultdict[int, dict[int, int]] = defaultdict(dict)
    for row in rows:
        found[row.span][row.bucket] = row.records
    return dict(found)


def _findings(rows: DataFrame, numbers: Sequence[int]) -> DataFrame:
    """Return the first of each by deadline."""
    order = ("deadline_ms", "partition", "offset")
    place = sf.row_number().over(Window.partitionBy("delay_topic", "finding").orderBy(*order))
    inside = rows.filter(_is_inside() & _is_of(numbers)).select(*PARTS["findings"].names)
    return inside.withColumn("place", place).filter(sf.col("place") <= MOST_LISTED)


def _listed_by_finding(rows: Iterable[Row]) -> dict[Finding, list[Listed]]:
    found: defaultdict[Finding, list[Listed]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: (row.finding, row.place)):
        found[Finding(row.finding)].append(_listed(row))
    return dict(found)


def _listed(row: Row) -> Listed:
    return Listed.model_validate({name: row[name] for name in Listed.model_fields})
