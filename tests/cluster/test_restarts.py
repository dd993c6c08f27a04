"""The API server of the tests goes and comes back, and the node goes on."""

from __future__ import annotations

import http.client
from pathlib import Path

import pytest
from tests.cluster.control_plane import OwnControlPlane
from tests.cluster.node.local_node import NODE_LABEL, LocalNode
from tests.cluster.node.test_local_node import applied, deployment, texts
from tests.cluster.pods import await_rollout
from tests.harness.names import unique

from delaytopic_process.waiting import wait_until

pytestmark = [pytest.mark.integration, pytest.mark.kubernetes, pytest.mark.nightly]


def test_the_api_server_comes_back_with_what_it_knew(own_control_plane: OwnControlPlane) -> None:
    client, path = own_control_plane.client, "/api/v1/namespaces/default/configmaps"
    client.create(path, {"metadata": {"name": "kept"}, "data": {"a": "b"}})

    with own_control_plane.without_api_server(), pytest.raises((OSError, http.client.HTTPException)):
        client.get(path)

    assert client.get(f"{path}/kept")["data"] == {"a": "b"}


def test_a_deployment_survives_a_restart_of_the_api_server(own_control_plane: OwnControlPlane, tmp_path: Path) -> None:
    plane, namespace = own_control_plane, unique("restart")
    metadata = {"name": namespace, "labels": {NODE_LABEL: "local"}}
    plane.client.create("/api/v1/namespaces", {"metadata": metadata})
    with LocalNode(plane, tmp_path, name="local") as node:
        applied(plane, namespace, texts("hello"), deployment(replicas=2))
        await_rollout(plane.client, namespace, "greeter", 2)
        before = {pod.pid for pod in node.pods(namespace)}

        plane.restart_api_server()
        node.pods(namespace)[0].process.kill()

        def restarted() -> bool:
            return len({pod.pid for pod in node.pods(namespace)} - before) == 1

        assert wait_until(restarted, timeout_seconds=30)
        await_rollout(plane.client, namespace, "greeter", 2)
