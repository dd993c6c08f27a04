"""A whole platform on a real API server, and kubectl as its users have it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.cluster.binaries import Programs
from tests.cluster.control_plane import ControlPlane
from tests.cluster.fixtures import control_plane, kubernetes_programs, node
from tests.cluster.node import LocalNode
from tests.support.platform import Platform
from tests.support.running_platform import running_platform

from delaytopic_cli.embedded.kafka_server import KafkaServer
from delaytopic_cli.embedded.redis_server import RedisServer

__all__ = ["control_plane", "kubernetes_programs", "node"]

Asked = tuple[int, str, str]
"""Exit code, standard output and standard error."""
Ask = Callable[..., Asked]


@pytest.fixture(scope="module")
def running(
    control_plane: ControlPlane, node: LocalNode, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Platform]:
    """An operator whose settings are where its chart puts them."""
    directory = tmp_path_factory.mktemp("running")
    with (
        KafkaServer(directory / "kafka") as kafka,
        RedisServer(directory / "redis") as redis,
        running_platform(control_plane, node, kafka, redis, directory) as platform,
    ):
        settings = settings_of(platform)
        platform.plane.kubectl.apply([settings])
        yield platform
        # A namespace goes in its own time: until then its settings would be found beside those of the next operator.
        platform.plane.kubectl("delete", "configmap", settings["metadata"]["name"], "-n", platform.namespace)


@pytest.fixture
def users_kubectl(control_plane: ControlPlane, kubernetes_programs: Programs, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kubectl of the PATH, with the kubeconfig of the environment."""
    monkeypatch.setenv("PATH", str(kubernetes_programs.directory), prepend=os.pathsep)
    monkeypatch.setenv("KUBECONFIG", str(control_plane.kubeconfig))


def settings_of(platform: Platform) -> dict[str, Any]:
    labels = {"app.kubernetes.io/part-of": "delaytopic", "app.kubernetes.io/component": "operator"}
    config = {
        "apiVersion": "delaytopic.dev/v1alpha1",
        "kind": "OperatorConfig",
        "namespace": platform.namespace,
        "watchNamespaces": [platform.team],
    }
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "delaytopic", "namespace": platform.namespace, "labels": labels},
        "data": {"operator.yaml": yaml.safe_dump(config)},
    }


@pytest.fixture
def topic_file(running: Platform, tmp_path: Path) -> Callable[..., Path]:
    """Makes the file of a DelayTopic of the team."""

    def make(name: str, **spec: object) -> Path:
        usual = {
            "delayClassName": running.class_name,
            "source": {"topic": f"{running.team}.{name}.delayed"},
            "target": {"topic": f"{running.team}.{name}"},
        }
        document = {
            "apiVersion": "delaytopic.dev/v1alpha1",
            "kind": "DelayTopic",
            "metadata": {"name": name, "namespace": running.team},
            "spec": {**usual, **spec},
        }
        file = tmp_path / f"{name}.yaml"
        file.write_text(yaml.safe_dump(document))
        return file

    return make
