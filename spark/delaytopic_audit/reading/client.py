"""Edge: Kafka for Spark without the JVM's client: what the Python Data Source reads with the relays' own library."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import pyarrow as pa  # type: ignore[import-untyped]
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition
from pydantic import Field
from pyspark.sql import DataFrame, SparkSession

from delaytopic_api.documents import Model
from delaytopic_api.relay import RelayConfig
from delaytopic_audit.errors import ReadingError
from delaytopic_audit.model.manifest import Range, RulesFrom
from delaytopic_audit.reading.data_source import read_shares
from delaytopic_audit.reading.decoding import Decode, Row, batch_of, decoder_for, unread
from delaytopic_audit.reading.planning import shares
from delaytopic_audit.reading.settings import QUIET, client_settings, consumer_settings

BATCH_ROWS = 10_000
FEWEST_RECORDS_OF_A_TASK = 20_000
"""The number of records below which another consumer costs more than it saves."""
MOST_RECORDS_OF_A_TASK = 2_000_000
SILENCE_SECONDS = 60.0
POLL_SECONDS = 0.1
POLL_RECORDS = 1_000


class Reading(Model):
    """The ranges to read of one DelayTopic, and how: `number` is that of its rows.

    `generations` are the rules by which source records of the ranges are read; without any, by the configuration's.
    """

    number: int
    config: RelayConfig
    ranges: list[Range]
    generations: list[RulesFrom] = Field(default_factory=list)

    def decoders(self) -> dict[str, Decode]:
        """Return what reads the records of these ranges, by topic."""
        roles = {piece.topic: piece.role for piece in self.ranges}
        return {topic: decoder_for(role, topic, self.config, self.generations) for topic, role in roles.items()}


class ReadingJob(Model):
    """The ranges to read of one cluster, and the means. `client` are further settings of the Kafka client, as after -X.

    Secrets stay files, which each worker reads itself.
    """

    client: dict[str, str]
    readings: list[Reading]

    def text(self) -> str:
        """Return the job as JSON, of which `model_validate_json` is the inverse."""
        return self.model_dump_json(by_alias=True, exclude_none=True)

    def within(self, share: Sequence[Range]) -> ReadingJob:
        """Return the part of the job that lies in these ranges, whatever DelayTopics have a part in them."""
        parts = {(piece.topic, piece.partition): piece for piece in share}
        found = []
        for each in self.readings:
            ranges = [part for piece in each.ranges if (part := _overlap(piece, parts)) is not None]
            if ranges:
                found.append(each.model_copy(update={"ranges": ranges}))
        return self.model_copy(update={"readings": found})


def _overlap(piece: Range, parts: Mapping[tuple[str, int], Range]) -> Range | None:
    part = parts.get((piece.topic, piece.partition))
    if part is None:
        return None
    start, end = max(piece.start, part.start), min(piece.end, part.end)
    return piece.model_copy(update={"start": start, "end": end}) if start < end else None


def read_by_client(spark: SparkSession, job: ReadingJob) -> DataFrame:
    """Return the extract of these ranges; read when it is used, and each time anew.

    What several DelayTopics have a part in is read once.
    """
    stretches = _stretches(job)
    total = sum(piece.end - piece.start for piece in stretches)
    worthwhile = min(spark.sparkContext.defaultParallelism, total // FEWEST_RECORDS_OF_A_TASK)
    tasks = max(1, worthwhile, -(-total // MOST_RECORDS_OF_A_TASK))
    texts = [job.within(share).text() for share in shares(stretches, tasks)]
    return read_shares(spark, __name__, {}, texts or [job.within([]).text()])


def _stretches(job: ReadingJob) -> list[Range]:
    """Return the offsets to read of each partition, for whichever DelayTopics."""
    found = dict[tuple[str, int], Range]()
    for piece in (piece for each in job.readings for piece in each.ranges if piece.end > piece.start):
        other = found.setdefault((piece.topic, piece.partition), piece)
        both = {"start": min(piece.start, other.start), "end": max(piece.end, other.end)}
        found[piece.topic, piece.partition] = other.model_copy(update=both)
    return list(found.values())


def share_of(_options: dict[str, str], share: str) -> Iterator[pa.RecordBatch]:
    """Yield the rows that one task reads: those of a job."""
    return batches(ReadingJob.model_validate_json(share))


def batches(job: ReadingJob) -> Iterator[pa.RecordBatch]:
    """Yield the extract of some ranges as Arrow batches; raises ReadingError."""
    if not job.readings:
        return
    reader = RangeReader(client_settings(job.readings[0].config.kafka, job.client), job.readings)
    with _rare_collections():
        for rows in reader.rows():
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


class _Way(NamedTuple):
    """The way from a partition's records to rows of one DelayTopic."""

    start: int
    end: int
    decode: Decode
    rows: list[Row]


