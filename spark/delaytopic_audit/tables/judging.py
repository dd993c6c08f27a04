"""One judged row for each record, made of rows of graded minutes.

Each row has the rules of its DelayTopic beside it, as columns of `schemas.MEMBERS`. Where the digests of a minute
agree, each outcome stands for its ask; elsewhere asks and outcomes are joined.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sf

from delaytopic_audit.model.words import Kind, Outcome
from delaytopic_audit.tables.frames import is_kind, minute
from delaytopic_audit.tables.schemas import JUDGED, WITHDRAWALS

_ID = ("delay_topic", "partition", "id_hash")
_SOURCE = ("delay_topic", "partition", "offset")
_PLACE = ("append_ms", "topic", "at_partition", "at_offset")


def judged_alike(records: DataFrame) -> DataFrame:
    """Return rows of minutes whose digests agree: one judged row for each outcome."""
    delivered = is_kind(Kind.DELIVERED)
    outcomes = records.filter(is_kind(Kind.DELIVERED, Kind.DEAD_LETTER))
    named = sf.when(delivered, str(Outcome.DELIVERED)).otherwise(str(Outcome.DEAD_LETTERED))
    return outcomes.select(
        *(
            "delay_topic",
            minute(),
            "partition",
            "offset",
            "deadline_ms",
            named.alias("outcome"),
            sf.lit(1).cast("long").alias("copies"),
        ),
        (delivered & _is_early()).alias("early"),
        sf.lit(False).alias("unwanted"),
        sf.when(delivered, sf.col("append_ms") - sf.col("deadline_ms")).alias("lateness_ms"),
        *(*_PLACE, "reason"),
        *_not_told(),
        sf.lit(False).alias("awaited"),
        *_of_no_chain(),
    ).select(*JUDGED.names)


def judged_one_by_one(records: DataFrame, withdrawn: DataFrame, chained: DataFrame) -> DataFrame:
    """Judge minutes whose digests disagree, or that hold withdrawn schedules or occurrences: join asks and outcomes by
    coordinates.
    """
    joined = _joined(records).join(withdrawn, ["minute", *_SOURCE], "left").join(chained, ["minute", *_SOURCE], "left")
    delivered = sf.col("deliveries") > 0
    # What was put off, and delivered at its old time all the same, arrives twice.
    ended = sf.coalesce("certain", sf.lit(False)) | sf.col("moved_ms").isNotNull() | sf.col("recurs")
    copies = sf.col("deliveries") + sf.col("letters")
    # A source record that is not known of may have been put off: what stands for it is judged by itself.
    return (
        joined.filter(sf.col("scheduled") | sf.col("rejected") | sf.col("recurs") | (copies > 0))
        .select(
            *("minute", *_SOURCE, "deadline_ms", _outcome().alias("outcome"), copies.alias("copies")),
            (sf.col("scheduled") & sf.coalesce("first.early", sf.lit(False))).alias("early"),
            (delivered & (((sf.col("scheduled") | sf.col("recurs")) & ended) | sf.col("rejected"))).alias("unwanted"),
            sf.when(sf.col("scheduled") & delivered, sf.col("first.append_ms") - sf.col("deadline_ms")).alias(
                "lateness_ms"
            ),
            *(sf.coalesce(f"first.{name}", f"letter.{name}").alias(name) for name in _PLACE),
            sf.col("letter.reason").alias("reason"),
            *_not_told(),
            *_in_chain(),
        )
        .select(*JUDGED.names)
    )


def _not_told() -> list[Column]:
    """Return the columns of what a topic of outcomes tells, where nobody is told anything."""
    nothing = {"outcomes": sf.lit(0).cast("long"), "untold": sf.lit(False), "untrue": sf.lit(None).cast("string")}
    return [column.alias(name) for name, column in nothing.items()]


def _of_no_chain() -> list[Column]:
    """Return the columns of what recurs, where nothing does."""
    nothing = {name: sf.lit(None).cast("long") for name in ("slot_ms", "next_ms", "skipped_ms")}
    nothing |= {name: sf.lit(0).cast("long") for name in ("missed", "skipped")}
    nothing |= {name: sf.lit(False) for name in ("repeats", "breaks")}
    return [column.alias(name) for name, column in nothing.items()]


def _in_chain() -> list[Column]:
    """Return the columns of what recurs, and whether a run after this one may read more of it.

    The occurrence that follows is written with the delivery of the one before it. So one that was delivered breaks its
    chain if nothing follows it, unless a command ended it or its policy leaves out all slots that are left by then.
    """
    delivered, follows = sf.col("deliveries") > 0, sf.col("is_followed")
    arrived_ms = sf.col("first.append_ms")
    ends = sf.coalesce(arrived_ms >= sf.col("ends_ms"), sf.lit(False))
    alone = sf.col("slot_ms").isNotNull() & sf.col("next_ms").isNotNull() & ~follows & ~sf.col("is_surplus")
    lacks = sf.coalesce(alone & delivered & sf.col("by").isNull() & ~ends, sf.lit(False))
    is_recent = sf.coalesce(arrived_ms > sf.col("settled_ms"), sf.lit(False))
    left_out = sf.coalesce(follows | (delivered & ends), sf.lit(False))
    columns = {
        "awaited": lacks & is_recent,
        "slot_ms": sf.col("slot_ms"),
        "next_ms": sf.col("next_ms"),
        "missed": sf.when(left_out, sf.col("missed")).otherwise(0),
        "skipped": sf.coalesce("skipped", sf.lit(0)),
        "skipped_ms": sf.col("skipped_ms"),
        "repeats": sf.coalesce(sf.col("is_surplus") & delivered, sf.lit(False)),
        "breaks": lacks & ~is_recent,
    }
    return [column.alias(name) for name, column in columns.items()]


def _joined(records: DataFrame) -> DataFrame:
    """Return a row for each source record; `first` is its first delivery, `letter` its first dead letter."""
    scheduled, delivered, letter = is_kind(Kind.SCHEDULE), is_kind(Kind.DELIVERED), is_kind(Kind.DEAD_LETTER)
    asked = is_kind(Kind.SCHEDULE, Kind.REJECT, Kind.RULE)
    first = sf.struct(*_PLACE, _is_early().alias("early"))
    return records.groupBy(minute(), *_SOURCE).agg(
        sf.coalesce(sf.max(sf.when(asked, sf.col("deadline_ms"))), sf.max("deadline_ms")).alias("deadline_ms"),
        sf.bool_or(scheduled).alias("scheduled"),
        sf.bool_or(is_kind(Kind.REJECT)).alias("rejected"),
        sf.max(sf.when(scheduled, sf.col("topic"))).alias("wanted"),
        sf.count_if(delivered).alias("deliveries"),
        sf.count_if(letter).alias("letters"),
        sf.min(sf.when(delivered, first)).alias("first"),
        sf.min(sf.when(letter, sf.struct(*_PLACE, "reason"))).alias("letter"),
        sf.max(sf.when(is_kind(Kind.PUT_OFF), sf.col("due_ms"))).alias("moved_ms"),
        sf.bool_or(is_kind(Kind.RULE)).alias("recurs"),
        sf.bool_or(is_kind(Kind.RESOLVED)).alias("resolved"),
    )


def _outcome() -> Column:
    lost = sf.lit(str(Outcome.LOST))
    letters, delivered = sf.col("letters") > 0, sf.col("deliveries") > 0
    moved = sf.col("moved_ms").between(sf.coalesce("from_ms", "moved_ms"), sf.col("until_ms"))
    of_schedule = (
        sf.when(delivered & (sf.col("first.topic") != sf.col("wanted")), str(Outcome.MISDIRECTED))
        .when(delivered, str(Outcome.DELIVERED))
        .when(letters, str(Outcome.DEAD_LETTERED))
        .when(moved, str(Outcome.REPLACED))
        .when(sf.col("by") == int(Kind.CANCEL), str(Outcome.CANCELLED))
        .when(sf.col("by").isin(int(Kind.SCHEDULE), int(Kind.RULE)), str(Outcome.REPLACED))
        .when(sf.col("recurs") & sf.col("resolved"), str(Outcome.REPLACED))
        # Without transactions an occurrence may be written twice, and one of both is delivered.
        .when(sf.col("is_surplus") & ~sf.col("tells_once"), str(Outcome.REPLACED))
        .otherwise(lost)
    )
    of_reject = sf.when(letters, str(Outcome.DEAD_LETTERED)).otherwise(lost)
    return (
        sf.when(sf.col("scheduled") | sf.col("recurs"), of_schedule)
        .when(sf.col("rejected"), of_reject)
        .otherwise(str(Outcome.UNKNOWN))
    )


def _is_early() -> Column:
    """Return the condition: appended before due by more than the clocks' tolerance and proven difference.

    An append time before the sending time is impossible on one clock: so far the broker's is behind the relay's.
    """
    proven = sf.col("sent_ms") - sf.col("append_ms")
    skew = sf.least(sf.greatest(proven, sf.lit(0)), sf.col("max_skew_ms"))
    return sf.col("append_ms") + skew + sf.col("clock_tolerance_ms") < sf.col("due_ms")


def withdrawals(schedules: DataFrame, commands: DataFrame) -> DataFrame:
    """Return the schedules whose next command came before they must have been delivered.

    A command that came the grace or more before the deadline has to take effect (`certain`), one that came more than
    the grace after it ends nothing; in between it races with the delivery.
    """
    named = schedules.filter(sf.col("id_hash").isNotNull()).select(*_ID, "offset", "deadline_ms", "grace_ms")
    of_these = commands.join(named.select(*_ID).distinct(), list(_ID), "left_semi")
    by_offset = Window.partitionBy(*_ID).orderBy("offset")
    following = of_these.select(
        *_ID,
        "offset",
        sf.lead("kind").over(by_offset).alias("by"),
        sf.lead("append_ms").over(by_offset).alias("withdrawn_ms"),
        sf.lead("offset").over(by_offset).alias("by_offset"),
    )
    found = named.join(following, [*_ID, "offset"])
    in_time = sf.col("withdrawn_ms") <= sf.col("deadline_ms") + sf.col("grace_ms")
    certain = (sf.col("withdrawn_ms") + sf.col("grace_ms") <= sf.col("deadline_ms")).alias("certain")
    never = [sf.lit(None).cast("long").alias(name) for name in ("from_ms", "until_ms")]
    rows = found.filter(in_time).select(*_SOURCE, minute(), "by", certain, *never, "by_offset", "withdrawn_ms")
    return rows.select(*WITHDRAWALS.names)


def postponements(schedules: DataFrame, commands: DataFrame) -> DataFrame:
    """Return the same where commands put schedules off, which relays write into the source again.

    What stands for a schedule takes its place among the commands of the id: those that came in front of it, and behind
    what it stands for, came later. What only relays have written withdraws nothing and puts nothing off.
    """
    named = schedules.filter(sf.col("id_hash").isNotNull()).select(*_ID, "offset", "deadline_ms", "grace_ms")
    plain = ~is_kind(Kind.POSTPONE) & sf.col("at_offset").isNull()
    by_place = Window.partitionBy(*_ID).orderBy("place", "offset")
    ordered = (
        commands.join(named.select(*_ID).distinct(), list(_ID), "left_semi")
        .withColumn("place", sf.coalesce("at_offset", "offset"))
        .withColumn("turn", sf.sum(plain.cast("int")).over(by_place))
    )
    asked = named.join(ordered.select(*_ID, "offset", "place", "turn"), [*_ID, "offset"])
    moves = ordered.filter(is_kind(Kind.POSTPONE)).select(
        *_ID,
        "turn",
        sf.col("place").alias("moved_at"),
        sf.col("due_ms").alias("to_ms"),
        sf.col("append_ms").alias("moved_ms"),
    )
    following = ordered.filter(plain).select(
        *_ID,
        (sf.col("turn") - 1).alias("turn"),
        sf.col("kind").alias("by"),
        sf.col("append_ms").alias("withdrawn_ms"),
        sf.col("offset").alias("by_offset"),
    )
    moves_it = (sf.col("moved_at") > sf.col("place")) & (sf.col("to_ms") > sf.col("deadline_ms"))
    surely = moves_it & (sf.col("moved_ms") + sf.col("grace_ms") <= sf.col("deadline_ms"))
    found = (
        asked.join(moves, [*_ID, "turn"], "left")
        .groupBy(*_ID, "offset", "deadline_ms", "grace_ms", "turn")
        .agg(
            sf.max(sf.when(surely, sf.col("to_ms"))).alias("from_ms"),
            sf.max(sf.when(moves_it, sf.col("to_ms"))).alias("until_ms"),
        )
        .join(following, [*_ID, "turn"], "left")
    )
    # Whoever ends what is put off is in time until its new deadline.
    in_time = sf.col("withdrawn_ms") <= sf.coalesce("until_ms", "deadline_ms") + sf.col("grace_ms")
    by = sf.when(in_time, sf.col("by")).when(sf.col("until_ms").isNotNull(), int(Kind.POSTPONE)).cast("byte")
    surely_ended = sf.coalesce(sf.col("withdrawn_ms") + sf.col("grace_ms") <= sf.col("deadline_ms"), sf.lit(False))
    certain = surely_ended | sf.col("from_ms").isNotNull()
    return (
        found.select(
            *(*_SOURCE, minute(), by.alias("by"), certain.alias("certain")),
            *("from_ms", "until_ms", "by_offset", "withdrawn_ms"),
        )
        .filter(sf.col("by").isNotNull())
        .select(*WITHDRAWALS.names)
    )
