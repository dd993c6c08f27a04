"""Fixtures of tests against a real Kubernetes API server, for every test; `tests/conftest.py` imports them.

`control_plane` (`tests.harness.fixtures`) is a `ControlPlane` with the project's CRDs, shared by all worker processes.
`.client` is plain REST as admin, `.kubectl(...)` runs kubectl as admin, `.kubeconfig` is a file for other clients.
`.kubeconfig_for_user(name, groups)`, `.kubeconfig_for_service_account(namespace, name)` and `.client_for_...` are the
same with fewer rights; users and groups need no object, only RBAC. `.audit.calls(mark, agent=...)` is what was asked
of the server since `mark = .audit.mark()`. Tests of others run at the same time: whatever is not in a namespace of the
test's own takes a name from `tests.harness.names.unique`.

Tests that use them have the marks `integration` and `kubernetes`.

- `own_control_plane` (module): an `OwnControlPlane`, which a test may stop and restart.
- `namespace` (function): the name of a fresh namespace; it is deleted afterwards. Pods in it stay pending.
- `pod_namespace` (function): the same, and its pods run as processes on `node`.
- `make_namespace` (function): `make_namespace("shop", labels={...}, pods=True)` makes more of them; the names get a
  suffix, labels are those of the Namespace (such as pod-security.kubernetes.io/enforce: restricted).
- `node` (session): the `LocalNode`. `.pods(namespace)` are what runs there: name, pid, ip, log file; `.pod(...)` one.
  `.missing_images` are names of images that can't be pulled.
- `helm` (session): a `Helm` that renders and lints charts, and installs into the control plane as admin.
  `helm_program` (session) is the path of the command; a test that only renders makes its own `Helm` with it, and needs
  no control plane.

`playground.kube.awaiting` waits for objects by watching, `playground.kube.pods` knows Deployments and their pods, and
`tests.cluster.access` compares what RBAC allows with what was done.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import pytest
from images.tools import binaries
from images.tools.binaries import Programs
from playground.kube.control_plane import ControlPlane, OwnControlPlane, custom_resource_definitions
from playground.kube.helm import Helm
from tests.cluster.node.local_node import NODE_LABEL, LocalNode
from tests.harness.fixtures import prepared
from tests.harness.names import unique


class MakeNamespace(Protocol):
    """Makes a namespace, and says what it is called: the stem and something that no other has."""

    def __call__(self, stem: str = "test", *, labels: dict[str, str] | None = None, pods: bool = False) -> str: ...


@pytest.fixture(scope="session")
def helm_program() -> Path:
    return prepared(binaries.helm_program)


@pytest.fixture(scope="session")
def helm(helm_program: Path, control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Helm:
    return Helm(helm_program, tmp_path_factory.mktemp("helm"), control_plane.kubeconfig)


@pytest.fixture(scope="session")
def node(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalNode]:
    with LocalNode(control_plane, tmp_path_factory.mktemp("node"), name=unique("node")) as running:
        yield running


@pytest.fixture(scope="module")
def own_control_plane(
    kubernetes_programs: Programs, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[OwnControlPlane]:
    directory = tmp_path_factory.mktemp("own-control-plane")
    definitions = custom_resource_definitions()
    with OwnControlPlane(kubernetes_programs, directory, before_controllers=definitions) as plane:
        yield plane


@pytest.fixture
def make_namespace(control_plane: ControlPlane, request: pytest.FixtureRequest) -> Iterator[MakeNamespace]:
    made: list[str] = []

    def make(stem: str = "test", *, labels: dict[str, str] | None = None, pods: bool = False) -> str:
        if pods:
            served = {NODE_LABEL: request.getfixturevalue("node").name}
            labels = {**(labels or {}), **served}
        name = f"{stem}-{secrets.token_hex(4)}"
        metadata = {"name": name, "labels": labels or {}}
        control_plane.client.create("/api/v1/namespaces", {"metadata": metadata})
        made.append(name)
        return name

    yield make
    for name in made:
        if control_plane.client.find(f"/api/v1/namespaces/{name}"):
            control_plane.client.delete(f"/api/v1/namespaces/{name}")


@pytest.fixture
def namespace(make_namespace: MakeNamespace) -> str:
    return make_namespace()


@pytest.fixture
def pod_namespace(make_namespace: MakeNamespace) -> str:
    return make_namespace(pods=True)
