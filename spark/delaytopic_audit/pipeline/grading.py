"""The second half of a run: digests, and verdicts of the minutes that are closed or were opened again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import NamedTuple

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as sf

from delaytopic_audit.ledger.buckets import First, folders_of, told_apart
from delaytopic_audit.ledger.ledger import Ledger
from delaytopic_audit.ledger.parts import Rewrite, next_parts
from delaytopic_audit.model.manifest import CountedFrom, GradedUntil, MinuteRange, Part, Run
from delaytopic_audit.model.words import Kind
from delaytopic_audit.pipeline.members import Judged, Members, places_of
from delaytopic_audit.pipeline.ports import Progress
from delaytopic_audit.tables.digests import compared, digests, merged
from delaytopic_audit.tables.frames import first_places, is_kind, minute
from delaytopic_audit.tables.judging import judged_alike, judged_one_by_one, postponements, withdrawals
from delaytopic_audit.tables.links import links, weighed
from delaytopic_audit.tables.minutes import deadline_within, ranges_of
from delaytopic_audit.tables.schemas import (
    CHAINED,
    COMMANDS,
    DIGESTS,
    GRADED,
    MINUTES,
    PARTS,
    PLACED,
    RECORDS,
    WITHDRAWALS,
)
from delaytopic_audit.tables.telling import held_against_outcomes
from delaytopic_audit.tables.verdicts import findings, histogram, sums, telling_minutes, verdicts

_KEY = ("delay_topic", "minute")


@dataclass(frozen=True)
class Grading:
    """The minutes that a run graded, and where their verdicts are."""

    parts: list[Part]
    first_minute: int | None
    last_minute: int | None
    restated_minutes: dict[int, int] = field(default_factory=dict)
    """Minutes that were graded before, by number of the DelayTopic; the same is true of the next."""
    beyond_retention: dict[int, int] = field(default_factory=dict)
    """Records of minutes that are forgotten."""
    awaited_minutes: dict[int, list[int]] = field(default_factory=dict)
    """Minutes of which outcomes, or occurrences that follow, may be on their way."""


@dataclass(frozen=True)
class Before:
    """The tables that earlier runs have left: the folder of the last digests, and parts."""

    folder: str | None
    parts: list[Part]


def counted_from(judged: Judged) -> list[CountedFrom]:
    """Return from which minute on each further threshold counts: one that is new, from the first that is closed now.

    What was graded without it kept no latenesses. Minutes before that are graded again would not be all of them, but
    those in which something came late.
    """
    known = {each.lateness_ms: each.minute for each in judged.last.counted} if judged.last is not None else {}
    first = judged.bounds.open_from
    return [
        CountedFrom(lateness_ms=each.lateness_ms, minute=known.get(each.lateness_ms, first))
        for each in judged.plan.rules.thresholds
    ]


def graded_formerly(judged: Judged) -> list[GradedUntil]:
    """Return the latenesses of rules before these, as far as minutes that were graded by them are remembered."""
    last, floor = judged.last, judged.bounds.floor
    if last is None:
        return []
    former = last.plan.rules.lateness_ms
    known = [each for each in last.formerly if each.minute > floor]
    if former != judged.plan.rules.lateness_ms and last.closed_minute > floor:
        known.append(GradedUntil(lateness_ms=former, minute=last.closed_minute))
    return known


def grade(
    members: Members,
    ledger: Ledger,
    folder: str,
    records: DataFrame,
    runs: Sequence[Run],
    before: Before,
    progress: Progress,
) -> Grading:
    """Write the run's digests, verdicts, histogram and findings. `runs` are those before and this one, unfinished."""
    table = members.table(ledger)
    delta = digests(records).persist()
    totals = _totals(delta, table)
    # Of minutes that were graded before, no digests are kept: what comes for them is joined.
    former = ledger.read([before.folder] if before.folder is not None else [], "digests", DIGESTS)
    state = _of_members(merged(former, delta), table, sf.col("minute") >= sf.col("open_from"))
    state = ledger.write(folder, "digests", state)
    graded = ledger.stage(folder, "graded", _graded(state, delta, table, members.awaited(ledger)))
    delta.unpersist()
    minutes = _minutes_of(graded)
    progress(f"grading {sum(row.delay_topics for row in minutes):,} minutes")
    closed, again = ([row.minute for row in minutes if row[name]] for name in ("is_new", "is_again"))
    stay, rewritten, new = next_parts(before.parts, members.floor, closed, again)
    parts, awaited = {part.folder: part for part in stay}, dict[int, list[int]]()
    if minutes:
        places, tells = places_of(members.judged, ledger), any(members.telling.values())
        grader = _Grader(ledger, folder, table, graded, minutes, progress, places, tells)
        alike, joined, awaits = grader.judged(runs)
        judged = [alike] if joined is None else [alike, joined]
        parts |= _Parts(ledger, folder, table, graded, minutes, rewritten, new).write(judged, members.thresholds)
        if joined is not None:
            awaited = _awaited(joined) if awaits else {}
            joined.unpersist()
    return Grading(
        # A part that was written again is where it was: they are in the order in which they were graded first.
        parts=[parts.pop(part.folder) for part in before.parts if part.folder in parts] + list(parts.values()),
        first_minute=min((row.first for row in totals), default=None),
        last_minute=max((row.last for row in totals), default=None),
        restated_minutes={row.delay_topic: row.again for row in totals},
        beyond_retention={row.delay_topic: row.forgotten or 0 for row in totals},
        awaited_minutes=awaited,
    )


