"""One pod on the local node: a thread that binds it, writes its volumes, runs its containers and reports its status."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Set
from http import HTTPStatus
from pathlib import Path
from typing import Any

from playground.kube.kube_client import KubeClient, RequestRefused
from tests.cluster.node.command import ConfigurationMissing, container_environment
from tests.cluster.node.container import Container, timestamp
from tests.cluster.node.files import VolumeNotReady, pod_root, remove_volumes, write_volumes
from tests.cluster.node.status import pod_status
from urllib3.exceptions import HTTPError

Object = dict[str, Any]

STEP_SECONDS = 0.1
# A kubelet takes up to a minute to show a changed ConfigMap to a pod.
REFRESH_SECONDS = 1.0
_COLLECTIONS = {"configMap": "configmaps", "secret": "secrets"}


class PodRunner:
    """Runs from `start` until the pod is deleted or `abandon` is called; then no process of it is left."""

    def __init__(
        self,
        client: KubeClient,
        pod: Object,
        node_name: str,
        pod_ip: str,
        folder: Path,
        kubeconfig: Callable[[str, str, Path], Path],
        missing_images: Set[str],
    ) -> None:
        """`folder` is for its files and logs; `kubeconfig(namespace, service account, file)` writes one."""
        self.pod = pod
        self.pod_ip = pod_ip
        self._client = client
        self._node_name = node_name
        self._root = pod_root(pod, folder / "root")
        self._kubeconfig = kubeconfig
        self.containers = [
            Container(pod, spec, self._root, folder / f"{spec['name']}.log", pod_ip, missing_images)
            for spec in pod["spec"]["containers"]
        ]
        self._folder = folder
        self._reported: Object = {}
        self._refresh_at = 0.0
        self._deleted = threading.Event()
        self._abandoned = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"pod-{pod['metadata']['name']}", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def update(self, pod: Object) -> None:
        """The pod has changed in the API server."""
        self.pod = pod
        if "deletionTimestamp" in pod["metadata"]:
            self._deleted.set()

    def abandon(self) -> None:
        """The pod has gone from the API server, or the node ends: kill at once."""
        self._abandoned.set()
        self._deleted.set()

    def join(self) -> None:
        """Wait until no process of it is left."""
        self._thread.join()

    @property
    def path(self) -> str:
        """Of the pod in the API server."""
        metadata = self.pod["metadata"]
        return f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"

    def _run(self) -> None:
        try:
            self._attempt(self._bind)
            while not self._deleted.wait(STEP_SECONDS):
                self._attempt(self._step)
            self._terminate()
        finally:
            for container in self.containers:
                container.kill()
            remove_volumes(self._root)

    def _attempt(self, action: Callable[[], None]) -> None:
        """Do it; what fails because the API server is away, or refuses, is done again at the next step."""
        try:
            action()
        except RequestRefused as refused:
            if refused.status == HTTPStatus.NOT_FOUND:
                self.abandon()
        except HTTPError:
            return

    def _bind(self) -> None:
        if not self.pod["spec"].get("nodeName"):
            target = {"apiVersion": "v1", "kind": "Node", "name": self._node_name}
            name = self.pod["metadata"]["name"]
            self._client.create(f"{self.path}/binding", {"metadata": {"name": name}, "target": target})

    def _step(self) -> None:
        if self._volumes_are_ready():
            for container in self.containers:
                self._look_at(container)
        self._report()

    def _volumes_are_ready(self) -> bool:
        if time.monotonic() < self._refresh_at:
            return True
        try:
            write_volumes(self.pod, self._root, self._find, self._token, self.pod_ip)
        except VolumeNotReady as missing:
            if self._refresh_at:
                return True  # what was mounted stays when its object goes
            for container in self.containers:
                container.state.waiting = ("ContainerCreating", str(missing))
            return False
        self._refresh_at = time.monotonic() + REFRESH_SECONDS
        return True

    def _look_at(self, container: Container) -> None:
        if self.pod["spec"].get("initContainers"):
            container.state.waiting = ("CreateContainerError", "init containers are not run on this node")
            return
        try:
            container.step(lambda: self._environment(container))
        except ConfigurationMissing as missing:
            container.state.waiting = ("CreateContainerConfigError", str(missing))

    def _environment(self, container: Container) -> dict[str, str]:
        [spec] = [spec for spec in self.pod["spec"]["containers"] if spec["name"] == container.state.name]
        found = container_environment(self.pod, spec, self._root, self._find, self.pod_ip)
        mounts = [mount["mountPath"] for mount in spec.get("volumeMounts", [])]
        if "/var/run/secrets/kubernetes.io/serviceaccount" in mounts:
            metadata, account = self.pod["metadata"], self.pod["spec"].get("serviceAccountName", "default")
            file = self._kubeconfig(metadata["namespace"], account, self._folder / "kubeconfig")
            found["KUBECONFIG"] = str(file)
        return found

    def _report(self) -> None:
        known = self.pod | ({"status": self._reported} if self._reported else {})
        status = pod_status(known, [container.state for container in self.containers], self.pod_ip, timestamp())
        if status != self._reported:
            self._client.merge(f"{self.path}/status", {"status": status})
            self._reported = status

    def _terminate(self) -> None:
        """SIGTERM, and SIGKILL after the grace; then the pod may go from the API server.

        Without a grace, or without the pod, SIGKILL alone: to be asked would wake a frozen process, which could hand
        over before it is killed.
        """
        grace = 0 if self._abandoned.is_set() else self.pod["metadata"].get("deletionGracePeriodSeconds", 30)
        until = time.monotonic() + grace
        for container in self.containers if grace else ():
            container.ask_to_stop()
        while not all(container.is_stopped() for container in self.containers):
            if self._abandoned.wait(STEP_SECONDS) or time.monotonic() >= until:
                break
        for container in self.containers:
            container.kill()
        while not self._abandoned.is_set() and not self._removed():
            self._abandoned.wait(STEP_SECONDS)

    def _removed(self) -> bool:
        try:
            uid = self.pod["metadata"]["uid"]
            self._client.delete(self.path, gracePeriodSeconds=0, preconditions={"uid": uid})
        except RequestRefused:
            return True  # it has gone, or another pod has its name
        except HTTPError:
            return False
        return True

    def _find(self, kind: str, name: str) -> Object | None:
        namespace = self.pod["metadata"]["namespace"]
        return self._client.find(f"/api/v1/namespaces/{namespace}/{_COLLECTIONS[kind]}/{name}")

    def _token(self) -> str:
        """Not a real one: programs here connect by a kubeconfig, whose token is."""
        return "see KUBECONFIG"