class RangeReader:
    """One consumer for the ranges of several DelayTopics; what several have a part in is read once."""

    def __init__(self, settings: dict[str, Any], readings: Sequence[Reading]) -> None:
        """`settings` reach Kafka."""
        self._rows: dict[int, list[Row]] = {each.number: [] for each in readings}
        self._ways: dict[tuple[str, int], list[_Way]] = {}
        for each in readings:
            decoders, rows = each.decoders(), self._rows[each.number]
            for piece in each.ranges:
                way = _Way(piece.start, piece.end, decoders[piece.topic], rows)
                self._ways.setdefault((piece.topic, piece.partition), []).append(way)
        self._ends = {key: max(way.end for way in ways) for key, ways in self._ways.items()}
        self._open = dict(self._ends)
        self._consumer = Consumer(consumer_settings(settings), logger=QUIET)

    def rows(self) -> Iterator[dict[int, list[Row]]]:
        """Yield the rows of all ranges by the numbers of DelayTopics, some thousands at once; raises ReadingError."""
        try:
            starts = {key: min(way.start for way in ways) for key, ways in self._ways.items()}
            self._consumer.assign([TopicPartition(*key, start) for key, start in starts.items()])
            heard_s, count = time.monotonic(), 0
            while self._open:
                messages = self._consumer.consume(POLL_RECORDS, POLL_SECONDS)
                if messages:
                    heard_s = time.monotonic()
                    self._decode(messages)
                    count += len(messages)
                elif time.monotonic() - heard_s > SILENCE_SECONDS:
                    self._give_up()
                if count >= BATCH_ROWS:
                    count = 0
                    yield self._taken()
            yield self._taken()
        except KafkaException as error:
            raise ReadingError(f"Kafka cannot be read: {error.args[0].str()}") from error
        finally:
            self._consumer.close()

    def _taken(self) -> dict[int, list[Row]]:
        """Return the rows since the last time, and begin anew with none."""
        taken = {number: rows.copy() for number, rows in self._rows.items() if rows}
        for number in taken:
            self._rows[number].clear()
        return taken

    def _decode(self, messages: Sequence[Message]) -> None:
        ways, ends, still_open = self._ways, self._ends, self._open
        for message in messages:
            if message.error() is not None:
                self._note(message)
                continue
            key, offset = (message.topic() or "", message.partition() or 0), message.offset() or 0
            for start, end, decode, rows in ways[key]:
                if start <= offset < end:
                    rows.append(decode(message))
            if offset >= ends[key] - 1 and key in still_open:
                self._close(key)

    def _note(self, message: Message) -> None:
        """Take the end of a partition, or a fault: of one partition it is a row, all others are raised.

        The last offsets of a range may be transaction markers or aborted records, which are never handed out: the
        client then says that it has come to the partition's end, and at which offset.
        """
        error, key = message.error(), (message.topic() or "", message.partition() or 0)
        assert error is not None
        # A fault of a topic as a whole comes without a partition.
        of_topic = [key] if key in self._ways else [each for each in self._ways if each[0] == key[0]]
        if error.code() == KafkaError._PARTITION_EOF:
            if key in self._open and (message.offset() or 0) >= self._ends[key]:
                self._close(key)
        elif error.fatal() or not (error.retriable() or of_topic):
            raise ReadingError(f"Kafka cannot be read: {error.str()}")
        elif error.code() == KafkaError._AUTO_OFFSET_RESET:
            for topic, partition in of_topic:
                start = min(way.start for way in self._ways[topic, partition])
                self._fail((topic, partition), f"{topic} partition {partition}: offset {start} is gone ({error.str()})")
        elif not error.retriable():
            for topic, partition in of_topic:
                self._fail((topic, partition), f"{topic} partition {partition} cannot be read: {error.str()}")

    def _give_up(self) -> None:
        """Take partitions of which nothing comes for unread."""
        for key, end in list(self._open.items()):
            before = f"offset {end} of {key[0]} partition {key[1]}"
            self._fail(key, f"Kafka was silent for {SILENCE_SECONDS:.0f} s before {before}")

    def _fail(self, key: tuple[str, int], reason: str) -> None:
        if key in self._open:
            for way in self._ways[key]:
                way.rows.append(unread(*key, reason))
            self._close(key)

    def _close(self, key: tuple[str, int]) -> None:
        del self._open[key]
        self._consumer.pause([TopicPartition(*key)])
