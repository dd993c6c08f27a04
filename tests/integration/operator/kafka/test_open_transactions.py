"""A transaction that a producer leaves open on the source: it is named, and what is behind it is not counted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest
from confluent_kafka import Producer
from tests.harness.names import unique
from tests.harness.shared_servers import KafkaAddress
from tests.support.operator.kafka_help import made, wait_for
from tests.support.operator.scenes import document, seen
from tests.support.relay.records import Sent, produce

from delaytopic_operator.clock import epoch_ms
from delaytopic_operator.decide.held_back import held_back
from delaytopic_operator.kafka.admin import KafkaClusters
from delaytopic_operator.observe.topics import TopicsObserver, TopicsSeen
from delaytopic_process.open_transactions import LASTS_MS, OpenTransaction

pytestmark = pytest.mark.integration

IN_FRONT, BEHIND = 3, 7


class Looks:
    """One DelayTopic of the source, looked at every other minute, from now on."""

    def __init__(self, kafka: KafkaAddress, clusters: KafkaClusters, topic: str, **schedule: str) -> None:
        self._observer = TopicsObserver(clusters, None)  # type: ignore[arg-type]
        cluster = clusters.cluster({"bootstrap.servers": kafka.bootstrap_servers, "security.protocol": "PLAINTEXT"})
        for name in (topic, f"{topic}.target"):
            made(cluster, name, 2)
        spec: dict[str, Any] = {
            "connection": {"bootstrapServers": kafka.bootstrap_servers},
            "source": {"topic": topic},
            "target": {"topic": f"{topic}.target"},
            "backend": {"type": "KafkaBuckets"},
            "schedule": schedule,
        }
        found = document(deleted_ms=None, **spec)
        del found["spec"]["delayClassName"]
        self._seen = self._looked = seen(found, now_ms=epoch_ms())
        self.begun_ms = self._seen.now_ms

    def look(self) -> TopicsSeen:
        assert self._seen.route.accepted is not None
        topics = self._observer.observe(self._seen, self._seen.route.accepted)
        self._looked = replace(self._seen, topics=topics.topics)
        self._seen = replace(self._seen, now_ms=self._seen.now_ms + 2 * LASTS_MS)
        return topics

    def transactions(self) -> tuple[Mapping[int, OpenTransaction], list[str]]:
        """Look, and return the open transactions and the reasons of conditions about them."""
        topics = self.look().topics
        assert topics is not None
        return topics.open_transactions, [each.reason for each in held_back(self._looked)]

    def end(self) -> int:
        """Look, and return the end of partition 1 as scaling has it."""
        offsets = self.look().offsets
        assert offsets is not None
        return offsets.partitions[1].end


@pytest.fixture
def writer(kafka: KafkaAddress, topic: str) -> Iterator[Producer]:
    """A producer that may have a transaction open for ten minutes."""
    settings = {"bootstrap.servers": kafka.bootstrap_servers, "transactional.id": unique("writer")}
    producer = Producer({**settings, "transaction.timeout.ms": 600_000})
    producer.init_transactions(30)
    producer.begin_transaction()
    yield producer
    producer.purge()


def fill(kafka: KafkaAddress, topic: str, writer: Producer) -> None:
    """Records of partition 1, one of them in the open transaction."""
    produce(kafka.bootstrap_servers, topic, [Sent(b"k", b"v", [], 1)] * IN_FRONT)
    writer.produce(topic, b"in the transaction", partition=1)
    writer.flush(30)
    produce(kafka.bootstrap_servers, topic, [Sent(b"k", b"v", [], 1)] * BEHIND)


def test_an_open_transaction_is_named_from_the_second_look_on_until_it_ends(
    kafka: KafkaAddress, clusters: KafkaClusters, topic: str, writer: Producer
) -> None:
    looks = Looks(kafka, clusters, topic)
    fill(kafka, topic, writer)

    first, second = looks.transactions(), looks.transactions()
    writer.abort_transaction(30)
    # The marker reaches the partition some time after the coordinator has answered.
    wait_for(lambda: looks.transactions() == ({}, []))

    since_ms = second[0][1].since_ms
    named = {1: OpenTransaction(IN_FRONT, since_ms, held_back=BEHIND + 1)}
    assert (first, second) == (({}, []), (named, ["TransactionOpen"]))
    assert looks.begun_ms <= since_ms < looks.begun_ms + LASTS_MS


def test_scaling_counts_what_relays_can_read_and_no_record_behind_an_open_transaction(
    kafka: KafkaAddress, clusters: KafkaClusters, topic: str, writer: Producer
) -> None:
    looks = Looks(kafka, clusters, topic)
    fill(kafka, topic, writer)

    while_open = looks.end()
    writer.commit_transaction(30)
    wait_for(lambda: looks.end() != while_open)

    assert (while_open, looks.end()) == (IN_FRONT, IN_FRONT + 1 + BEHIND + 1)


def test_with_a_fixed_delay_no_time_leads_behind_an_open_transaction(
    kafka: KafkaAddress, clusters: KafkaClusters, topic: str, writer: Producer
) -> None:
    looks = Looks(kafka, clusters, topic, fixedDelay="1s")
    fill(kafka, topic, writer)

    offsets = looks.look().offsets

    assert offsets is not None
    assert {offset for _, offset in offsets.partitions[1].offset_at} <= {0, IN_FRONT}