def _awaited(joined: DataFrame) -> dict[int, list[int]]:
    found = dict[int, list[int]]()
    for row in joined.filter("awaited").select(*_KEY).distinct().collect():
        found.setdefault(row.delay_topic, []).append(row.minute)
    return {number: sorted(minutes) for number, minutes in found.items()}


def _of_members(rows: DataFrame, table: DataFrame, which: Column) -> DataFrame:
    """Return the rows of DelayTopics that are remembered for which a condition on their rules and bounds holds."""
    return rows.join(sf.broadcast(table), "delay_topic").filter(which).select(*rows.columns)


def _totals(delta: DataFrame, table: DataFrame) -> list[Row]:
    """Return for each DelayTopic the first and the last minute, the records of forgotten ones, and the number of
    minutes that were graded before.
    """
    bounded = delta.join(sf.broadcast(table), "delay_topic")
    grouped = bounded.groupBy("delay_topic").agg(
        sf.min("minute").alias("first"),
        sf.max("minute").alias("last"),
        sf.sum(sf.when(sf.col("minute") < sf.col("floor"), sf.col("records"))).alias("forgotten"),
        sf.count_distinct(sf.when(_is_again(), sf.col("minute"))).alias("again"),
    )
    return grouped.collect()


def _is_again() -> Column:
    return (sf.col("minute") >= sf.col("floor")) & (sf.col("minute") < sf.col("open_from"))


def _graded(state: DataFrame, delta: DataFrame, table: DataFrame, awaited: DataFrame) -> DataFrame:
    """Return the minutes to grade: those that are closed now, and those of before that something came for, or whose
    outcomes were awaited.

    Digests are of asks and of what was delivered: where a topic of outcomes tells of it, they prove nothing.
    """
    is_closed = sf.col("is_judged") & (sf.col("minute") < sf.col("closed"))
    tells = table.select("delay_topic", (sf.size("telling") > 0).alias("tells"))
    closed = compared(_of_members(state, table, is_closed)).join(sf.broadcast(tells), "delay_topic")
    closed = closed.withColumns({"is_odd": sf.col("is_odd") | sf.col("tells"), "is_again": sf.lit(False)})
    again = _of_members(delta.select(*_KEY).unionByName(awaited), table, _is_again()).distinct()
    again = again.select(*_KEY, sf.lit(True).alias("is_odd"), sf.lit(True).alias("is_again"))
    return closed.select(*GRADED.names).unionByName(again)


