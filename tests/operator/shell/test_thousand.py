"""A thousand DelayTopics with what belongs to them: how long until all are known, and in how much memory."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.cluster.control_plane import ControlPlane
from tests.cluster.fixtures import MakeNamespace
from tests.support.operator_process import OperatorProcess
from tests.support.recording_operator import labels_of
from tests.support.relay_process import wait_for

from delaytopic_operator.keys import Key
from delaytopic_operator.kube import KubeApi
from delaytopic_operator.kube_transport import Document

pytestmark = [pytest.mark.integration, pytest.mark.kubernetes, pytest.mark.long]

TOPICS = 1_000
MOST_BYTES = 200 * 1024 * 1024


def objects(key: Key) -> Iterator[Document]:
    """A DelayTopic, and children of about the usual size, but a Deployment without pods and CronJobs."""
    metadata = {"namespace": key.namespace, "name": key.name, "labels": labels_of(key)}
    selector = {"matchLabels": labels_of(key)}
    environment = [{"name": f"SETTING_{number}", "value": "v" * 40} for number in range(20)]
    container = {"name": "relay", "image": "delaytopic/relay", "env": environment}
    pod = {"metadata": {"labels": labels_of(key)}, "spec": {"containers": [container]}}
    yield {
        "apiVersion": "delaytopic.dev/v1alpha1",
        "kind": "DelayTopic",
        "metadata": {"namespace": key.namespace, "name": key.name},
        "spec": {"source": {"topic": f"{key.name}.delayed"}, "target": {"topic": key.name}},
    }
    yield {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata,
        "spec": {"replicas": 0, "selector": selector, "template": pod},
    }
    yield {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"relay.yaml": "x" * 1_500}}
    yield {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}
    yield {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": metadata,
        "spec": {"maxUnavailable": 1, "selector": selector},
    }
    yield {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": metadata,
        "spec": {"podSelector": selector, "policyTypes": ["Ingress"], "ingress": [{"ports": [{"port": 8080}]}]},
    }
    yield {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"nodeName": "nowhere", "serviceAccountName": key.name, "containers": [container]},
    }


def test_a_thousand_delay_topics_are_known_soon_and_in_bounded_memory(
    make_operator: Callable[..., OperatorProcess],
    control_plane: ControlPlane,
    make_kube: Callable[..., KubeApi],
    make_namespace: MakeNamespace,
    capsys: pytest.CaptureFixture[str],
) -> None:
    namespace, kube = make_namespace(), make_kube(control_plane.kubeconfig)
    keys = [Key(namespace, f"route-{number:04}") for number in range(TOPICS)]

    def make(key: Key) -> None:
        for document in objects(key):
            kube.apply(document, "delaytopic-operator")

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(make, keys))
    empty = make_operator("empty", make_namespace(), watchNamespaces=["nowhere"]).start()
    empty.wait_until("leader")
    empty_bytes = empty.memory_bytes()
    empty.terminate()

    started = time.monotonic()
    operator = make_operator("one", namespace, watchNamespaces=[namespace]).start().wait_until("leader")
    known_s = time.monotonic() - started
    wait_for(lambda: len(set(operator.passes())) == TOPICS, operator.why)
    passed_s = time.monotonic() - started
    wait_for(lambda: operator.metric('delay_operator_objects{resource="pods"}') == TOPICS, operator.why)
    memory = operator.memory_bytes()

    with capsys.disabled():
        print(
            f"\n{TOPICS} DelayTopics, {sum(1 for _ in objects(keys[0]))} objects each: "
            f"all listed after {known_s:.1f} s, looked at after {passed_s:.1f} s (from the start of the process); "
            f"memory {memory / 2**20:.0f} MiB, without objects {empty_bytes / 2**20:.0f} MiB"
        )
    assert known_s < 60
    assert memory < MOST_BYTES
