"""Several real Kafka brokers that are one cluster: each partition has three copies, and any one broker may be away."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka.admin import TopicMetadata  # type: ignore[attr-defined]  # public, by an implicit re-export
from tests.harness.fixtures import QUICK_START
from tests.support.relay.process import wait_for

from delaytopic_gateway.client.topics import admin_client
from delaytopic_local.servers.kafka_server import KafkaServer
from delaytopic_local.servers.kafka_settings import FIRST_NODE_ID, ClusterNode, cluster_id
from delaytopic_local.servers.process import free_port

BROKERS = 3
HEAP_MIB = 384
SESSION_MS = 4_000
"""Silent for so long, a broker is declared dead, and others lead its partitions."""


class KafkaCluster:
    """Brokers of ids 1, 2, 3, in that order."""

    def __init__(self, brokers: Sequence[KafkaServer]) -> None:
        self.brokers = brokers

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(broker.bootstrap_servers for broker in self.brokers)

    def leader(self, topic: str, partition: int = 0) -> KafkaServer:
        """The broker that leads a partition, as soon as one is known to."""

        def leader_id() -> int:
            found = self._topics().get(topic)
            return max(0, found.partitions[partition].leader) if found else 0

        known: int = wait_for(leader_id, lambda: f"nobody is known to lead {topic}[{partition}]")
        return self.brokers[known - FIRST_NODE_ID]

    def await_in_sync(self) -> None:
        """Until every broker is up to date in every partition: any one of them may go."""
        wait_for(self._are_in_sync, lambda: "some copies are not in sync")

    def _are_in_sync(self) -> bool:
        partitions = [each for topic in self._topics().values() for each in topic.partitions.values()]
        return all(len(partition.isrs) == len(partition.replicas) for partition in partitions)

    def _topics(self) -> dict[str, TopicMetadata]:
        return admin_client(self.bootstrap_servers).list_topics(timeout=30).topics


@contextmanager
def kafka_cluster(directory: Path) -> Iterator[KafkaCluster]:
    """Start the brokers, side by side; stop them at the end."""
    ports = [free_port() for _ in range(2 * BROKERS)]
    assert len(set(ports)) == len(ports)
    controllers = [f"127.0.0.1:{port}" for port in ports[BROKERS:]]
    identity = cluster_id(uuid.uuid4())
    brokers = [
        KafkaServer(
            directory / f"kafka-{number}",
            port=ports[number - FIRST_NODE_ID],
            node=ClusterNode(controllers, number, identity),
            settings={"broker.session.timeout.ms": str(SESSION_MS), "broker.heartbeat.interval.ms": "500"},
            heap_mib=HEAP_MIB,
            jvm_options=QUICK_START,
        )
        for number in range(FIRST_NODE_ID, BROKERS + FIRST_NODE_ID)
    ]
    with ThreadPoolExecutor() as side_by_side:
        try:
            list(side_by_side.map(KafkaServer.start, brokers))
            yield KafkaCluster(brokers)
        finally:
            list(side_by_side.map(KafkaServer.kill, brokers))
