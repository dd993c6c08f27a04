"""Counts per minute, findings by coordinates, and a histogram of lateness, made of judged rows.

Judged rows have the rules of their DelayTopic beside them, as columns of `schemas.MEMBERS`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from delaytopic_audit.model.words import LOG_BASE, Finding, Outcome
from delaytopic_audit.tables.schemas import COUNTS, FINDINGS, HISTOGRAM, TELLING, VERDICTS

_OUTCOME_NAMES = {
    "lost": Outcome.LOST,
    "misdirected": Outcome.MISDIRECTED,
    "cancelled": Outcome.CANCELLED,
    "replaced": Outcome.REPLACED,
    "dead_lettered": Outcome.DEAD_LETTERED,
}


def sums(judged: DataFrame, thresholds: Sequence[int]) -> DataFrame:
    """Return the counts of each source partition, minute and bucket of lateness, for verdicts and histogram.

    `thresholds` are the further latenesses of any of the DelayTopics.
    """
    delivered, unknown = _is(Outcome.DELIVERED), _is(Outcome.UNKNOWN)
    in_time = sf.col("lateness_ms") <= sf.col("allowed_ms")
    bucket = sf.when(delivered, bucket_of(sf.col("lateness_ms"))).alias("bucket")
    return judged.groupBy("delay_topic", "minute", "partition", bucket).agg(
        sf.count_if(~unknown).alias("asked"),
        sf.count_if(delivered).alias("delivered"),
        sf.count_if(delivered & in_time).alias("on_time"),
        sf.count_if(delivered & ~in_time).alias("late"),
        sf.count_if(sf.col("early")).alias("early"),
        sf.count_if(_is_duplicated()).alias("duplicated"),
        sf.sum(sf.when(_is_duplicated(), sf.col("copies") - 1).otherwise(0) + _repeats().cast("long")).alias("copies"),
        sf.count_if(sf.col("unwanted")).alias("unwanted"),
        sf.sum(sf.when(unknown, sf.col("copies")).otherwise(0)).alias("unknown"),
        sf.max("lateness_ms").alias("latest_ms"),
        *(sf.count_if(_is(outcome)).alias(name) for name, outcome in _OUTCOME_NAMES.items()),
        sf.count_if(sf.col("outcomes") > 0).alias("told"),
        sf.count_if(sf.col("untold")).alias("untold"),
        sf.count_if(_is_told_twice()).alias("told_twice"),
        sf.sum(sf.greatest(sf.col("outcomes") - 1, sf.lit(0))).alias("retold"),
        sf.count_if(sf.col("untrue").isNotNull()).alias("untrue"),
        sf.count_if(sf.col("slot_ms").isNotNull()).alias("slots"),
        *(sf.sum(sf.coalesce(name, sf.lit(0))).alias(f"slots_{name}") for name in ("missed", "skipped")),
        sf.count_if(_is_repeated()).alias("slots_repeated"),
        sf.count_if(sf.col("breaks")).alias("chains_broken"),
        *(
            sf.count_if(delivered & (sf.col("lateness_ms") <= each_ms)).alias(_within(each_ms))
            for each_ms in thresholds
        ),
    )


def verdicts(summed: DataFrame, members: DataFrame, thresholds: Sequence[int]) -> DataFrame:
    """Return the counts of each source partition and minute, from `sums` by the same thresholds."""
    totals = (sf.sum(name).alias(name) for name in COUNTS)
    further = (sf.sum(_within(each_ms)).alias(_within(each_ms)) for each_ms in thresholds)
    grouped = summed.groupBy("delay_topic", "minute", "partition").agg(
        *totals, sf.max("latest_ms").alias("latest_ms"), *further
    )
    by_threshold = sf.lit(None)
    if thresholds:
        counted = sf.create_map(
            *(part for each_ms in thresholds for part in (sf.lit(each_ms).cast("long"), sf.col(_within(each_ms))))
        )
        own = sf.map_filter(counted, lambda length_ms, _: sf.array_contains("thresholds", length_ms))
        by_threshold = sf.when(sf.size("thresholds") > 0, own)
        grouped = grouped.join(sf.broadcast(members.select("delay_topic", "thresholds")), "delay_topic")
    within = by_threshold.cast(VERDICTS["within"].dataType)
    return grouped.withColumn("within", within).select(*VERDICTS.names)


def _within(lateness_ms: int) -> str:
    return f"within_{lateness_ms}"


def telling_minutes(summed: DataFrame) -> list[int]:
    """Return the minutes in which there is something to say of single records."""
    says = reduce(or_, (sf.col(name) > 0 for name in TELLING))
    return [row.minute for row in summed.filter(says).select("minute").distinct().collect()]


def findings(judged: DataFrame) -> DataFrame:
    """Return one row for each thing to say of a record; most records have none."""
    said = {
        **{Finding(str(outcome)): _is(outcome) for outcome in (*_OUTCOME_NAMES.values(), Outcome.UNKNOWN)},
        Finding.DUPLICATED: _is_duplicated(),
        Finding.EARLY: sf.col("early"),
        Finding.LATE: _is(Outcome.DELIVERED) & (sf.col("lateness_ms") > sf.col("allowed_ms")),
        Finding.UNWANTED: sf.col("unwanted"),
        Finding.UNTOLD: sf.col("untold"),
        Finding.TOLD_TWICE: _is_told_twice(),
        Finding.UNTRUE: sf.col("untrue").isNotNull(),
        Finding.CHAINS_BROKEN: sf.col("breaks"),
        Finding.SLOTS_SKIPPED: sf.col("skipped") > 0,
        Finding.SLOTS_REPEATED: _is_repeated(),
        Finding.SLOTS_MISSED: sf.col("missed") > 0,
    }
    names = sf.filter(
        sf.array(*(sf.when(holds, str(name)) for name, holds in said.items())), lambda name: name.isNotNull()
    )
    rows = judged.withColumn("findings", names).filter(sf.size("findings") > 0)
    reasons = {
        Finding.UNTRUE: sf.col("untrue"),
        Finding.CHAINS_BROKEN: _moment("next_ms"),
        Finding.SLOTS_SKIPPED: _from("skipped", "skipped_ms"),
        Finding.SLOTS_REPEATED: _moment("slot_ms"),
        Finding.SLOTS_MISSED: _from("missed", "next_ms"),
    }
    reason = sf.coalesce(
        *(sf.when(sf.col("finding") == str(name), text) for name, text in reasons.items()), sf.col("reason")
    )
    return rows.withColumn("finding", sf.explode("findings")).withColumn("reason", reason).select(*FINDINGS.names)


def histogram(summed: DataFrame) -> DataFrame:
    """Count the delivered records of each minute by bucket of lateness."""
    delivered = summed.filter(sf.col("bucket").isNotNull())
    return (
        delivered.groupBy("delay_topic", "minute", "bucket")
        .agg(sf.sum("delivered").alias("records"))
        .select(*HISTOGRAM.names)
    )


def bucket_of(lateness_ms: Column) -> Column:
    """Return the bucket: 0 for records that were not late, then one for each 2 %."""
    number = sf.floor(sf.log(lateness_ms.cast("double")) / LOG_BASE) + 1
    return sf.when(lateness_ms > 0, number).otherwise(0).cast("int")


def _is(outcome: Outcome) -> Column:
    return sf.col("outcome") == str(outcome)


def _is_told_twice() -> Column:
    return (sf.col("outcomes") > 1) & sf.col("tells_once")


def _moment(name: str) -> Column:
    """Return an instant as people read it; sessions are in UTC."""
    return sf.date_format(sf.timestamp_millis(name), "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'")


def _from(number: str, name: str) -> Column:
    return sf.concat_ws(" from ", sf.col(number), _moment(name))


def _repeats() -> Column:
    return sf.coalesce("repeats", sf.lit(False))


def _is_repeated() -> Column:
    return _repeats() & sf.col("tells_once")


def _is_duplicated() -> Column:
    return (sf.col("copies") > 1) & ~_is(Outcome.UNKNOWN)
