"""`--since` on a real Kafka: what was before is neither asked for nor lost, and what is from then on is judged."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession
from tests.support.audit.delay_topics import HOUR_MS, AuditedTopic
from tests.support.relay.process import wait_for

from delaytopic_api.records import RECEIPT, DeadLetter, Receipt, dead_letter_headers
from delaytopic_audit.model.report import Report, Verdict
from delaytopic_audit.reading.facts import KafkaFacts
from delaytopic_audit.reading.planning import Offsets

pytestmark = pytest.mark.integration
MakeTopic = Callable[..., AuditedTopic]

MINUTE_MS = 60_000
BASE_MS = (time.time_ns() // 1_000_000 // HOUR_MS - 12) * HOUR_MS
SINCE_MS = BASE_MS + HOUR_MS


def ask(topic: AuditedTopic, append_ms: int, due_ms: int) -> None:
    """A record on the source."""
    produce(topic, topic.source, append_ms, [("deliver-at", b"%d" % due_ms)])


def arrive(topic: AuditedTopic, offset: int, due_ms: int, append_ms: int) -> None:
    """A record on the target."""
    receipt = Receipt(due_ms, 0, offset, append_ms, topic.source).encode()
    produce(topic, topic.target, append_ms, [(RECEIPT, receipt)])


def refuse(topic: AuditedTopic, offset: int, append_ms: int) -> None:
    """A record on the dead-letter topic."""
    letter = DeadLetter("expired", "why", topic.source, 0, offset, append_ms)
    produce(topic, topic.dead_letter, append_ms, list(dead_letter_headers(letter)))


def produce(topic: AuditedTopic, name: str, append_ms: int, headers: list[tuple[str, str | bytes | None]]) -> None:
    producer = topic.producer()
    producer.produce(name, b"v", b"k", 0, timestamp=append_ms, headers=headers)
    assert producer.flush(30) == 0


def offsets_since(topic: AuditedTopic, since_ms: int | None) -> Offsets:
    """Of the source's only partition."""
    facts = KafkaFacts({"bootstrap.servers": topic.bootstrap_servers})
    return facts.states([topic.source], since_ms)[0][topic.source].partitions[0]


def told(report: Report) -> dict[str, list[int]]:
    """Source offsets by finding."""
    return {found.finding: [each.offset for each in found.listed] for found in report.findings}


def read_of(report: Report) -> dict[str, int]:
    """Return how many records of each topic that has any."""
    assert report.reading is not None
    return {topic.topic: topic.records for topic in report.reading.topics if topic.records}


def test_reading_begins_at_the_first_record_of_that_time_or_later(audited: MakeTopic) -> None:
    topic = audited(1)
    for append_ms in (SINCE_MS - 1, SINCE_MS, SINCE_MS + 1):
        ask(topic, append_ms, SINCE_MS + HOUR_MS)

    moments = (None, SINCE_MS - 2, SINCE_MS, SINCE_MS + 1, SINCE_MS + 2)
    assert [offsets_since(topic, moment_ms) for moment_ms in moments] == [
        *(Offsets(0, begin, 3) for begin in (0, 0, 1, 2, 3)),
    ]


def test_reading_does_not_begin_behind_a_transaction_that_is_still_open(audited: MakeTopic) -> None:
    topic = audited(1)
    producer = Producer({"bootstrap.servers": topic.bootstrap_servers, "transactional.id": f"{topic.name}-open"})
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce(topic.source, b"undecided", partition=0, timestamp=SINCE_MS - 1)
    assert producer.flush(30) == 0
    ask(topic, SINCE_MS, SINCE_MS + HOUR_MS)

    during = offsets_since(topic, SINCE_MS)
    producer.commit_transaction()
    wait_for(lambda: offsets_since(topic, SINCE_MS).end == 3)

    assert during == Offsets(0, 0, 0)
    assert offsets_since(topic, SINCE_MS) == Offsets(0, 1, 3)


@pytest.mark.nightly  # each day plans begin where they are told to, and offsets of that time are found on Kafka
@pytest.mark.takes_long("carries out several audits")
def test_what_was_before_is_neither_asked_for_nor_lost_and_what_is_from_then_on_is_judged(
    spark: SparkSession, audited: MakeTopic
) -> None:
    topic = audited(1)
    early_ms, due_ms = SINCE_MS - MINUTE_MS, SINCE_MS + MINUTE_MS
    for append_ms in (early_ms, early_ms, early_ms, early_ms, SINCE_MS, SINCE_MS):
        ask(topic, append_ms, due_ms)
    arrive(topic, 0, due_ms - 2 * MINUTE_MS, early_ms)  # before that time: not read
    arrive(topic, 1, due_ms, due_ms)
    refuse(topic, 2, due_ms)
    arrive(topic, 4, due_ms, due_ms)

    first = topic.run(spark, SINCE_MS + HOUR_MS, since_ms=SINCE_MS)
    arrive(topic, 5, due_ms, due_ms + HOUR_MS)
    arrive(topic, 3, due_ms, due_ms + HOUR_MS)
    second = topic.run(spark, SINCE_MS + 2 * HOUR_MS, since_ms=SINCE_MS + 90 * MINUTE_MS)

    assert read_of(first) == {topic.source: 2, topic.target: 2, topic.dead_letter: 1}
    assert (first.verdict, told(first)) == (Verdict.MISSED, {"lost": [5]})
    assert "2 arrivals are of records from before the audit began; they do not count." in first.notes
    # `--since` is of the first run: the second one goes on where that one ended.
    assert read_of(second) == {topic.target: 2}
    assert told(second) == {"late": [5]}
    assert second.reading is not None
    assert second.reading.out_of_scope == 1
    assert second.counts is not None
    assert (second.counts.asked, second.counts.unknown) == (2, 0)
