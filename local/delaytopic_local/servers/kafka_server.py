"""One real Apache Kafka broker as a child process, for one machine."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from delaytopic_gateway.client.topics import all_partitions_lead
from delaytopic_local.errors import EmbeddedServerError, ServerStartError
from delaytopic_local.servers.kafka_jars import KafkaRuntime, kafka_runtime, print_progress
from delaytopic_local.servers.kafka_settings import (
    FIRST_NODE_ID,
    ClusterNode,
    broker_settings,
    fencing_settings,
    properties_text,
)
from delaytopic_local.servers.process import ManagedProcess, accepts_connections, free_port
from delaytopic_process.waiting import wait_until

START_TIMEOUT_SECONDS = 90.0
STOP_GRACE_SECONDS = 30.0
LOOKS_IN_VAIN = 30
"""A broker that lives by the metadata is fenced at one of the controller's first looks: these take seven seconds."""
_LOG_OPTIONS = (
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
    "-Dorg.slf4j.simpleLogger.showDateTime=true",
    "-Dorg.slf4j.simpleLogger.dateTimeFormat=yyyy-MM-dd'T'HH:mm:ss.SSSXXX",
    "--sun-misc-unsafe-memory-access=allow",  # Java 24 and later warn of what Kafka does on every start
    "--enable-native-access=ALL-UNNAMED",
)
_LOG_FENCING = (
    "-Dorg.slf4j.simpleLogger.log.org.apache.kafka.controller.ReplicationControlManager=info",
    "-Dorg.slf4j.simpleLogger.log.org.apache.kafka.deferred=debug",
)


