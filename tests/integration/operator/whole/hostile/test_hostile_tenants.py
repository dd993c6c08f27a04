"""A tenant who may write ConfigMaps, pods and DelayTopics in its own namespace, and tries to get at what is others'."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest
from playground.kube.awaiting import condition_of
from playground.kube.control_plane import ControlPlane
from playground.kube.kube_client import KubeClient, Object, RequestRefused
from tests.harness.names import unique
from tests.support.operator.platform import Platform
from tests.support.operator.running_platform import RunPlatform
from tests.support.relay.process import wait_for
from tests.support.servers.kafka_topics import KafkaTopics

from delaytopic_api.documents import KafkaConnection
from delaytopic_operator.model.reconciliation import Key
from delaytopic_operator.model.record import parse_record, record_document, record_name

pytestmark = [pytest.mark.integration, pytest.mark.kubernetes]

VERBS = ["get", "list", "watch", "create", "update", "patch", "delete"]


EVERYTHING = {"sourceTopics": ["*"], "targetTopics": ["*"], "adoptTopics": ["*"]}


@pytest.fixture
def tenant(running: Platform, control_plane: ControlPlane) -> KubeClient:
    """Give the team's own rights."""
    return team_user(control_plane, running.team)


def as_itself(platform: Platform, control_plane: ControlPlane) -> Platform:
    """Return the platform as the team uses it with its own rights."""
    team = platform.of_team(platform.teams.index(platform.team))
    team.client = team_user(control_plane, team.team)
    return team


