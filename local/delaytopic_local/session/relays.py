"""Edge: relays as child processes, kept alive; their pages and their logs."""

from __future__ import annotations

import json
import math
import os
import re
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

from prometheus_client.parser import text_string_to_metric_families

from delaytopic_api import RelayConfig, RelayStatus, dump_yaml
from delaytopic_local.errors import RelayError
from delaytopic_local.servers.process import ManagedProcess

LISTENING = "http listening"
_GRACE_MARGIN_SECONDS = 5.0
EXIT_MISCONFIGURED = 2
SHORT_LIFE_SECONDS = 15.0
MOST_SHORT_LIVES = 5
LONGEST_PAUSE_SECONDS = 8.0
LATENESS = "delaytopic_lateness_seconds"
_TIMEOUT_SECONDS = 1.0
FRESH_SECONDS = 12.0
"""A relay says the same again after ten."""
_TAIL_BYTES = 8_192
_COMPLAINTS = ("warning", "error", "critical")
_THREADS = re.compile(r"^[A-Z0-9_]+ \[[^]]*\] (\[thrd:[^]]*\]: )?")
Buckets = dict[float, int]
"""Cumulative counts of a lateness histogram by upper edge in milliseconds; the last edge is infinite."""


CLOCK_FLAG = "--manual-clock"
KUBERNETES = "KUBERNETES_SERVICE_HOST"


class RelayProcess:
    """A relay that is started from its document, and can be stopped, killed and started again.

    The kernel kills it when this process dies.
    """

    def __init__(self, name: str, config: RelayConfig, directory: Path, flags: Sequence[str] = ()) -> None:
        """Writes the document into `directory`; nothing is started yet. `name` is for messages and file names.

        In its group it has a name that no other run has, and the same in each of its lives.
        """
        self.name = name
        member = f"{name[:200]}-{uuid4().hex[:8]}"
        self._grace_seconds = config.limits.shutdown_grace.ms / 1000 + _GRACE_MARGIN_SECONDS
        directory.mkdir(parents=True, exist_ok=True)
        file = directory / f"{name}.yaml"
        file.write_text(dump_yaml(config), encoding="utf-8")
        command = [sys.executable, "-m", "delaytopic_relay", "--config", str(file), "--name", member, *flags]
        # A pod of a CI system is on a cluster, and relays that work for its tests alone are not: they may have a clock
        # that is moved, which relays of a cluster refuse.
        environment = {KUBERNETES: ""} if CLOCK_FLAG in flags else {}
        log_file = directory / f"{name}.log"
        self._process = ManagedProcess(f"relay {name}", command, log_file=log_file, environment=environment)
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
        """The exit code; None while it runs."""
        return self._process.exit_code

    @property
    def port(self) -> int | None:
        """The port of its pages; None until its log gives it."""
        if self._port is None and self._process.is_running():
            ports = [line.get("port") for line in self._log_lines() if line.get("event") == LISTENING]
            self._port = ports[-1] if ports and isinstance(ports[-1], int) else None
        return self._port

    def is_running(self) -> bool:
        """Tell whether its process is there."""
        return self._process.is_running()

    def start(self) -> None:
        """Start it; it connects and recovers by itself."""
        self._log_start = self.log_file.stat().st_size if self.log_file.exists() else 0
        self._port = None
        self._process.start()

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
        """Return the reason that it gave last in its log, or else the log's last lines."""
        reasons = [line["reason"] for line in self._log_lines() if isinstance(line.get("reason"), str)]
        return reasons[-1] if reasons else self._process.log_tail(lines=5)

    def trouble(self, now_s: float) -> str | None:
        """Return the last line of its log if that complains, and is not older than a relay repeats itself."""
        lines = self._log_lines(last_bytes=_TAIL_BYTES)
        if not lines or lines[-1].get("level") not in _COMPLAINTS or now_s - _epoch_s(lines[-1]) > FRESH_SECONDS:
            return None
        return complaint(lines[-1])

    def _log_lines(self, last_bytes: int | None = None) -> list[dict[str, Any]]:
        """Return its log lines since its last start, or those in the last bytes; what is no JSON object is skipped."""
        if not self.log_file.exists():
            return []
        with self.log_file.open("rb") as log:
            start = 0 if last_bytes is None else log.seek(0, os.SEEK_END) - last_bytes
            log.seek(max(self._log_start, start))
            parsed = [_parse(line) for line in log]
        return [line for line in parsed if line is not None]


