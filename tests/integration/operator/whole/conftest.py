"""Everything that an operator works with, real: an API server, a Kafka, a Redis, and a node that runs relays."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from playground.kube.control_plane import ControlPlane
from tests.cluster.fixtures import MakeNamespace
from tests.cluster.node.local_node import LocalNode
from tests.harness.shared_servers import KafkaAddress, RedisAddress
from tests.support.operator.platform import Platform
from tests.support.operator.process import OperatorProcess
from tests.support.operator.running_platform import RunPlatform, running_platform


@pytest.fixture
def platform(
    control_plane: ControlPlane,
    make_namespace: MakeNamespace,
    make_operator: Callable[..., OperatorProcess],
    kafka: KafkaAddress,
    redis: RedisAddress,
) -> Iterator[Platform]:
    """A platform team's namespace with a running operator, its default class, and an app team's namespace."""
    made = Platform(control_plane, make_namespace, make_operator, kafka, redis)
    yield made
    made.remove()


@pytest.fixture(scope="module")
def run_platform(
    control_plane: ControlPlane,
    node: LocalNode,
    kafka: KafkaAddress,
    redis: RedisAddress,
    tmp_path_factory: pytest.TempPathFactory,
) -> RunPlatform:
    """Runs platforms for all tests of a module, with settings of their own."""

    def run(name: str, **settings: Any) -> AbstractContextManager[Platform]:
        return running_platform(control_plane, node, kafka, redis, tmp_path_factory.mktemp(name), **settings)

    return run


@pytest.fixture(scope="module")
def running(run_platform: RunPlatform) -> Iterator[Platform]:
    """A platform that runs for all tests of a module, which use DelayTopics of different names."""
    with run_platform("running", inheritedLabels=["team"]) as platform:
        yield platform


@pytest.fixture
def make_operator(control_plane: ControlPlane, tmp_path: Path) -> Iterator[Callable[..., OperatorProcess]]:
    """Makes operators that are processes; they are killed at the end."""
    operators: list[OperatorProcess] = []

    def make(name: str, namespace: str, **settings: object) -> OperatorProcess:
        module = "delaytopic_operator"
        operators.append(OperatorProcess(tmp_path, name, control_plane.kubeconfig, namespace, settings, module))
        return operators[-1]

    yield make
    for operator in operators:
        operator.stop_whatever_happens()
