"""Fills a source topic before the clock starts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from confluent_kafka import KafkaError, Message, Producer

from bench.clock import now_ms
from bench.dialects import NATIVE, Speech
from bench.errors import Stalled
from bench.processes.quiet import QUIET
from bench.records import partition_of

TIMEOUT_SECONDS = 60.0
POLL_EVERY = 1_000


class Preload:
    """Produces records to a source topic that nobody sees until `show`."""

    def __init__(self, bootstrap_servers: str, topic: str, speech: Speech = NATIVE, target: str = "") -> None:
        """Take a topic to fill; nothing is sent yet. `speech` writes the records, which may name the target."""
        self._topic = topic
        self._write = speech.write
        self._target = target
        self._failed: KafkaError | None = None
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap_servers,
                "transactional.id": f"preload.{topic}",
                "transaction.timeout.ms": 300_000,
                "linger.ms": 20,
                "batch.size": 1 << 20,
                "queue.buffering.max.messages": 500_000,
                "delivery.report.only.error": True,
                "on_delivery": self._on_delivery,
            },
            logger=QUIET,
        )
        self._producer.init_transactions(TIMEOUT_SECONDS)
        self._producer.begin_transaction()

    def fill(self, records: int, due_ms: Sequence[int] | None, first: int = 0) -> None:
        """Produce so many sequence numbers from `first` on; `due_ms` has the due time of each, from 0 on, or none."""
        for sequence in range(first, first + records):
            self._produce(sequence, partition_of(sequence), due_ms[sequence] if due_ms is not None else None)
            if sequence % POLL_EVERY == 0:
                self._producer.poll(0)
        self._flush()

    def add(self, sequences: Iterable[int], due_ms: int | None) -> None:
        """Produce some more with one due time or none, one to each partition in turn."""
        for partition, sequence in enumerate(sequences):
            self._produce(sequence, partition, due_ms)
        self._flush()

    def show(self) -> float:
        """Make all that was produced since the last time visible in one instant; returns it (epoch ms)."""
        self._producer.commit_transaction(TIMEOUT_SECONDS)
        shown_ms = now_ms()
        self._producer.begin_transaction()
        return shown_ms

    def _produce(self, sequence: int, partition: int, due_ms: int | None) -> None:
        key, value, headers = self._write(sequence, due_ms, self._target)
        while True:
            try:
                self._producer.produce(self._topic, value, key, partition, headers=[*headers])
                return
            except BufferError:
                self._producer.poll(0.05)

    def _flush(self) -> None:
        left = self._producer.flush(TIMEOUT_SECONDS)
        if left or self._failed is not None:
            raise Stalled(f"{self._topic}: {left} records are not there yet ({self._failed})")

    def _on_delivery(self, error: KafkaError | None, message: Message) -> None:
        self._failed = error or self._failed
