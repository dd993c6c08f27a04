"""A gateway as a process of its own, for tests that kill it: over one DelayTopic whose relays a file names.

`python -m tests.support.gateway.gateway_process FILE` prints the address of its probes, and its own.
"""

from __future__ import annotations

import json
import re
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self
from unittest import mock

from tests.support.child_process import ChildProcess
from tests.support.gateway.rights import Everybody
from tests.support.relay.process import wait_for

from delaytopic_api.values import Dialect, Ids
from delaytopic_gateway.access.bounds import connections
from delaytopic_gateway.access.rights import LoopbackAccess
from delaytopic_gateway.app import gateway_app
from delaytopic_gateway.client.relay_listing import ask_relays
from delaytopic_gateway.jobs import running_jobs
from delaytopic_gateway.kafka.cluster import KafkaCluster
from delaytopic_gateway.probes import probes_app
from delaytopic_gateway.server import serving
from delaytopic_gateway.service.gateway import Gateway
from delaytopic_gateway.service.served_topics import ServedTopic
from delaytopic_gateway.service.state import UNKNOWN, State

POD_BYTES: Final = 256 << 20
"""The memory that the chart gives a gateway."""
HEALTH_S: Final = 1.0
"""The longest time that a probe may take while a gateway is under attack."""


@dataclass(frozen=True)
class Settings:
    """The gateway's surroundings."""

    namespace: str
    name: str
    source: str
    target: str
    dead_letter: str
    max_delay_ms: int
    bootstrap_servers: str
    jobs_topic: str
    relay_urls: list[str]
    is_shared: bool = False
    """Its callers name themselves in the header `user`; else everybody is the same."""
    read_s: float = connections.READ_S
    """The longest time that a client may take to read what waits for it."""
    outcomes: str | None = None
    """The topic of outcomes."""

    def to_served(self) -> ServedTopic:
        return ServedTopic(
            self.namespace,
            self.name,
            self.source,
            self.target,
            self.dead_letter,
            None,
            Dialect.NATIVE,
            Ids.BY_HEADER,
            fixed_delay=False,
            max_delay_ms=self.max_delay_ms,
            outcomes=self.outcomes,
        )


def asked(url: str) -> float:
    """Return how many seconds an answer took."""
    began_s = time.monotonic()
    with urllib.request.urlopen(url, timeout=30) as answer:
        assert answer.read() == b"ok\n"
    return time.monotonic() - began_s


class OneTopic:
    """The `ServedTopics` of one DelayTopic."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def all(self) -> Sequence[ServedTopic]:
        return [self._settings.to_served()]

    def state(self, served: ServedTopic) -> State:
        return UNKNOWN

    def relay_urls(self, served: ServedTopic) -> Sequence[str]:
        return self._settings.relay_urls


class GatewayProcess(ChildProcess):
    """The process, and a client of it."""

    def __init__(self, settings: Settings, directory: Path, name: str = "gateway") -> None:
        self.config = directory / f"{name}.json"
        self.config.write_text(json.dumps(settings.__dict__), encoding="utf-8")
        self.log_file = directory / f"{name}.log"
        self.base = f"/v1/delaytopics/{settings.namespace}/{settings.name}"
        self.url = ""
        self.probes = ""

    def start(self) -> Self:
        """Start it, and wait until it serves."""
        started_at = self.log_file.stat().st_size if self.log_file.exists() else 0
        self.spawn([sys.executable, "-m", "tests.support.gateway.gateway_process", str(self.config)], self.log_file)

        def urls() -> list[str]:
            lines = self.log_file.read_text(encoding="utf-8")[started_at:].splitlines()
            found = [line for line in lines if line.startswith("http://")]
            return found if len(found) == len(("probes", "gateway")) else []

        self.probes, self.url = wait_for(urls, self.why)
        return self

    def why(self) -> str:
        """The end of its log."""
        return self.log_file.read_text(encoding="utf-8")[-3_000:]

    def ask(self, method: str, path: str, document: Any = None) -> tuple[int, Any]:
        """Return status and document of an answer; `path` follows that of the DelayTopic."""
        body = None if document is None else json.dumps(document).encode()
        headers = {"Content-Type": "application/json", "user": "anybody"}
        request = urllib.request.Request(self.url + self.base + path, body, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.load(error)

    def most_bytes(self) -> int:
        """Return the most memory that the process ever had, as the kernel noted."""
        text = Path(f"/proc/{self.child.pid}/status").read_text(encoding="utf-8")
        found = re.search(r"^VmHWM:\s+(\d+) kB$", text, re.MULTILINE)
        assert found is not None
        return int(found[1]) << 10

    def job(self, job_id: str) -> dict[str, Any]:
        """Return a job's document."""
        status, document = self.ask("GET", f"/jobs/{job_id}")
        assert status == 200, document
        found: dict[str, Any] = document
        return found


def main() -> None:
    settings = Settings(**json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))
    kafka = {"bootstrap.servers": settings.bootstrap_servers}
    gateway = Gateway(OneTopic(settings), KafkaCluster(kafka), ask_relays, lambda: time.time_ns() // 1_000_000)
    say = _say
    with (
        mock.patch.object(connections, "READ_S", settings.read_s),
        running_jobs(gateway, kafka, settings.jobs_topic, b"token", say) as jobs,
    ):
        access = Everybody() if settings.is_shared else LoopbackAccess()
        app = gateway_app(gateway, access, lambda line: None, jobs)
        with serving(probes_app(gateway.topics.all)) as probes, serving(app) as url:
            say(probes)
            say(url)
            threading.Event().wait()


def _say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    main()
