"""The status of a pod, from what its containers do, in the words of a kubelet. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

Object = dict[str, Any]


@dataclass
class ContainerState:
    """One container, as its runner sees it; `waiting` is a reason and a message, `exit_code` of the last run."""

    name: str
    image: str
    waiting: tuple[str, str] | None = ("ContainerCreating", "")
    started_at: str | None = None
    ready: bool = False
    restarts: int = 0
    exit_code: int | None = None
    last_words: str = ""
    ended_at: str | None = None

    @property
    def running(self) -> bool:
        """Return whether its process is there."""
        return self.waiting is None and self.started_at is not None and self.ended_at is None


def pod_status(pod: Object, containers: Sequence[ContainerState], pod_ip: str, now: str) -> Object:
    """The whole status; a condition keeps its time while its status does not change."""
    ready = all(container.ready for container in containers)
    started = any(container.running or container.exit_code is not None for container in containers)
    holds = {
        "PodScheduled": True,
        "Initialized": True,
        "PodReadyToStartContainers": started,
        "ContainersReady": ready,
        "Ready": ready,
    }
    before = {condition["type"]: condition for condition in pod.get("status", {}).get("conditions", [])}
    return {
        "phase": phase(pod, containers),
        "podIP": pod_ip,
        "podIPs": [{"ip": pod_ip}],
        "hostIP": "127.0.0.1",
        "startTime": pod.get("status", {}).get("startTime", now),
        "conditions": [_condition(type, true, before.get(type), now) for type, true in holds.items()],
        "containerStatuses": [_container(container) for container in containers],
    }


def phase(pod: Object, containers: Sequence[ContainerState]) -> str:
    """Pending, Running, Succeeded or Failed."""
    policy = pod["spec"].get("restartPolicy", "Always")
    if containers and all(container.ended_at is not None and not container.waiting for container in containers):
        failed = any(container.exit_code for container in containers)
        if policy == "Never" or (policy == "OnFailure" and not failed):
            return "Failed" if failed else "Succeeded"
    started = any(container.started_at is not None for container in containers)
    return "Running" if started else "Pending"


def _condition(type: str, holds: bool, before: Object | None, now: str) -> Object:
    status = "True" if holds else "False"
    since = before["lastTransitionTime"] if before and before["status"] == status else now
    reason = {} if holds else {"reason": "ContainersNotReady", "message": "containers are not ready"}
    return {"type": type, "status": status, "lastTransitionTime": since, **reason}


def _container(container: ContainerState) -> Object:
    ended = None
    if container.exit_code is not None:
        reason = "Completed" if container.exit_code == 0 else "Error"
        exit_code = container.exit_code if container.exit_code >= 0 else 128 - container.exit_code
        terminated = {"exitCode": exit_code, "reason": reason, "finishedAt": container.ended_at}
        ended = {"terminated": terminated | ({"message": container.last_words} if container.last_words else {})}
    if container.waiting is not None:
        reason, message = container.waiting
        state: Object = {"waiting": {"reason": reason, **({"message": message} if message else {})}}
    elif container.running:
        state = {"running": {"startedAt": container.started_at}}
    else:
        state, ended = ended or {}, None
    return {
        "name": container.name,
        "image": container.image,
        "imageID": "",
        "ready": container.ready,
        "started": container.running,
        "restartCount": container.restarts,
        "state": state,
        "lastState": ended or {},
    }
