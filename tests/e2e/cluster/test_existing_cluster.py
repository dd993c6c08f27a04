"""A cluster of somebody else is named by the environment, and left alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.e2e.cluster import folders
from tests.e2e.cluster.clusters import Cluster
from tests.e2e.cluster.errors import MachineLacks, NotPossible
from tests.e2e.cluster.existing_cluster import ExistingCluster, loader_command
from tests.e2e.cluster.kind_cluster import KindCluster


def test_it_is_known_by_its_kubeconfig(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "config"
    kubeconfig.write_text("{}")

    assert ExistingCluster.from_environment({"KUBECONFIG": str(kubeconfig)}).kubeconfig == kubeconfig


@pytest.mark.parametrize("environment", [{}, {"KUBECONFIG": ""}, {"KUBECONFIG": "/no/such/file"}])
def test_without_a_kubeconfig_it_is_said_what_is_lacking(environment: dict[str, str]) -> None:
    with pytest.raises(MachineLacks, match="has to name one file, the kubeconfig of the cluster to use"):
        ExistingCluster.from_environment(environment)


@pytest.mark.parametrize(
    ("loader", "expected"),
    [
        ("", []),
        ("k3d image import {image} -c dev", ["k3d", "image", "import", "shop/relay:1", "-c", "dev"]),
        ("sh -c 'docker push registry/{image}'", ["sh", "-c", "docker push registry/shop/relay:1"]),
    ],
)
def test_images_come_to_it_by_a_command_of_its_owner(loader: str, expected: list[str]) -> None:
    assert loader_command(loader, "shop/relay:1") == expected


def test_its_nodes_and_its_api_server_are_not_ours(tmp_path: Path) -> None:
    cluster = ExistingCluster(tmp_path / "config")

    with pytest.raises(NotPossible, match=r"^ls can't run on a node"):
        cluster.exec_on_node("ls")
    with pytest.raises(NotPossible, match="can't be stopped"):
        cluster.without_api_server()


def test_tests_may_ask_the_same_of_either_cluster(tmp_path: Path) -> None:
    either: list[Cluster] = [ExistingCluster(tmp_path / "config"), KindCluster("proof")]

    assert [cluster.kubeconfig for cluster in either] == [
        tmp_path / "config",
        folders.run_state("proof") / "kubeconfig",
    ]
