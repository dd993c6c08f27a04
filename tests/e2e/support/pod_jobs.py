"""Jobs in the cluster, and what their pods say at the end."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any

from tests.cluster.awaiting import await_object
from tests.cluster.kube_client import KubeClient, Object
from tests.cluster.pods import pods_of

RESTRICTED = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}


class JobFailed(AssertionError):
    """A pod of a Job ended with an error; the text is the end of its log."""


@dataclass(frozen=True)
class Job:
    """One that was made, and may still run."""

    client: KubeClient
    namespace: str
    name: str

    @property
    def path(self) -> str:
        return f"/apis/batch/v1/namespaces/{self.namespace}/jobs/{self.name}"

    def await_running(self, seconds: float = 60.0) -> None:
        """Until its pod is ready, or has ended already."""
        await_object(self.client, self.path, _runs, seconds=seconds)

    def message(self, seconds: float) -> dict[str, Any]:
        """What its pod left as termination message, once it has succeeded. Raises JobFailed, NotInTime."""
        found = await_object(self.client, self.path, _ended, seconds=seconds) or {}
        pods = pods_of(self.client, self.namespace, **{"batch.kubernetes.io/job-name": self.name})
        if not found.get("status", {}).get("succeeded"):
            raise JobFailed(f"{self.path} failed:\n" + "\n".join(self._last_words(pod) for pod in pods))
        return dict(json.loads(next(text for pod in pods if (text := _termination_message(pod)))))

    def _last_words(self, pod: Object) -> str:
        name = pod["metadata"]["name"]
        try:
            return self.client.text(f"/api/v1/namespaces/{self.namespace}/pods/{name}/log")[-3_000:]
        except (OSError, HTTPException) as error:
            return f"{name}: {error}; {pod.get('status')}"


def start_job(client: KubeClient, namespace: str, name: str, image: str, command: Sequence[str]) -> Job:
    """One pod, one try, as Pod Security `restricted` wants it."""
    pod = {"restartPolicy": "Never", **restricted_pod(image, command)}
    body = {"metadata": {"name": name}, "spec": {"backoffLimit": 0, "template": {"spec": pod}}}
    client.create(f"/apis/batch/v1/namespaces/{namespace}/jobs", body)
    return Job(client, namespace, name)


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


def _runs(found: Object | None) -> bool:
    status = (found or {}).get("status", {})
    return bool(status.get("ready")) or _ended(found)


def _ended(found: Object | None) -> bool:
    status = (found or {}).get("status", {})
    return any(each["status"] == "True" for each in status.get("conditions", []) if each["type"] in _ENDS)


_ENDS = ("Complete", "Failed")


def _termination_message(pod: Object) -> str:
    states = [each.get("state", {}) for each in pod.get("status", {}).get("containerStatuses", [])]
    return next((str(state["terminated"].get("message", "")) for state in states if "terminated" in state), "")
