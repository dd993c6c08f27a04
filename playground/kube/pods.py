"""Pods and Deployments as tests ask about them."""

from __future__ import annotations

from playground.kube.awaiting import await_object
from playground.kube.kube_client import KubeClient, Object


def pods_of(client: KubeClient, namespace: str, **labels: str) -> list[Object]:
    """Return those with all of these labels (dots and slashes: pass them as `**{"app.kubernetes.io/name": ...}`)."""
    selector = ",".join(f"{name}={value}" for name, value in labels.items())
    return list(client.get(f"/api/v1/namespaces/{namespace}/pods", labelSelector=selector)["items"])


def await_rollout(client: KubeClient, namespace: str, name: str, replicas: int, *, seconds: float = 60.0) -> Object:
    """The Deployment as soon as all its pods are of its present template, available, and as many as wanted."""

    def holds(found: Object | None) -> bool:
        status = (found or {}).get("status", {})
        if not found or status.get("observedGeneration") != found["metadata"]["generation"]:
            return False
        counts = {status.get(field, 0) for field in ("replicas", "updatedReplicas", "availableReplicas")}
        return bool(counts == {replicas} and found["spec"]["replicas"] == replicas)

    path = f"/apis/apps/v1/namespaces/{namespace}/deployments/{name}"
    return await_object(client, path, holds, seconds=seconds) or {}