class KafkaServer:
    """A KRaft node (broker and controller in one) with its data under a directory, on 127.0.0.1.

    The port is chosen once and survives stop, kill and restart, as does the data. As a context manager it starts
    on entry and stops on exit. The kernel kills it when this process dies. It is a cluster of its own, unless it is
    told which node of another it is: those are started side by side, as none answers before most of them do.
    """

    def __init__(
        self,
        directory: Path,
        *,
        port: int = 0,
        node: ClusterNode | None = None,
        settings: Mapping[str, str] | None = None,
        heap_mib: int = 768,
        jvm_options: tuple[str, ...] = (),
        report: Callable[[str], None] = print_progress,
    ) -> None:
        """Nothing is started yet. `port` 0 picks a free one; `settings` are added to server.properties.

        Raises what `kafka_runtime` raises: without the wheels, or when Kafka can't be downloaded.
        """
        self.directory = directory
        self.port = port or free_port()
        self._node = node or ClusterNode([f"127.0.0.1:{free_port(avoid=frozenset({self.port}))}"])
        self._settings = dict(settings or {})
        self._runtime: KafkaRuntime = kafka_runtime(report=report)
        heap = (f"-Xms{min(256, heap_mib)}m", f"-Xmx{heap_mib}m")
        self._process = ManagedProcess(
            "Kafka",
            self._java("kafka.Kafka", str(self._properties_file), options=(*heap, *jvm_options)),
            log_file=directory / "server.log",
        )

    @property
    def bootstrap_servers(self) -> str:
        """The address that Kafka clients take as `bootstrap.servers`."""
        return f"127.0.0.1:{self.port}"

    @property
    def log_file(self) -> Path:
        """The broker's own log, warnings and worse."""
        return self._process.log_file

    @property
    def pid(self) -> int:
        """The process id of the broker."""
        return self._process.pid

    def is_running(self) -> bool:
        """Tell whether the broker's process is there."""
        return self._process.is_running()

    def start(self) -> None:
        """Format the storage when it is new, start the broker and wait until it answers.

        Raises ServerStartError with the end of the log when it ends or does not answer in time.
        """
        if self.is_running():
            raise EmbeddedServerError(f"Kafka is running already (pid {self.pid})")
        self.directory.mkdir(parents=True, exist_ok=True)
        self._write_properties(self._properties_file, self._broker_settings())
        if not (self._data_directory / "meta.properties").exists():
            self._format_storage()
        elif self._node.is_alone and not (self._data_directory / ".kafka_cleanshutdown").exists():
            self._fence_its_former_self()
        self._process.start()
        self._wait_until_it_answers()

    def stop(self) -> None:
        """End it gracefully (SIGTERM, after a grace SIGKILL). Nothing when it is not running."""
        self._process.stop(grace_seconds=STOP_GRACE_SECONDS)

    def kill(self) -> None:
        """End it with SIGKILL, as a crash would."""
        self._process.kill()

    def restart(self) -> None:
        """Stop it gracefully when it runs, and start it again on the same port with the same data."""
        self.stop()
        self.start()

    def send_signal(self, number: signal.Signals) -> None:
        """Send it a signal: SIGSTOP freezes it, SIGCONT lets it go on."""
        self._process.send_signal(number)

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.kill()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def _properties_file(self) -> Path:
        return self.directory / "server.properties"

    @property
    def _data_directory(self) -> Path:
        return self.directory / "data"

    def _java(self, main_class: str, *arguments: str, options: tuple[str, ...] = ()) -> list[str]:
        runtime = self._runtime
        return [str(runtime.java), *options, *_LOG_OPTIONS, "-cp", runtime.class_path, main_class, *arguments]

    def _broker_settings(self) -> dict[str, str]:
        return broker_settings(self._data_directory, self._node, port=self.port, overrides=self._settings)

    @staticmethod
    def _write_properties(file: Path, settings: Mapping[str, str]) -> None:
        file.write_text(properties_text(settings), encoding="utf-8")

    def _format_storage(self) -> None:
        arguments = ("format", "-t", self._node.cluster_id, "-c", str(self._properties_file), "--ignore-formatted")
        command = self._java("kafka.tools.StorageTool", *arguments, options=("-XX:TieredStopAtLevel=1", "-Xshare:auto"))
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise ServerStartError(f"Kafka could not format its storage:\n{done.stdout}{done.stderr}".rstrip())

    def _fence_its_former_self(self) -> None:
        """Run the controller alone, after a crash, until it has declared the former broker dead, as others would.

        Without this the new broker first acts as the old one, until its own controller fences it. A transaction
        whose commit was decided but not yet marked in its partitions then finds "no leader, probably deleted",
        is taken as complete, and blocks every read_committed reader of those partitions for good (KAFKA-20734).
        """
        properties = self.directory / "fencing.properties"
        self._write_properties(properties, fencing_settings(self._data_directory, self._node))
        log_file = self.directory / "fencing.log"
        log_file.unlink(missing_ok=True)
        options = ("-Xmx256m", "-XX:TieredStopAtLevel=1", *_LOG_FENCING)
        controller = ManagedProcess(
            "Kafka's controller", self._java("kafka.Kafka", str(properties), options=options), log_file=log_file
        )
        controller.start()
        try:
            self._wait(controller, lambda: has_fenced(log_file.read_text(encoding="utf-8", errors="replace")))
        finally:
            controller.stop(grace_seconds=STOP_GRACE_SECONDS)

    def _wait_until_it_answers(self) -> None:
        self._wait(
            self._process, lambda: accepts_connections(self.port) and all_partitions_lead(self.bootstrap_servers)
        )

    @staticmethod
    def _wait(process: ManagedProcess, ready: Callable[[], bool]) -> None:
        """Wait until it is ready; kills it and raises ServerStartError when it ended or takes too long."""
        in_time = wait_until(lambda: not process.is_running() or ready(), timeout_seconds=START_TIMEOUT_SECONDS)
        if in_time and process.is_running():
            return
        what = f"was not ready in {START_TIMEOUT_SECONDS:.0f} s" if process.is_running() else "ended while starting"
        process.kill()
        raise ServerStartError(f"{process.name} {what}; the end of {process.log_file}:\n{process.log_tail()}")


def has_fenced(log: str) -> bool:
    """Tell whether a controller's log has the broker fenced, and later such an event committed.

    A broker that was killed while it shut down is fenced already: there is nothing to decide, however often it looks.
    """
    looked = "successfully completing maybeFenceStaleBroker"
    _, decided, after = log.partition(f"Fencing broker {FIRST_NODE_ID} ")
    return looked in after if decided else log.count(looked) >= LOOKS_IN_VAIN
