"""The first half of a run: reads what was planned, and turns it into the run's rows of the ledger."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as sf

from delaytopic_audit.errors import CannotJudge
from delaytopic_audit.ledger.ledger import Ledger
from delaytopic_audit.model.manifest import ClockReading, Commit, Plan, Role, Run, TopicRead
from delaytopic_audit.model.words import Kind
from delaytopic_audit.pipeline.ports import Progress, Read
from delaytopic_audit.tables import frames as tables
from delaytopic_audit.tables.schemas import EXTRACT, OVERDUE, RECORDS


@dataclass(frozen=True)
class Intake:
    """The result of reading. `records` is written, in about so many `rows`; `commands` and `overdue` count rows of the
    tables of these names.
    """

    records: DataFrame
    rows: int
    read: list[TopicRead]
    clocks: list[ClockReading]
    named: list[str]
    commands: int
    overdue: int
    out_of_scope: int
    ancient: int


def ingest(plan: Plan, ledger: Ledger, folder: str, last: Commit | None, read: Read, progress: Progress) -> Intake:
    """Read the plan's ranges, and write the run's records, commands and overdue schedules.

    Raises ReadingError, and CannotJudge when records have times that nobody vouches for.
    """
    known = last.named if last is not None else []
    extract = _extract(plan, ledger, folder, known, read, progress)
    counts = _counts(extract, plan)
    _require_brokers_clock(plan, counts)
    wanted = {row.topic for row in counts if row.kind == Kind.SCHEDULE} - {plan.target}
    named = sorted({*known, *wanted})
    overdue = sum(row.overdue for row in counts)
    commands = sum(row.named for row in counts)
    rows = sum(row.records for row in counts)
    progress(f"sorting {rows:,} records by deadline")
    if commands:
        ledger.write(folder, "commands", tables.commands(extract))
    if overdue:
        ledger.write(folder, "overdue", tables.overdue(extract))
    found = tables.asks(extract).unionByName(_outcomes(extract, counts, ledger, folder, last, bool(overdue)))
    scope = {first.partition: first.offset for first in plan.scope}
    return Intake(
        records=ledger.write_sorted(folder, "records", tables.in_scope(found, scope, plan.unjudged), rows),
        rows=rows,
        read=_topics_read(plan, counts),
        clocks=_clocks(counts),
        named=named,
        commands=commands,
        overdue=overdue,
        out_of_scope=sum(row.records for row in counts if not row.scoped),
        ancient=sum(row.ancient for row in counts),
    )


def _counts(extract: DataFrame, plan: Plan) -> list[Row]:
    """Count the rows of each sort, and of them those with an id and those that came too late to be in time.

    `least_ms`: how far the append times of a target partition lie behind what the receipts say, at least.
    """
    grouped = extract.groupBy("kind", "topic", "at_partition", "by_broker", _scoped(plan)).agg(
        sf.count(sf.lit(1)).alias("records"),
        sf.count_if(sf.col("id_hash").isNotNull()).alias("named"),
        sf.count_if(tables.is_overdue()).alias("overdue"),
        sf.count_if(tables.is_put_off()).alias("put_off"),
        sf.count_if(tables.is_ancient()).alias("ancient"),
        sf.min(sf.col("append_ms") - sf.col("sent_ms")).alias("least_ms"),
    )
    return grouped.collect()


def _clocks(counts: Sequence[Row]) -> list[ClockReading]:
    least: dict[tuple[str, int], int] = {}
    for row in counts:
        if row.kind == Kind.DELIVERED:
            place = (row.topic, row.at_partition)
            least[place] = min(row.least_ms, least.get(place, row.least_ms))
    return [ClockReading(topic=t, partition=p, least_ms=least_ms) for (t, p), least_ms in sorted(least.items())]


def _extract(
    plan: Plan, ledger: Ledger, folder: str, known: Sequence[str], read: Read, progress: Progress
) -> DataFrame:
    """Return everything but the topics that no record ever asked for; of these, now, the ones that records ask for."""
    at_once = {plan.source, plan.target, plan.dead_letter, *known}
    first = [piece for piece in plan.ranges if piece.topic in at_once]
    progress(f"reading up to {sum(piece.end - piece.start for piece in first):,} records of {len(at_once)} topics")
    extract = ledger.stage(folder, "extract", read(first))
    others = [piece for piece in plan.ranges if piece.topic not in at_once]
    if not others:
        return extract
    wanted = extract.filter(tables.is_kind(Kind.SCHEDULE)).select("topic").distinct().collect()
    asked_for = {row.topic for row in wanted}
    more = [piece for piece in others if piece.topic in asked_for]
    if not more:
        return extract
    progress(
        f"reading up to {sum(piece.end - piece.start for piece in more):,} records of topics that deliver-to names"
    )
    ledger.stage(folder, "extract-of-named", read(more))
    return extract.unionByName(ledger.read([folder], "extract-of-named", EXTRACT))


def _outcomes(
    extract: DataFrame, counts: Sequence[Row], ledger: Ledger, folder: str, last: Commit | None, overdue: bool
) -> DataFrame:
    """Return deliveries, dead letters and what was put off, at the deadlines of the asks that they answer."""
    runs = last.runs if last is not None else []
    folders = [run.folder for run in runs if run.overdue] + ([folder] if overdue else [])
    delivered = tables.deliveries(extract, ledger.read(folders, "overdue", OVERDUE) if folders else None)
    if not any(row.kind == Kind.DEAD_LETTER or row.put_off for row in counts):
        return delivered
    forgotten = last.forgotten if last is not None else []
    asks, answers = tables.asks(extract), tables.answers(extract)
    older = _runs_with_asks_of(answers, runs)
    if older:
        before = ledger.read([run.folder for run in older], "records", RECORDS)
        before = before.filter(tables.is_kind(Kind.SCHEDULE, Kind.REJECT))
        asks = asks.unionByName(before.join(answers, ["partition", "offset"], "left_semi").select(*RECORDS.names))
    return delivered.unionByName(tables.answered(answers, asks, forgotten))


def _runs_with_asks_of(answers: DataFrame, runs: Iterable[Run]) -> list[Run]:
    """Return the runs that may have read the source records of these outcomes."""
    least, most = sf.min("offset").alias("least"), sf.max("offset").alias("most")
    bounds = {row.partition: row for row in answers.groupBy("partition").agg(least, most).collect()}
    return [
        run
        for run in runs
        if any(
            piece.start <= bounds[piece.partition].most and bounds[piece.partition].least < piece.end
            for piece in run.asks
            if piece.partition in bounds
        )
    ]


def _scoped(plan: Plan) -> Column:
    out = sf.lit(False)
    for first in plan.scope:
        if first.offset > 0:
            out = out | ((sf.col("partition") == first.partition) & (sf.col("offset") < first.offset))
    return (~(out & tables.is_kind(Kind.DELIVERED, Kind.DEAD_LETTER))).alias("scoped")


def _require_brokers_clock(plan: Plan, counts: Sequence[Row]) -> None:
    if plan.trusts_any_clock:
        return
    judged = (Kind.SCHEDULE, Kind.REJECT, Kind.CANCEL, Kind.POSTPONE, Kind.DELIVERED)
    doubtful = [row for row in counts if row.kind in judged and not row.by_broker]
    reasons = []
    for topic in sorted({_topic_of(plan, row) for row in doubtful}):
        number = sum(row.records for row in doubtful if _topic_of(plan, row) == topic)
        reasons.append(
            f"{number:,} records of {topic} carry CreateTime, a time that whoever wrote them chose: begin the audit"
            " anew with --restart, which leaves them out, or take their times as they are with --any-clock"
        )
    if reasons:
        raise CannotJudge(reasons)


def _topics_read(plan: Plan, counts: Sequence[Row]) -> list[TopicRead]:
    found = []
    for topic in plan.topics:
        rows = [row for row in counts if _topic_of(plan, row) == topic.topic]
        found.append(
            TopicRead(
                topic=topic.topic,
                role=topic.role,
                records=sum(row.records for row in rows),
                by_broker=sum(row.records for row in rows if row.by_broker),
                foreign=sum(row.records for row in rows if row.kind == Kind.FOREIGN),
            )
        )
    return [read for read in found if read.records or read.role is not Role.TARGET or read.topic == plan.target]


def _topic_of(plan: Plan, row: Row) -> str:
    """Return the topic that a row was read from; asks name the topic that they want instead."""
    if row.kind in (Kind.SCHEDULE, Kind.REJECT, Kind.CANCEL, Kind.POSTPONE, Kind.IGNORED):
        return plan.source
    return plan.dead_letter if row.kind == Kind.DEAD_LETTER else str(row.topic)
