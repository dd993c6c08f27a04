"""A cluster of one node that is made with kind, and taken away without a trace."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Self

from images.tools.go_builds import Report, print_progress
from images.tools.once import one_at_a_time
from playground.cluster import folders
from playground.cluster.commands import run
from playground.cluster.engine import DockerEngine, find_engine, start_engine
from playground.cluster.errors import CommandFailed, NotReady
from playground.cluster.go_programs import kind_program
from playground.cluster.images_on_node import identities, lacking
from playground.cluster.node_image import ensure_node_image
from playground.without_registry.private_engine import PrivateEngine

from delaytopic_process.waiting import wait_until

DEFAULT_NAME: Final = "delaytopic"
CREATE_SECONDS = 600.0
API_SERVER_SECONDS = 180.0
_NETWORK = "kind"
_SETTINGS = Path(__file__).with_name("settings") / "kind.yaml"
_MANIFEST = "/etc/kubernetes/manifests/kube-apiserver.yaml"
_MANIFEST_AWAY = "/etc/kubernetes/kube-apiserver.yaml"
_ANSWERS = ("curl", "--silent", "--fail", "--insecure", "--max-time", "2", "https://127.0.0.1:6443/readyz")
_KUBECTL = ("kubectl", "--kubeconfig=/etc/kubernetes/admin.conf")


class KindCluster:
    """A cluster by its name: another process may have started it, and another may stop it.

    All methods raise ClusterError; without Go they raise ProgramsMissingError instead.
    """

    def __init__(self, name: str = DEFAULT_NAME, report: Report = print_progress) -> None:
        """Take the name of a cluster, of which nothing is started yet."""
        self.name = name
        self._report = report
        self._engine: DockerEngine | None = None

    @property
    def kubeconfig(self) -> Path:
        """A file to connect by, as an administrator."""
        return folders.run_state(self.name) / "kubeconfig"

    @property
    def docker(self) -> DockerEngine:
        """The engine that the node runs in; raises NotReady while there is none."""
        self._engine = self._engine or find_engine()
        if self._engine is None:
            raise NotReady(f"no Docker engine answers, so there is no cluster {self.name}: start it first")
        return self._engine

    @property
    def node(self) -> str:
        """The name of its only node, which is that of the container, too."""
        return f"{self.name}-control-plane"

    def start(self) -> Self:
        """Have it up, with names that resolve in it; at once when it is up already."""
        engine = start_engine(self._report)
        with one_at_a_time(folders.clusters(), "all"):
            if not self.is_up():
                self._create(engine)
        return self

    def stop(self, *, keep_engine: bool = False) -> None:
        """Take away the cluster, and after the last one the images of ours, and the engine if it is a private one."""
        with one_at_a_time(folders.clusters(), "all"):
            self._remove(keep_engine)

    def is_up(self) -> bool:
        """Tell whether its node runs, and its API server answers."""
        engine = find_engine()
        return engine is not None and self.node in self._nodes(engine) and self._api_server_answers()

    def load_images(self, *references: str) -> None:
        """Make images of the engine known to the node; those that it has already are not loaded again."""
        there = identities(self.exec_on_node("ctr", "--namespace=k8s.io", "images", "list"))
        lacked = lacking({reference: self.docker.image_id(reference) for reference in references}, there)
        if lacked:
            self._report(f"loading {', '.join(lacked)} into the node ...")
            self._kind(self.docker, "load", "docker-image", *lacked)  # at once: layers that they share go once

    def exec_on_node(self, *command: str) -> str:
        """Run a program on the node; returns what it printed."""
        return self.docker("exec", self.node, *command)

    @contextmanager
    def without_api_server(self) -> Iterator[None]:
        """The API server is killed, and starts again at the end of the block, which returns when it answers."""
        self.exec_on_node("mv", _MANIFEST, _MANIFEST_AWAY)
        try:
            # The kubelet has understood when it tells the server to end: killed earlier, it would be started again.
            self._await("go away", lambda: not self._api_server_answers())
            self._await("end", lambda: not self._kills_api_server())
            yield
        finally:
            self.exec_on_node("mv", _MANIFEST_AWAY, _MANIFEST)
            self._await("answer again", self._api_server_answers)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *exception: object) -> None:
        self.stop()

    def _create(self, engine: DockerEngine) -> None:
        kind_program(self._report)
        image = ensure_node_image(engine, self._report)
        if self.node in self._nodes(engine):
            self._delete(engine)  # the rest of one that did not come up
        self._report(f"creating the cluster {self.name} ...")
        self.kubeconfig.parent.mkdir(parents=True, exist_ok=True)
        given = (f"--image={image}", f"--config={_SETTINGS}", "--wait=180s")
        self._kind(engine, "create", "cluster", *given, f"--kubeconfig={self.kubeconfig}")
        self._report("waiting for names to resolve in it ...")
        self.exec_on_node(*_KUBECTL, "-n", "kube-system", "rollout", "status", "deployment/coredns", "--timeout=180s")

    def _remove(self, keep_engine: bool) -> None:
        engine, self._engine = find_engine(), None
        if engine and self.node in self._nodes(engine):
            self._report(f"deleting the cluster {self.name} ...")
            self._delete(engine)
        shutil.rmtree(folders.run_state(self.name), ignore_errors=True)
        if keep_engine or (engine and self._nodes(engine)):
            return
        if engine and not engine.is_private:
            engine.remove_own_images()
            _remove_network(engine)
        else:  # one that no longer answers leaves something, too
            PrivateEngine().stop(self._report)

    def _delete(self, engine: DockerEngine) -> None:
        self._kind(engine, "delete", "cluster", f"--kubeconfig={self.kubeconfig}")

    def _nodes(self, engine: DockerEngine) -> list[str]:
        """Return the nodes of all clusters of kind in this engine."""
        return engine("ps", "--all", "--filter=label=io.x-k8s.kind.cluster", "--format={{.Names}}").split()

    def _kind(self, engine: DockerEngine, *command: str) -> None:
        environment = {**engine.environment, "KIND_EXPERIMENTAL_PROVIDER": "docker"}
        program = kind_program(self._report)
        run(program, *command, f"--name={self.name}", environment=environment, seconds=CREATE_SECONDS)

    def _api_server_answers(self) -> bool:
        try:
            self.exec_on_node(*_ANSWERS)
        except CommandFailed:
            return False
        return True

    def _kills_api_server(self) -> bool:
        """Tell whether there was one to kill."""
        try:
            self.exec_on_node("pkill", "-KILL", "-x", "kube-apiserver")
        except CommandFailed:
            return False
        return True

    def _await(self, what: str, condition: Callable[[], bool]) -> None:
        if not wait_until(condition, timeout_seconds=API_SERVER_SECONDS, poll_seconds=0.2):
            raise NotReady(f"the API server of {self.name} did not {what} within {API_SERVER_SECONDS:g} s")


def _remove_network(engine: DockerEngine) -> None:
    if _NETWORK in engine("network", "ls", "--format={{.Name}}").split():
        engine("network", "rm", _NETWORK)