def _minutes_of(graded: DataFrame) -> list[Row]:
    """Return each minute, of whichever DelayTopics: what tables are read for, and which parts are written."""
    grouped = graded.groupBy("minute").agg(
        sf.count(sf.lit(1)).alias("delay_topics"),
        sf.bool_or("is_odd").alias("is_odd"),
        sf.bool_or("is_again").alias("is_again"),
        sf.bool_or(~sf.col("is_again")).alias("is_new"),
    )
    return grouped.collect()


class _Judged(NamedTuple):
    """The records of graded minutes, those that were joined apart. `awaits`: of these, more may be on its way."""

    alike: DataFrame
    joined: DataFrame | None
    awaits: bool


@dataclass(frozen=True)
class _Grader:
    """The judge of the graded minutes; `minutes` are those of any DelayTopic."""

    ledger: Ledger
    folder: str
    table: DataFrame
    graded: DataFrame
    minutes: Sequence[Row]
    progress: Progress
    places: DataFrame
    """Facts that are known of source partitions."""
    tells: bool
    """True: some DelayTopic has a topic of outcomes."""

    def judged(self, runs: Sequence[Run]) -> _Judged:
        """Return every record of the graded minutes, those apart that are judged record by record, as digests do not
        prove that all is well.

        That is where they disagree, where ids were withdrawn or recur, and in minutes that were graded before. To join
        is worth remembering: that part is persisted.
        """
        records = self._records(runs).join(self.graded, [*_KEY]).join(sf.broadcast(self.table), "delay_topic")
        commands, recurs = self._commands(records, runs)
        withdrawn, linked = self._of_ids(records, commands, recurs=recurs) if commands is not None else (None, None)
        odd = {row.minute for row in self.minutes if row.is_odd}
        named = [each.select(*_KEY) for each in (withdrawn, linked) if each is not None]
        if named:
            apart = reduce(DataFrame.unionByName, named).distinct().withColumn("is_apart", sf.lit(True))
            records = records.join(apart, [*_KEY], "left")
            records = records.withColumn("is_odd", sf.col("is_odd") | sf.coalesce("is_apart", sf.lit(False)))
            odd |= {row.minute for row in apart.select("minute").distinct().collect()}
        if not odd:
            return _Judged(judged_alike(records), None, awaits=False)
        self.progress(f"joining {len(odd):,} minutes record by record")
        if withdrawn is None:
            withdrawn = self.ledger.read([], "withdrawn", WITHDRAWALS)
        chained = weighed(linked) if linked is not None else self.ledger.read([], "linked", CHAINED)
        joined = records.filter(sf.col("is_odd") & deadline_within(ranges_of(odd)))
        one_by_one = judged_one_by_one(joined, withdrawn, chained)
        if self.tells:
            if commands is None:
                commands = self.ledger.read([], "commands", COMMANDS)
            one_by_one = held_against_outcomes(one_by_one, joined, withdrawn, commands)
        alike = judged_alike(records.filter(~sf.col("is_odd")))
        return _Judged(alike, one_by_one.persist(), awaits=self.tells or linked is not None)

    def _commands(self, records: DataFrame, runs: Sequence[Run]) -> tuple[DataFrame | None, bool]:
        """Return the commands that may say something of these records, and if any of them recurs; None without any."""
        with_commands = [run for run in runs if run.commands]
        if not with_commands:
            return None, False
        # Of all runs, as those without commands know offsets, too.
        buckets = told_apart(runs)
        firsts = [First(*row) for row in first_places(records, buckets).collect()]
        commands, chains = folders_of(runs, firsts, buckets)
        if not (commands or chains):
            return None, False
        return self.ledger.read_folders([*commands, *chains], COMMANDS), bool(chains)

    def _of_ids(self, records: DataFrame, commands: DataFrame, *, recurs: bool) -> tuple[DataFrame, DataFrame | None]:
        """Return what commands withdrew of these records, and the links of those that recur; None if nothing does."""
        schedules = records.filter(is_kind(Kind.SCHEDULE, Kind.RULE))
        commands = commands.filter(~is_kind(Kind.TOLD))
        puts_off = is_kind(Kind.POSTPONE) | sf.col("at_offset").isNotNull()
        moves = recurs or not commands.filter(puts_off).isEmpty()
        ended = (postponements if moves else withdrawals)(schedules, commands)
        withdrawn = self.ledger.write(self.folder, "withdrawn", ended)
        if not recurs:
            return withdrawn, None
        return withdrawn, self.ledger.write(self.folder, "linked", links(schedules, commands, self.places))

    def _records(self, runs: Sequence[Run]) -> DataFrame:
        """Return the rows of these minutes, from the runs that have any of them."""
        bounds = ranges_of(row.minute for row in self.minutes)
        folders = [run.folder for run in runs if any(_overlap(run, each) for each in bounds)]
        rows = self.ledger.read(folders, "records", RECORDS).filter(deadline_within(bounds))
        return rows.withColumn("minute", minute())


