"""The rows of the ledger, made of what a run read. DataFrame in, DataFrame out."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from delaytopic_api.records import FIRST_MEANT_MS
from delaytopic_api.relay import Ending
from delaytopic_audit.model.chains import BETWEEN
from delaytopic_audit.model.words import FOLLOWS, MINUTE_MS, Kind
from delaytopic_audit.tables.schemas import COMMANDS, OVERDUE, RECORDS

_PLACE = ("delay_topic", "partition", "offset")
"""The coordinates of a source record."""
_OUTCOMES = (Kind.DELIVERED, Kind.DEAD_LETTER, Kind.PUT_OFF, Kind.RESOLVED, Kind.TOLD)


def is_kind(*kinds: Kind) -> Column:
    """Return the condition that a row is of one of these kinds."""
    return sf.col("kind").isin([int(kind) for kind in kinds])


def minute() -> Column:
    """Return the minute that a row's deadline falls in."""
    return sf.floor(sf.col("deadline_ms") / MINUTE_MS).cast("long").alias("minute")


def asks(extract: DataFrame) -> DataFrame:
    """Return schedules at the later of due time and append time, rejects and what recurs at their append time.

    What a relay has written again late is as late as it is.
    """
    on_schedule = sf.when(is_put_off(), sf.col("due_ms")).otherwise(sf.greatest("due_ms", "append_ms"))
    deadline = sf.when(is_kind(Kind.SCHEDULE), on_schedule).otherwise(sf.col("append_ms"))
    return (
        extract.filter(is_kind(Kind.SCHEDULE, Kind.REJECT, Kind.RULE))
        .withColumn("deadline_ms", deadline)
        # Its link is among the commands.
        .withColumn("reason", sf.when(is_occurrence(), FOLLOWS))
        .select(*RECORDS.names)
    )


def commands(extract: DataFrame) -> DataFrame:
    """Return the commands that name an id, refused occurrences too, and what is told of cancels that met nothing."""
    given = is_kind(Kind.SCHEDULE, Kind.CANCEL, Kind.POSTPONE, Kind.RULE, Kind.REJECT) | is_denial()
    link = sf.split(sf.when(is_kind(Kind.RULE) | is_occurrence(), sf.col("reason")), BETWEEN, 3)
    parts = {
        "slot_ms": link.getItem(0).try_cast("long"),
        "next_ms": link.getItem(1).try_cast("long"),
        "rule": sf.nullif(link.getItem(2), sf.lit("")),
    }
    return extract.filter(given & sf.col("id_hash").isNotNull()).withColumns(parts).select(*COMMANDS.names)


def divided(some_commands: DataFrame, buckets: int) -> DataFrame:
    """Add to commands if they recur, and the bucket of their id, by which they are written."""
    return some_commands.withColumns({"recurs": is_of_chain(), "bucket": _bucket(buckets)})


def first_places(records: DataFrame, buckets: int) -> DataFrame:
    """Return for each source partition and bucket what its asks with an id need to have read of the commands.

    The columns are `delay_topic`, `partition`, `bucket`, the first `place` of which commands may say something, and
    `recurs`, if any ask is of a chain. What stands for another ask, or follows one, has the place of that one.
    """
    named = records.filter(is_kind(Kind.SCHEDULE, Kind.REJECT, Kind.RULE) & sf.col("id_hash").isNotNull())
    place = sf.least("offset", sf.coalesce("at_offset", "offset"))
    return named.groupBy("delay_topic", "partition", _bucket(buckets).alias("bucket")).agg(
        sf.min(place).alias("place"), sf.bool_or(is_recurring()).alias("recurs")
    )


def _bucket(buckets: int) -> Column:
    return sf.pmod("id_hash", sf.lit(buckets)).cast("int")


def is_of_chain() -> Column:
    """Return the condition that a command is a record that recurs, or an occurrence."""
    return is_kind(Kind.RULE) | sf.col("slot_ms").isNotNull()


def is_recurring() -> Column:
    """Return the condition that a row of the ledger's records is the same, as an ask that another one may follow."""
    return is_kind(Kind.RULE) | (is_kind(Kind.SCHEDULE) & sf.col("reason").isNotNull())


def overdue(extract: DataFrame) -> DataFrame:
    """Return schedules that were due before they were appended."""
    return extract.filter(is_overdue()).select(*OVERDUE.names)


def is_overdue() -> Column:
    """Return the condition that a row is a schedule that was due before it was appended."""
    return is_kind(Kind.SCHEDULE) & ~is_put_off() & (sf.col("due_ms") < sf.col("append_ms"))


