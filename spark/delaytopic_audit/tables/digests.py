"""Digests: what both sides of a minute held, in three numbers, mergeable in any order and grouping.

A count alone misses a loss beside a duplicate, an XOR alone misses a duplicate that came twice, and the sum closes the
gap between the two.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from delaytopic_audit.model.words import Kind
from delaytopic_audit.tables.frames import is_kind, minute
from delaytopic_audit.tables.schemas import DIGESTS

_KEY = ("delay_topic", "minute", "partition", "kind")


def digests(records: DataFrame) -> DataFrame:
    """Return one row for each DelayTopic, minute, source partition and kind.

    When a record is due and where it goes are hashed.
    """
    grouped = records.groupBy("delay_topic", minute(), "partition", "kind").agg(
        sf.count(sf.lit(1)).alias("records"),
        sf.bit_xor(sf.xxhash64("offset", "deadline_ms", "topic")).alias("hashes"),
        sf.sum("offset").alias("offsets"),
    )
    return grouped.select(*DIGESTS.names)


def merged(one: DataFrame, other: DataFrame) -> DataFrame:
    """Return the digests of what both describe."""
    both = one.select(*DIGESTS.names).unionByName(other.select(*DIGESTS.names))
    grouped = both.groupBy(*_KEY).agg(
        sf.sum("records").alias("records"), sf.bit_xor("hashes").alias("hashes"), sf.sum("offsets").alias("offsets")
    )
    return grouped.select(*DIGESTS.names)


def compared(all_digests: DataFrame) -> DataFrame:
    """Return each minute of a DelayTopic, and if asks and outcomes of any partition differ in it.

    The columns are `delay_topic`, `minute` and `is_odd`. Schedules are held against deliveries, rejects against dead
    letters; a schedule that became a dead letter shows.
    """
    sign = sf.when(is_kind(Kind.SCHEDULE, Kind.REJECT, Kind.RULE), 1).otherwise(-1)
    refused = is_kind(Kind.REJECT, Kind.DEAD_LETTER).alias("refused")
    differences = all_digests.groupBy("delay_topic", "minute", "partition", refused).agg(
        sf.sum(sf.col("records") * sign).alias("records"),
        sf.bit_xor("hashes").alias("hashes"),
        sf.sum(sf.col("offsets") * sign).alias("offsets"),
    )
    differs = (sf.col("records") != 0) | (sf.col("hashes") != 0) | (sf.col("offsets") != 0)
    return differences.groupBy("delay_topic", "minute").agg(sf.bool_or(differs).alias("is_odd"))