def _overlap(run: Run, bounds: MinuteRange) -> bool:
    if run.first_minute is None or run.last_minute is None:
        return False
    return run.first_minute < bounds.end and bounds.start <= run.last_minute


@dataclass(frozen=True)
class _Parts:
    """The parts that a run writes: some again, with what was graded again in them, and the new one."""

    ledger: Ledger
    folder: str
    table: DataFrame
    graded: DataFrame
    minutes: Sequence[Row]
    rewritten: Sequence[Rewrite]
    new: Rewrite | None

    def write(self, judged: Sequence[DataFrame], thresholds: Sequence[int]) -> dict[str, Part]:
        """Write their tables, and return the parts by the folder of the one that each replaces, or by its own."""
        ruled = reduce(DataFrame.unionByName, judged).join(sf.broadcast(self.table), "delay_topic")
        summed = sums(ruled, thresholds).persist()
        telling = self.ledger.table_of(MINUTES, [{"minute": each} for each in telling_minutes(summed)])
        rows = {
            "verdicts": verdicts(summed, self.table, thresholds),
            "histogram": histogram(summed),
            "findings": findings(ruled.join(sf.broadcast(telling), "minute", "left_semi")),
        }
        found, placed = {}, self._placed()
        for place, each in enumerate(self.rewritten):
            found[each.sources[0].folder] = self._write(each, place, rows, placed)
        if self.new is not None:
            new = self._write(self.new, len(self.rewritten), rows, placed if self.rewritten else None)
            found[new.folder] = new
        summed.unpersist()
        return found

    def _placed(self) -> DataFrame:
        """Return the graded minutes, each with the place of the part that has it.

        A minute that is graded again stays in the first part that has it, and others are of the new one.
        """
        places = [
            {"minute": row.minute, "is_again": is_again, "place": self._place(row.minute, is_again=is_again)}
            for row in self.minutes
            for is_again in (True, False)
            if (row.is_again if is_again else row.is_new)
        ]
        table = sf.broadcast(self.ledger.table_of(PLACED, places))
        return self.graded.join(table, ["minute", "is_again"]).select(*_KEY, "place")

    def _place(self, minute_of_it: int, *, is_again: bool) -> int:
        new = len(self.rewritten)
        if not is_again:
            return new
        return next((place for place, each in enumerate(self.rewritten) if each.start <= minute_of_it < each.end), new)

    def _write(self, rewrite: Rewrite, place: int, rows: Mapping[str, DataFrame], placed: DataFrame | None) -> Part:
        """Write one, with the rows of its graded minutes; all rows without any `placed`."""
        start, end, runs, sources = rewrite
        part = Part(folder=f"{self.folder}/{place}-{start}-{end}", start=start, end=end, runs=runs)
        for table, new in rows.items():
            own = new
            if placed is not None:
                own = new.join(placed.filter(sf.col("place") == place), [*_KEY], "left_semi").select(*new.columns)
            if sources:
                before = self.ledger.read([source.folder for source in sources], table, PARTS[table])
                kept = _of_members(before, self.table, sf.col("minute") >= sf.col("floor"))
                own = kept.join(self.graded, [*_KEY], "left_anti").unionByName(own)
            self.ledger.write(part.folder, table, own)
        return part
