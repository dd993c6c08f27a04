"""From what a run read to the rows of the ledger. DataFrame in, DataFrame out."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from delaytopic_api.records import FIRST_MEANT_MS
from delaytopic_audit.model.manifest import Range
from delaytopic_audit.model.words import MINUTE_MS, Kind
from delaytopic_audit.tables.schemas import COMMANDS, OVERDUE, RECORDS


def is_kind(*kinds: Kind) -> Column:
    """Return the condition that a row is of one of these kinds."""
    return sf.col("kind").isin([int(kind) for kind in kinds])


def minute() -> Column:
    """Return the minute that a row's deadline falls in."""
    return sf.floor(sf.col("deadline_ms") / MINUTE_MS).cast("long").alias("minute")


def asks(extract: DataFrame) -> DataFrame:
    """Return schedules at the later of due time and append time, rejects at their append time.

    What a relay has written again late is as late as it is.
    """
    on_schedule = sf.when(is_put_off(), sf.col("due_ms")).otherwise(sf.greatest("due_ms", "append_ms"))
    deadline = sf.when(is_kind(Kind.SCHEDULE), on_schedule).otherwise(sf.col("append_ms"))
    return (
        extract.filter(is_kind(Kind.SCHEDULE, Kind.REJECT)).withColumn("deadline_ms", deadline).select(*RECORDS.names)
    )


def commands(extract: DataFrame) -> DataFrame:
    """Return the commands that name an id."""
    named = is_kind(Kind.SCHEDULE, Kind.CANCEL, Kind.POSTPONE) & sf.col("id_hash").isNotNull()
    return extract.filter(named).select(*COMMANDS.names)


def overdue(extract: DataFrame) -> DataFrame:
    """Return schedules that were due before they were appended."""
    return extract.filter(is_overdue()).select(*OVERDUE.names)


def is_overdue() -> Column:
    """Return the condition that a row is a schedule that was due before it was appended."""
    return is_kind(Kind.SCHEDULE) & sf.col("at_offset").isNull() & (sf.col("due_ms") < sf.col("append_ms"))


def is_ancient() -> Column:
    """Return the condition that a row is a schedule that asks for a time that nobody can have meant."""
    return is_kind(Kind.SCHEDULE) & (sf.col("due_ms") < FIRST_MEANT_MS)


def deliveries(extract: DataFrame, all_overdue: DataFrame | None) -> DataFrame:
    """Return deliveries at their deadlines: the receipt's due time, or the append time of an overdue source record."""
    found = extract.filter(is_kind(Kind.DELIVERED))
    if all_overdue is None:
        return found.withColumn("deadline_ms", sf.col("due_ms")).select(*RECORDS.names)
    appended = all_overdue.select("partition", "offset", sf.col("append_ms").alias("asked_ms"))
    found = found.join(appended, ["partition", "offset"], "left")
    deadline = sf.greatest(sf.col("due_ms"), sf.coalesce("asked_ms", "due_ms"))
    return found.withColumn("deadline_ms", deadline).select(*RECORDS.names)


def answers(extract: DataFrame) -> DataFrame:
    """Return dead letters, and what was put off: outcomes that do not know the deadlines of their source records."""
    put_off = extract.filter(is_put_off()).withColumns(
        {
            "kind": sf.lit(int(Kind.PUT_OFF)).cast("byte"),
            "offset": sf.col("at_offset"),
            "at_partition": sf.col("partition"),
            "at_offset": sf.col("offset"),
            # No target: a minute with it is judged record by record.
            "topic": sf.lit(None).cast("string"),
        }
    )
    return extract.filter(is_kind(Kind.DEAD_LETTER)).unionByName(put_off)


def is_put_off() -> Column:
    """Return the condition that a row is an ask that stands for one that was put off."""
    return is_kind(Kind.SCHEDULE) & sf.col("at_offset").isNotNull()


def answered(found: DataFrame, known_asks: DataFrame, forgotten: Iterable[Range] = ()) -> DataFrame:
    """Return such outcomes at the deadlines of their source records; of unknown ones, when they were appended.

    Those of `forgotten` source records are at the beginning of time, which every ledger has forgotten.
    """
    known = known_asks.select("partition", "offset", sf.col("deadline_ms").alias("asked_ms"))
    found = found.join(known, ["partition", "offset"], "left")
    unknown = sf.when(_in_any(forgotten), sf.lit(0).cast("long")).otherwise(sf.col("append_ms"))
    return found.withColumn("deadline_ms", sf.coalesce("asked_ms", unknown)).select(*RECORDS.names)


def in_scope(rows: DataFrame, first_offsets: dict[int, int], unjudged: Iterable[Range] = ()) -> DataFrame:
    """Drop outcomes of source records from before the audit began, and of `unjudged` ones; `first_offsets` by source
    partition.
    """
    before = sf.lit(False)
    for partition, first in sorted(first_offsets.items()):
        if first > 0:
            before = before | ((sf.col("partition") == partition) & (sf.col("offset") < first))
    before = before | _in_any(unjudged)
    return rows.filter(~(before & is_kind(Kind.DELIVERED, Kind.DEAD_LETTER, Kind.PUT_OFF)))


def _in_any(ranges: Iterable[Range]) -> Column:
    """Return the condition that a row's source coordinates lie in one of these ranges."""
    inside = sf.lit(False)
    for piece in ranges:
        offset = sf.col("offset")
        inside = inside | ((sf.col("partition") == piece.partition) & (offset >= piece.start) & (offset < piece.end))
    return inside
