"""A real Prometheus that scrapes pages of this machine and evaluates the chart's rules as they are shipped."""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlencode
from urllib.request import urlopen

import yaml
from charts.tools.places import CHART
from tests.support.child_process import ChildProcess
from tests.support.paths import ROOT
from tests.support.relay.process import wait_for

from delaytopic_local.servers.process import free_port


class Prometheus(ChildProcess):
    """One server; `pages` are the ports whose /metrics it reads each second."""

    def __init__(self, program: Path, directory: Path, pages: list[int]) -> None:
        """`directory` takes its data; nothing runs yet."""
        self.log_file = directory / "prometheus.log"
        self._port = free_port()
        targets = [f"127.0.0.1:{port}" for port in pages]
        document = {
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": [str(CHART / "rules/delaytopic.rules.yaml")],
            "scrape_configs": [{"job_name": "operators", "static_configs": [{"targets": targets}]}],
        }
        (directory / "prometheus.yaml").write_text(yaml.safe_dump(document))
        self._command = [
            str(program),
            f"--config.file={directory / 'prometheus.yaml'}",
            f"--storage.tsdb.path={directory / 'data'}",
            f"--web.listen-address=127.0.0.1:{self._port}",
        ]

    def __enter__(self) -> Self:
        self.spawn(self._command, self.log_file, ROOT)
        wait_for(self._is_ready, self._why)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop_whatever_happens()

    def firing(self, namespace: str) -> dict[str, set[str]]:
        """The alerts that fire for DelayTopics of a namespace: by name their objectives, or nothing."""
        found: dict[str, set[str]] = {}
        for alert in self._get("/api/v1/alerts")["alerts"]:
            labels = alert["labels"]
            if alert["state"] == "firing" and labels.get("delaytopic_namespace") == namespace:
                found.setdefault(labels["alertname"], set()).update({labels.get("objective", "")} - {""})
        return found

    def await_firing(
        self, namespace: str, wanted: dict[str, set[str]], seconds: float, besides: Collection[str] = ()
    ) -> None:
        """Until just these fire, and none or some of those `besides`."""
        wait_for(
            lambda: {name: of for name, of in self.firing(namespace).items() if name not in besides} == wanted,
            lambda: f"{self.firing(namespace)}\n{self._why()}",
            seconds,
        )

    def bad_records(self, namespace: str) -> dict[str, int]:
        """The number of records that were not good, by objective."""
        query = urlencode({"query": f'delaytopic_slo_bad_records{{delaytopic_namespace="{namespace}"}}'})
        found = self._get(f"/api/v1/query?{query}")["result"]
        return {each["metric"]["objective"]: int(each["value"][1]) for each in found}

    def _is_ready(self) -> bool:
        try:
            with urlopen(f"http://127.0.0.1:{self._port}/-/ready", timeout=2) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def _get(self, path: str) -> dict[str, Any]:
        with urlopen(f"http://127.0.0.1:{self._port}{path}", timeout=5) as answer:
            document: dict[str, Any] = json.load(answer)["data"]
        return document

    def _why(self) -> str:
        return self.log_file.read_text(errors="replace")[-4_000:]
