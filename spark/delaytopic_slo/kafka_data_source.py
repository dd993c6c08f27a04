"""Edge: Kafka for Spark without the JVM's client: a Python Data Source over the relay's own client library."""

from __future__ import annotations

import gc
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from delaytopic_api.relay_config import RelayConfig
from delaytopic_slo.client_settings import client_settings
from delaytopic_slo.decoding import batch_of, decoder_for
from delaytopic_slo.manifest import Range
from delaytopic_slo.range_reader import RangeReader
from delaytopic_slo.schemas import EXTRACT
from delaytopic_slo.splitting import shares

NAME = "delaytopic"
BATCH_ROWS = 10_000
TASKS_PER_CORE = 1


@dataclass(frozen=True)
class ReadingJob:
    """What is read, and how. `client` are further settings of the Kafka client, as after -X."""

    config: RelayConfig
    ranges: list[Range]
    client: dict[str, str]

    def to_options(self) -> dict[str, str]:
        """As Spark's data sources take it: text. Secrets stay files, which each worker reads itself."""
        return {
            "config": self.config.model_dump_json(by_alias=True, exclude_none=True),
            "ranges": json.dumps([piece.to_document() for piece in self.ranges]),
            "client": json.dumps(self.client),
        }

    @classmethod
    def of_options(cls, options: dict[str, str]) -> ReadingJob:
        """The inverse of `to_options`."""
        return cls(
            config=RelayConfig.model_validate_json(options["config"]),
            ranges=[Range.model_validate(document) for document in json.loads(options["ranges"])],
            client=json.loads(options["client"]),
        )


def read_by_client(spark: SparkSession, job: ReadingJob) -> DataFrame:
    """The extract of these ranges; read when it is used, and each time anew."""
    spark.dataSource.register(AuditSource)
    reader = spark.read.format(NAME).options(**job.to_options())
    return reader.option("tasks", str(max(1, TASKS_PER_CORE * spark.sparkContext.defaultParallelism))).load()


class AuditSource(DataSource):
    """`spark.read.format("delaytopic")`."""

    @classmethod
    def name(cls) -> str:
        """Not `kafka`, which is the official connector's."""
        return NAME

    def schema(self) -> StructType:
        """Of the extract."""
        return EXTRACT

    def reader(self, schema: StructType) -> DataSourceReader:
        """For one batch read."""
        return _Reader({str(name): str(value) for name, value in self.options.items()})


@dataclass
class _Share(InputPartition):
    """What one task reads."""

    ranges: list[Range]

    def __init__(self, ranges: list[Range]) -> None:
        super().__init__(None)
        self.ranges = ranges


class _Reader(DataSourceReader):
    """Splits the ranges, and reads a share of them in each task."""

    def __init__(self, options: dict[str, str]) -> None:
        self._options = options

    def partitions(self) -> list[InputPartition]:
        job = ReadingJob.of_options(self._options)
        return [_Share(ranges) for ranges in shares(job.ranges, int(self._options["tasks"]))] or [_Share([])]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        assert isinstance(partition, _Share)
        job = ReadingJob.of_options(self._options)
        return batches(job, partition.ranges)


def batches(job: ReadingJob, ranges: list[Range]) -> Iterator[pa.RecordBatch]:
    """The extract of some ranges as Arrow batches; raises ReadingError."""
    if not ranges:
        return
    settings = client_settings(job.config.kafka, job.client)
    decoders = {piece.topic: decoder_for(piece.role, piece.topic, job.config) for piece in ranges}
    rows = []
    with _rare_collections():
        for some in RangeReader(settings, ranges, decoders).rows():
            rows += some
            if len(rows) >= BATCH_ROWS:
                yield batch_of(rows)
                rows = []
        if rows:
            yield batch_of(rows)


@contextmanager
def _rare_collections() -> Iterator[None]:
    """Rows and messages are many, and hold no cycles: looking for some among them would take a fifth of the time."""
    usual = gc.get_threshold()
    gc.set_threshold(100_000, *usual[1:])
    try:
        yield
    finally:
        gc.set_threshold(*usual)
