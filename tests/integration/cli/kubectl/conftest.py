"""A whole platform on a real API server, and kubectl as its users have it."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from images.tools.binaries import Programs
from playground.kube.control_plane import ControlPlane
from tests.cluster.node.local_node import LocalNode
from tests.harness.shared_servers import KafkaAddress, RedisAddress
from tests.support.operator.platform import Platform
from tests.support.operator.running_platform import running_platform


@pytest.fixture(scope="module")
def running(
    control_plane: ControlPlane,
    node: LocalNode,
    kafka: KafkaAddress,
    redis: RedisAddress,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Platform]:
    """An operator with its default class, and a team."""
    directory = tmp_path_factory.mktemp("running")
    with running_platform(control_plane, node, kafka, redis, directory) as platform:
        yield platform


@pytest.fixture(scope="module")
def users_kubectl(control_plane: ControlPlane, kubernetes_programs: Programs) -> Iterator[None]:
    """The kubectl of the PATH, with the kubeconfig of the environment."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("PATH", str(kubernetes_programs.directory), prepend=os.pathsep)
        environment.setenv("KUBECONFIG", str(control_plane.kubeconfig))
        yield
