"""The operator under measurement, as a process of its own, and what its pages say."""

from __future__ import annotations

from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import yaml

from bench.clock import wait_for
from bench.processes.measured import BenchProcess, module
from delaytopic_local.servers.process import free_port

START_S = 600.0
"""It leads once it has seen all objects: those of thousands come by pages."""
SUCCESSES = 'delaytopic_operator_reconcile_total{result="Success"}'
AS_INSTALLED = {"resync": "5m", "poll": "15s", "statusInterval": "5m", "leaseDuration": "15s"}


class OperatorProcess(BenchProcess):
    """One with the settings that the chart installs."""

    def __init__(self, directory: Path, kubeconfig: Path, namespace: str, relay_namespace: str, team: str) -> None:
        """Write its configuration; DelayTopics are in the namespace `team`, and relays run in `relay_namespace`."""
        self._port = free_port()
        config = directory / "operator.yaml"
        document = {
            "apiVersion": "delaytopic.dev/v1beta1",
            "kind": "OperatorConfig",
            "namespace": namespace,
            "httpPort": self._port,
            "watchNamespaces": [team],
            "relayNamespaces": [relay_namespace],
            **AS_INSTALLED,
        }
        config.write_text(yaml.safe_dump(document), encoding="utf-8")
        command = module("delaytopic_operator", "--config", str(config), "--kubeconfig", str(kubeconfig))
        super().__init__("operator", command, directory)

    def lead(self) -> None:
        """Start it, and wait until it leads."""
        self.start()
        wait_for(self._leads, "the operator leads", timeout_s=START_S)

    def passes(self) -> float:
        """Return how many looks and reconciliations this process has ended well."""
        return self._metric(SUCCESSES)

    def processor_s(self) -> float:
        """Return the processor time that it has taken since its start."""
        return self._metric("process_cpu_seconds_total")

    def memory_bytes(self) -> float:
        """Return its resident memory."""
        return self._metric("process_resident_memory_bytes")

    def _leads(self) -> bool:
        self.check()
        return self._page("/readyz").strip() == "leader"

    def _metric(self, series: str) -> float:
        """Return the value of a series; 0 where the page does not answer in time, or has no such series yet."""
        self.check()
        lines = (line.rpartition(" ") for line in self._page("/metrics").splitlines())
        return next((float(value) for name, _, value in lines if name == series), 0.0)

    def _page(self, path: str) -> str:
        try:
            with urlopen(f"http://127.0.0.1:{self._port}{path}", timeout=5) as answer:
                return str(answer.read().decode())
        except (URLError, TimeoutError):
            return ""
