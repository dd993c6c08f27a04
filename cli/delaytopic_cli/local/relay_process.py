"""Edge: one relay as a child process, its pages and its log."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from delaytopic_api import RelayConfig, dump_yaml
from delaytopic_cli.embedded.process import ManagedProcess
from delaytopic_cli.embedded.waiting import wait_until

LISTENING = "http listening"
_GRACE_MARGIN_SECONDS = 5.0


class RelayProcess:
    """A relay that is started from its document, and can be stopped, killed and started again.

    The kernel kills it when this process dies.
    """

    def __init__(self, name: str, config: RelayConfig, directory: Path) -> None:
        """Writes the document into `directory`; nothing is started yet. `name` is for messages and file names."""
        self.name = name
        self._grace_seconds = config.limits.shutdown_grace.ms / 1000 + _GRACE_MARGIN_SECONDS
        directory.mkdir(parents=True, exist_ok=True)
        file = directory / f"{name}.yaml"
        file.write_text(dump_yaml(config), encoding="utf-8")
        command = [sys.executable, "-m", "delaytopic_relay", "--config", str(file)]
        self._process = ManagedProcess(f"relay {name}", command, log_file=directory / f"{name}.log")
        self._log_start = 0
        self._port: int | None = None

    @property
    def log_file(self) -> Path:
        """The relay's log: lines of JSON."""
        return self._process.log_file

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """How it ended; None while it runs."""
        return self._process.exit_code

    @property
    def port(self) -> int | None:
        """Where its pages are; None until it says so in its log."""
        if self._port is None and self._process.is_running():
            ports = [line.get("port") for line in self._log_lines() if line.get("event") == LISTENING]
            self._port = ports[-1] if ports and isinstance(ports[-1], int) else None
        return self._port

    def is_running(self) -> bool:
        """Whether its process is there."""
        return self._process.is_running()

    def start(self) -> None:
        """Start it; it connects and recovers by itself."""
        self._log_start = self.log_file.stat().st_size if self.log_file.exists() else 0
        self._port = None
        self._process.start()

    def wait_until_listening(self, *, timeout_seconds: float) -> bool:
        """Wait for its pages; False when it ended or the time was over first."""
        wait_until(lambda: self.port is not None or not self.is_running(), timeout_seconds=timeout_seconds)
        return self.port is not None

    def ask_to_stop(self) -> None:
        """Send SIGTERM and return at once; `stop` waits."""
        self._process.ask_to_stop()

    def stop(self) -> int | None:
        """Let it hand over within its grace, then kill it; returns its exit code."""
        return self._process.stop(grace_seconds=self._grace_seconds)

    def kill(self) -> None:
        """End it with SIGKILL, as a crash would."""
        self._process.kill()

    def last_words(self) -> str:
        """The reason that it gave last in its log, or else the log's last lines."""
        reasons = [line["reason"] for line in self._log_lines() if isinstance(line.get("reason"), str)]
        return reasons[-1] if reasons else self._process.log_tail(lines=5)

    def _log_lines(self) -> list[dict[str, Any]]:
        """What it has logged since its last start; lines that are not JSON objects are left out."""
        if not self.log_file.exists():
            return []
        with self.log_file.open("rb") as log:
            log.seek(self._log_start)
            parsed = [_parse(line) for line in log]
        return [line for line in parsed if line is not None]


def _parse(line: bytes) -> dict[str, Any] | None:
    try:
        content = json.loads(line)
    except ValueError:
        return None
    return content if isinstance(content, dict) else None
