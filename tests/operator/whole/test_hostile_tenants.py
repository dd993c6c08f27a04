"""A tenant who may write ConfigMaps, pods and DelayTopics in its own namespace, and tries to get at what is others'."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from tests.cluster.control_plane import ControlPlane
from tests.cluster.kube_client import KubeClient, Object
from tests.support.platform import Platform
from tests.support.relay_process import wait_for

from delaytopic_api.connection import KafkaConnection
from delaytopic_operator.keys import Key
from delaytopic_operator.route_record import former_record_name, parse_record, record_document, record_name

pytestmark = [pytest.mark.integration, pytest.mark.kubernetes]

VERBS = ["get", "list", "watch", "create", "update", "patch", "delete"]


@pytest.fixture
def tenant(running: Platform, control_plane: ControlPlane) -> KubeClient:
    """A user with a Role that a team would have, and nothing else."""
    client, user = control_plane.client, f"user-of-{running.team}"
    rules = [
        {"apiGroups": [""], "resources": ["configmaps", "pods", "secrets"], "verbs": VERBS},
        {"apiGroups": ["delaytopic.dev"], "resources": ["delaytopics"], "verbs": VERBS},
    ]
    rbac = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{running.team}"
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


def forged_records(true: Object, ghost: Key, address: str) -> Iterator[Object]:
    """Records of a DelayTopic that never was: its topics are the victim's, its Kafka is the tenant's."""
    record = parse_record(true).draining(1, 2, pending=None, source_partitions=None)
    connection = KafkaConnection(bootstrap_servers=address)
    changes = {"name": ghost.name, "class_name": None, "connection": connection}
    document = record_document(record.model_copy(update=changes), ghost.namespace)
    for name in (record_name(ghost), former_record_name(ghost)):
        yield {**document, "metadata": {**document["metadata"], "name": name}}


def await_resync(platform: Platform) -> None:
    """Wait until everything that is there now was listed, and whatever was found in it was looked at."""
    now_s = time.time()
    wait_for(lambda: platform.operator.metric("delay_operator_resync_last_seconds") > now_s, platform.operator.why)
    wait_for(lambda: platform.operator.metric("delay_operator_queue_depth") == 0, platform.operator.why)
    platform.apply_topic("later")
    platform.await_condition("later", "TopicsReady")


@pytest.mark.takes_long("waits for the operator to list everything again")
def test_a_forged_record_is_neither_believed_nor_followed(running: Platform, tenant: KubeClient) -> None:
    running.apply_topic("victim")
    running.await_condition("victim", "TopicsReady")
    records = f"/api/v1/namespaces/{running.namespace}/configmaps"
    true = running.client.get(f"{records}/{record_name(Key(running.team, 'victim'))}")
    ghost = Key(running.team, "ghost")

    with listening() as (address, callers):
        for forged in forged_records(true, ghost, address):
            tenant.create(f"/api/v1/namespaces/{running.team}/configmaps", forged)
        await_resync(running)

        written = [running.client.find(f"{records}/{name(ghost)}") for name in (record_name, former_record_name)]
        assert (written, callers) == ([None, None], [])
    kept = running.client.get(f"{records}/{record_name(Key(running.team, 'victim'))}")
    assert kept["data"]["record.json"] == true["data"]["record.json"]
