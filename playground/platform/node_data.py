"""Data of Kafka and Redis on the nodes, which outlives their pods."""

from __future__ import annotations

from typing import Any

from playground.kube.awaiting import await_object
from playground.kube.kube_client import KubeClient, Object
from playground.kube.kubectl import Kubectl
from playground.kube.pods import pods_of
from playground.platform.installation import INFRASTRUCTURE

FOLDER = "delaytopic-e2e"
PARENT = "/var/lib"
PODS = f"/api/v1/namespaces/{INFRASTRUCTURE}/pods"


def delete_data(client: KubeClient, kubectl: Kubectl, image: str) -> None:
    """End Kafka and Redis, and then delete what they kept."""
    nodes = sorted({node for pod in pods_of(client, INFRASTRUCTURE) if (node := pod["spec"].get("nodeName"))})
    kubectl("delete", "statefulsets", "-n", INFRASTRUCTURE, "--all", "--cascade=foreground", "--timeout=100s")
    for number, node in enumerate(nodes):
        name = f"cleaner-{number}"
        client.create(PODS, cleaner(name, node, image))
        await_object(client, f"{PODS}/{name}", _succeeded, seconds=60)


def cleaner(name: str, node: str, image: str) -> dict[str, Any]:
    """A pod on that node."""
    container = {
        "name": "main",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["rm", "-rf", f"/host/{FOLDER}"],
        "securityContext": {"runAsUser": 0},
        "volumeMounts": [{"name": "parent", "mountPath": "/host"}],
    }
    volume = {"name": "parent", "hostPath": {"path": PARENT, "type": "Directory"}}
    spec = {"nodeName": node, "restartPolicy": "Never", "containers": [container], "volumes": [volume]}
    return {"metadata": {"name": name}, "spec": spec}


def _succeeded(found: Object | None) -> bool:
    return bool((found or {}).get("status", {}).get("phase") == "Succeeded")
