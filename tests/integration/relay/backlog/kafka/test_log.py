"""The reader of bucket topics on a real Kafka."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from tests.harness.names import unique
from tests.harness.shared_servers import KafkaAddress

from delaytopic_gateway.client.topics import TopicPlan, create_topics
from delaytopic_relay.backlog.kafka import log as kafka_log
from delaytopic_relay.backlog.kafka.log import KafkaBuckets
from delaytopic_relay.backlog.kafka.topics import BucketNames
from delaytopic_relay.errors import KafkaUnavailable
from delaytopic_relay.kafka.settings import Settings

pytestmark = pytest.mark.integration


@pytest.fixture
def names(kafka: KafkaAddress) -> BucketNames:
    names = BucketNames(unique("log"))
    create_topics(kafka.bootstrap_servers, [TopicPlan(names.ids, 1)])
    return names


@pytest.fixture
def buckets(kafka: KafkaAddress, names: BucketNames) -> Iterator[KafkaBuckets]:
    settings: Settings = {
        "bootstrap.servers": kafka.bootstrap_servers, "group.id": "nobody", "isolation.level": "read_committed",
        "enable.partition.eof": True, "enable.auto.commit": False,
    }  # fmt: skip
    opened = KafkaBuckets(settings, names)
    yield opened
    opened.close()


def transactional(kafka: KafkaAddress) -> Producer:
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "transactional.id": unique("writer")})
    producer.init_transactions(10)
    return producer


@pytest.mark.takes_long("waits for two seconds in vain")
def test_ids_behind_an_open_transaction_are_not_left_out(
    kafka: KafkaAddress, names: BucketNames, buckets: KafkaBuckets, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given an entry in a transaction that is open, and a committed one behind it
    monkeypatch.setattr(kafka_log, "IDS_TIMEOUT_S", 2.0)
    died, committed = transactional(kafka), transactional(kafka)
    died.begin_transaction()
    died.produce(names.ids, key=b"a", value=b"1")
    died.flush(10)
    committed.begin_transaction()
    committed.produce(names.ids, key=b"b", value=b"2")
    committed.commit_transaction(10)

    with pytest.raises(KafkaUnavailable, match="not read to its end in 2 s"):
        buckets.ids([0])
    died.abort_transaction(10)

    assert buckets.ids([0]) == {0: {b"b": b"2"}}


def test_ids_of_an_empty_partition_are_none(buckets: KafkaBuckets) -> None:
    assert buckets.ids([0]) == {0: {}}


def test_a_bucket_topic_that_is_gone_is_not_made_by_reading_it(
    kafka: KafkaAddress, names: BucketNames, buckets: KafkaBuckets
) -> None:
    buckets.read(0, 0, 0)

    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    assert names.bucket(0) not in admin.list_topics(timeout=30).topics
