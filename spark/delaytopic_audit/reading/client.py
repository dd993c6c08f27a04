"""Edge: Kafka for Spark without the JVM's client: what the Python Data Source reads with the relays' own library."""

from __future__ import annotations

import gc
import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition
from pyspark.sql import DataFrame, SparkSession

from delaytopic_api.relay import RelayConfig
from delaytopic_audit.errors import ReadingError
from delaytopic_audit.model.manifest import Range, RulesFrom
from delaytopic_audit.reading.data_source import read_shares
from delaytopic_audit.reading.decoding import Decode, Row, batch_of, decoder_for
from delaytopic_audit.reading.planning import shares
from delaytopic_audit.reading.settings import QUIET, client_settings, consumer_settings

BATCH_ROWS = 10_000
FEWEST_RECORDS_OF_A_TASK = 20_000
"""For fewer, another consumer costs more than it saves."""
MOST_RECORDS_OF_A_TASK = 2_000_000
SILENCE_SECONDS = 60.0
POLL_SECONDS = 0.1
POLL_RECORDS = 1_000


@dataclass(frozen=True)
class ReadingJob:
    """The ranges to read, and the means. `client` are further settings of the Kafka client, as after -X.

    `generations` are the rules by which source records of the ranges are read; without any, by the configuration's.
    """

    config: RelayConfig
    ranges: list[Range]
    client: dict[str, str]
    generations: list[RulesFrom] = field(default_factory=list)

    def to_options(self) -> dict[str, str]:
        """Return the job as options of Spark's data sources. Secrets stay files, which each worker reads itself."""
        return {
            "config": self.config.model_dump_json(by_alias=True, exclude_none=True),
            "ranges": json.dumps([piece.to_document() for piece in self.ranges]),
            "client": json.dumps(self.client),
            "generations": json.dumps([each.to_document() for each in self.generations]),
        }

    @classmethod
    def of_options(cls, options: dict[str, str]) -> ReadingJob:
        """Return the inverse of `to_options`."""
        return cls(
            config=RelayConfig.model_validate_json(options["config"]),
            ranges=[Range.model_validate(document) for document in json.loads(options["ranges"])],
            client=json.loads(options["client"]),
            generations=[RulesFrom.model_validate(document) for document in json.loads(options["generations"])],
        )

    def decoders(self, ranges: Sequence[Range]) -> dict[str, Decode]:
        """Return what reads the records of these ranges, by topic."""
        roles = {piece.topic: piece.role for piece in ranges}
        return {topic: decoder_for(role, topic, self.config, self.generations) for topic, role in roles.items()}


def read_by_client(spark: SparkSession, job: ReadingJob) -> DataFrame:
    """Return the extract of these ranges; read when it is used, and each time anew."""
    total = sum(piece.end - piece.start for piece in job.ranges)
    worthwhile = min(spark.sparkContext.defaultParallelism, total // FEWEST_RECORDS_OF_A_TASK)
    tasks = max(1, worthwhile, -(-total // MOST_RECORDS_OF_A_TASK))
    texts = [json.dumps([piece.to_document() for piece in share]) for share in shares(job.ranges, tasks)]
    return read_shares(spark, __name__, replace(job, ranges=[]).to_options(), texts or ["[]"])


def share_of(options: dict[str, str], share: str) -> Iterator[pa.RecordBatch]:
    """Yield the rows that one task reads: the ranges of its share."""
    job = ReadingJob.of_options({**options, "ranges": share})
    return batches(job, job.ranges)


def batches(job: ReadingJob, ranges: list[Range]) -> Iterator[pa.RecordBatch]:
    """Yield the extract of some ranges as Arrow batches; raises ReadingError."""
    if not ranges:
        return
    settings = client_settings(job.config.kafka, job.client)
    decoders = job.decoders(ranges)
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
    """Collect garbage rarely: among many rows without cycles, looking for some would take a fifth of the time."""
    usual = gc.get_threshold()
    gc.set_threshold(100_000, *usual[1:])
    try:
        yield
    finally:
        gc.set_threshold(*usual)


class RangeReader:
    """One consumer for several ranges, no two of the same partition."""

    def __init__(self, settings: dict[str, Any], ranges: Sequence[Range], decoders: dict[str, Decode]) -> None:
        """`settings` reach Kafka; `decoders` are by topic."""
        self._ranges = {(piece.topic, piece.partition): piece for piece in ranges}
        self._open = dict(self._ranges)
        self._ways = {key: (piece.end, decoders[piece.topic]) for key, piece in self._ranges.items()}
        self._consumer = Consumer(consumer_settings(settings), logger=QUIET)

    def rows(self) -> Iterator[list[Row]]:
        """Yield the rows of all ranges, in lists of some thousands; raises ReadingError."""
        try:
            self._consumer.assign([TopicPartition(r.topic, r.partition, r.start) for r in self._ranges.values()])
            heard_s = time.monotonic()
            while self._open:
                messages = self._consumer.consume(POLL_RECORDS, POLL_SECONDS)
                if messages:
                    heard_s = time.monotonic()
                    yield self._decoded(messages)
                elif time.monotonic() - heard_s > SILENCE_SECONDS:
                    raise ReadingError(f"Kafka was silent for {SILENCE_SECONDS:.0f} s before {self._missing()}")
        except KafkaException as error:
            raise ReadingError(f"Kafka cannot be read: {error.args[0].str()}") from error
        finally:
            self._consumer.close()

    def _decoded(self, messages: Sequence[Message]) -> list[Row]:
        rows: list[Row] = []
        ways, still_open = self._ways, self._open
        for message in messages:
            if message.error() is not None:
                self._note(message)
                continue
            key, offset = (message.topic() or "", message.partition() or 0), message.offset() or 0
            end, decode = ways[key]
            if offset < end:
                rows.append(decode(message))
            if offset >= end - 1 and key in still_open:
                self._close(key)
        return rows

    def _note(self, message: Message) -> None:
        """Take the end of a partition, or raise a fault.

        The last offsets of a range may be transaction markers or aborted records, which are never handed out: the
        client then says that it has come to the partition's end, and at which offset.
        """
        error, key = message.error(), (message.topic() or "", message.partition() or 0)
        assert error is not None
        piece = self._ranges.get(key)
        if error.code() == KafkaError._PARTITION_EOF:
            if key in self._open and piece is not None and (message.offset() or 0) >= piece.end:
                self._close(key)
        elif error.code() == KafkaError._AUTO_OFFSET_RESET:
            start = piece.start if piece is not None else 0
            raise ReadingError(f"{key[0]} partition {key[1]}: offset {start} is gone ({error.str()})")
        elif error.fatal() or not error.retriable():
            raise ReadingError(f"{key[0]} partition {key[1]} cannot be read: {error.str()}")

    def _close(self, key: tuple[str, int]) -> None:
        del self._open[key]
        self._consumer.pause([TopicPartition(*key)])

    def _missing(self) -> str:
        return ", ".join(f"offset {r.end} of {r.topic} partition {r.partition}" for r in self._open.values())
