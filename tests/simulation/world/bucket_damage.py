"""Damage to bucket topics by people: truncated, emptied, written into."""

from __future__ import annotations

from tests.simulation.world.bucket_log import NAMES
from tests.simulation.world.kafka import Kafka, Life, Sent

from delaytopic_relay.core.commands import Record

NOBODY = Life("nobody", {})


def damage(kafka: Kafka, bucket: int, what: str) -> None:
    """Do it to all partitions of a bucket."""
    topic = NAMES.bucket(bucket)
    for partition in kafka.source:
        log = kafka.stored.setdefault((topic, partition), [])
        if what == "foreign":
            record = Record(topic, b"hello, who is there? a stranger", None, [], partition)
            log.append(Sent(record, kafka.now_ms, kafka.now_ms, 0, NOBODY, None))
        else:
            end = len(log) // 2 if what == "truncated" else len(log)
            log[:end] = [None] * end
