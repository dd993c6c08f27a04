"""A relay as a real process, for tests that kill, freeze and restart it."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self
from urllib.error import URLError
from urllib.request import urlopen

from tests.support.child_process import ChildProcess

START_TIMEOUT_S = 60.0
SOONEST_S, LATEST_S = 0.05, 0.5
"""The least and the most time between two looks at a condition."""


class RelayProcess(ChildProcess):
    """`python -m delaytopic_relay` over one configuration file; its log lines go to a file beside it.

    It has its name in the group, too, as a relay's pod has: started again, it goes on at once.
    """

    def __init__(self, config: Path, name: str = "relay") -> None:
        self.config = config
        self.name = name
        self.log_file = config.with_name(f"{name}.log")
        self.environment: dict[str, str] = {}
        """Variables for its next start, beside those of this process."""
        self.module = ["delaytopic_relay"]
        """The module that its next start runs, with its first arguments."""
        self.data_kib: int | None = None
        """The most memory of its own that it gets, as a pod has a limit; None for as much as there is."""
        self.by_hand = False
        """True if it is started without `--name`, as by hand."""
        self._started_at = 0

    def start(self) -> Self:
        """Start it; `wait_until_ready` tells when it has its shards."""
        self._started_at = self.log_file.stat().st_size if self.log_file.exists() else 0
        command = [sys.executable, "-m", *self.module, "--config", str(self.config)]
        command += [] if self.by_hand else ["--name", self.name]
        if self.data_kib is not None:
            command = ["sh", "-c", 'ulimit -d "$0" && exec "$@"', str(self.data_kib), *command]
        self.spawn(command, self.log_file, environment=self.environment)
        return self

    def log_lines(self) -> list[dict[str, Any]]:
        """The log since the last start, one object a line."""
        text = self.log_file.read_bytes()[self._started_at :].decode(errors="replace")
        return [json.loads(line) for line in text.splitlines() if line.startswith("{")]

    def port(self) -> int:
        """Return where its pages are."""
        line = wait_for(
            lambda: next((e for e in self.log_lines() if e.get("event") == "http listening"), None), self.why
        )
        return int(line["port"])

    def get(self, path: str) -> str:
        """One of its pages."""
        with urlopen(f"http://127.0.0.1:{self.port()}{path}", timeout=5) as answer:
            text: str = answer.read().decode()
            return text

    def status(self) -> dict[str, Any]:
        """GET /status."""
        document: dict[str, Any] = json.loads(self.get("/status"))
        return document

    def shards(self, state: str = "Delivering") -> set[int]:
        """The partitions that are in this state."""
        return {shard["partition"] for shard in self.status()["shards"] if shard["state"] == state}

    def wait_until_delivering(self, shards: int) -> Self:
        """Until it delivers for so many shards."""

        def delivering() -> bool:
            try:
                return len(self.shards()) >= shards
            except (URLError, ConnectionError, TimeoutError):
                return False

        wait_for(delivering, self.why)
        return self

    def read(self) -> int:
        """Return how many records its positions lie behind, of a source that has all of its records still.

        The lag of its status is as old as its last fetch: it may be zero before anything of what was sent was seen.
        """
        return int(sum(shard["position"] for shard in self.status()["shards"]))

    def exit_code(self) -> int | None:
        """None while it runs."""
        return self.child.poll()

    def troubles(self) -> str:
        """Its log lines that are warnings or worse."""
        text = self.log_file.read_text(errors="replace") if self.log_file.exists() else ""
        return "\n".join([str(self.log_file), *(line for line in text.splitlines() if '"level": "info"' not in line)])

    def why(self) -> str:
        """The end of its log."""
        return f"{self.log_file}:\n" + self.log_file.read_text(errors="replace")[-3_000:]


def wait_for(condition: Callable[[], Any], why: Callable[[], str] = str, timeout_s: float = START_TIMEOUT_S) -> Any:
    """Poll a condition until it holds, and return what it returned; fails the test with `why` after the timeout."""
    found = patient(condition, timeout_s)
    assert found, f"nothing after {timeout_s} s: {why()}"
    return found


def patient(condition: Callable[[], Any], timeout_s: float) -> Any:
    """Poll a condition until it holds, and return what it returned; running out of time is an answer, too.

    Looking takes a quarter of the time at most: what is waited for needs the processors as well.
    """
    deadline = time.monotonic() + timeout_s
    pause = threading.Event()
    while True:
        looked_s = time.monotonic()
        found = condition()
        now_s = time.monotonic()
        if found or now_s > deadline:
            return found
        pause.wait(min(max(SOONEST_S, 3 * (now_s - looked_s)), LATEST_S))
