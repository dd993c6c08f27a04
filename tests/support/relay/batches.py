"""Batches that are small in the log and large in memory."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from confluent_kafka import KafkaError, Message, Producer

MIB = 1 << 20
PATIENCE_S = 60


def produce_batch(
    bootstrap_servers: str,
    topic: str,
    sizes: Sequence[int],
    compression: str = "gzip",
    partition: int = 0,
    headers: Sequence[tuple[str, bytes]] = (),
) -> list[int]:
    """Produce records of zeros with these sizes as one compressed batch; returns their offsets."""
    whole = sum(sizes)
    settings: dict[str, Any] = {
        "bootstrap.servers": bootstrap_servers,
        "compression.type": compression,
        "linger.ms": 60_000,
        # It leaves when all are there. A flush would let one go that the client's thread has just looked at alone.
        "batch.num.messages": len(sizes),
        "batch.size": whole + MIB,
        "message.max.bytes": whole + MIB,
        "queue.buffering.max.kbytes": 2 * (whole >> 10) + 1_024,
    }
    offsets: list[int] = []
    failures: list[KafkaError] = []

    def note(error: KafkaError | None, message: Message) -> None:
        if error is not None:
            failures.append(error)
        offsets.append(message.offset() or 0)

    producer = Producer(settings)
    zeros = bytes(max(sizes))
    for size in sizes:
        producer.produce(topic, zeros[:size], b"k", partition, headers=[*headers], on_delivery=note)
    deadline_s = time.monotonic() + PATIENCE_S
    while len(producer) and time.monotonic() < deadline_s:
        producer.poll(0.1)
    assert len(offsets) == len(sizes)
    assert not failures, failures
    return offsets
