"""`python -m bench.audit.digests FOLDER ROWS`: digests of both sides from Parquet, at a heap of 1 GiB; prints JSON."""

from __future__ import annotations

import json
import sys
import time

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from delaytopic_audit.model.words import Kind
from delaytopic_audit.runtime.session import spark_session
from delaytopic_audit.tables.digests import compared, digests
from delaytopic_audit.tables.schemas import RECORDS

RUNS = 3


def main(folder: str, rows: int) -> None:
    """Write the rows of a day, then take their digests some times; the first time is cold."""
    spark = spark_session(memory="1g")
    number = sf.col("id")
    due = (sf.pmod(sf.xxhash64(number), sf.lit(86_400_000)) + 1_795_000_000_000).alias("due_ms")
    base = spark.range(rows).select(due, (number % 12).cast("int").alias("partition"), number.alias("offset"))
    sides = [_side(base, kind) for kind in (Kind.SCHEDULE, Kind.DELIVERED)]
    both = sides[0].unionByName(sides[1]).select(*RECORDS.names)
    both.coalesce(4).sortWithinPartitions("deadline_ms").write.parquet(folder)
    seconds = []
    for _ in range(RUNS):
        started = time.monotonic()
        found = compared(digests(spark.read.schema(RECORDS).parquet(folder))).filter("is_odd").collect()
        seconds.append(round(time.monotonic() - started, 2))
        assert not found
    print(json.dumps({"seconds": min(seconds), "secondsOfEachRun": seconds}))


def _side(base: DataFrame, kind: Kind) -> DataFrame:
    columns = {
        "delay_topic": sf.lit(1),
        "deadline_ms": sf.col("due_ms"),
        "kind": sf.lit(int(kind)).cast("byte"),
        "append_ms": sf.col("due_ms") + 5,
        "sent_ms": sf.col("due_ms") + 4,
        "id_hash": sf.lit(None).cast("long"),
        "topic": sf.lit("shop.orders"),
        "at_partition": sf.col("partition"),
        "at_offset": sf.col("offset"),
        "reason": sf.lit(None).cast("string"),
    }
    return base.withColumns(columns)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
