"""A real cluster with delaytopic installed in it, once for all tests; each module has teams, in namespaces, of its own.

E2E_CLUSTER=kind (the default) makes a cluster of one node, and takes it away at the end unless it was there before;
E2E_CLUSTER=existing uses the one that KUBECONFIG names, and leaves it as it found it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from images.tools.binaries import Programs
from playground.cluster.clusters import Cluster
from playground.cluster.existing_cluster import ExistingCluster
from playground.cluster.kind_cluster import KindCluster
from playground.images.build import build_all
from playground.kube.kube_client import KubeClient
from playground.platform.beginning import begin
from playground.platform.installation import Images
from playground.platform.installed_platform import CommandLines, InstalledPlatform
from tests.e2e.support.preparing import preparing
from tests.e2e.support.team import MakeTeam, Team
from tests.e2e.support.vacancy import require_vacancy

KINDS = ("kind", "existing")


@pytest.fixture(scope="session")
def cluster_and_images(pytestconfig: pytest.Config) -> Iterator[tuple[Cluster, Images]]:
    """Return the cluster that E2E_CLUSTER names; the images are known to its nodes."""
    wanted = os.environ.get("E2E_CLUSTER", "kind")
    if wanted not in KINDS:
        pytest.fail(f"E2E_CLUSTER={wanted}: allowed are {' and '.join(KINDS)}", pytrace=False)
    if wanted == "existing":
        with preparing(pytestconfig):
            prepared = take_existing()
        yield prepared
        return
    kind = KindCluster()
    was_up = kind.is_up()
    try:
        with preparing(pytestconfig):
            images = begin(kind)
        yield kind, images
    finally:
        if not was_up:
            kind.stop()


def take_existing() -> tuple[Cluster, Images]:
    """The cluster of KUBECONFIG, if nothing of ours is in it."""
    existing = ExistingCluster.from_environment()
    require_vacancy(KubeClient(existing.kubeconfig, agent="e2e"))
    images = build_all(existing.docker)
    existing.load_images(*images.values())
    return existing, images


@pytest.fixture(scope="session")
def cluster(cluster_and_images: tuple[Cluster, Images]) -> Cluster:
    return cluster_and_images[0]


@pytest.fixture(scope="session")
def images(cluster_and_images: tuple[Cluster, Images]) -> Images:
    return cluster_and_images[1]


@pytest.fixture(scope="session")
def kubeconfig(cluster: Cluster) -> Path:
    """To connect by, as an administrator."""
    return cluster.kubeconfig


@pytest.fixture(scope="session")
def kubectl_program(kubernetes_programs: Programs) -> Path:
    return kubernetes_programs.path("kubectl")


@pytest.fixture(scope="session")
def platform(
    cluster: Cluster,
    images: Images,
    kubectl_program: Path,
    helm_program: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[InstalledPlatform]:
    """Kafka, Redis, the operator and a class."""
    programs = CommandLines(kubectl_program, helm_program)
    platform = InstalledPlatform.of(cluster.kubeconfig, programs, images, tmp_path_factory.mktemp("platform"))
    if not isinstance(cluster, ExistingCluster):
        platform.install_all()
        yield platform
        return
    try:
        platform.install_all()
        yield platform
    finally:
        platform.remove()


@pytest.fixture(scope="module")
def make_team(platform: InstalledPlatform) -> Iterator[MakeTeam]:
    """Makes teams with a namespace each; at the end their relays go, so that those of the next module have room."""
    teams: list[Team] = []

    def make(stem: str) -> Team:
        teams.append(Team(platform, platform.make_namespace(stem)))
        return teams[-1]

    yield make
    for team in teams:
        team.leave()
