"""The audit's container, from the operator's documents to the verdict that the operator reads."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession
from tests.harness.names import unique
from tests.harness.shared_servers import KafkaAddress
from tests.support.audit.delay_topics import AuditedTopic
from tests.support.audit.known_findings import assert_truth_found, happened, produce, tables_of
from tests.support.audit.quick_spark import ENVIRONMENT
from tests.support.audit.readers import Reader
from tests.support.operator.routes import Route, route

from delaytopic_api.documents import ConditionStatus, ConditionType
from delaytopic_cli import __main__ as delaytopic
from delaytopic_local.servers.process import free_port
from delaytopic_operator.model.conditions import Condition
from delaytopic_operator.model.reconciliation import Key
from delaytopic_operator.observe.audit_verdict import last_verdict
from delaytopic_process.command_line import INTERRUPTED

pytestmark = pytest.mark.integration


def audited(kafka: KafkaAddress, volume: Path, topic: str) -> Route:
    """A DelayTopic with an audit."""
    audit = {"schedule": "H * * * *", "ledger": volume.as_uri(), "tables": "Delta"}
    spec = {"source": {"topic": f"{topic}.source"}, "target": {"topic": f"{topic}.target"}}
    letters = {"deadLetter": {"topic": f"{topic}.dlq"}}
    connection = {"bootstrapServers": kafka.bootstrap_servers}
    return route(config={"audit": audit}, connection=connection, **spec, **letters)


@dataclass(frozen=True)
class Nowhere:
    """A broker that does not answer."""

    bootstrap_servers: str = "127.0.0.1:1"


@dataclass(frozen=True)
class Container:
    """The container's program, with the paths of what it mounts as they are on this machine."""

    program: str
    words: list[str]
    environment: dict[str, str]
    reader: Reader
    port: int

    @classmethod
    def of(cls, given: Route, folder: Path) -> Container:
        """Write what it mounts into this folder."""
        (container,) = given.audit_object("CronJob")["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
        temporary, port = folder / "tmp", free_port()
        temporary.mkdir()
        for number, config_map in enumerate(each for each in given.audit() if each["kind"] == "ConfigMap"):
            of = folder / ("audit" if number else "config")
            of.mkdir()
            for name, text in config_map["data"].items():
                (of / name).write_text(text, encoding="utf-8")
        places: dict[str, object] = {
            "/etc/delaytopic/config": folder / "config",
            "/etc/delaytopic/audit": folder / "audit",
            "0.0.0.0:8080": f"127.0.0.1:{port}",
            "/tmp/": f"{temporary}/",
        }
        words = [outside_of(word, places) for word in container["args"]]
        environment = {variable["name"]: str(temporary) for variable in container["env"]}
        metadata = given.topic.metadata
        return cls(container["command"][0], words, environment, Reader(Key(metadata.namespace, metadata.name)), port)

    def run(self) -> int:
        """Run the program in this process, while an operator reads its verdict; return its exit code."""
        with self.reader.reading("127.0.0.1", self.port):
            return delaytopic.run(self.words)

    def condition(self) -> Condition:
        """Return what the operator makes of what it has read."""
        verdict = last_verdict({}, 0, self.reader.message)
        assert verdict is not None
        return verdict.condition


def outside_of(word: str, places: dict[str, object]) -> str:
    """A path of the container as one of this machine."""
    for inside, place in places.items():
        if word.startswith(inside):
            return f"{place}{word.removeprefix(inside)}"
    return word


@pytest.fixture
def shared_spark(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Has the command take the Spark of all tests, and puts back what it makes of SIGTERM."""
    usual = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr("delaytopic_cli.audit.commands.spark_session", lambda **_: spark)
    yield
    signal.signal(signal.SIGTERM, usual)


def topics_of(kafka: KafkaAddress, folder: Path) -> str:
    """Create the topics of a DelayTopic, and return the stem of their names."""
    topic = AuditedTopic(unique("contained"), kafka.bootstrap_servers, folder)
    topic.create(1, **{"message.timestamp.type": "LogAppendTime"})
    return topic.name


@pytest.mark.usefixtures("shared_spark")
@pytest.mark.takes_long("carries out an audit")
def test_the_verdict_of_an_audit_becomes_a_condition_and_a_row_of_a_table(kafka: KafkaAddress, tmp_path: Path) -> None:
    given = audited(kafka, tmp_path / "ledger", topics_of(kafka, tmp_path))
    container = Container.of(given, tmp_path)

    code = container.run()

    assert (container.program, code) == ("delaytopic", 0)
    assert container.condition()[:3] == (ConditionType.SLO_MET, ConditionStatus.TRUE, "Met")
    [row] = DeltaTable(tmp_path / "ledger/tables/namespaces/shop/verdicts").to_pyarrow_table().to_pylist()
    assert (row["delay_topic"], row["verdict"]) == (given.topic.full_name, "Met")


@pytest.mark.usefixtures("shared_spark")
def test_an_audit_that_does_not_reach_kafka_fails_and_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("delaytopic_audit.reading.facts.TIMEOUT_SECONDS", 1.0)
    container = Container.of(audited(Nowhere(), tmp_path / "ledger", "a"), tmp_path)

    code = container.run()

    found = container.condition()
    assert code == 2
    assert found[:3] == (ConditionType.SLO_MET, ConditionStatus.UNKNOWN, "CannotJudge")
    assert "127.0.0.1:1" in found.message


@pytest.mark.nightly
@pytest.mark.usefixtures("shared_spark")
@pytest.mark.takes_long("carries out three audits")
def test_an_audit_that_goes_on_finds_all_that_came_meanwhile(
    spark: SparkSession, kafka: KafkaAddress, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = AuditedTopic(unique("goes-on"), kafka.bootstrap_servers, tmp_path / "once").create(4)
    first, second = happened(topic)
    waits: list[float] = []

    def more_comes(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) > 1:
            raise KeyboardInterrupt
        produce(topic, [second])

    monkeypatch.setattr("delaytopic_cli.audit.commands.sleep", more_comes)
    produce(topic, [first])

    file, place = topic.write_document(tmp_path), str(tmp_path / "again")
    where = ("-f", str(file), "-b", topic.bootstrap_servers, "--ledger", place, "--output", str(tmp_path / "report"))
    code = delaytopic.run(["audit", "run", *where, "--any-clock", "--window", "24h", "--every", "1h"])

    topic.run(spark, time.time_ns() // 1_000_000)
    found = tables_of(spark, place)
    assert code == INTERRUPTED
    assert [3_000 < each < 3_600 for each in waits] == [True, True]
    assert found == tables_of(spark, str(topic.folder))
    assert_truth_found(found, [first, second])


@pytest.mark.nightly
def test_the_containers_program_does_the_same_with_a_spark_of_its_own(kafka: KafkaAddress, tmp_path: Path) -> None:
    given = audited(kafka, tmp_path / "ledger", topics_of(kafka, tmp_path))
    container = Container.of(given, tmp_path)
    program = Path(sys.executable).with_name(container.program)

    environment = os.environ | ENVIRONMENT | container.environment
    with container.reader.reading("127.0.0.1", container.port):
        words = [str(program), *container.words]
        done = subprocess.run(words, cwd=tmp_path / "tmp", env=environment, timeout=300, check=False)

    assert done.returncode == 0
    assert container.condition()[:3] == (ConditionType.SLO_MET, ConditionStatus.TRUE, "Met")
