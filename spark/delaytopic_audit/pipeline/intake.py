"""The first half of a run: reads what was planned, and turns it into the run's rows of the ledger."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as sf

from delaytopic_audit.ledger.ledger import Ledger
from delaytopic_audit.model.manifest import Buckets, ClockReading, Plan, Range, Refused, Role, Run, TopicRead
from delaytopic_audit.model.words import Kind
from delaytopic_audit.pipeline.members import Judged, places_of
from delaytopic_audit.pipeline.ports import Progress, Read
from delaytopic_audit.tables import frames as tables
from delaytopic_audit.tables.schemas import EXTRACT, OVERDUE, RECORDS

_OF_SOURCE = (Kind.SCHEDULE, Kind.REJECT, Kind.CANCEL, Kind.POSTPONE, Kind.IGNORED, Kind.RULE)


@dataclass(frozen=True)
class Found:
    """Counts and faults that were found in the topics of one DelayTopic."""

    topics: list[TopicRead]
    clocks: list[ClockReading]
    named: list[str]
    out_of_scope: int
    ancient: int
    first_told_ms: int | None
    """The time of the first record of the topic of outcomes that was read."""


@dataclass(frozen=True)
class Intake:
    """The result of reading. `records` is written, in about so many `rows`; `commands` and `overdue` count rows of the
    tables of these names, `buckets` are those of `commands`. `read` is by the numbers of those that are `judged`.
    """

    records: DataFrame
    rows: int
    judged: list[Judged]
    refused: list[Refused]
    read: dict[int, Found]
    commands: int
    buckets: Buckets | None
    overdue: int


def ingest(
    asked_for: Sequence[Judged], runs: Sequence[Run], ledger: Ledger, folder: str, read: Read, progress: Progress
) -> Intake:
    """Read the planned ranges of all, and write the run's records, commands and overdue schedules.

    A DelayTopic whose topics cannot be read, or have times that nobody vouches for, holds up nobody. Raises
    ReadingError.
    """
    places = places_of(asked_for, ledger)
    extract = _extract(asked_for, ledger, folder, read, progress)
    counts = _counts(extract, places)
    refused = {each.number: found for each in asked_for if (found := _refused(each.plan, counts.get(each.number, [])))}
    judged = [each for each in asked_for if each.number not in refused]
    if refused:
        extract = extract.filter(~sf.col("delay_topic").isin(list(refused)))
    rows = [row for each in judged for row in counts.get(each.number, [])]
    overdue, commands, records = (sum(row[name] for row in rows) for name in ("overdue", "named", "records"))
    if judged:
        progress(f"sorting {records:,} records by deadline")
    buckets = ledger.write_commands(folder, tables.commands(extract), commands) if commands else None
    if overdue:
        ledger.write(folder, "overdue", tables.overdue(extract))
    late = [run.folder for run in runs if run.overdue] + ([folder] if overdue else [])
    outcomes = tables.deliveries(extract, ledger.read(late, "overdue", OVERDUE) if late else None)
    if any(row.kind == Kind.DEAD_LETTER or row.again for row in rows):
        outcomes = outcomes.unionByName(_answered(extract, places, ledger, runs))
    of_run = tables.in_scope(tables.asks(extract).unionByName(outcomes), places)
    return Intake(
        records=ledger.write_sorted(folder, "records", of_run, records) if judged else of_run,
        rows=records,
        judged=judged,
        refused=list(refused.values()),
        read={each.number: _found(each, counts.get(each.number, [])) for each in judged},
        commands=commands,
        buckets=buckets,
        overdue=overdue,
    )


def _extract(asked_for: Sequence[Judged], ledger: Ledger, folder: str, read: Read, progress: Progress) -> DataFrame:
    """Return everything but the topics that no record ever asked for; of these, now, the ones that records ask for."""
    at_once = {each.number: _topics_at_once(each) for each in asked_for}
    first, others = dict[int, list[Range]](), dict[int, list[Range]]()
    for each in asked_for:
        for piece in each.plan.ranges:
            (first if piece.topic in at_once[each.number] else others).setdefault(each.number, []).append(piece)
    progress(f"reading up to {_offsets(first):,} records of {sum(map(len, at_once.values()))} topics")
    extract = ledger.stage(folder, "extract", read(first))
    if not others:
        return extract
    wanted = extract.filter(tables.is_kind(Kind.SCHEDULE)).select("delay_topic", "topic").distinct().collect()
    asked = {(row.delay_topic, row.topic) for row in wanted}
    more = {number: [p for p in pieces if (number, p.topic) in asked] for number, pieces in others.items()}
    if not any(more.values()):
        return extract
    progress(f"reading up to {_offsets(more):,} records of topics that deliver-to names")
    ledger.stage(folder, "extract-of-named", read(more))
    return extract.unionByName(ledger.read([folder], "extract-of-named", EXTRACT))


def _topics_at_once(judged: Judged) -> set[str]:
    plan = judged.plan
    outcomes = [plan.outcomes] if plan.outcomes is not None else []
    return {
        plan.source,
        plan.target,
        plan.dead_letter,
        *outcomes,
        *(judged.last.named if judged.last is not None else []),
    }


def _offsets(ranges: Mapping[int, Sequence[Range]]) -> int:
    return sum(piece.end - piece.start for pieces in ranges.values() for piece in pieces)


def _counts(extract: DataFrame, places: DataFrame) -> dict[int, list[Row]]:
    """Count the rows of each DelayTopic and sort, and of them those with an id and those that came too late to be in
    time.

    `least_ms`: how far the append times of a target partition lie behind what the receipts say, at least.
    """
    counted = tables.placed(extract, places).groupBy(
        "delay_topic", "kind", "topic", "at_partition", "by_broker", tables.is_in_scope().alias("scoped")
    )
    rows = counted.agg(
        sf.count(sf.lit(1)).alias("records"),
        sf.count_if(sf.col("id_hash").isNotNull()).alias("named"),
        sf.count_if(tables.is_overdue()).alias("overdue"),
        sf.count_if(tables.is_put_off() | tables.is_occurrence() | tables.is_untimed()).alias("again"),
        sf.count_if(tables.is_ancient()).alias("ancient"),
        sf.min(sf.col("append_ms") - sf.col("sent_ms")).alias("least_ms"),
        sf.min("append_ms").alias("first_ms"),
        sf.max(sf.when(tables.is_kind(Kind.UNREAD), sf.col("reason"))).alias("unread"),
    )
    found = dict[int, list[Row]]()
    for row in rows.collect():
        found.setdefault(row.delay_topic, []).append(row)
    return found


def _refused(plan: Plan, counts: Sequence[Row]) -> Refused | None:
    """Return why a DelayTopic cannot be judged by what was read, if so."""
    unread = sorted({row.unread for row in counts if row.kind == Kind.UNREAD})
    if unread:
        return Refused(delay_topic=plan.delay_topic, reasons=unread, unread=True)
    doubtful = list(_doubtful_clocks(plan, counts))
    return Refused(delay_topic=plan.delay_topic, reasons=doubtful) if doubtful else None


def _doubtful_clocks(plan: Plan, counts: Sequence[Row]) -> Iterator[str]:
    if plan.trusts_any_clock:
        return
    judged = (Kind.SCHEDULE, Kind.REJECT, Kind.CANCEL, Kind.POSTPONE, Kind.RULE, Kind.DELIVERED)
    doubtful = [row for row in counts if row.kind in judged and not row.by_broker]
    for topic in sorted({_topic_of(plan, row) for row in doubtful}):
        number = sum(row.records for row in doubtful if _topic_of(plan, row) == topic)
        yield (
            f"{number:,} records of {topic} carry CreateTime, a time that whoever wrote them chose: begin the audit"
            " anew with --restart, which leaves them out, or take their times as they are with --any-clock"
        )


def _answered(extract: DataFrame, places: DataFrame, ledger: Ledger, runs: Sequence[Run]) -> DataFrame:
    """Return dead letters and what was put off, at the deadlines of the asks that they answer."""
    asks, answers = tables.asks(extract), tables.answers(extract)
    older = _runs_with_asks_of(answers, runs)
    if older:
        before = ledger.read([run.folder for run in older], "records", RECORDS)
        before = before.filter(tables.is_kind(Kind.SCHEDULE, Kind.REJECT, Kind.RULE))
        place = ["delay_topic", "partition", "offset"]
        asks = asks.unionByName(before.join(answers, place, "left_semi").select(*RECORDS.names))
    return tables.answered(answers, asks, places)


def _runs_with_asks_of(answers: DataFrame, runs: Sequence[Run]) -> list[Run]:
    """Return the runs that may have read the source records of these outcomes."""
    least, most = sf.min("offset").alias("least"), sf.max("offset").alias("most")
    rows = answers.groupBy("delay_topic", "partition").agg(least, most).collect()
    bounds = {(row.delay_topic, row.partition): (row.least, row.most) for row in rows}

    def may_have(run: Run) -> bool:
        for number, pieces in run.asks.items():
            for piece in pieces:
                first, last = bounds.get((number, piece.partition), (0, -1))
                if piece.start <= last and first < piece.end:
                    return True
        return False

    return [run for run in runs if may_have(run)]


def _found(judged: Judged, counts: Sequence[Row]) -> Found:
    plan = judged.plan
    known = judged.last.named if judged.last is not None else []
    wanted = {row.topic for row in counts if row.kind == Kind.SCHEDULE} - {plan.target}
    return Found(
        topics=_topics_read(plan, counts),
        clocks=_clocks(counts),
        named=sorted({*known, *wanted}),
        out_of_scope=sum(row.records for row in counts if not row.scoped),
        ancient=sum(row.ancient for row in counts),
        first_told_ms=min((row.first_ms for row in counts if row.kind == Kind.TOLD), default=None),
    )


def _clocks(counts: Sequence[Row]) -> list[ClockReading]:
    least: dict[tuple[str, int], int] = {}
    for row in counts:
        if row.kind == Kind.DELIVERED:
            place = (row.topic, row.at_partition)
            least[place] = min(row.least_ms, least.get(place, row.least_ms))
    return [ClockReading(topic=t, partition=p, least_ms=least_ms) for (t, p), least_ms in sorted(least.items())]


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
    if row.kind in _OF_SOURCE:
        return plan.source
    if row.kind == Kind.TOLD and plan.outcomes is not None:
        return plan.outcomes
    return plan.dead_letter if row.kind == Kind.DEAD_LETTER else str(row.topic)
