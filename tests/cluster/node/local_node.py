"""A node without containers: pods of labelled namespaces run as processes of this machine.

It plays the scheduler and the kubelet. Each pod has its own address of the loopback network (127.x.y.z). A container
is the process that its command and args say, found beside this interpreter or on the PATH; paths below its mount points
are mapped to a folder, in its arguments, its environment and its relay.yaml; to listen on all addresses is, there and
in its arguments, to listen on the pod's. Probes, restarts with back-off, SIGTERM with grace, changed ConfigMaps and
missing Secrets are as a kubelet has them, only sooner. A pod that mounts its ServiceAccount's token gets the variable
KUBECONFIG. Images, resources, init containers, hooks, Services and NetworkPolicies mean nothing here.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from playground.kube.control_plane import ControlPlane
from playground.kube.kube_client import Change, RequestRefused, Watch
from tests.cluster.node.addresses import PodAddresses
from tests.cluster.node.files import Object
from tests.cluster.node.runner import PodRunner
from urllib3.exceptions import HTTPError

from delaytopic_local.servers.process import ManagedProcess

NODE_LABEL = "tests.delaytopic.dev/node"
"""Of a namespace: the name of the local node that runs its pods."""

WATCH_SECONDS = 300
RETRY_SECONDS = 0.2


@dataclass(frozen=True)
class RunningPod:
    """A pod whose process has been started, at least once."""

    namespace: str
    name: str
    labels: dict[str, str]
    ip: str
    process: ManagedProcess
    log_file: Path

    @property
    def pid(self) -> int:
        """Of its first container's process, in its last run."""
        return self.process.pid


class LocalNode:
    """Runs pods between entry and exit; leaves no process behind, and none outlives this one."""

    def __init__(self, control_plane: ControlPlane, directory: Path, *, name: str = "local") -> None:
        """`directory` is for the files and logs of pods."""
        self.name = name
        self._control_plane = control_plane
        self._client = control_plane.client_for_user(f"node:{name}", groups=["system:masters"], agent="local-node")
        self._directory = directory
        self._runners: dict[str, PodRunner] = {}
        self.missing_images: set[str] = set()
        """Images that can't be pulled: the containers wait, with ImagePullBackOff, until they are taken out again."""
        self._addresses = PodAddresses()
        self._ending = threading.Event()
        self._watch: Watch | None = None
        self._thread = threading.Thread(target=self._follow, name="local-node", daemon=True)

    def __enter__(self) -> Self:
        capacity = {"cpu": "1000", "memory": "1Ti", "pods": "1000"}
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "plays a kubelet"}
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": self.name}}
        self._client.apply(f"/api/v1/nodes/{self.name}", node)
        status = {"capacity": capacity, "allocatable": capacity, "conditions": [ready]}
        self._client.merge(f"/api/v1/nodes/{self.name}/status", {"status": status})
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ending.set()
        if self._watch is not None:
            self._watch.close()
        self._thread.join()
        for runner in self._runners.values():
            runner.abandon()
        for runner in self._runners.values():
            runner.join()
        self._addresses.close()

    def pods(self, namespace: str, **labels: str) -> list[RunningPod]:
        """Return the started ones, in the order of their names; `labels` are some that they have."""
        return sorted(
            (
                pod
                for runner in list(self._runners.values())
                for pod in _running(runner)
                if pod.namespace == namespace and labels.items() <= pod.labels.items()
            ),
            key=lambda pod: pod.name,
        )

    def pod(self, namespace: str, name: str) -> RunningPod:
        """One of them; raises LookupError when it is not there."""
        for pod in self.pods(namespace):
            if pod.name == name:
                return pod
        raise LookupError(f"no pod {namespace}/{name} runs on {self.name}")

    def _follow(self) -> None:
        """List, then watch, and again when the API server was away."""
        while not self._ending.is_set():
            try:
                self._list_and_watch()
            except (RequestRefused, HTTPError):
                self._ending.wait(RETRY_SECONDS)

    def _list_and_watch(self) -> None:
        listed = self._client.get("/api/v1/pods")
        there = {pod["metadata"]["uid"] for pod in listed["items"]}
        for uid in [uid for uid in self._runners if uid not in there]:
            self._forget(uid)
        for pod in listed["items"]:
            self._take(Change("ADDED", pod))
        version = listed["metadata"]["resourceVersion"]
        self._watch = self._client.watch("/api/v1/pods", version, seconds=WATCH_SECONDS)
        if self._ending.is_set():
            self._watch.close()
        for change in self._watch:
            self._take(change)

    def _take(self, change: Change) -> None:
        pod = change.object
        uid = pod["metadata"]["uid"]
        if change.type == "DELETED":
            self._forget(uid)
        elif uid in self._runners:
            self._runners[uid].update(pod)
        elif self._is_served(pod):
            self._runners[uid] = self._new_runner(pod)
            self._runners[uid].update(pod)
            self._runners[uid].start()

    def _is_served(self, pod: Object) -> bool:
        if pod["spec"].get("nodeName") not in (None, self.name):
            return False
        if pod.get("status", {}).get("phase") in ("Succeeded", "Failed"):
            return False
        namespace = self._client.find(f"/api/v1/namespaces/{pod['metadata']['namespace']}")
        return bool((namespace or {}).get("metadata", {}).get("labels", {}).get(NODE_LABEL) == self.name)

    def _new_runner(self, pod: Object) -> PodRunner:
        folder = self._directory / pod["metadata"]["namespace"] / pod["metadata"]["name"]
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)

        def kubeconfig(namespace: str, account: str, file: Path) -> Path:
            return self._control_plane.kubeconfig_for_service_account(namespace, account, file=file)

        address = self._addresses.next()
        return PodRunner(self._client, pod, self.name, address, folder, kubeconfig, self.missing_images)

    def _forget(self, uid: str) -> None:
        runner = self._runners.pop(uid, None)
        if runner is not None:
            runner.abandon()
            runner.join()


def _running(runner: PodRunner) -> Iterator[RunningPod]:
    first = runner.containers[0]
    if first.process is not None:
        metadata: dict[str, Any] = runner.pod["metadata"]
        labels = metadata.get("labels", {})
        yield RunningPod(metadata["namespace"], metadata["name"], labels, runner.pod_ip, first.process, first.log_file)
