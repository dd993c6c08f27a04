"""One real Apache Kafka broker as a child process, for one machine."""

from __future__ import annotations

import base64
import signal
import subprocess
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from delaytopic_cli.embedded.kafka_client import broker_answers
from delaytopic_cli.embedded.kafka_jars import KafkaRuntime, kafka_runtime, print_progress
from delaytopic_cli.embedded.kafka_settings import broker_settings, properties_text
from delaytopic_cli.embedded.ports import accepts_connections, free_port
from delaytopic_cli.embedded.process import ManagedProcess
from delaytopic_cli.embedded.waiting import wait_until
from delaytopic_cli.errors import ServerStartError

START_TIMEOUT_SECONDS = 90.0
STOP_GRACE_SECONDS = 30.0
_LOG_OPTIONS = (
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
    "-Dorg.slf4j.simpleLogger.showDateTime=true",
    "-Dorg.slf4j.simpleLogger.dateTimeFormat=yyyy-MM-dd'T'HH:mm:ss.SSSXXX",
    "--sun-misc-unsafe-memory-access=allow",  # Java 24 and later warn of what Kafka does on every start
    "--enable-native-access=ALL-UNNAMED",
)


class KafkaServer:
    """A KRaft node (broker and controller in one) with its data under a directory, on 127.0.0.1.

    The port is chosen once and survives stop, kill and restart, as does the data. As a context manager it starts
    on entry and stops on exit. The kernel kills it when this process dies.
    """

    def __init__(
        self,
        directory: Path,
        *,
        port: int = 0,
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
        self._controller_port = free_port(avoid=frozenset({self.port}))
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
        """What Kafka clients take as `bootstrap.servers`."""
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
        """Whether the broker's process is there."""
        return self._process.is_running()

    def start(self) -> None:
        """Format the storage when it is new, start the broker and wait until it answers.

        Raises ServerStartError with the end of the log when it ends or does not answer in time.
        """
        self.directory.mkdir(parents=True, exist_ok=True)
        self._write_properties()
        if not (self._data_directory / "meta.properties").exists():
            self._format_storage()
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

    def _write_properties(self) -> None:
        settings = broker_settings(
            self._data_directory, port=self.port, controller_port=self._controller_port, overrides=self._settings
        )
        self._properties_file.write_text(properties_text(settings), encoding="utf-8")

    def _format_storage(self) -> None:
        arguments = ("format", "-t", _new_cluster_id(), "-c", str(self._properties_file), "--ignore-formatted")
        command = self._java("kafka.tools.StorageTool", *arguments, options=("-XX:TieredStopAtLevel=1", "-Xshare:auto"))
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise ServerStartError(f"Kafka could not format its storage:\n{done.stdout}{done.stderr}".rstrip())

    def _wait_until_it_answers(self) -> None:
        def answers_or_ended() -> bool:
            return not self.is_running() or (accepts_connections(self.port) and broker_answers(self.bootstrap_servers))

        in_time = wait_until(answers_or_ended, timeout_seconds=START_TIMEOUT_SECONDS)
        if in_time and self.is_running():
            return
        what = f"did not answer in {START_TIMEOUT_SECONDS:.0f} s" if self.is_running() else "ended while starting"
        self.kill()
        raise ServerStartError(f"Kafka {what}; the end of {self.log_file}:\n{self._process.log_tail()}")


def _new_cluster_id() -> str:
    """A random cluster id in Kafka's form: 16 bytes in URL-safe base64 without padding."""
    return base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
