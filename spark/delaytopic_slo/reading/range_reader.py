"""Edge: reads planned ranges of Kafka to their end: every committed record, then stops, or says why it cannot."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from delaytopic_slo.errors import ReadingError
from delaytopic_slo.model.manifest import Range
from delaytopic_slo.reading.client_log import QUIET
from delaytopic_slo.reading.client_settings import consumer_settings
from delaytopic_slo.reading.decoding import Decode, Row

SILENCE_SECONDS = 60.0
POLL_SECONDS = 0.1
POLL_RECORDS = 1_000


class RangeReader:
    """One consumer for several ranges, no two of the same partition."""

    def __init__(self, settings: dict[str, Any], ranges: Sequence[Range], decoders: dict[str, Decode]) -> None:
        """`settings` reach Kafka; `decoders` are by topic."""
        self._ranges = {(piece.topic, piece.partition): piece for piece in ranges}
        self._open = dict(self._ranges)
        self._ways = {key: (piece.end, decoders[piece.topic]) for key, piece in self._ranges.items()}
        self._consumer = Consumer(consumer_settings(settings), logger=QUIET)

    def rows(self) -> Iterator[list[Row]]:
        """The rows of all ranges, in lists of some thousands; raises ReadingError."""
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
        """The end of a partition, or a fault.

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
