"""Progress on a real broker: read with the relays' own text, restored where it was forgotten, and nowhere else."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from tests.harness.shared_servers import KafkaAddress
from tests.support.operator.kafka_help import commit, delete_behind_its_back, is_missing, made, wait_for
from tests.support.operator.scenes import document, record, seen

from delaytopic_api.documents import KafkaConnection, Ownership
from delaytopic_operator.execute.topics import CLOCKS_MS, Restored, TopicsExecutor
from delaytopic_operator.kafka.admin import KafkaCluster, KafkaClusters
from delaytopic_operator.model.kafka_view import Committed
from delaytopic_operator.model.offsets_backup import OffsetsBackup
from delaytopic_operator.model.record import Role, RouteRecord, TopicRecord
from delaytopic_operator.model.secret_values import SecretValues
from delaytopic_operator.observe.observation import Observation
from delaytopic_operator.observe.topics import TopicsObserver

pytestmark = pytest.mark.integration

NO_SECRETS = SecretValues("shop", {})
TEXT = "1;4;77;2;relay-a"


class Place:
    """A route whose source is on the broker."""

    def __init__(self, kafka: KafkaAddress, clusters: KafkaClusters, topic: str) -> None:
        self.topic = topic
        self.group = f"group.{topic}"
        self.servers = kafka.bootstrap_servers
        self.cluster: KafkaCluster = clusters.cluster(
            {"bootstrap.servers": self.servers, "security.protocol": "PLAINTEXT"}
        )
        self.connection = KafkaConnection(bootstrap_servers=self.servers)
        self.observer = TopicsObserver(clusters, None)  # type: ignore[arg-type]
        self.facts = made(self.cluster, topic, 2)
        self.target = f"{topic}.target"
        made(self.cluster, self.target, 2)

    @property
    def record(self) -> RouteRecord:
        source = TopicRecord(name=self.topic, ownership=Ownership.CREATED, topic_id=self.facts.topic_id)
        return record().with_role(Role.SOURCE, source).model_copy(update={"group_id": self.group})

    def kept(self) -> OffsetsBackup | None:
        return self.observer.committed(self.record, self.connection, NO_SECRETS)

    def restore(self, kept: OffsetsBackup) -> Restored | None:
        return TopicsExecutor(self.observer, None).restore(self._seen(), self.group, kept)  # type: ignore[arg-type]

    def committed(self) -> dict[int, Committed]:
        return self.cluster.committed(self.group, self.topic)

    def forget(self) -> None:
        """As brokers do after offsets.retention.minutes."""
        admin = AdminClient({"bootstrap.servers": self.servers})
        admin.delete_consumer_groups([self.group])[self.group].result(30)

    def make_anew(self) -> None:
        delete_behind_its_back(self.servers, self.topic)
        wait_for(lambda: is_missing(self.cluster.view([self.topic], fresh=True), self.topic))
        self.facts = made(self.cluster, self.topic, 2)

    def _seen(self) -> Observation:
        connection = {"bootstrapServers": self.servers}
        spec = {"connection": connection, "source": {"topic": self.topic}, "backend": {"type": "KafkaBuckets"}}
        spec["target"] = {"topic": self.target}
        found = document(deleted_ms=None, **spec)
        del found["spec"]["delayClassName"]
        return seen(found)


@pytest.fixture
def place(kafka: KafkaAddress, clusters: KafkaClusters, topic: str) -> Place:
    return Place(kafka, clusters, topic)


def test_what_was_committed_is_read_with_the_relays_own_text(place: Place) -> None:
    commit(place.servers, place.group, place.topic, 3, TEXT)

    assert place.kept() == OffsetsBackup(place.topic, place.facts.topic_id, {0: Committed(3, TEXT)})


def test_what_was_forgotten_is_restored_once(place: Place) -> None:
    commit(place.servers, place.group, place.topic, 3, TEXT)
    kept = place.kept()
    assert kept is not None
    place.forget()
    forgotten = place.committed()

    restored = [place.restore(kept) for _ in range(2)]

    assert (forgotten, restored) == ({}, [Restored(0, outdated=False), None])
    assert place.committed() == {0: Committed(3, TEXT)}


def test_nothing_newer_is_overwritten(place: Place) -> None:
    commit(place.servers, place.group, place.topic, 5, "1;5;99;4;")
    older = OffsetsBackup(place.topic, place.facts.topic_id, {0: Committed(3, TEXT), 1: Committed(2, TEXT)})

    assert place.restore(older) == Restored(0, outdated=False)

    assert place.committed() == {0: Committed(5, "1;5;99;4;"), 1: Committed(2, TEXT)}


def test_a_backup_that_is_older_than_what_the_target_shows_is_said_to_be(place: Place) -> None:
    commit(place.servers, place.group, place.topic, 3, TEXT)
    delivered_ms = produced(place.servers, place.target)
    place.forget()
    partitions = {0: Committed(3, TEXT)}
    older = OffsetsBackup(place.topic, place.facts.topic_id, partitions, {0: delivered_ms - CLOCKS_MS})
    newer = OffsetsBackup(place.topic, place.facts.topic_id, partitions, {0: delivered_ms - CLOCKS_MS + 1})

    first = place.restore(older)
    place.forget()
    second = place.restore(newer)

    assert first == Restored(delivered_ms - CLOCKS_MS, outdated=True)
    assert second == Restored(delivered_ms - CLOCKS_MS + 1, outdated=False)


def produced(servers: str, topic: str) -> int:
    """Produce a record, as relays deliver; return its timestamp."""
    told: list[int] = []
    producer = Producer({"bootstrap.servers": servers})
    producer.produce(topic, b"delivered", on_delivery=lambda _, message: told.append(message.timestamp()[1]))
    producer.flush(30)
    [timestamp_ms] = told
    return timestamp_ms


def test_a_topic_that_was_made_anew_gets_no_old_offsets(place: Place) -> None:
    commit(place.servers, place.group, place.topic, 3, TEXT)
    kept, former = place.kept(), place.record
    assert kept is not None
    place.make_anew()

    assert place.restore(kept) is None

    assert place.committed() == {}
    assert place.observer.committed(former, place.connection, NO_SECRETS) is None


def test_how_long_brokers_keep_offsets_is_read(kafka: KafkaAddress, clusters: KafkaClusters, tmp_path: Path) -> None:
    assert clusters.cluster({"bootstrap.servers": kafka.bootstrap_servers}).offsets_retention_ms() == 604_800_000
