"""A Spark of its own on this machine: a standalone master and workers, each a process as on a machine of its own."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pyspark

from delaytopic_audit.runtime.session import make_java_home
from delaytopic_local.errors import ServerStartError
from delaytopic_local.servers.process import ManagedProcess
from delaytopic_process.waiting import wait_until

SPARK_HOME: Final = Path(pyspark.__file__).parent
HOST: Final = "127.0.0.1"
START_SECONDS: Final = 120.0
_ADDRESS: Final = re.compile(r"Starting Spark master at (spark://\S+)")
_REGISTERED: Final = re.compile("Successfully registered with master")


@contextmanager
def standalone_spark(folder: Path, *, workers: int, cores: int = 1, memory: str = "1g") -> Iterator[StandaloneSpark]:
    """Run a master and its workers while the context lasts.

    `cores` and `memory` are what each worker offers; `folder` takes logs, and what executors spill.
    """
    spark = StandaloneSpark(folder, workers, ["--cores", str(cores), "--memory", memory])
    try:
        spark.start()
        yield spark
    finally:
        spark.kill()


class StandaloneSpark:
    """The master and its workers; `url` is for `--master`.

    A worker and its executors are one process group: they end together, as on a machine that fails.
    """

    def __init__(self, folder: Path, workers: int, offers: Sequence[str]) -> None:
        """Start nothing yet; `offers` are options of each worker."""
        self.url = ""
        self.environment = _environment(folder)
        self._folder = folder
        self._count, self._offers = workers, offers
        self._master = self._program("master", "org.apache.spark.deploy.master.Master")
        self._workers: list[ManagedProcess] = []

    def kill_worker(self) -> None:
        """Kill one worker with its executors at once."""
        self._workers.pop().kill()

    def kill(self) -> None:
        """Kill all that runs."""
        while self._workers:
            self.kill_worker()
        self._master.kill()

    def start(self) -> None:
        """Start all, and wait until the workers are known to the master."""
        self._master.start()
        self.url = _wait_for(self._master, _ADDRESS)[1]
        for number in range(self._count):
            place = ["--work-dir", str(self._folder / f"work-{number}")]
            worker = self._program(
                f"worker-{number}", "org.apache.spark.deploy.worker.Worker", *self._offers, *place, self.url
            )
            worker.start()
            self._workers.append(worker)
        for worker in self._workers:
            _wait_for(worker, _REGISTERED)

    def _program(self, name: str, program: str, *arguments: str) -> ManagedProcess:
        command = [str(SPARK_HOME / "bin" / "spark-class"), program, "--host", HOST, "--port", "0", "--webui-port", "0"]
        log = self._folder / f"{name}.log"
        return ManagedProcess(f"Spark's {name}", [*command, *arguments], log_file=log, environment=self.environment)


def _wait_for(process: ManagedProcess, line: re.Pattern[str]) -> re.Match[str]:
    """Return the place in a process' log that says that it is ready."""

    def found() -> re.Match[str] | None:
        return line.search(process.log_file.read_text(encoding="utf-8", errors="replace"))

    wait_until(lambda: found() is not None or not process.is_running(), timeout_seconds=START_SECONDS)
    if (place := found()) is None:
        raise ServerStartError(f"{process.name} does not start. Its log ends with:\n{process.log_tail()}")
    return place


def _environment(folder: Path) -> Mapping[str, str]:
    """Return what processes of this Spark need; `JAVA_HOME` is for its own and for `spark-submit`."""
    environment = {
        "SPARK_HOME": str(SPARK_HOME),
        "SPARK_LOCAL_IP": HOST,
        "SPARK_LOCAL_DIRS": str(folder / "spill"),
        "SPARK_DAEMON_MEMORY": "256m",
    }
    if "JAVA_HOME" not in os.environ:
        make_java_home(folder / "java")
        environment["JAVA_HOME"] = str(folder / "java")
    return environment