def _parse(line: bytes) -> dict[str, Any] | None:
    try:
        content = json.loads(line)
    except ValueError:
        return None
    return content if isinstance(content, dict) else None


def complaint(line: Mapping[str, Any]) -> str:
    """Return a line of a relay's log in words, the Kafka client's without the names of its threads."""
    if isinstance(line.get("text"), str):
        return f"Kafka client: {_THREADS.sub('', line['text'])}"
    parts = [str(line[name]) for name in ("event", "reason") if name in line]
    return ": ".join(parts)


def _epoch_s(line: Mapping[str, Any]) -> float:
    try:
        return datetime.fromisoformat(str(line.get("timestamp"))).timestamp()
    except ValueError:
        return 0.0


@dataclass(slots=True)
class _Life:
    started_s: float
    short_lives: int = 0
    restart_at_s: float | None = None


class Supervisor:
    """Watches over relays; `tick` is to be called about once a second."""

    def __init__(
        self,
        relays: Sequence[RelayProcess],
        *,
        progress: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`progress` gets a line whenever a relay has ended and when it is started again."""
        self._relays = relays
        self._progress = progress
        self._clock = clock
        self._lives = {relay.name: _Life(clock()) for relay in relays}

    def start(self) -> None:
        """Start all."""
        for relay in self._relays:
            self._start(relay)

    def tick(self) -> None:
        """Start those again whose time has come.

        Raises RelayError when a relay says that it is misconfigured, or has ended again and again soon after its start.
        """
        for relay in self._relays:
            life = self._lives[relay.name]
            if relay.is_running():
                continue
            if life.restart_at_s is None:
                self._note_the_end(relay, life)
            elif self._clock() >= life.restart_at_s:
                self._progress(f"starting relay {relay.name} again")
                self._start(relay)

    def stop(self) -> None:
        """Let all hand over at the same time, and wait for them."""
        for relay in self._relays:
            relay.ask_to_stop()
        for relay in self._relays:
            relay.stop()

    def _start(self, relay: RelayProcess) -> None:
        life = self._lives[relay.name]
        life.started_s, life.restart_at_s = self._clock(), None
        relay.start()

    def _note_the_end(self, relay: RelayProcess, life: _Life) -> None:
        code = relay.exit_code
        how = f"was ended by signal {-code}" if code is not None and code < 0 else f"ended with exit code {code}"
        if code == EXIT_MISCONFIGURED:
            raise RelayError(f"relay {relay.name} cannot run like this: {relay.last_words()}")
        lived_s = self._clock() - life.started_s
        life.short_lives = life.short_lives + 1 if lived_s < SHORT_LIFE_SECONDS else 0
        if life.short_lives >= MOST_SHORT_LIVES:
            raise RelayError(
                f"relay {relay.name} {how}, {MOST_SHORT_LIVES} times in a row soon after its start; "
                f"the end of {relay.log_file}:\n{relay.last_words()}"
            )
        pause_s = 0.0 if life.short_lives == 0 else min(LONGEST_PAUSE_SECONDS, 2.0 ** (life.short_lives - 1))
        life.restart_at_s = self._clock() + pause_s
        self._progress(f"relay {relay.name} {how}; starting it again" + (f" in {pause_s:.0f} s" if pause_s else ""))


def read_status(port: int) -> RelayStatus | None:
    """Return the relay's status; None when it does not answer, or not with a status."""
    page = _get(port, "/status")
    try:
        return RelayStatus.model_validate_json(page) if page is not None else None
    except ValueError:
        return None


def read_lateness(port: int) -> Buckets:
    """Return the relay's lateness histogram since its start; empty when it does not answer."""
    page = _get(port, "/metrics")
    buckets: Buckets = {}
    for family in text_string_to_metric_families(page.decode()) if page is not None else ():
        for sample in family.samples:
            if sample.name == f"{LATENESS}_bucket":
                edge_s = float(sample.labels["le"])
                buckets[edge_s if math.isinf(edge_s) else round(edge_s * 1000, 3)] = int(sample.value)
    return buckets


def _get(port: int, path: str) -> bytes | None:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=_TIMEOUT_SECONDS) as answer:
            content: bytes = answer.read()
            return content
    except (urllib.error.URLError, OSError):
        return None
