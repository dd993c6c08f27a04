"""Pods that run a program once, and what they say at the end."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from playground.kube.awaiting import await_object
from playground.kube.kube_client import KubeClient, Object, RequestRefused
from playground.kube.pods import pods_of
from urllib3.exceptions import HTTPError

RESTRICTED = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}
POD_ENDS = ("Succeeded", "Failed")
JOB_ENDS = ("Complete", "Failed")


class PodFailed(AssertionError):
    """A pod ended with an error; the text is the end of its log."""


@dataclass(frozen=True)
class PodRun:
    """A pod of its own, one try: no controller has to notice that it ended, which after an outage takes a minute."""

    client: KubeClient
    namespace: str
    name: str

    @property
    def path(self) -> str:
        """The pod's path on the API server."""
        return f"/api/v1/namespaces/{self.namespace}/pods/{self.name}"

    def await_running(self, seconds: float = 60.0) -> None:
        """Wait until it runs, or has ended already."""
        await_object(self.client, self.path, lambda found: _phase(found) in ("Running", *POD_ENDS), seconds=seconds)

    def message(self, seconds: float) -> dict[str, Any]:
        """Return what it left as termination message, once it has succeeded. Raises PodFailed, NotInTime."""
        found = await_object(self.client, self.path, lambda found: _phase(found) in POD_ENDS, seconds=seconds)
        return _message(self.client, [found] if found else [])


def start_pod(client: KubeClient, namespace: str, name: str, image: str, command: Sequence[str]) -> PodRun:
    """Return it as Pod Security `restricted` wants it."""
    spec = {"restartPolicy": "Never", **restricted_pod(image, command)}
    client.create(f"/api/v1/namespaces/{namespace}/pods", {"metadata": {"name": name}, "spec": spec})
    return PodRun(client, namespace, name)


def await_job(client: KubeClient, namespace: str, name: str, seconds: float) -> Object:
    """Return a Job once it has ended. Raises PodFailed unless it ended well, and NotInTime."""
    path = f"/apis/batch/v1/namespaces/{namespace}/jobs/{name}"
    found = await_object(client, path, _has_ended, seconds=seconds)
    pods = pods_of(client, namespace, **{"batch.kubernetes.io/job-name": name})
    if not any(_phase(pod) == "Succeeded" for pod in pods):
        raise PodFailed(_no_success(client, pods))
    assert found is not None
    return found


def restricted_pod(image: str, command: Sequence[str]) -> Object:
    """The spec of a pod that Pod Security `restricted` lets in."""
    container = {
        "name": "main",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": list(command),
        "resources": {"requests": {"cpu": "20m", "memory": "64Mi"}, "limits": {"memory": "512Mi"}},
        "securityContext": RESTRICTED,
    }
    return {"automountServiceAccountToken": False, "containers": [container]}


def _phase(pod: Object | None) -> str:
    return str((pod or {}).get("status", {}).get("phase", ""))


def _has_ended(job: Object | None) -> bool:
    conditions = (job or {}).get("status", {}).get("conditions", [])
    return any(each["status"] == "True" for each in conditions if each["type"] in JOB_ENDS)


def _message(client: KubeClient, pods: Sequence[Object]) -> dict[str, Any]:
    """Return the message of the pod that succeeded."""
    text = next((_termination_message(pod) for pod in pods if _phase(pod) == "Succeeded"), None)
    if text is None:
        raise PodFailed(_no_success(client, pods))
    return dict(json.loads(text))


def _no_success(client: KubeClient, pods: Sequence[Object]) -> str:
    return "no pod succeeded:\n" + "\n".join(_last_words(client, pod) for pod in pods)


def _last_words(client: KubeClient, pod: Object) -> str:
    namespace, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
    try:
        return f"{name}: {client.text(f'/api/v1/namespaces/{namespace}/pods/{name}/log')[-3_000:]}"
    except (RequestRefused, HTTPError) as error:
        return f"{name}: {error}; {pod.get('status')}"


def _termination_message(pod: Object) -> str:
    states = [each.get("state", {}) for each in pod.get("status", {}).get("containerStatuses", [])]
    return next((str(state["terminated"].get("message", "")) for state in states if "terminated" in state), "")
