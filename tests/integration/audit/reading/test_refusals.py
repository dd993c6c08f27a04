"""Tests of what an audit on a real Kafka refuses to judge, and why; and what it goes on through."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    ResourceType,
)
from pyspark.sql import SparkSession
from tests.harness.names import unique
from tests.harness.shared_servers import KafkaAddress
from tests.support.audit.delay_topics import AuditedTopic
from tests.support.relay.process import wait_for

from delaytopic_api.records import RECEIPT, Receipt
from delaytopic_audit.errors import ReadingError
from delaytopic_audit.model.report import Counts, Report, Verdict

pytestmark = pytest.mark.integration
MakeTopic = Callable[..., AuditedTopic]

OF_PLANS = pytest.mark.nightly
"""For five audits one after the other: each day plans are made of what may happen to topics, without an audit."""
BROKERS_CLOCK = {"message.timestamp.type": "LogAppendTime"}


@cache
def admin_at(bootstrap_servers: str) -> AdminClient:
    """One that lives on: what it has under way ends with it."""
    return AdminClient({"bootstrap.servers": bootstrap_servers})


def admin_of(topic: AuditedTopic) -> AdminClient:
    return admin_at(topic.bootstrap_servers)


def ask_and_deliver(topic: AuditedTopic, count: int, *, partition: int = 0, first: int = 0) -> None:
    """Records that are due at once, and arrive."""
    producer = topic.producer()
    for offset in range(first, first + count):
        producer.produce(topic.source, b"v", b"k", partition)
        moment_ms = time.time_ns() // 1_000_000
        receipt = Receipt(moment_ms, partition, offset, moment_ms, topic.source).encode()
        producer.produce(topic.target, b"v", b"k", 0, headers=[(RECEIPT, receipt)])
    assert producer.flush(30) == 0


def later(topic: AuditedTopic, spark: SparkSession, *, any_clock: bool = True, restart: bool = False) -> Report:
    """An audit whose clock is ten minutes ahead: everything is closed."""
    return topic.run(spark, time.time_ns() // 1_000_000 + 600_000, any_clock=any_clock, restart=restart)


def test_records_with_create_time_from_before_the_topic_was_set_right_are_refused_until_a_restart(
    spark: SparkSession, audited: MakeTopic
) -> None:
    topic = audited(1)
    ask_and_deliver(topic, 3)
    for name in (topic.source, topic.target):
        entry = ConfigEntry("message.timestamp.type", "LogAppendTime", incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.TOPIC, name, incremental_configs=[entry])
        admin_of(topic).incremental_alter_configs([resource])[resource].result(30)

    report = later(topic, spark, any_clock=False)

    assert report.verdict is Verdict.CANNOT_JUDGE
    assert report.reasons[0].startswith(f"3 records of {topic.source} carry CreateTime")


def test_a_missing_topic_and_a_compacted_one_are_named(spark: SparkSession, audited: MakeTopic) -> None:
    topic = audited(1, **{"cleanup.policy": "compact"})
    admin_of(topic).delete_topics([topic.dead_letter])[topic.dead_letter].result(30)
    wait_for(lambda: topic.dead_letter not in admin_of(topic).list_topics(timeout=10).topics)

    report = later(topic, spark)

    assert [reason.partition(":")[0] for reason in report.reasons] == [
        f"the source topic {topic.source} is compacted",
        f"the target topic {topic.target} is compacted",
        f"the dead-letter topic {topic.dead_letter} does not exist",
    ]


@dataclass(frozen=True)
class Story:
    """Reports of one DelayTopic, in the order in which things happened to its topics."""

    topic: AuditedTopic
    idle: Report
    with_added_partition: Report
    after_expiry: Report
    restarted: Report
    after_a_topic_made_anew: Report


@pytest.fixture(scope="module")
def story(spark: SparkSession, kafka: KafkaAddress, tmp_path_factory: pytest.TempPathFactory) -> Story:
    topic = AuditedTopic(unique("story"), kafka.bootstrap_servers, tmp_path_factory.mktemp("story"))
    topic.create(1, **BROKERS_CLOCK)
    idle = later(topic, spark, any_clock=False)

    admin_of(topic).create_partitions([NewPartitions(topic.source, 2)])[topic.source].result(30)
    wait_for(lambda: len(admin_of(topic).list_topics(topic.source, timeout=10).topics[topic.source].partitions) == 2)
    ask_and_deliver(topic, 3)
    ask_and_deliver(topic, 4, partition=1)
    with_added_partition = later(topic, spark, any_clock=False)

    ask_and_deliver(topic, 3, first=3)
    for answer in admin_of(topic).delete_records([TopicPartition(topic.source, 0, 5)]).values():
        answer.result(30)
    after_expiry = later(topic, spark)
    restarted = later(topic, spark, restart=True)

    admin_of(topic).delete_topics([topic.target])[topic.target].result(30)
    wait_for(lambda: topic.target not in admin_of(topic).list_topics(timeout=10).topics)
    topic.create_only(topic.target, 1, **BROKERS_CLOCK)
    return Story(topic, idle, with_added_partition, after_expiry, restarted, later(topic, spark))


@OF_PLANS
def test_an_idle_topic_meets_its_objectives(story: Story) -> None:
    report = story.idle

    assert (report.verdict, report.counts) == (Verdict.MET, Counts())
    assert report.sentence == "No record had its deadline in this window."


@OF_PLANS
def test_partitions_that_were_added_are_audited_from_their_first_record(story: Story) -> None:
    report = story.with_added_partition

    assert report.verdict is Verdict.MET, report
    assert [(each.partition, each.counts.delivered) for each in report.partitions] == [(0, 3), (1, 4)]


@OF_PLANS
def test_records_that_expired_unread_are_a_reason(story: Story) -> None:
    report = story.after_expiry

    assert report.verdict is Verdict.CANNOT_JUDGE
    assert [reason.partition(" before ")[0] for reason in report.reasons] == [
        f"{story.topic.source} partition 0: the offsets 3 to 4 expired"
    ]


@OF_PLANS
def test_a_restart_goes_on_without_the_records_that_expired(story: Story) -> None:
    report = story.restarted

    assert report.verdict is Verdict.MET
    assert [(each.partition, each.counts.delivered) for each in report.partitions] == [(0, 1), (1, 4)]
    assert report.reading is not None
    assert report.reading.out_of_scope == 5


@OF_PLANS
def test_a_topic_that_was_made_anew_is_a_reason(story: Story) -> None:
    report = story.after_a_topic_made_anew

    assert report.verdict is Verdict.CANNOT_JUDGE
    assert [reason.partition(" since ")[0] for reason in report.reasons] == [
        f"the topic {story.topic.target} was deleted and made anew"
    ]


def test_a_broker_that_does_not_answer_is_an_error_with_its_address(
    spark: SparkSession, audited: MakeTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("delaytopic_audit.reading.facts.TIMEOUT_SECONDS", 1.0)
    topic = audited(1)
    unreachable = AuditedTopic(topic.name, "127.0.0.1:1", topic.folder)

    with pytest.raises(ReadingError, match=r"Kafka at 127\.0\.0\.1:1 does not answer"):
        unreachable.run(spark, time.time_ns() // 1_000_000)
