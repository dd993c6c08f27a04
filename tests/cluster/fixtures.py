"""Fixtures of tests against a real Kubernetes API server; a conftest imports the ones it wants by name.

    from tests.cluster.fixtures import control_plane, kubernetes_programs, namespace, node, pod_namespace

A fixture needs those it is made of, so import these, too (`__all__` has them all). However many conftests import them:
a session has one control plane and one node. Tests that use them have the marks `integration` and `kubernetes`.

- `control_plane` (session): a `ControlPlane` with the project's CRDs. `.client` is plain REST as admin,
  `.kubectl(...)` runs kubectl as admin, `.kubeconfig` is a file for other clients.
  `.kubeconfig_for_user(name, groups)`, `.kubeconfig_for_service_account(namespace, name)` and `.client_for_...` are the
  same with fewer rights; users and groups need no object, only RBAC. `.audit.calls(mark, agent=...)` is what was asked
  of the server since `mark = .audit.mark()`. `.restart_api_server()`, and `with .without_api_server():` for what
  happens while it is away.
- `namespace` (function): the name of a fresh namespace; it is deleted afterwards. Pods in it stay pending.
- `pod_namespace` (function): the same, and its pods run as processes on `node`.
- `make_namespace` (function): `make_namespace("shop", labels={...}, pods=True)` makes more of them; the names get a
  suffix, labels are those of the Namespace (such as pod-security.kubernetes.io/enforce: restricted).
- `node` (session): the `LocalNode`. `.pods(namespace)` are what runs there: name, pid, ip, log file; `.pod(...)` one.
  `.missing_images` are names of images that can't be pulled.
- `helm` (session): a `Helm` that renders and lints charts, and installs into the control plane as admin.
  `helm_program` (session) is the path of the command; a test that only renders makes its own `Helm` with it, and needs
  no control plane.

`tests.cluster.awaiting` waits for objects by watching, `tests.cluster.pods` knows Deployments and their pods, and
`tests.cluster.access` compares what RBAC allows with what was done.

The first run builds Kubernetes with Go, which takes about ten minutes. Without Go, and without what an earlier run
built, tests that use these fixtures fail where the environment has CI set, and are skipped elsewhere.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NoReturn, Protocol, TypeVar

import pytest
import yaml
from tests.cluster import binaries
from tests.cluster.binaries import Programs
from tests.cluster.control_plane import ControlPlane
from tests.cluster.go_builds import ProgramsMissingError
from tests.cluster.helm import Helm
from tests.cluster.kube_client import Object
from tests.cluster.node import NODE_LABEL, LocalNode

__all__ = [
    "control_plane",
    "helm",
    "helm_program",
    "kubernetes_programs",
    "make_namespace",
    "namespace",
    "node",
    "pod_namespace",
]

Built = TypeVar("Built")
Server = TypeVar("Server", bound=AbstractContextManager[object])
_SHARED = pytest.StashKey[dict[str, Any]]()
CRDS = Path(__file__).parents[2] / "crds"


class MakeNamespace(Protocol):
    """Makes a namespace, and says what it is called: the stem and something that no other has."""

    def __call__(self, stem: str = "test", *, labels: dict[str, str] | None = None, pods: bool = False) -> str: ...


@pytest.fixture(scope="session")
def kubernetes_programs(request: pytest.FixtureRequest) -> Programs:
    """Built now, if need be: on the terminal, not in what pytest captures, since it takes minutes."""
    return built(request, binaries.kubernetes_programs)


@pytest.fixture(scope="session")
def control_plane(
    request: pytest.FixtureRequest, kubernetes_programs: Programs, tmp_path_factory: pytest.TempPathFactory
) -> ControlPlane:
    def make() -> ControlPlane:
        directory = tmp_path_factory.mktemp("control-plane")
        return ControlPlane(kubernetes_programs, directory, before_controllers=custom_resource_definitions())

    return shared(request, "control plane", make)


@pytest.fixture(scope="session")
def helm_program(request: pytest.FixtureRequest) -> Path:
    return built(request, binaries.helm_program)


@pytest.fixture(scope="session")
def helm(helm_program: Path, control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Helm:
    return Helm(helm_program, tmp_path_factory.mktemp("helm"), control_plane.kubeconfig)


@pytest.fixture(scope="session")
def node(
    request: pytest.FixtureRequest, control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> LocalNode:
    return shared(request, "node", lambda: LocalNode(control_plane, tmp_path_factory.mktemp("node")))


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


def shared(request: pytest.FixtureRequest, name: str, make: Callable[[], Server]) -> Server:
    """The only one of that name in a session; it is left at the end, those made later first.

    A session's fixture alone would be one for each conftest that imports it.
    """
    known = request.config.stash.setdefault(_SHARED, {})
    if name not in known:
        server = make()
        known[name] = server.__enter__()
        request.session.addfinalizer(lambda: server.__exit__(None, None, None))
    found: Server = known[name]
    return found


def built(request: pytest.FixtureRequest, build: Callable[[], Built]) -> Built:
    """What `build` builds, with its progress shown; the test is skipped, in CI failed, when it can't be built here."""
    capture = request.config.pluginmanager.getplugin("capturemanager")
    try:
        with capture.global_and_fixture_disabled():
            return build()
    except ProgramsMissingError as missing:
        _give_up(f"NOT TESTED: {missing}")


def _give_up(reason: str) -> NoReturn:
    if os.environ.get("CI"):
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


def custom_resource_definitions() -> list[Object]:
    """The project's own, as they are in the checkout."""
    return [document for path in sorted(CRDS.glob("*.yaml")) for document in yaml.safe_load_all(path.read_text())]
