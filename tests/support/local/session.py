"""`delaytopic local` as a process, on servers that a run shares, and what its topics hold."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from tests.harness.names import unique
from tests.support.child_process import ChildProcess, hearing_ctrl_c
from tests.support.relay.process import wait_for
from tests.support.relay.records import Sent, produce

from delaytopic_gateway.client.raw_records import RawRecord
from delaytopic_gateway.client.topic_reader import read_topic

START_S: Final = 60.0


@dataclass(frozen=True)
class LocalSession:
    """One DelayTopic, `shop/<name>`, and the console of its session."""

    name: str
    broker: str
    url: str

    @property
    def source(self) -> str:
        return f"{self.name}.delayed"

    @property
    def target(self) -> str:
        return self.name

    @property
    def dead_letter(self) -> str:
        return f"{self.source}.dlq"

    @property
    def page(self) -> str:
        """The address of the DelayTopic's page."""
        return f"{self.url}/delaytopics/shop/{self.name}"

    def send(self, records: Sequence[Sent]) -> None:
        produce(self.broker, self.source, records)

    def values(self, topic: str) -> list[str]:
        """The values that a topic holds, sorted."""
        return sorted((record.value or b"").decode() for record in self.read(topic))

    def read(self, topic: str) -> list[RawRecord]:
        return read_topic({"bootstrap.servers": self.broker}, topic)


@contextmanager
def local_session(folder: Path, broker: str, redis_url: str, *arguments: str, **spec: Any) -> Iterator[LocalSession]:
    """Run it on these servers until the body ends; other commands of this process find it meanwhile."""
    name = unique("reminders")
    document = {
        "apiVersion": "delaytopic.dev/v1beta1",
        "kind": "DelayTopic",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {
            "source": {"topic": f"{name}.delayed", "partitions": 2},
            "target": {"topic": name},
            "precision": "50ms",
            **spec,
        },
    }
    file, log = folder / "topics.yaml", folder / "log"
    file.write_text(yaml.safe_dump(document), encoding="utf-8")
    child = ChildProcess()
    command = [sys.executable, "-m", "delaytopic_cli", "local", "-f", str(file), "-b", broker, "--redis-url", redis_url]
    command += arguments
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(folder / "state"))
        with hearing_ctrl_c():
            child.spawn(command, log)
        try:
            wait_for(lambda: "relays=1/1" in log.read_text(encoding="utf-8"), log.read_text, timeout_s=START_S)
            lines = log.read_text(encoding="utf-8").splitlines()
            (url,) = [line.split()[1] for line in lines if line.startswith("open:")]
            yield LocalSession(name, broker, url)
            child.terminate()
        finally:
            child.stop_whatever_happens()
