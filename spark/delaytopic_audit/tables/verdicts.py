"""From judged rows to counts per minute, findings by coordinates, and a histogram of lateness."""

from __future__ import annotations

from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from delaytopic_audit.model.rules import Rules, Threshold
from delaytopic_audit.model.words import LOG_BASE, Finding, Outcome
from delaytopic_audit.tables.schemas import COUNTS, FINDINGS, HISTOGRAM, TELLING, VERDICTS

_OUTCOME_NAMES = {
    "lost": Outcome.LOST,
    "misdirected": Outcome.MISDIRECTED,
    "cancelled": Outcome.CANCELLED,
    "replaced": Outcome.REPLACED,
    "dead_lettered": Outcome.DEAD_LETTERED,
}


def sums(judged: DataFrame, rules: Rules) -> DataFrame:
    """Return the counts of each source partition, minute and bucket of lateness, for verdicts and histogram."""
    delivered, unknown = _is(Outcome.DELIVERED), _is(Outcome.UNKNOWN)
    in_time = sf.col("lateness_ms") <= rules.lateness_ms
    bucket = sf.when(delivered, bucket_of(sf.col("lateness_ms"))).alias("bucket")
    return judged.groupBy("minute", "partition", bucket).agg(
        sf.count_if(~unknown).alias("asked"),
        sf.count_if(delivered).alias("delivered"),
        sf.count_if(delivered & in_time).alias("on_time"),
        sf.count_if(delivered & ~in_time).alias("late"),
        sf.count_if(sf.col("early")).alias("early"),
        sf.count_if(_is_duplicated()).alias("duplicated"),
        sf.sum(sf.when(_is_duplicated(), sf.col("copies") - 1).otherwise(0)).alias("copies"),
        sf.count_if(sf.col("unwanted")).alias("unwanted"),
        sf.sum(sf.when(unknown, sf.col("copies")).otherwise(0)).alias("unknown"),
        sf.max("lateness_ms").alias("latest_ms"),
        *(sf.count_if(_is(outcome)).alias(name) for name, outcome in _OUTCOME_NAMES.items()),
        *(
            sf.count_if(delivered & (sf.col("lateness_ms") <= each.lateness_ms)).alias(_within(each))
            for each in rules.thresholds
        ),
    )


def verdicts(summed: DataFrame, rules: Rules) -> DataFrame:
    """Return the counts of each source partition and minute, from `sums` by the same rules."""
    totals = (sf.sum(name).alias(name) for name in COUNTS)
    within = [part for each in rules.thresholds for part in (sf.lit(each.lateness_ms), sf.sum(_within(each)))]
    by_threshold = sf.create_map(*within) if within else sf.lit(None)
    grouped = summed.groupBy("minute", "partition").agg(
        *totals,
        sf.max("latest_ms").alias("latest_ms"),
        by_threshold.cast(VERDICTS["within"].dataType).alias("within"),
    )
    return grouped.select(*VERDICTS.names)


def _within(threshold: Threshold) -> str:
    return f"within_{threshold.lateness_ms}"


def telling_minutes(summed: DataFrame) -> list[int]:
    """Return the minutes in which there is something to say of single records."""
    says = reduce(or_, (sf.col(name) > 0 for name in TELLING))
    return [row.minute for row in summed.filter(says).select("minute").distinct().collect()]


def findings(judged: DataFrame, rules: Rules) -> DataFrame:
    """Return one row for each thing to say of a record; most records have none."""
    said = {
        **{Finding(str(outcome)): _is(outcome) for outcome in (*_OUTCOME_NAMES.values(), Outcome.UNKNOWN)},
        Finding.DUPLICATED: _is_duplicated(),
        Finding.EARLY: sf.col("early"),
        Finding.LATE: _is(Outcome.DELIVERED) & (sf.col("lateness_ms") > rules.lateness_ms),
        Finding.UNWANTED: sf.col("unwanted"),
    }
    names = sf.filter(
        sf.array(*(sf.when(holds, str(name)) for name, holds in said.items())), lambda name: name.isNotNull()
    )
    rows = judged.withColumn("findings", names).filter(sf.size("findings") > 0)
    return rows.withColumn("finding", sf.explode("findings")).select(*FINDINGS.names)


def histogram(summed: DataFrame) -> DataFrame:
    """Count the delivered records of each minute by bucket of lateness."""
    delivered = summed.filter(sf.col("bucket").isNotNull())
    return delivered.groupBy("minute", "bucket").agg(sf.sum("delivered").alias("records")).select(*HISTOGRAM.names)


def bucket_of(lateness_ms: Column) -> Column:
    """Return the bucket: 0 for records that were not late, then one for each 2 %."""
    number = sf.floor(sf.log(lateness_ms.cast("double")) / LOG_BASE) + 1
    return sf.when(lateness_ms > 0, number).otherwise(0).cast("int")


def _is(outcome: Outcome) -> Column:
    return sf.col("outcome") == str(outcome)


def _is_duplicated() -> Column:
    return (sf.col("copies") > 1) & ~_is(Outcome.UNKNOWN)
