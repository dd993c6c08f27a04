"""One container of a pod as one process of this machine, with its probes and restarts."""

from __future__ import annotations

import time
from collections.abc import Callable, Set
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.cluster.node.command import CannotRun, container_command
from tests.cluster.node.files import PodRoot
from tests.cluster.node.probes import Probe
from tests.cluster.node.status import ContainerState

from delaytopic_local.servers.process import ManagedProcess

Object = dict[str, Any]

FIRST_BACKOFF_SECONDS = 0.5
LONGEST_BACKOFF_SECONDS = 10.0
STABLE_SECONDS = 30.0
LAST_WORDS_CHARACTERS = 2048
DEFAULT_MESSAGE_PATH = "/dev/termination-log"
LONGEST_MESSAGE_BYTES = 4096


def timestamp() -> str:
    """Now, as Kubernetes writes it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class Container:
    """Starts its process, asks its probes, and starts it again when it ends, later each time."""

    def __init__(
        self, pod: Object, spec: Object, root: PodRoot, log_file: Path, pod_ip: str, missing_images: Set[str]
    ) -> None:
        """Nothing runs yet, nor while its image is one of those that are missing."""
        self.state = ContainerState(spec["name"], spec["image"])
        self.log_file = log_file
        self._missing_images = missing_images
        self._policy = pod["spec"].get("restartPolicy", "Always")
        self._spec = spec
        self._root = root
        self._pod_ip = pod_ip
        self._process: ManagedProcess | None = None
        self._probes: dict[str, Probe] = {}
        self._started = 0.0
        self._start_again_at = 0.0
        self._backoff = FIRST_BACKOFF_SECONDS

    @property
    def process(self) -> ManagedProcess | None:
        """The current one, or the last."""
        return self._process

    def step(self, environment: Callable[[], dict[str, str]]) -> None:
        """Look at it once, and do what is to be done; the environment is asked for at each start."""
        if self.state.running and self._process is not None:
            if self._process.is_running():
                self._ask_probes(time.monotonic() - self._started)
            else:
                self._note_end(self._process.exit_code or 0)
        elif not self._is_over() and time.monotonic() >= self._start_again_at:
            self._start(environment())

    def ask_to_stop(self) -> None:
        """Send SIGTERM."""
        if self._process is not None:
            self._process.ask_to_stop()

    def kill(self) -> None:
        """Send SIGKILL, and wait until it is gone."""
        if self._process is not None:
            self._process.kill()

    def is_stopped(self) -> bool:
        """Return whether there is no process."""
        return self._process is None or not self._process.is_running()

    def _start(self, environment: dict[str, str]) -> None:
        if self.state.image in self._missing_images:
            self.state.waiting = ("ImagePullBackOff", f'Back-off pulling image "{self.state.image}"')
            return
        try:
            command = container_command(self._spec, environment, self._root, self._pod_ip)
        except CannotRun as error:
            self.state.waiting = ("RunContainerError", str(error))
            self._start_again_at = time.monotonic() + LONGEST_BACKOFF_SECONDS
            return
        if self.state.ended_at is not None:
            self.state.restarts += 1
        process = ManagedProcess(command[0], command, log_file=self.log_file, environment=environment)
        process.start()
        self._process = process
        self._started = time.monotonic()
        self.state.waiting, self.state.started_at, self.state.ended_at = None, timestamp(), None
        self._probes = {
            name: Probe(self._spec[name], self._spec, self._pod_ip)
            for name in ("startupProbe", "readinessProbe", "livenessProbe")
            if name in self._spec
        }
        self.state.ready = not self._probes

    def _ask_probes(self, age: float) -> None:
        startup, readiness, liveness = (
            self._probes.get(f"{name}Probe") for name in ("startup", "readiness", "liveness")
        )
        for probe in (startup,) if startup and not startup.passes else (readiness, liveness):
            if probe is not None:
                probe.ask(age)
        started = startup is None or startup.passes
        self.state.ready = started and (readiness is None or readiness.passes)
        if any(probe is not None and probe.failed for probe in (startup, liveness)) and self._process is not None:
            self._process.stop(grace_seconds=5.0)

    def _note_end(self, exit_code: int) -> None:
        lived = time.monotonic() - self._started
        self.state.ready, self.state.exit_code, self.state.ended_at = False, exit_code, timestamp()
        message = self._root.path(self._spec.get("terminationMessagePath", DEFAULT_MESSAGE_PATH))
        if message.is_file():
            self.state.last_words = message.read_bytes()[:LONGEST_MESSAGE_BYTES].decode(errors="replace")
        elif exit_code and self._spec.get("terminationMessagePolicy") == "FallbackToLogsOnError" and self._process:
            self.state.last_words = self._process.log_tail()[-LAST_WORDS_CHARACTERS:]
        if self._is_over():
            return
        self._backoff = FIRST_BACKOFF_SECONDS if lived > STABLE_SECONDS else self._backoff
        self.state.waiting = ("CrashLoopBackOff", f"back-off {self._backoff:g}s restarting failed container")
        self._start_again_at = time.monotonic() + self._backoff
        self._backoff = min(2 * self._backoff, LONGEST_BACKOFF_SECONDS)

    def _is_over(self) -> bool:
        if self.state.ended_at is None or self._policy == "Always":
            return False
        return self._policy == "Never" or self.state.exit_code == 0
