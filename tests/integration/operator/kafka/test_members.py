"""Members of a group whose processes are gone, on a real broker: taken out at once, and nobody else with them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import ConsumerGroupState, KafkaException
from confluent_kafka.admin import AdminClient
from tests.harness.names import unique
from tests.harness.shared_servers import KafkaAddress
from tests.support.operator.kafka_help import made, wait_for

from delaytopic_local.servers.kafka_server import KafkaServer
from delaytopic_operator.errors import KafkaUnavailable, OperatorError
from delaytopic_operator.kafka.admin import KafkaCluster, KafkaClusters
from delaytopic_operator.kafka.client import KafkaClient
from delaytopic_operator.kafka.members import member_names

pytestmark = pytest.mark.integration

PARTITIONS = 4
MEMBER = """
import sys
from confluent_kafka import Consumer
from delaytopic_relay.kafka.settings import consumer_settings

servers, topic, name = sys.argv[1:]
# A session beyond the end of any test.
consumer = Consumer(consumer_settings({"bootstrap.servers": servers}, f"group.{topic}", 600_000, name, name))
consumer.subscribe([topic])
while True:
    consumer.poll(0.1)
"""


class Group:
    """A group of two members, each a process of its own, that read one topic."""

    def __init__(self, kafka: KafkaAddress, cluster: KafkaCluster, topic: str) -> None:
        self.topic = topic
        self.cluster = cluster
        self._admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
        made(cluster, topic, PARTITIONS)
        self.processes = {
            name: subprocess.Popen([sys.executable, "-c", MEMBER, kafka.bootstrap_servers, topic, name])
            for name in ("relay-a", "relay-b")
        }

    def partitions(self) -> dict[str | None, int]:
        """The number of partitions of each member; of none while the group, or its coordinator, is not at rest."""
        name = f"group.{self.topic}"
        try:
            found = self._admin.describe_consumer_groups([name])[name].result(30)
        except KafkaException:
            return {}
        at_rest = found.state is ConsumerGroupState.STABLE
        return {each.group_instance_id: len(each.assignment.topic_partitions) for each in found.members if at_rest}

    def await_partitions(self, wanted: dict[str, int]) -> None:
        wait_for(lambda: self.partitions() == wanted)

    def remove(self, *names: str) -> list[str]:
        return self.cluster.remove_members(f"group.{self.topic}", self.topic, names)

    def close(self) -> None:
        for process in self.processes.values():
            process.kill()
            process.wait()


@pytest.fixture
def make_group(kafka: KafkaAddress, clusters: KafkaClusters, topic: str) -> Iterator[Callable[[], Group]]:
    groups: list[Group] = []

    def make() -> Group:
        settings = {"bootstrap.servers": kafka.bootstrap_servers, "security.protocol": "PLAINTEXT"}
        group = Group(kafka, clusters.cluster(settings), topic)
        groups.append(group)
        group.await_partitions({"relay-a": 2, "relay-b": 2})
        return group

    yield make
    for group in groups:
        group.close()


@pytest.mark.takes_long("a group of two comes to rest, and again without one of them")
def test_partitions_of_a_member_that_was_killed_go_to_the_others_before_its_session_ends(
    make_group: Callable[[], Group],
) -> None:
    group = make_group()
    group.processes["relay-a"].kill()

    removed = group.remove("relay-a", "relay-c")

    assert removed == ["relay-a"]
    group.await_partitions({"relay-b": PARTITIONS})


@pytest.mark.takes_long("a group of two comes to rest")
def test_a_name_that_is_not_in_the_group_changes_nothing(make_group: Callable[[], Group]) -> None:
    group = make_group()

    removed = group.remove("relay-c")

    assert removed == []
    assert group.partitions() == {"relay-a": 2, "relay-b": 2}


def names(client: KafkaClient) -> list[str] | None:
    """The members of a group that has none; None while nobody answers."""
    try:
        found = member_names(client, ["group"])["group"]
    except KafkaUnavailable:
        return None
    if isinstance(found, KafkaUnavailable):  # it has just started, and has no coordinator yet
        return None
    assert not isinstance(found, OperatorError)
    return found


class CountedClient(KafkaClient):
    """Counts the clients of the library that it makes."""

    made = 0

    def _new_admin(self) -> AdminClient:
        self.made += 1
        return super()._new_admin()


def test_all_questions_about_groups_share_one_client_beside_that_of_all_others(kafka: KafkaAddress) -> None:
    client = CountedClient({"bootstrap.servers": kafka.bootstrap_servers}, lambda *_: None)

    found = [member_names(client, [unique("group"), unique("group")]) for _ in range(3)]

    assert ([[*groups.values()] for groups in found], client.made) == ([[[], []]] * 3, 2)


@pytest.mark.nightly  # each day a Kafka that is not there is told, and left alone for a while
def test_questions_about_groups_that_kafka_did_not_answer_are_forgotten_when_it_is_back(own_kafka: KafkaServer) -> None:
    # A question that is open in the client when the coordinator comes back would abort this process
    client = KafkaClient({"bootstrap.servers": own_kafka.bootstrap_servers}, lambda *_: None, timeout_s=0.5)
    wait_for(lambda: names(client) == [])
    own_kafka.kill()

    told = [names(client) for _ in range(3)]
    own_kafka.start()

    assert told == [None, None, None]
    wait_for(lambda: names(client) == [])
