"""One real Apache Kafka broker as a child process, for one machine."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import ClassVar

from delaytopic_gateway.client.topics import all_partitions_lead
from delaytopic_local.errors import ServerStartError
from delaytopic_local.servers.embedded_server import EmbeddedServer
from delaytopic_local.servers.kafka_jars import KafkaRuntime, kafka_runtime, print_progress
from delaytopic_local.servers.kafka_settings import (
    FIRST_NODE_ID,
    ClusterNode,
    broker_settings,
    fencing_settings,
    properties_text,
)
from delaytopic_local.servers.process import ManagedProcess, accepts_connections, free_port

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


class KafkaServer(EmbeddedServer):
    """A KRaft node: broker and controller in one.

    It is a cluster of its own, unless it is told which node of another it is: those are started side by side, as none
    answers before most of them do.
    """

    start_seconds: ClassVar[float] = 90.0
    grace_seconds: ClassVar[float] = 30.0

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
        """Keep what is needed to start it. `port` 0 picks a free one; `settings` are added to server.properties.

        Raises what `kafka_runtime` raises: without the wheels, or when Kafka can't be downloaded.
        """
        port = port or free_port()
        self._node = node or ClusterNode([f"127.0.0.1:{free_port()}"])
        self._settings = dict(settings or {})
        self._runtime: KafkaRuntime = kafka_runtime(report=report)
        heap = (f"-Xms{min(256, heap_mib)}m", f"-Xmx{heap_mib}m")
        properties = directory / "server.properties"
        command = self._java("kafka.Kafka", str(properties), options=(*heap, *jvm_options))
        super().__init__("Kafka", command, directory, port)
        self._properties_file = properties

    @property
    def bootstrap_servers(self) -> str:
        """The address that Kafka clients take as `bootstrap.servers`."""
        return f"127.0.0.1:{self.port}"

    def _prepare(self) -> None:
        """Write the settings, and format the storage when it is new."""
        self._write_properties(self._properties_file, self._broker_settings())
        if not (self._data_directory / "meta.properties").exists():
            self._format_storage()
        elif self._node.is_alone and not (self._data_directory / ".kafka_cleanshutdown").exists():
            self._fence_its_former_self()

    def _answers(self) -> bool:
        return accepts_connections(self.port) and all_partitions_lead(self.bootstrap_servers)

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
            controller.await_ready(
                lambda: has_fenced(log_file.read_text(encoding="utf-8", errors="replace")),
                timeout_seconds=self.start_seconds,
            )
        finally:
            controller.stop(grace_seconds=self.grace_seconds)


def has_fenced(log: str) -> bool:
    """Tell whether a controller's log has the broker fenced, and later such an event committed.

    A broker that was killed while it shut down is fenced already: there is nothing to decide, however often it looks.
    """
    looked = "successfully completing maybeFenceStaleBroker"
    _, decided, after = log.partition(f"Fencing broker {FIRST_NODE_ID} ")
    return looked in after if decided else log.count(looked) >= LOOKS_IN_VAIN
