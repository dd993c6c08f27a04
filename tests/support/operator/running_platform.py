"""A platform whose operator runs for all tests of a module: each of them has DelayTopics of its own."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from playground.kube.control_plane import ControlPlane
from tests.cluster.node.local_node import NODE_LABEL, LocalNode
from tests.harness.shared_servers import KafkaAddress, RedisAddress
from tests.support.operator.platform import Platform
from tests.support.operator.process import OperatorProcess

RunPlatform = Callable[..., AbstractContextManager[Platform]]
"""Runs a platform on the servers of the test run: from the name of its folder, and the settings of its operator."""


@contextmanager
def running_platform(
    plane: ControlPlane,
    node: LocalNode,
    kafka: KafkaAddress,
    redis: RedisAddress,
    directory: Path,
    *,
    module: str = "delaytopic_operator",
    labels: dict[str, str] | None = None,
    log_in: Callable[[str, str], Path] | None = None,
    teams: int = 1,
    **settings: object,
) -> Iterator[Platform]:
    """Start it, with the operator's settings; leave nothing behind. `module` is what is run as the operator.

    `labels` are those of both namespaces. `log_in`, given the operator's namespace and the team's, answers with a
    kubeconfig for the operator; without it, the operator is the cluster's admin. `teams` is the number of app teams.
    """
    namespaces: list[str] = []

    def make_namespace(stem: str, *, pods: bool = False) -> str:
        name = f"{stem}-{secrets.token_hex(4)}"
        served = {NODE_LABEL: node.name} if pods else {}
        plane.client.create("/api/v1/namespaces", {"metadata": {"name": name, "labels": {**served, **(labels or {})}}})
        namespaces.append(name)
        return name

    def make_operator(name: str, namespace: str, **usual: object) -> OperatorProcess:
        kubeconfig = log_in(namespace, namespaces[-1]) if log_in is not None else plane.kubeconfig
        return OperatorProcess(directory, name, kubeconfig, namespace, {**usual, **settings}, module)

    platform = Platform(plane, make_namespace, make_operator, kafka, redis, teams)
    try:
        yield platform.start()
    finally:
        platform.remove()
        for name in namespaces:
            if plane.client.find(f"/api/v1/namespaces/{name}") is not None:  # a test may have deleted it
                plane.client.delete(f"/api/v1/namespaces/{name}")