def team_user(control_plane: ControlPlane, team: str) -> KubeClient:
    """Make a user with a Role that a team would have, and nothing else."""
    client, user = control_plane.client, f"user-of-{team}"
    rules = [
        {"apiGroups": [""], "resources": ["configmaps", "pods", "secrets"], "verbs": VERBS},
        {"apiGroups": ["delaytopic.dev"], "resources": ["delaytopics"], "verbs": VERBS},
    ]
    rbac = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{team}"
    client.apply(f"{rbac}/roles/team", {"metadata": {"name": "team"}, "rules": rules} | kind("Role"))
    binding = {
        "metadata": {"name": "team"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "team"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
    }
    client.apply(f"{rbac}/rolebindings/team", binding | kind("RoleBinding"))
    return control_plane.client_for_user(user)


def kind(name: str) -> Object:
    return {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": name}


@contextmanager
def listening() -> Iterator[tuple[str, list[object]]]:
    """A place where nobody should come by; its address, and who came."""
    callers: list[object] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def accept() -> None:
            while True:
                try:
                    callers.append(server.accept()[1])
                except OSError:
                    return

        threading.Thread(target=accept, daemon=True).start()
        yield f"127.0.0.1:{server.getsockname()[1]}", callers
        server.shutdown(socket.SHUT_RDWR)


def forged_record(true: Object, ghost: Key, address: str) -> Object:
    """Return a record of a DelayTopic that never was: its topics are the victim's, its Kafka is the tenant's."""
    record = parse_record(true).draining(1, 2, pending=None, source_partitions=None)
    connection = KafkaConnection(bootstrap_servers=address)
    changes = {"name": ghost.name, "class_name": None, "connection": connection}
    document = record_document(record.model_copy(update=changes), ghost.namespace)
    return {**document, "metadata": {**document["metadata"], "name": record_name(ghost)}}


def await_resync(platform: Platform) -> None:
    """Wait until everything that is there now was listed, and whatever was found in it was looked at."""
    now_s = time.time()
    wait_for(lambda: platform.operator.metric("delaytopic_operator_resync_last_seconds") > now_s, platform.operator.why)
    wait_for(lambda: platform.operator.metric("delaytopic_operator_queue_depth") == 0, platform.operator.why)
    platform.apply_topic("later")
    platform.await_condition("later", "TopicsReady")


@pytest.mark.takes_long("waits for the operator to list everything again")
def test_a_forged_record_is_neither_believed_nor_followed(running: Platform, tenant: KubeClient) -> None:
    running.apply_topic("victim")
    # The record is written once more when relays have taken the rules over.
    running.await_condition("victim", "RulesInForce")
    records = f"/api/v1/namespaces/{running.namespace}/configmaps"
    true = running.client.get(f"{records}/{record_name(Key(running.team, 'victim'))}")
    ghost = Key(running.team, "ghost")

    with listening() as (address, callers):
        tenant.create(f"/api/v1/namespaces/{running.team}/configmaps", forged_record(true, ghost, address))
        await_resync(running)

        written = running.client.find(f"{records}/{record_name(ghost)}")
        assert (written, callers) == (None, [])
    kept = running.client.get(f"{records}/{record_name(Key(running.team, 'victim'))}")
    assert kept["data"]["record.json"] == true["data"]["record.json"]


@pytest.fixture(scope="module")
def shared(run_platform: RunPlatform) -> Iterator[Platform]:
    """A platform of two teams whose class lets both name any topic, and take over what is there."""
    with run_platform("shared", teams=2) as platform:
        platform.apply_class(access=EVERYTHING)
        yield platform


@pytest.fixture
def hostile(shared: Platform, control_plane: ControlPlane) -> Platform:
    """The other team: what it applies, it applies as itself."""
    return as_itself(shared.of_team(1), control_plane)


@dataclass(frozen=True)
class Victim:
    """A DelayTopic of the first team, whose topics could be anybody's by their names."""

    name: str
    key: str
    source: str
    target: str


@pytest.fixture(scope="module")
def victim(shared: Platform) -> Victim:
    """One whose topics are there."""
    made = unmade(shared)
    make(shared, made)
    shared.await_condition(made.name, "TopicsReady")
    return made


def make(platform: Platform, victim: Victim) -> None:
    """Apply it, without relays: what it may do shows in its topics."""
    topics = {"source": {"topic": victim.source}, "target": {"topic": victim.target}}
    platform.apply_topic(victim.name, relay={"replicas": 0}, autoscaling={"mode": "Fixed"}, **topics)


def unmade(platform: Platform) -> Victim:
    """One that nobody has applied yet."""
    name = unique("ledger")
    return Victim(name, f"{platform.team}/{name}", f"{name}.delayed", f"{name}.due")


def refused(hostile: Platform, name: str, reason: str = "ResourceConflict") -> str:
    """Return what is said to the hostile team, once it was refused."""
    found = hostile.await_condition(name, "PolicyAccepted", "False", reason=reason)
    return str(condition_of(found, "PolicyAccepted")["message"])


def apply_inline(hostile: Platform, name: str, address: str, topics: Object, **connection: object) -> None:
    """Apply one with a connection of its own, without a class."""
    own = {"connection": {"bootstrapServers": address, **connection}, "backend": {"type": "KafkaBuckets"}}
    usual = {"source": {"topic": f"{hostile.team}.{name}.delayed"}, "target": {"topic": f"{hostile.team}.{name}"}}
    hostile.apply("DelayTopic", name, {**usual, **topics, **own}, namespace=hostile.team)


UNKNOWN_SECRET = {"type": "ScramSha512", "username": "x", "passwordSecret": {"secretName": "there-is-none"}}
SHORT = {"management": "Adopt", "config": {"retention.ms": "1"}}


def test_what_is_nobodys_is_adopted_only_where_the_class_says_so(
    running: Platform, control_plane: ControlPlane
) -> None:
    topics, topic = KafkaTopics(running.kafka.bootstrap_servers), f"{running.team}.{unique('payments')}"
    topics.create(topic, 1, retention_ms="604800000")
    team = as_itself(running, control_plane)

    team.apply_topic("greedy", deadLetter={"topic": topic, **SHORT})

    assert refused(team, "greedy", "AdoptionNotAllowed") == (
        f"spec.deadLetter.management: {topic} must not be adopted: DelayClass {running.class_name} allows none; use "
        f'Observe, or ask who looks after the class for access.adoptTopics: ["{topic}"]'
    )
    assert topics.config(topic)["retention.ms"] == "604800000"


def test_without_a_word_in_the_class_a_team_names_no_topic_of_another(
    running: Platform, control_plane: ControlPlane
) -> None:
    team = as_itself(running, control_plane)

    team.apply_topic("spy", source={"topic": "bank.payments", "management": "Observe"})

    assert "spec.source.topic: bank.payments is not allowed as a source" in refused(team, "spy", "SourceNotAllowed")


def test_no_document_names_a_topic_of_kafka_or_of_a_backlog(hostile: Platform) -> None:
    answers = []
    for topic in ("__consumer_offsets", "delaytopic.bank.payments.delay.0"):
        with pytest.raises(RequestRefused) as answer:
            hostile.apply_topic("greedy", deadLetter={"topic": topic, "management": "Observe"})
        answers.append("spec.deadLetter.topic" in str(answer.value) and "is reserved" in str(answer.value))

    assert answers == [True, True]


@pytest.mark.parametrize("role", ["source", "target"])
def test_a_topic_of_another_is_not_adopted_to_remove_its_records(
    shared: Platform, hostile: Platform, victim: Victim, role: str
) -> None:
    topics, topic = KafkaTopics(shared.kafka.bootstrap_servers), victim.source if role == "source" else victim.target
    before = topics.config(topic)["retention.ms"]

    hostile.apply_topic(f"eraser-of-a-{role}", target={"topic": topic, **SHORT})

    assert refused(hostile, f"eraser-of-a-{role}") == (
        f"spec.target.management: must be Observe for {topic}, which is looked after for a DelayTopic of another "
        "namespace already; or use another topic"
    )
    assert topics.config(topic)["retention.ms"] == before


def test_dead_letters_are_not_sent_into_the_source_of_another(
    shared: Platform, hostile: Platform, victim: Victim
) -> None:
    hostile.apply_topic("forger", deadLetter={"topic": victim.source, "management": "Observe"})

    assert refused(hostile, "forger") == (
        f"spec.deadLetter.topic: {victim.source} is the source topic of a DelayTopic of another namespace already; "
        "use another"
    )


def test_whose_topic_it_is_is_told_to_the_platform_team_only(
    shared: Platform, hostile: Platform, victim: Victim
) -> None:
    hostile.apply_topic("curious", source={"topic": victim.source, "management": "Observe"})

    message = refused(hostile, "curious")
    assert (victim.key in message, shared.team in str(hostile.topic("curious").get("status"))) == (False, False)
    wait_for(lambda: f'"{victim.key}"' in shared.operator.why(), shared.operator.why)


def test_what_is_refused_blocks_nobody(shared: Platform, hostile: Platform) -> None:
    victim = unmade(shared)
    hostile.apply_topic("blocker", source={"topic": victim.source}, delayClassName="there-is-none")
    refused(hostile, "blocker", "ClassNotFound")
    narrow(shared, hostile)
    hostile.apply_topic("narrow-blocker", source={"topic": victim.source}, delayClassName=f"{shared.class_name}-n")
    refused(hostile, "narrow-blocker", "SourceNotAllowed")

    make(shared, victim)

    shared.await_condition(victim.name, "TopicsReady")


def narrow(shared: Platform, hostile: Platform) -> None:
    """A class by which the hostile team may name its own topics only."""
    connection = {"bootstrapServers": shared.kafka.bootstrap_servers}
    own = {"sourceTopics": ["{namespace}.*"], "targetTopics": ["{namespace}.*"]}
    shared.apply("DelayClass", f"{shared.class_name}-n", {"connection": connection, "access": own})


def test_a_connection_of_its_own_claims_nothing_of_the_cluster_that_it_names(
    shared: Platform, hostile: Platform
) -> None:
    victim = unmade(shared)
    topics = {"source": {"topic": victim.source}, "target": {"topic": victim.target}}
    apply_inline(hostile, "claimer", shared.kafka.bootstrap_servers, topics, authentication=UNKNOWN_SECRET)
    hostile.await_condition("claimer", "PolicyAccepted")

    make(shared, victim)

    shared.await_condition(victim.name, "TopicsReady")
    assert "of another namespace" in refused(hostile, "claimer")


def test_by_another_address_a_topic_is_another_s_all_the_same(
    shared: Platform, hostile: Platform, victim: Victim
) -> None:
    topics = KafkaTopics(shared.kafka.bootstrap_servers)
    before = topics.config(victim.source)["retention.ms"]
    address = shared.kafka.bootstrap_servers.replace("127.0.0.1", "localhost")

    apply_inline(hostile, "around", address, {"target": {"topic": victim.source, **SHORT}})

    assert "spec.target.management: must be Observe" in refused(hostile, "around")
    assert topics.config(victim.source)["retention.ms"] == before
