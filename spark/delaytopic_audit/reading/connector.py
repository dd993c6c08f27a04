"""Edge: Kafka for Spark by the official connector, where its jars are on the class path.

Python sees what SQL cannot say: dead letters, outcomes as they are told, and of the source what is no plain record of
the native dialect.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial, reduce
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import Row as SparkRow
from pyspark.sql import functions as sf

from delaytopic_api.records import Headers
from delaytopic_api.values import Dialect
from delaytopic_audit.errors import SparkMissingError
from delaytopic_audit.model.manifest import Range, Role
from delaytopic_audit.reading.client import Reading, ReadingJob
from delaytopic_audit.reading.decoding import Decode, Row
from delaytopic_audit.reading.receipts import UNREADABLE, deliveries
from delaytopic_audit.reading.schedules import dialects_of, plain_schedule
from delaytopic_audit.reading.settings import connector_settings
from delaytopic_audit.tables.schemas import EXTRACT, READ

CONNECTOR_CLASS = "org.apache.spark.sql.kafka010.KafkaSourceProvider"
MOST_RECORDS_OF_A_TASK = 1_000_000
_COLUMNS = ("topic", "partition", "offset", "key", "headers", "timestampType", "value")


def read_by_connector(spark: SparkSession, job: ReadingJob) -> DataFrame:
    """Return the extract of these ranges, the same rows as `read_by_client`.

    Raises SparkMissingError without the jars.
    """
    if not _has_connector(spark):
        raise SparkMissingError(
            "the official Kafka connector is not on Spark's class path:"
            " give its jars with --jars, or read with --reader client"
        )
    read = [frame for each in job.readings for frame in _frames(spark, job, each)]
    return reduce(DataFrame.unionByName, read) if read else spark.createDataFrame([], EXTRACT)


def _frames(spark: SparkSession, job: ReadingJob, reading: Reading) -> Iterator[DataFrame]:
    """Yield the extract of one DelayTopic by the roles of its topics."""
    wanted = [piece for piece in reading.ranges if piece.end > piece.start]
    by_role = {role: [piece for piece in wanted if piece.role is role] for role in Role}
    reads: dict[Role, Callable[[DataFrame], DataFrame]] = {
        Role.TARGET: lambda records: deliveries(records, reading.config.source.topic),
        Role.SOURCE: lambda records: _asks(records, reading),
        Role.DEAD_LETTER: lambda records: _by_dialect(records.drop("value"), reading),
        Role.OUTCOMES: lambda records: _by_dialect(records, reading),
    }
    for role, pieces in by_role.items():
        if pieces:
            rows = reads[role](_records(spark, job, reading, pieces))
            yield rows.withColumn("delay_topic", sf.lit(reading.number)).select(*EXTRACT.names)


def _asks(records: DataFrame, reading: Reading) -> DataFrame:
    """Return the extract of the source: what is plain in the native dialect by SQL, and the rest by the dialect."""
    dialects = dialects_of(reading.config, reading.generations)
    if Dialect.NATIVE not in dialects:
        return _by_dialect(records, reading)
    if dialects == {Dialect.NATIVE}:
        records = records.drop("value")  # which plays no part
    read = records.withColumn("plain", plain_schedule(reading.config, reading.generations))
    # A plain record costs Python a null. Were the others a table of their own, Kafka would be read twice.
    other = _decoder(reading)(sf.when(sf.col("plain").isNull(), sf.struct(*records.columns)))
    return read.select(sf.coalesce("plain", other).alias("row")).select("row.*")


def _by_dialect(records: DataFrame, reading: Reading) -> DataFrame:
    return records.select(_decoder(reading)(sf.struct(*records.columns)).alias("row")).select("row.*")


def _decoder(reading: Reading) -> Callable[[Column], Column]:
    # Not mapInArrow, which asks for pandas.
    return sf.udf(partial(_decoded, reading.model_dump_json(by_alias=True, exclude_none=True)), READ, useArrow=False)


def _records(spark: SparkSession, job: ReadingJob, reading: Reading, ranges: list[Range]) -> DataFrame:
    starts: dict[str, dict[str, int]] = defaultdict(dict)
    ends: dict[str, dict[str, int]] = defaultdict(dict)
    for piece in ranges:
        starts[piece.topic][str(piece.partition)] = piece.start
        ends[piece.topic][str(piece.partition)] = piece.end
    reader = (
        spark.read.format("kafka")
        .option("assign", json.dumps({topic: [int(p) for p in partitions] for topic, partitions in starts.items()}))
        .option("startingOffsets", json.dumps(starts))
        .option("endingOffsets", json.dumps(ends))
        .option("includeHeaders", "true")
        .option("failOnDataLoss", "true")
        .option("minPartitions", str(max(len(ranges), spark.sparkContext.defaultParallelism)))
        .option("maxRecordsPerPartition", str(MOST_RECORDS_OF_A_TASK))
        .options(**connector_settings(reading.config.kafka, job.client))
    )
    return reader.load().select(*_COLUMNS, sf.unix_millis("timestamp").alias("timestamp_ms"))


def _has_connector(spark: SparkSession) -> bool:
    """Tell whether the official Kafka connector is on the class path."""
    loader = spark._jvm.java.lang.Thread.currentThread().getContextClassLoader()  # type: ignore[union-attr]
    try:
        loader.loadClass(CONNECTOR_CLASS)
    except Exception:  # py4j raises its own class for whatever Java throws: here always ClassNotFoundException
        return False
    return True


def _decoded(reading: str, record: SparkRow | None) -> Row | None:
    if record is None:
        return None
    message = ConnectorMessage(record.asDict())
    return _decoders(reading)[message.topic()](message)


@cache
def _decoders(reading: str) -> dict[str, Decode]:
    """Make the decoders once in each worker."""
    return Reading.model_validate_json(reading).decoders()


@dataclass(frozen=True, slots=True)
class ConnectorMessage:
    """A row of the connector, with the methods and the ways of the client library's messages."""

    row: dict[str, Any]

    def topic(self) -> str:
        """Return the topic."""
        return str(self.row["topic"])

    def partition(self) -> int:
        """Return the partition."""
        return int(self.row["partition"])

    def offset(self) -> int:
        """Return the offset."""
        return int(self.row["offset"])

    def timestamp(self) -> tuple[int, int]:
        """Return its kind as the client library counts, and epoch milliseconds."""
        return int(self.row["timestampType"]) + 1, int(self.row["timestamp_ms"])

    def key(self) -> bytes | None:
        """Return the key."""
        return _bytes(self.row["key"])

    def value(self) -> bytes | None:
        """Return the value; None also where no rule looks at it."""
        return _bytes(self.row.get("value"))

    def headers(self) -> Headers | None:
        """Return headers as the client library does: names end at a null character and have to be UTF-8."""
        headers = self.row["headers"]
        if headers is None:
            return None
        if any(UNREADABLE in header["key"] for header in headers):
            raise UnicodeDecodeError("utf-8", b"", 0, 1, "a header name")
        return [(header["key"].partition("\0")[0], _bytes(header["value"])) for header in headers]


def _bytes(value: bytearray | None) -> bytes | None:
    """Turn Spark's mutable array into bytes."""
    return None if value is None else bytes(value)
