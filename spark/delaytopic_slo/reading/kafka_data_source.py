"""Edge: Kafka for Spark without the JVM's client: what the Python Data Source reads with the relays' own library."""

from __future__ import annotations

import gc
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import pyarrow as pa  # type: ignore[import-untyped]
from pyspark.sql import DataFrame, SparkSession

from delaytopic_api.relay import RelayConfig
from delaytopic_slo.model.manifest import Range
from delaytopic_slo.reading.client_settings import client_settings
from delaytopic_slo.reading.data_source import read_shares
from delaytopic_slo.reading.decoding import batch_of, decoder_for
from delaytopic_slo.reading.range_reader import RangeReader
from delaytopic_slo.reading.splitting import shares

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
    tasks = max(1, TASKS_PER_CORE * spark.sparkContext.defaultParallelism)
    texts = [json.dumps([piece.to_document() for piece in share]) for share in shares(job.ranges, tasks)]
    return read_shares(spark, __name__, replace(job, ranges=[]).to_options(), texts or ["[]"])


def share_of(options: dict[str, str], share: str) -> Iterator[pa.RecordBatch]:
    """What one task reads: the ranges of its share."""
    job = ReadingJob.of_options({**options, "ranges": share})
    return batches(job, job.ranges)


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
