"""Edge: a consumer in the background that notes when each delivered record arrives."""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import Self

from confluent_kafka import KafkaException

from delaytopic_api import Receipt
from delaytopic_gateway.client.kafka_clients import (
    FIRST_OFFSET,
    Settings,
    assignment,
    committed_reader,
    headers_of,
    partitions_of,
)
from delaytopic_gateway.client.watching import receipt_of
from delaytopic_local.verifier.verdict import Lateness


class ArrivalClock:
    """Reads a target topic as any read_committed consumer would, and notes how late each record first arrives.

    A context manager: it reads between entry and exit.
    """

    def __init__(self, settings: Settings, topic: str) -> None:
        """The topic has to exist."""
        self._settings = settings
        self._topic = topic
        self._partitions = partitions_of(settings, topic)
        self._stop = threading.Event()
        self._seen: set[tuple[str, int, int]] = set()
        self._lateness: list[Lateness] = []
        self._thread = threading.Thread(target=self._read, name="arrivals", daemon=True)

    @property
    def count(self) -> int:
        """The number of different source records that arrived."""
        return len(self._lateness)

    def lateness_since(self, place: int) -> list[Lateness]:
        """Return arrival minus due of all arrivals but the first `place`, in the order of arrival."""
        return self._lateness[place:]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()

    def _read(self) -> None:
        consumer = committed_reader(self._settings)
        try:
            consumer.assign(assignment(self._topic, self._partitions, FIRST_OFFSET))
            while not self._stop.is_set():
                messages = consumer.consume(1_000, 0.02)
                now_ms = time.time_ns() // 1_000_000
                for message in messages:
                    receipt = receipt_of(headers_of(message)) if message.error() is None else None
                    if receipt is not None:
                        self._note(receipt, now_ms)
        except KafkaException:
            return  # the verifier reads the topic itself; without arrivals it says so
        finally:
            consumer.close()

    def _note(self, receipt: Receipt, now_ms: int) -> None:
        identity = (receipt.topic, receipt.partition, receipt.offset)
        if identity not in self._seen:
            self._seen.add(identity)
            self._lateness.append(Lateness(receipt.due_ms, now_ms - receipt.due_ms))
