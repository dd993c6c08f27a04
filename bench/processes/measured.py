"""The processes under measurement: the relay and the null relay."""

from __future__ import annotations

import os
import signal
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path

import yaml

from bench.clock import wait_for
from bench.errors import Stalled
from bench.records import PARTITIONS
from delaytopic_api.documents import member
from delaytopic_api.relay import (
    HttpServer,
    KafkaClient,
    RelayBackend,
    RelayConfig,
    RelayDeadLetter,
    RelayHistory,
    RelaySchedule,
    RelayScheduler,
    RelaySource,
    RelayState,
    RelayStatus,
    RelayTarget,
    ShardState,
)
from delaytopic_api.values import CAPABILITIES, Dialect, Duration, Guarantee, Ids
from delaytopic_local.servers.process import ManagedProcess, free_port
from delaytopic_relay.core.entries import VARIABLE

START_SECONDS = 30.0
STOP_SECONDS = 30.0


def module(name: str, *arguments: str) -> list[str]:
    """Return the command of a module in Python."""
    return [sys.executable, "-m", name, *arguments]


class BenchProcess:
    """A process that copies or relays, with its log in a file; one that reads a source has a consumer group.

    `command` is a program with its arguments.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        directory: Path,
        group: str = "",
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self.group = group
        log_file = directory / f"{name}.log"
        self._process = ManagedProcess(name, command, log_file=log_file, environment=environment)

    def start(self) -> None:
        """Start it, or start it again after a kill; it needs a second or two until it reads."""
        self._process.start()

    def check(self) -> None:
        """Raise `Stalled` with the end of its log if it has ended by itself."""
        if not self._process.is_running():
            raise Stalled(f"{self.name} ended with exit code {self._process.exit_code}:\n{self._process.log_tail()}")

    def stop(self) -> None:
        """SIGTERM; raises `Stalled` if it does not end well within its time."""
        self._process.send_signal(signal.SIGTERM)
        code = self._process.wait(timeout_seconds=STOP_SECONDS)
        if code != 0:
            self._process.kill()
            raise Stalled(f"{self.name} did not stop well (exit code {code}):\n{self._process.log_tail()}")

    def wait(self, *, timeout_s: float) -> None:
        """Wait until it ends by itself; raises `Stalled` if it does not, or not well."""
        code = self._process.wait(timeout_seconds=timeout_s)
        if code != 0:
            self._process.kill()
            raise Stalled(f"{self.name} did not get through (exit code {code}):\n{self._process.log_tail()}")

    def kill(self) -> None:
        """End it in any case."""
        self._process.kill()

    def peak_memory_bytes(self) -> int:
        """The most memory it ever had resident."""
        for line in Path(f"/proc/{self._process.pid}/status").read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
        raise Stalled(f"{self.name} has ended; its memory is not known")

    def processor_s(self) -> float:
        """The processor time that it has taken so far, in seconds."""
        stat = Path(f"/proc/{self._process.pid}/stat").read_text(encoding="ascii")
        user, system = stat.rpartition(")")[2].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


class NullRelay(BenchProcess):
    """The loop that only copies."""

    def __init__(
        self, name: str, directory: Path, *, bootstrap_servers: str, source: str, target: str, transactional: bool
    ) -> None:
        group = f"null.{name}"
        command = module("bench.processes.null_relay", "--bootstrap-servers", bootstrap_servers, "--group", group)
        command += ["--source", source, "--target", target]
        if transactional:
            command += ["--transactional-id", group]
        super().__init__(name, command, directory, group)


class Relay(BenchProcess):
    """One relay of a DelayTopic, under a name of its own in its group, as the operator starts it."""

    def __init__(self, name: str, directory: Path, config: RelayConfig, *, in_c: bool = True) -> None:
        """Writes the configuration into the directory; `in_c` demands the speedups, else it is in Python alone."""
        self.config = config
        self._status_url = f"http://{config.http.host}:{config.http.port}/status"
        path = directory / f"{name}.yaml"
        document = config.model_dump(mode="json", by_alias=True, exclude_none=True)
        path.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
        command = module("delaytopic_relay", "--config", str(path), "--name", name)
        # Images have bytecode, so that its start compiles nothing; empty, the variable is as if it were not there.
        environment = {VARIABLE: "1" if in_c else "0", "PYTHONDONTWRITEBYTECODE": ""}
        super().__init__(name, command, directory, config.group_id, environment)

    def wait_until_it_delivers(self) -> None:
        """Wait until it owns all partitions and has recovered them."""
        wait_until_all_deliver([self])

    def delivering(self) -> int:
        """Return how many partitions it owns and has recovered."""
        self.check()
        status = self.status()
        if status is None or status.state is not RelayState.RUNNING:
            return 0
        return sum(shard.state is ShardState.DELIVERING for shard in status.shards)

    def status(self) -> RelayStatus | None:
        """Return the status of the relay; None while it does not answer."""
        try:
            with urllib.request.urlopen(self._status_url, timeout=5) as answer:
                return RelayStatus.model_validate_json(answer.read())
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            return None


def wait_until_all_deliver(relays: Sequence[Relay]) -> None:
    """Wait until relays of one group own all partitions, in equal shares, and have recovered them."""
    share = PARTITIONS // len(relays)

    def all_deliver() -> bool:
        return all(relay.delivering() == share for relay in relays)

    wait_for(all_deliver, f"{relays[0].name}: owning all partitions", timeout_s=START_SECONDS)


def by_record(dialect: Dialect = Dialect.NATIVE) -> RelaySchedule:
    """Each record says when it is due, in this dialect."""
    return RelaySchedule(max_delay=Duration("720h"), ids=CAPABILITIES[dialect].ids, **member(dialect))


def _with_history(schedule: RelaySchedule, topic: str) -> RelaySchedule:
    if not CAPABILITIES[schedule.dialect].history:
        return schedule
    return schedule.model_copy(update={"scheduler": RelayScheduler(history=RelayHistory(topic=topic))})


def fixed(delay: str) -> RelaySchedule:
    """Every record is due so long after it was produced."""
    return RelaySchedule(fixed_delay=Duration(delay), max_delay=Duration(delay), ids=Ids.DISABLED)


def relay_config(
    name: str,
    *,
    bootstrap_servers: str,
    backend: RelayBackend,
    source: str,
    target: str,
    guarantee: Guarantee,
    precision: str,
    schedule: RelaySchedule,
) -> RelayConfig:
    """The configuration of a relay as a user would get it, but for what the case is about."""
    return RelayConfig(
        name=name,
        namespace="bench",
        group_id=f"delaytopic.bench.{name}",
        source=RelaySource(topic=source),
        target=RelayTarget(topic=target),
        dead_letter=RelayDeadLetter(topic=f"{target}.dlq"),
        schedule=_with_history(schedule, f"{target}.history"),
        precision=Duration(precision),
        guarantee=guarantee,
        backend=backend,
        kafka=KafkaClient(bootstrap_servers=bootstrap_servers),
        http=HttpServer(host="127.0.0.1", port=free_port()),
    )
