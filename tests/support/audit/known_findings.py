"""Records of known fate on a DelayTopic of a real Kafka, and the tables that audits of it leave."""

from __future__ import annotations

import time

from pyspark.sql import SparkSession
from tests.support.audit.delay_topics import HOUR_MS, AuditedTopic
from tests.support.audit.truth import Truth

from delaytopic_audit.ledger.ledger import Ledger
from delaytopic_audit.model.words import Finding
from delaytopic_audit.pipeline.gathering import current
from delaytopic_audit.tables.schemas import PARTS

PARTITIONS = 2
Tables = dict[str, list[tuple[object, ...]]]


def produced(topic: AuditedTopic) -> list[Truth]:
    """Create the topics, and produce what happened within the last half day."""
    found = happened(topic.create(4))
    produce(topic, found)
    return found


def happened(topic: AuditedTopic) -> list[Truth]:
    """Make up what happened within the last half day, for each of some partitions."""
    base_ms = (time.time_ns() // 1_000_000 // HOUR_MS - 12) * HOUR_MS
    return [Truth(topic, partition, 4711 + partition, base_ms, each=20) for partition in range(PARTITIONS)]


def produce(topic: AuditedTopic, truths: list[Truth]) -> None:
    """Produce what happened, on all topics."""
    producer = topic.producer()
    for sent in (sent for truth in truths for sent in (*truth.asked(), *truth.outcomes())):
        producer.produce(sent.topic, b"v", b"k", sent.partition, timestamp=sent.append_ms, headers=sent.headers)
        producer.poll(0)
    assert producer.flush(60) == 0


def tables_of(spark: SparkSession, place: str) -> Tables:
    """Return the tables of the last run of a ledger."""
    ledger = Ledger(spark, place)
    commit = ledger.last_commit()
    assert commit is not None
    return {table: sorted(map(tuple, current(ledger, commit, table).collect()), key=repr) for table in PARTS}


def assert_truth_found(tables: Tables, truths: list[Truth]) -> None:
    """Fail unless the findings are those that were made."""
    names = PARTS["findings"].names
    rows = [dict(zip(names, row, strict=True)) for row in tables["findings"]]
    found = {(row["finding"], row["partition"], row["offset"]) for row in rows}
    expected = {(name, *place) for truth in truths for name, places in truth.expected().items() for place in places}
    assert found == expected
    assert {str(Finding.LOST), str(Finding.DUPLICATED), str(Finding.EARLY)} <= {row["finding"] for row in rows}
