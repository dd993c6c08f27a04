"""Pods end as Kubernetes ends them: a node that asked where it should kill would hide what a crash does."""

from __future__ import annotations

import signal

import pytest
from playground.kube.control_plane import ControlPlane
from playground.kube.pods import await_rollout
from tests.cluster.node.local_node import LocalNode

from delaytopic_local.servers.process import ManagedProcess
from delaytopic_process.waiting import wait_until

pytestmark = [pytest.mark.integration, pytest.mark.kubernetes]

# Ends with 0 when it is asked to.
PROGRAM = "import os, signal; signal.signal(signal.SIGTERM, lambda *_: os._exit(0)); print('ready'); signal.pause()"


def sleeper(control_plane: ControlPlane, node: LocalNode, namespace: str) -> tuple[str, ManagedProcess]:
    """Return the path and the process of a Deployment's pod that runs."""
    labels = {"app": "sleeper"}
    container = {
        "name": "sleeper",
        "image": "sleeper",
        "command": ["python", "-u", "-c", PROGRAM],
    }
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    spec = {"selector": {"matchLabels": labels}, "template": template}
    metadata = {"name": "sleeper"}
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}
    control_plane.kubectl.apply([deployment], "-n", namespace)
    await_rollout(control_plane.client, namespace, "sleeper", 1)
    [pod] = node.pods(namespace)
    assert wait_until(lambda: "ready" in pod.log_file.read_text(), timeout_seconds=30)
    return f"/api/v1/namespaces/{namespace}/pods/{pod.name}", pod.process


def test_a_pod_that_is_deleted_by_force_is_killed_and_not_asked_to_stop(
    control_plane: ControlPlane, node: LocalNode, pod_namespace: str
) -> None:
    path, process = sleeper(control_plane, node, pod_namespace)

    control_plane.client.delete(path, gracePeriodSeconds=0)

    assert wait_until(lambda: process.exit_code is not None, timeout_seconds=30)
    assert process.exit_code == -signal.SIGKILL


def test_a_pod_that_is_no_longer_wanted_is_asked_to_stop_and_goes(
    control_plane: ControlPlane, node: LocalNode, pod_namespace: str
) -> None:
    path, process = sleeper(control_plane, node, pod_namespace)

    control_plane.kubectl("scale", "deployment/sleeper", "--replicas=0", "-n", pod_namespace)

    assert wait_until(lambda: control_plane.client.find(path) is None, timeout_seconds=30)
    assert process.exit_code == 0
