"""The audit on a Spark of several machines, each a process here: the same tables as in local mode."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession
from tests.harness.fixtures import QUICK_START
from tests.harness.names import unique
from tests.harness.shared_servers import KafkaAddress
from tests.support.audit.delay_topics import AuditedTopic
from tests.support.audit.known_findings import Tables, assert_truth_found, produced, tables_of
from tests.support.audit.s3_server import S3Server, s3_options
from tests.support.audit.spark_jars import spark_jars
from tests.support.audit.standalone_spark import HOST, SPARK_HOME, StandaloneSpark, standalone_spark
from tests.support.audit.truth import Truth

import delaytopic_cli

pytestmark = [pytest.mark.integration, pytest.mark.nightly]

MISSED = 1
SMALL = ("--conf", "spark.executor.memory=512m")
PATIENCE_S = 300


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[StandaloneSpark]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("JDK_JAVA_OPTIONS", " ".join(QUICK_START))
        with standalone_spark(tmp_path / "spark", workers=2) as running:
            yield running


@pytest.fixture(scope="module")
def truths(kafka: KafkaAddress, tmp_path_factory: pytest.TempPathFactory) -> tuple[AuditedTopic, list[Truth]]:
    topic = AuditedTopic(unique("standalone"), kafka.bootstrap_servers, tmp_path_factory.mktemp("local") / "ledger")
    return topic, produced(topic)


@pytest.fixture(scope="module")
def local(spark: SparkSession, truths: tuple[AuditedTopic, list[Truth]]) -> Tables:
    """The findings of the audit in local mode."""
    topic, _ = truths
    topic.run(spark, time.time_ns() // 1_000_000)
    return tables_of(spark, str(topic.folder))


def run(
    begin: list[str],
    topic: AuditedTopic,
    place: str,
    folder: Path,
    environment: Mapping[str, str],
    when: Callable[[str], None] = lambda _line: None,
    options: Sequence[str] = (),
) -> tuple[int, str]:
    """Run `delaytopic audit run`, begun by these words; `when` hears its lines. Return its exit code and the lines."""
    places = ["--ledger", place, "--output", str(folder / "report"), "--any-clock", "--window", "24h"]
    file = topic.write_document(folder)
    command = [*begin, "audit", "run", "-f", str(file), "-b", topic.bootstrap_servers, *places, *options]
    lines = []
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=os.environ | environment) as process:
        assert process.stderr is not None
        for line in process.stderr:
            lines.append(line)
            when(line)
        code = process.wait(PATIENCE_S)
    return code, "".join(lines)


@pytest.mark.takes_long("starts a Spark of four processes")
@pytest.mark.parametrize("moment", ["sorting", "joining"])
def test_a_worker_killed_during_the_run_changes_no_table(
    cluster: StandaloneSpark,
    spark: SparkSession,
    truths: tuple[AuditedTopic, list[Truth]],
    local: Tables,
    tmp_path: Path,
    moment: str,
) -> None:
    topic, place = truths[0], (tmp_path / "ledger").as_uri()
    executors: list[Path] = []

    def kill(line: str) -> None:
        if f" {moment} " in line and not executors:
            executors.extend(tmp_path.glob("spark/work-*/app-*/*/stdout"))
            cluster.kill_worker()

    begin = [sys.executable, "-m", "delaytopic_cli"]
    options = ("--master", cluster.url, *SMALL)
    code, told = run(begin, topic, place, tmp_path, {"SPARK_LOCAL_IP": HOST}, kill, options)

    assert (code, len(executors)) == (MISSED, 2), told
    assert tables_of(spark, place) == local
    assert_truth_found(local, truths[1])


@pytest.mark.takes_long("starts a Spark of four processes")
def test_under_spark_submit_with_jars_and_a_ledger_on_s3_the_tables_are_the_same_and_published_there(
    cluster: StandaloneSpark,
    spark: SparkSession,
    s3: S3Server,
    truths: tuple[AuditedTopic, list[Truth]],
    local: Tables,
    tmp_path: Path,
) -> None:
    topic, place, tables = truths[0], s3.url(unique("standalone")), s3.url(unique("tables"))
    script = Path(delaytopic_cli.__file__).with_name("__main__.py")
    # Of credentials, which the driver has in its environment, executors hear from Spark.
    options = s3_options(s3)
    credentials = {
        "AWS_ACCESS_KEY_ID": options.pop("fs.s3a.access.key"),
        "AWS_SECRET_ACCESS_KEY": options.pop("fs.s3a.secret.key"),
    }
    settings = [word for name, value in options.items() for word in ("--conf", f"spark.hadoop.{name}={value}")]
    submit = [str(SPARK_HOME / "bin" / "spark-submit"), "--master", cluster.url, "--jars", ",".join(spark_jars())]
    environment = {**cluster.environment, **credentials, "PYSPARK_PYTHON": sys.executable}

    begin = [*submit, *SMALL, *settings, str(script)]
    code, told = run(begin, topic, place, tmp_path, environment, options=("--tables", tables))

    assert code == MISSED, told
    assert tables_of(spark, place) == local
    (verdict,) = DeltaTable(f"{tables}/verdicts", storage_options=s3.options_of_others()).to_pyarrow_table().to_pylist()
    assert (verdict["delay_topic"], verdict["verdict"]) == (f"tests/{topic.name}", "Missed")
