"""A check that a cluster of somebody else has room for what the tests install and remove."""

from __future__ import annotations

from playground.kube.kube_client import KubeClient
from playground.platform.installed_platform import DEFINITIONS, NAMESPACES


class Occupied(Exception):
    """It has something that would be gone at the end."""


def require_vacancy(client: KubeClient) -> None:
    """Raises Occupied where delaytopic, or a namespace by one of our names, is there already."""
    paths = [f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}" for name in DEFINITIONS]
    paths += [f"/api/v1/namespaces/{name}" for name in NAMESPACES]
    there = [path.rpartition("/")[2] for path in paths if client.find(path) is not None]
    if there:
        raise Occupied(
            f"the cluster has {', '.join(there)} already, and would not have them afterwards: use another one, or, "
            "when an earlier run was cut off, delete what it left"
        )