def is_ancient() -> Column:
    """Return the condition that a row is a schedule that asks for a time that nobody can have meant."""
    return is_kind(Kind.SCHEDULE) & (sf.col("due_ms") < FIRST_MEANT_MS)


def deliveries(extract: DataFrame, all_overdue: DataFrame | None) -> DataFrame:
    """Return deliveries, and what is told with a due time, at their deadlines: this due time, or the append time of an
    overdue source record.
    """
    found = extract.filter(is_kind(Kind.DELIVERED) | (is_kind(Kind.TOLD) & ~is_denial() & sf.col("due_ms").isNotNull()))
    if all_overdue is None:
        return found.withColumn("deadline_ms", sf.col("due_ms")).select(*RECORDS.names)
    appended = all_overdue.select(*_PLACE, sf.col("append_ms").alias("asked_ms"))
    found = found.join(appended, [*_PLACE], "left")
    deadline = sf.greatest(sf.col("due_ms"), sf.coalesce("asked_ms", "due_ms"))
    return found.withColumn("deadline_ms", deadline).select(*RECORDS.names)


def answers(extract: DataFrame) -> DataFrame:
    """Return dead letters, what is told of records without a due time, what was put off, and what is followed by an
    occurrence: outcomes that do not know the deadlines of their source records.
    """
    kind = sf.when(is_put_off(), int(Kind.PUT_OFF)).otherwise(int(Kind.RESOLVED))
    written_again = extract.filter(is_put_off() | is_occurrence()).withColumns(
        {
            "kind": kind.cast("byte"),
            "offset": sf.col("at_offset"),
            "at_partition": sf.col("partition"),
            "at_offset": sf.col("offset"),
            # No target: a minute with it is judged record by record.
            "topic": sf.lit(None).cast("string"),
            "reason": sf.lit(None).cast("string"),
        }
    )
    return extract.filter(is_kind(Kind.DEAD_LETTER) | is_untimed()).unionByName(written_again)


def is_denial() -> Column:
    """Return the condition that a row tells of a cancel that it met nothing; its place is that of the cancel."""
    return is_kind(Kind.TOLD) & (sf.col("reason") == str(Ending.NOT_PENDING))


def is_untimed() -> Column:
    """Return the condition that a row tells of a source record without a due time."""
    return is_kind(Kind.TOLD) & sf.col("due_ms").isNull() & ~is_denial()


def is_put_off() -> Column:
    """Return the condition that a row is an ask that stands for one that was put off."""
    return is_kind(Kind.SCHEDULE) & sf.col("at_offset").isNotNull() & sf.col("reason").isNull()


def is_occurrence() -> Column:
    """Return the condition that a row is an ask that a relay has written for a record that recurs."""
    written = is_kind(Kind.SCHEDULE, Kind.REJECT) & sf.col("at_offset").isNotNull()
    return written & sf.col("reason").isNotNull()


def answered(found: DataFrame, known_asks: DataFrame, places: DataFrame) -> DataFrame:
    """Return such outcomes at the deadlines of their source records; of unknown ones, when they were appended.

    Those of source records that `places` has as forgotten are at the beginning of time, which every ledger has
    forgotten.
    """
    known = known_asks.select(*_PLACE, sf.col("deadline_ms").alias("asked_ms"))
    found = placed(found, places).join(known, [*_PLACE], "left")
    unknown = sf.when(_in_any("forgotten"), sf.lit(0).cast("long")).otherwise(sf.col("append_ms"))
    return found.withColumn("deadline_ms", sf.coalesce("asked_ms", unknown)).select(*RECORDS.names)


def placed(rows: DataFrame, places: DataFrame) -> DataFrame:
    """Add what is known of the source partition of each row: the columns of `schemas.PLACES`."""
    return rows.join(sf.broadcast(places), ["delay_topic", "partition"], "left")


def is_in_scope() -> Column:
    """Return the condition that a placed row is no outcome of a source record from before the audit began."""
    before = sf.coalesce(sf.col("offset") < sf.col("first_offset"), sf.lit(False))
    return ~(before & is_kind(*_OUTCOMES))


def in_scope(rows: DataFrame, places: DataFrame) -> DataFrame:
    """Drop outcomes of source records from before the audit began, and of those that are not judged."""
    unjudged = _in_any("unjudged") & is_kind(*_OUTCOMES)
    return placed(rows, places).filter(is_in_scope() & ~unjudged).select(*RECORDS.names)


def _in_any(ranges: str) -> Column:
    """Return the condition that a placed row's offset lies in one of these ranges."""
    offset = sf.col("offset")
    inside = sf.exists(ranges, lambda each: (each["start"] <= offset) & (offset < each["end"]))
    return sf.coalesce(inside, sf.lit(False))
