"""Targets that `deliver-to` names and that appear late: audited exactly, over several runs on a real Kafka."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from confluent_kafka.admin import AdminClient
from pyspark.sql import SparkSession
from tests.support.audit.delay_topics import HOUR_MS, AuditedTopic
from tests.support.relay.process import wait_for

from delaytopic_api.records import RECEIPT, DeadLetter, Receipt, dead_letter_headers
from delaytopic_audit.model.report import Report, Verdict

pytestmark = pytest.mark.integration
MakeTopic = Callable[..., AuditedTopic]

BASE_MS = (time.time_ns() // 1_000_000 // HOUR_MS - 12) * HOUR_MS


def hours(count: float) -> int:
    return BASE_MS + int(count * HOUR_MS)


@pytest.fixture
def topic(audited: MakeTopic) -> AuditedTopic:
    """Return a DelayTopic whose `other` target is allowed, and does not exist."""
    made = audited(1)
    admin = AdminClient({"bootstrap.servers": made.bootstrap_servers})
    admin.delete_topics([made.other])[made.other].result(30)
    wait_for(lambda: made.other not in admin.list_topics(timeout=10).topics)
    return made


def ask(topic: AuditedTopic, append_ms: int, due_ms: int) -> None:
    """A record that is to go to the other target."""
    headers = [("deliver-at", b"%d" % due_ms), ("deliver-to", topic.other.encode())]
    produce(topic, topic.source, append_ms, headers)


def arrive(topic: AuditedTopic, offset: int, due_ms: int, append_ms: int) -> None:
    """A record on the other target."""
    receipt = Receipt(due_ms, 0, offset, append_ms, topic.source).encode()
    produce(topic, topic.other, append_ms, [(RECEIPT, receipt)])


def produce(topic: AuditedTopic, name: str, append_ms: int, headers: list[tuple[str, bytes]]) -> None:
    producer = topic.producer()
    producer.produce(name, b"v", b"k", 0, timestamp=append_ms, headers=list(headers))
    assert producer.flush(30) == 0


def told(report: Report) -> dict[str, list[int]]:
    """Source offsets by finding; a report without a verdict has none to tell."""
    assert report.verdict is not Verdict.CANNOT_JUDGE, report.reasons
    return {found.finding: [each.offset for each in found.listed] for found in report.findings}


def refuse(topic: AuditedTopic, offset: int, append_ms: int) -> None:
    """Produce a dead letter."""
    letter = DeadLetter("unknown-target", "why", topic.source, 0, offset, append_ms)
    headers = [(name, value) for name, value in dead_letter_headers(letter) if value is not None]
    produce(topic, topic.dead_letter, append_ms, headers)


@pytest.mark.nightly
@pytest.mark.takes_long("carries out four runs, one after the other")
def test_a_target_that_appears_in_a_later_run_than_its_schedules_is_audited_exactly_in_all_runs(
    spark: SparkSession, topic: AuditedTopic
) -> None:
    for due in (1.5, 2.5, 2.6, 2.7, 4.5, 0.5):
        ask(topic, hours(0), hours(due))
    refuse(topic, 5, hours(0.5))

    nowhere = topic.run(spark, hours(1))
    still_nowhere = topic.run(spark, hours(2))
    topic.create_only(topic.other, 1)
    arrive(topic, 0, hours(1.5), hours(2.2))
    arrive(topic, 1, hours(2.5), hours(2.5))
    arrive(topic, 2, hours(2.6), hours(2.6))
    arrive(topic, 2, hours(2.6), hours(2.6) + 1)
    there = topic.run(spark, hours(4))
    arrive(topic, 3, hours(2.7), hours(4.2))
    arrive(topic, 4, hours(4.5), hours(4.5))
    topic.spec = {"target": {"topic": topic.target}}  # not allowed any more, but asked for when it was
    last = topic.run(spark, hours(6))

    # That only schedules name a target, and that it is not there, keeps no audit from its verdict.
    assert (nowhere.verdict, told(nowhere)) == (Verdict.MET, {"dead-lettered": [5]})
    assert told(still_nowhere) == {"lost": [0], "dead-lettered": [5]}
    assert told(there) == {"lost": [3], "duplicated": [2], "late": [0], "dead-lettered": [5]}
    assert told(last) == {"duplicated": [2], "late": [0, 3], "dead-lettered": [5]}
    assert last.counts is not None
    assert (last.counts.asked, last.counts.delivered, last.counts.copies) == (6, 5, 1)
