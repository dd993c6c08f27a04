"""An operator as a real process, for tests that kill, freeze and restart it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Self
from urllib.error import HTTPError
from urllib.request import urlopen

import yaml
from tests.support.child_process import ChildProcess
from tests.support.paths import ROOT
from tests.support.relay.process import wait_for


class OperatorProcess(ChildProcess):
    """One with a reconciler that only records, or another module's; its log lines go to a file."""

    def __init__(
        self,
        directory: Path,
        name: str,
        kubeconfig: Path,
        namespace: str,
        settings: dict[str, object],
        module: str = "tests.support.operator.recording",
    ) -> None:
        self._module = module
        self.log_file = directory / f"{name}.log"
        self._config = directory / f"{name}.yaml"
        document = {"apiVersion": "delaytopic.dev/v1beta1", "kind": "OperatorConfig", "namespace": namespace}
        self._config.write_text(yaml.safe_dump(document | {"httpPort": 0} | settings))
        self._kubeconfig = kubeconfig
        self._started_at = 0
        self._port = 0

    def start(self) -> Self:
        """Start it; `wait_until` tells when it leads or stands by."""
        self._started_at = self.log_file.stat().st_size if self.log_file.exists() else 0
        self._port = 0
        command = [sys.executable, "-m", self._module]
        command += ["--config", str(self._config), "--kubeconfig", str(self._kubeconfig)]
        self.spawn(command, self.log_file, ROOT)
        return self

    def log_lines(self, event: str | None = None) -> list[dict[str, Any]]:
        """The log, one object a line; of one event, if wanted."""
        return _of_event(self.log_file.read_text(), event)

    def port(self) -> int:
        """Return where its pages are since its last start."""

        def starting() -> list[dict[str, Any]]:
            return _of_event(self.log_file.read_bytes()[self._started_at :].decode(errors="replace"), "starting")

        if not self._port:
            self._port = int(wait_for(starting, self.why)[0]["port"])
        return self._port

    def get(self, path: str) -> str:
        """One of its pages, whatever its status."""
        try:
            with urlopen(f"http://127.0.0.1:{self.port()}{path}", timeout=5) as answer:
                return str(answer.read().decode())
        except HTTPError as error:
            with error:
                return error.read().decode()

    def metric(self, series: str) -> float:
        """The value of a series, written as on the page."""
        values = dict(line.rsplit(" ", 1) for line in self.get("/metrics").splitlines() if line[:1] != "#")
        return float(values[series])

    def leads(self) -> bool:
        return self.get("/readyz").strip() == "leader"

    def wait_until(self, readiness: str) -> Self:
        """Until /readyz says so: leader, or standby."""
        wait_for(lambda: self.get("/readyz").strip() == readiness, self.why)
        return self

    def passes(self) -> list[str]:
        """The DelayTopics looked at, as often as they were."""
        return [line["delaytopic"] for line in self.log_lines("pass")]

    def processor_s(self) -> float:
        """Return the processor time that it has taken since its start."""
        return self.metric("process_cpu_seconds_total")

    def memory_bytes(self) -> int:
        """Resident."""
        return int(self.metric("process_resident_memory_bytes"))

    def why(self) -> str:
        """The end of its log."""
        return f"{self.log_file}:\n" + self.log_file.read_text(errors="replace")[-4_000:]


def _of_event(log: str, event: str | None) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in log.splitlines() if line.startswith("{")]
    return [line for line in lines if event in (None, line.get("event"))]
