"""A run that is killed anywhere and repeated gives the same report, but for its times."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.harness.names import unique
from tests.harness.shared_servers import KafkaAddress
from tests.support.audit.delay_topics import HOUR_MS, AuditedTopic
from tests.support.audit.quick_spark import ENVIRONMENT
from tests.support.audit.runs import without_attempt
from tests.support.audit.truth import Truth
from tests.support.relay.process import wait_for

from delaytopic_audit.audit import Audit
from delaytopic_audit.ledger.files import Files
from delaytopic_audit.ledger.ledger import Ledger
from delaytopic_audit.model.report import Report
from delaytopic_audit.pipeline.ports import silent
from delaytopic_process.command_line import INTERRUPTED

pytestmark = pytest.mark.integration
TIMES = ("generatedAtMs",)
PATIENCE_S = 300
"""With a process that would hang."""
ENDS_BEFORE_ITS_COMMIT = """
import os, sys
from delaytopic_cli.__main__ import main
from delaytopic_audit.ledger.ledger import Ledger

def end(ledger, commit):
    os.kill({process}, {number})

Ledger.commit = end
main()
"""
"""`delaytopic`, which with all tables written and nothing committed sends a signal to a process or to its own group."""


class Killed(BaseException):
    """The end of a process, in the place where it is raised."""


@dataclass
class Killer:
    """Notes each effect of a run on its ledger, and ends the process before one of them."""

    patched: pytest.MonkeyPatch
    effects: list[str] = field(default_factory=list)
    deadly: str | None = None

    def __post_init__(self) -> None:
        for owner, name in ((Files, "create"), (Files, "delete"), (Ledger, "write"), (Ledger, "write_sorted")):
            self.patched.setattr(owner, name, self._around(getattr(owner, name)))

    def _around(self, effect: Callable[..., Any]) -> Callable[..., Any]:
        def killing(owner: Files | Ledger, *arguments: Any) -> Any:
            # A table has the folder and the name of it; a file has a path, and a text that is none of a name.
            words = arguments[:2] if isinstance(owner, Ledger) else arguments[:1]
            name = f"{effect.__name__} {without_attempt('/'.join(words))}"
            if name == self.deadly:
                raise Killed
            self.effects.append(name)
            return effect(owner, *arguments)

        return killing


@dataclass(frozen=True)
class Calm:
    """A DelayTopic, and the audit of it that nobody disturbed."""

    topic: AuditedTopic
    now_ms: int
    report: Report
    effects: list[str]

    def with_ledger(self, folder: Path) -> AuditedTopic:
        """Return the same DelayTopic with another ledger."""
        return AuditedTopic(self.topic.name, self.topic.bootstrap_servers, folder)


@pytest.fixture(scope="module")
def calm(spark: SparkSession, kafka: KafkaAddress, tmp_path_factory: pytest.TempPathFactory) -> Calm:
    topic = AuditedTopic(unique("killed"), kafka.bootstrap_servers, tmp_path_factory.mktemp("calm")).create(2)
    now_ms = with_records(topic)
    with pytest.MonkeyPatch.context() as patched:
        killer = Killer(patched)
        report = topic.run(spark, now_ms)
    return Calm(topic, now_ms, report, killer.effects)


def with_records(topic: AuditedTopic) -> int:
    """Produce some hundred records of every sort; return when all of them are closed."""
    base_ms = (time.time_ns() // 1_000_000 // HOUR_MS - 12) * HOUR_MS
    truth, producer = Truth(topic, 0, 4711, base_ms, each=20), topic.producer()
    for sent in (*truth.asked(), *truth.outcomes()):
        producer.produce(sent.topic, b"v", b"k", min(sent.partition, 1), timestamp=sent.append_ms, headers=sent.headers)
    assert producer.flush(60) == 0
    return base_ms + 8 * HOUR_MS


def without_times(report: Report) -> dict[str, Any]:
    return {name: value for name, value in report.to_document().items() if name not in TIMES}


@pytest.mark.takes_long("carries out a run that is killed, and two that are not")
def test_a_run_killed_before_its_commit_gives_the_same_report_as_one_that_was_not(
    spark: SparkSession, calm: Calm, tmp_path: Path
) -> None:
    # All tables are written by then: what is left behind is as much as it can be.
    before_its_commit = next(effect for effect in calm.effects if effect.startswith("create commits/"))

    assert_same_report_after_kills(spark, calm, tmp_path, [before_its_commit])


@pytest.mark.nightly
def test_a_run_killed_before_each_of_its_effects_gives_the_same_report_as_one_that_was_not(
    spark: SparkSession, calm: Calm, tmp_path: Path
) -> None:
    assert (calm.effects[0], calm.effects[-1]) == ("create plans/00000001.json", "delete plans/00000001.json")

    assert_same_report_after_kills(spark, calm, tmp_path, calm.effects)


def assert_same_report_after_kills(spark: SparkSession, calm: Calm, folder: Path, moments: Sequence[str]) -> None:
    """Repeat a run that is killed before each of these effects in turn, and then once more."""
    topic = calm.with_ledger(folder)
    with pytest.MonkeyPatch.context() as patched:
        killer = Killer(patched)
        for killer.deadly in moments:
            with pytest.raises(Killed):
                run_and_be_done(topic.audit(spark), calm.now_ms)
    repeated = topic.run(spark, calm.now_ms + 5_000)

    assert without_times(repeated) == without_times(calm.report)
    assert topic.ledger(spark).open_plan() is None


def run_and_be_done(audit: Audit, now_ms: int) -> None:
    audit.run(now_ms, silent)
    audit.done()


@pytest.mark.nightly  # each day a run ends by an exception in the same place
@pytest.mark.takes_long("starts a Spark of its own, which is killed")
def test_a_process_that_gets_sigkill_before_its_commit_is_repeated_without_a_trace(
    spark: SparkSession, calm: Calm, tmp_path: Path
) -> None:
    topic = calm.with_ledger(tmp_path / "ledger")

    process = start(topic, tmp_path, ENDS_BEFORE_ITS_COMMIT.format(process=0, number=int(signal.SIGKILL)))
    code = process.wait(PATIENCE_S)
    wait_for(lambda: not is_anybody_in(process.pid))

    ledger = topic.ledger(spark)
    assert (code, ledger.last_commit()) == (-signal.SIGKILL, None)
    assert ledger.open_plan() is not None
    assert told(topic.run(spark, calm.now_ms)) == told(calm.report)


@pytest.mark.nightly
def test_a_process_that_is_asked_to_end_does_so_and_is_repeated_without_a_trace(
    spark: SparkSession, calm: Calm, tmp_path: Path
) -> None:
    topic = calm.with_ledger(tmp_path / "ledger")

    process = start(topic, tmp_path, ENDS_BEFORE_ITS_COMMIT.format(process="os.getpid()", number=int(signal.SIGTERM)))
    code = process.wait(PATIENCE_S)
    wait_for(lambda: not is_anybody_in(process.pid))

    assert (code, topic.ledger(spark).last_commit()) == (INTERRUPTED, None)
    assert told(topic.run(spark, calm.now_ms)) == told(calm.report)


def is_anybody_in(process_group: int) -> bool:
    try:
        os.killpg(process_group, 0)
    except ProcessLookupError:
        return False
    return True


def start(topic: AuditedTopic, folder: Path, program: str) -> subprocess.Popen[bytes]:
    """Start `delaytopic audit run` in a process group of its own, by a program in place of its usual one."""
    file = topic.write_document(folder)
    places = ["--ledger", str(topic.folder), "--output", str(folder / "report")]
    command = [sys.executable, "-c", program, "audit", "run", "-f", str(file), "-b", topic.bootstrap_servers]
    return subprocess.Popen(
        [*command, "--any-clock", "--window", "24h", *places], env=os.environ | ENVIRONMENT, start_new_session=True
    )


def told(report: Report) -> dict[str, Any]:
    """The report without its times, and the window that follows from them."""
    document = json.loads(json.dumps(report.to_document()))
    names = ("objectives", "counts", "lateness", "findings", "partitions", "worstMinutes", "verdict", "sentence")
    return {**{name: document[name] for name in names}, "ranges": document["reading"]["ranges"]}
