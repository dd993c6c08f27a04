"""The control plane, and clients of the operator's for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playground.kube.control_plane import ControlPlane
from tests.support.operator.process import OperatorProcess

from delaytopic_operator.kube.client import KubeApi, Sink, always
from delaytopic_operator.kube.login import ClusterLogin
from delaytopic_operator.kube.transport import KubeTransport


@pytest.fixture
def requests() -> Counter[tuple[str, str, str]]:
    """The requests of `make_kube`'s clients, counted by verb, resource and code."""
    return Counter()


@pytest.fixture
def make_kube(requests: Counter[tuple[str, str, str]]) -> Iterator[Callable[..., KubeApi]]:
    transports: list[KubeTransport] = []

    def make(kubeconfig: Path, sink: Sink | None = None, deadline_s: float = 30.0) -> KubeApi:
        def observe(call: object, code: str, seconds: float) -> None:
            requests[call.verb, call.resource, code] += 1  # type: ignore[attr-defined]

        transports.append(KubeTransport(ClusterLogin(kubeconfig), observe))
        return KubeApi(transports[-1], always, sink, deadline_s)

    yield make
    for transport in transports:
        transport.close()


@pytest.fixture
def kube(control_plane: ControlPlane, make_kube: Callable[..., KubeApi]) -> KubeApi:
    """As admin."""
    return make_kube(control_plane.kubeconfig)


@pytest.fixture
def make_operator(control_plane: ControlPlane, tmp_path: Path) -> Iterator[Callable[..., OperatorProcess]]:
    """Makes operators that are processes; they are killed at the end."""
    operators: list[OperatorProcess] = []

    def make(name: str, namespace: str, kubeconfig: Path | None = None, **settings: object) -> OperatorProcess:
        operator = OperatorProcess(tmp_path, name, kubeconfig or control_plane.kubeconfig, namespace, settings)
        operators.append(operator)
        return operator

    yield make
    for operator in operators:
        operator.stop_whatever_happens()
