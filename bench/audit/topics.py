"""An hour of records and their deliveries on a Kafka, and the DelayTopic that they belong to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import yaml
from confluent_kafka import Producer

from delaytopic_api.records import DELIVER_AT, RECEIPT, Receipt
from delaytopic_gateway.client.topics import TopicPlan, create_topics

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
PARTITIONS = 12
TOGETHER = 100
"""The number of DelayTopics whose topics are created by one request."""
VALUE = b"x" * 100


@dataclass(frozen=True)
class Hour:
    """Topics `<name>.source` and `<name>.target`; records are due between `start_ms` and an hour later."""

    bootstrap_servers: str
    name: str
    start_ms: int
    records: int
    pending: int
    partitions: int = PARTITIONS

    def with_records(self, records: int) -> Hour:
        """After so many more were produced and delivered."""
        producer = _producer(self.bootstrap_servers)
        _produce(self, records, producer)
        _flush(producer)
        return replace(self, records=records)

    def document(self) -> dict[str, object]:
        """The DelayTopic `bench/<name>`."""
        topics = {"source": {"topic": f"{self.name}.source"}, "target": {"topic": f"{self.name}.target"}}
        return {
            "apiVersion": "delaytopic.dev/v1beta1",
            "kind": "DelayTopic",
            "metadata": {"name": self.name, "namespace": "bench"},
            "spec": {**topics, "slo": {"lateness": "1s"}},
        }


def write_documents(hours: Sequence[Hour], folder: Path) -> Path:
    """Write the DelayTopics into one file."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "topics.yaml"
    file.write_text(yaml.safe_dump_all([hour.document() for hour in hours]), encoding="utf-8")
    return file


def hour_of_records(bootstrap_servers: str, name: str, records: int, start_ms: int, *, pending: int = 0) -> Hour:
    """Create the topics, and produce a backlog that is due days later, and an hour of delivered records."""
    _create_topics(bootstrap_servers, [name], PARTITIONS)
    hour = Hour(bootstrap_servers, name, start_ms, 0, pending)
    producer = _producer(bootstrap_servers)
    for number in range(pending):
        due_ms = start_ms + DAY_MS + number * 100
        _send(producer, f"{name}.source", number % PARTITIONS, start_ms - HOUR_MS, [(DELIVER_AT, b"%d" % due_ms)])
    _flush(producer)
    return hour.with_records(records) if records else hour


def small_hours(bootstrap_servers: str, names: Sequence[str], records: int, start_ms: int) -> list[Hour]:
    """Create topics of one partition for each name, and produce an hour of so many delivered records in each."""
    for start in range(0, len(names), TOGETHER):
        _create_topics(bootstrap_servers, names[start : start + TOGETHER], 1)
    hours = [Hour(bootstrap_servers, name, start_ms, records, 0, 1) for name in names]
    producer = _producer(bootstrap_servers)
    for hour in hours:
        _produce(hour, records, producer)
    _flush(producer)
    return hours


def _create_topics(bootstrap_servers: str, names: Sequence[str], partitions: int) -> None:
    parts = (("source", partitions), ("target", partitions), ("source.dlq", 1))
    create_topics(bootstrap_servers, [TopicPlan(f"{name}.{part}", count) for name in names for part, count in parts])


def _produce(hour: Hour, records: int, producer: Producer) -> None:
    source, target = f"{hour.name}.source", f"{hour.name}.target"
    partitions = hour.partitions
    waiting = [hour.pending // partitions + (p < hour.pending % partitions) for p in range(partitions)]
    for number in range(records):
        due_ms = hour.start_ms + number * HOUR_MS // records
        partition, arrived_ms = number % partitions, due_ms + number % 97
        offset = waiting[partition] + number // partitions
        _send(producer, source, partition, due_ms - 600_000, [(DELIVER_AT, b"%d" % due_ms)])
        receipt = Receipt(due_ms, partition, offset, arrived_ms, source).encode()
        _send(producer, target, partition, arrived_ms, [("n", b"1"), (RECEIPT, receipt)])


def _producer(bootstrap_servers: str) -> Producer:
    settings = {"bootstrap.servers": bootstrap_servers, "enable.idempotence": True, "linger.ms": 20}
    return Producer({**settings, "compression.type": "zstd", "queue.buffering.max.messages": 500_000})


def _send(
    producer: Producer, topic: str, partition: int, timestamp_ms: int, headers: list[tuple[str, str | bytes | None]]
) -> None:
    while True:
        try:
            producer.produce(topic, VALUE, None, partition, timestamp=timestamp_ms, headers=headers)
            return
        except BufferError:
            producer.poll(0.1)


def _flush(producer: Producer) -> None:
    if producer.flush(120):
        raise TimeoutError("Kafka did not take the records in two minutes")
