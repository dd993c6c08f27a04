"""A run that is killed anywhere and repeated gives the same report, but for its times."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from pyspark.sql import SparkSession
from tests.slo.delay_topics import HOUR_MS, AuditedTopic
from tests.slo.truth import Truth
from tests.support.relay_process import wait_for

from delaytopic_cli.running import INTERRUPTED
from delaytopic_slo.audit import Audit
from delaytopic_slo.files import Files
from delaytopic_slo.ledger import Ledger
from delaytopic_slo.progress import silent

pytestmark = pytest.mark.integration
MakeTopic = Callable[..., AuditedTopic]
MOMENTS = 10
KILLS = int(os.environ.get("DELAYTOPIC_SLO_KILLS", "1"))
TIMES = ("generatedAtMs",)


class Killed(BaseException):
    """The end of a process, in the place where it is raised."""


class Killer:
    """Ends the process before or after one of its effects on the ledger."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.countdown = -1
        for owner, name in ((Files, "create"), (Files, "delete"), (Ledger, "write"), (Ledger, "write_sorted")):
            monkeypatch.setattr(owner, name, self._around(getattr(owner, name)))

    def run(self, audit: Audit, now_ms: int) -> None:
        """Until it is killed; when the moment does not come, before it is over."""
        audit.run(now_ms, silent)
        self.countdown = 1
        audit.done()

    def _around(self, effect: Callable[..., Any]) -> Callable[..., Any]:
        def killing(*arguments: Any, **named: Any) -> Any:
            self._pass()
            result = effect(*arguments, **named)
            self._pass()
            return result

        return killing

    def _pass(self) -> None:
        self.countdown -= 1
        if self.countdown == 0:
            raise Killed


def with_records(topic: AuditedTopic) -> int:
    """Some hundred records of every sort; returns when all of them are closed."""
    base_ms = (time.time_ns() // 1_000_000 // HOUR_MS - 12) * HOUR_MS
    truth, producer = Truth(topic, 0, 4711, base_ms), topic.producer()
    for sent in (*truth.asked(), *truth.outcomes()):
        producer.produce(sent.topic, b"v", b"k", min(sent.partition, 1), timestamp=sent.append_ms, headers=sent.headers)
    assert producer.flush(60) == 0
    return base_ms + 8 * HOUR_MS


def without_times(report: dict[str, Any]) -> str:
    return json.dumps({name: value for name, value in report.items() if name not in TIMES}, indent=1)


def test_a_run_killed_at_ten_random_moments_gives_the_same_report_as_one_that_was_not(
    spark: SparkSession, audited: MakeTopic, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = audited(2)
    now_ms = with_records(topic)
    calm = AuditedTopic(topic.name, topic.bootstrap_servers, tmp_path / "calm").run(spark, now_ms)
    killer, rng = Killer(monkeypatch), random.Random(11)

    for _ in range(MOMENTS):
        killer.countdown = rng.randint(1, 40)
        with pytest.raises(Killed):
            killer.run(topic.audit(spark), now_ms)
    killer.countdown = -1
    repeated = topic.run(spark, now_ms + 5_000)

    assert without_times(repeated.to_document()) == without_times(calm.to_document())
    assert topic.ledger(spark).open_plan() is None


def test_a_process_that_gets_sigkill_in_the_middle_of_its_work_is_repeated_without_a_trace(
    spark: SparkSession, audited: MakeTopic, tmp_path: Path
) -> None:
    topic = audited(2)
    calm = topic.run(spark, with_records(topic)).to_document()
    rng = random.Random(5)

    for _ in range(KILLS):
        process = start(topic, tmp_path, "killed")
        plans = tmp_path / "killed" / "ledger" / f"tests.{topic.name}" / "plans"
        wait_for(lambda: plans.is_dir() and any(path.suffix == ".json" for path in plans.iterdir()))  # noqa: B023
        threading.Event().wait(rng.uniform(0, 6))
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    repeated = finish(start(topic, tmp_path, "killed"), tmp_path / "killed")

    assert told(repeated) == told(calm)


def test_a_process_that_is_asked_to_end_does_so_and_is_repeated_without_a_trace(
    spark: SparkSession, audited: MakeTopic, tmp_path: Path
) -> None:
    topic = audited(2)
    calm = topic.run(spark, with_records(topic)).to_document()
    process = start(topic, tmp_path, "ended")
    plans = tmp_path / "ended" / "ledger" / f"tests.{topic.name}" / "plans"
    wait_for(lambda: plans.is_dir() and any(path.suffix == ".json" for path in plans.iterdir()))

    process.terminate()
    code = process.wait(30)
    wait_for(lambda: not is_anybody_in(process.pid))
    repeated = finish(start(topic, tmp_path, "ended"), tmp_path / "ended")

    assert (code, told(repeated)) == (INTERRUPTED, told(calm))


def is_anybody_in(process_group: int) -> bool:
    try:
        os.killpg(process_group, 0)
    except ProcessLookupError:
        return False
    return True


def start(topic: AuditedTopic, folder: Path, name: str) -> subprocess.Popen[bytes]:
    """`delaytopic slo run` in a process group of its own."""
    file = folder / "topic.yaml"
    spec = {"source": {"topic": topic.source}, "target": {"topic": topic.target, "allowed": [topic.other]}}
    document = {
        "apiVersion": "delaytopic.dev/v1alpha1",
        "kind": "DelayTopic",
        "metadata": {"name": topic.name, "namespace": "tests"},
        "spec": {**spec, "deadLetter": {"topic": topic.dead_letter}, "slo": {"lateness": "5s"}},
    }
    file.write_text(yaml.safe_dump(document), encoding="utf-8")
    place = folder / name
    places = ["--ledger", str(place / "ledger"), "--output", str(place / "report")]
    command = [sys.executable, "-m", "delaytopic_cli", "slo", "run", "-f", str(file), "-b", topic.bootstrap_servers]
    return subprocess.Popen([*command, "--any-clock", "--window", "24h", *places], start_new_session=True)


def finish(process: subprocess.Popen[bytes], place: Path) -> dict[str, Any]:
    """Its report; the objectives are missed, which is exit code 1."""
    assert process.wait(120) == 1
    [file] = (place / "report").glob("*/report.json")
    report: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return report


def told(report: dict[str, Any]) -> dict[str, Any]:
    """The report without its times, and the window that follows from them."""
    names = ("objectives", "counts", "lateness", "findings", "partitions", "worstMinutes", "verdict", "sentence")
    return {**{name: report[name] for name in names}, "ranges": report["reading"]["ranges"]}
