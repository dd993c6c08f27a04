"""The small document of --status-file, and how a job with a missed objective ends."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.audit.sample_report import END_MINUTE, NOW_MS, sample_report

from delaytopic_api import Duration, Percent
from delaytopic_api.documents import MOST_FAULTY_HOURS, AuditedSlo, Condition, ConditionStatus
from delaytopic_audit.errors import AuditError
from delaytopic_audit.model.report import BurnRate, FaultyHour, ObjectiveName
from delaytopic_audit.model.rules import Threshold
from delaytopic_audit.report.reporting import no_verdict
from delaytopic_cli.__main__ import cli
from delaytopic_cli.audit.documents import audited_topics
from delaytopic_cli.audit.publishing import (
    LARGEST_BYTES,
    publish,
    publish_failure,
    status_document,
    status_text,
    tell_local,
    write_status,
)
from delaytopic_cli.audit.serving import Verdicts
from delaytopic_local.session.known_topics import KnownTopic
from delaytopic_local.session.state import LocalState, read_last_report, write_state
from delaytopic_process.errors import InputError

TOPIC = """
apiVersion: delaytopic.dev/v1beta1
kind: DelayTopic
metadata: {name: %s, namespace: shop}
spec: {source: {topic: a}, target: {topic: b}}
---
"""


def options(folder: Path, **more: Any) -> dict[str, Any]:
    files = {"output": str(folder / "reports"), "status_file": str(folder / "status.json")}
    return {**files, "push": None, "quiet": True, "exit_zero": False, **more}


def written(folder: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((folder / "status.json").read_text(encoding="utf-8"))
    return document


def test_the_status_document_is_what_the_operator_needs_to_write_a_status() -> None:
    document = status_document(sample_report(), "reports/report.html")

    assert document | {"slo": None, "condition": None} == {
        "delayTopic": "shop/order-reminders",
        "verdict": "Missed",
        "generatedAtMs": NOW_MS,
        "slo": None,
        "condition": None,
    }
    assert AuditedSlo.model_validate(document["slo"]).report == "reports/report.html"
    assert Condition.model_validate(document["condition"]).status is ConditionStatus.FALSE


def test_the_local_session_whose_topic_was_audited_gets_the_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    folder = tmp_path / "session"
    folder.mkdir()
    topic = audited_topics(str(write_topic(tmp_path)), None)[0]
    found = []
    known = KnownTopic("shop/orders", topic.source.topic, topic.target.topic, topic.dead_letter.topic)
    for topics, directory in (((), folder), ((known,), folder / "gone"), ((known,), folder)):
        write_state(LocalState(os.getpid(), "kafka:1", None, topics, directory=str(directory)))
        tell_local(sample_report(), topic, "kafka:1")
        found.append(read_last_report(folder, "shop", "orders"))
    tell_local(sample_report(faulty=False), topic, "kafka:2")

    assert found[:2] == [None, None]
    assert read_last_report(folder, "shop", "orders") == found[2]
    assert json.loads(found[2] or "")["verdict"] == "Missed"


def write_topic(folder: Path) -> Path:
    file = folder / "topic.yaml"
    file.write_text(TOPIC % "orders", encoding="utf-8")
    return file


@given(st.lists(st.text(max_size=3_000), max_size=5))
def test_the_document_fits_into_a_termination_message_whatever_the_reasons_are(reasons: list[str]) -> None:
    report = no_verdict("shop/" + "o" * 40, reasons, NOW_MS)

    text = status_text(status_document(report, None))

    assert len(text.encode("utf-8", "surrogatepass")) <= LARGEST_BYTES
    whole = " ".join([report.sentence, *reasons])
    assert whole.startswith(json.loads(text)["condition"]["message"].removesuffix("..."))


def test_the_figures_of_the_worst_of_months_fit_in_and_none_is_cut() -> None:
    longest = [
        Threshold(name=f"Timely-{length}", lateness_ms=Duration(length).ms, objective=Percent("99.9999%"))
        for length in ("23h59m59s991ms", "23h59m59s992ms", "23h59m59s993ms")
    ]
    worst = sample_report(thresholds=longest, counted_minute=END_MINUTE - 60)
    many = 10**12

    def burning(rates: list[BurnRate]) -> list[BurnRate]:
        return [each.model_copy(update={"bad": many, "rate": 99_999.9999}) for each in rates]

    worst = worst.model_copy(
        update={
            "delay_topic": f"{'n' * 63}/{'o' * 253}",
            "objectives": [each.model_copy(update={"bad": many}) for each in worst.objectives],
            "burn_rates": burning(worst.burn_rates),
            "thresholds": [
                each.model_copy(update={"burn_rates": burning(each.burn_rates)}) for each in worst.thresholds
            ],
            "faulty_hours": [
                FaultyHour(hour_ms=NOW_MS, objective=ObjectiveName.COMPLETE, records=many)
                for _ in range(MOST_FAULTY_HOURS)
            ],
        }
    )
    document = status_document(worst, f"/var/lib/delaytopic/reports/{'n' * 63}.{'o' * 253}/report.html")

    text = status_text(document)

    assert len(text.encode()) <= LARGEST_BYTES
    assert json.loads(text)["slo"] == document["slo"]
    assert len(json.loads(text)["condition"]["message"]) > 100


def test_a_run_writes_the_document_over_what_was_there(tmp_path: Path) -> None:
    (tmp_path / "status.json").write_text("x" * 10_000, encoding="utf-8")

    code = publish(sample_report(), options(tmp_path))

    assert code == 1
    assert written(tmp_path)["verdict"] == "Missed"
    assert written(tmp_path)["slo"]["report"] == str(tmp_path / "reports/shop.order-reminders/report.html")


def test_a_missed_objective_is_a_success_for_a_job_and_no_verdict_is_none(tmp_path: Path) -> None:
    as_a_job = options(tmp_path, exit_zero=True)

    assert publish(sample_report(), as_a_job) == 0
    assert publish(sample_report(faulty=False), as_a_job) == 0
    assert publish(no_verdict("shop/orders", ["The topic is gone."], NOW_MS), as_a_job) == 2


def test_a_run_that_fails_on_its_way_says_so_in_the_document(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = publish_failure(AuditError("Kafka is away.\nTry later."), "shop/orders", options(tmp_path, exit_zero=True))

    assert code == 2
    assert written(tmp_path)["delayTopic"] == "shop/orders"
    assert written(tmp_path)["condition"]["status"] == "Unknown"
    assert written(tmp_path)["condition"]["message"] == "This audit could not judge. Kafka is away. Try later."
    assert capsys.readouterr().err.splitlines() == [
        "error: shop/orders: Kafka is away.",
        "error: shop/orders: Try later.",
    ]


def test_a_verdict_is_served_as_the_file_gets_it(tmp_path: Path) -> None:
    verdicts = Verdicts(lambda: 0.0)

    publish(sample_report(), options(tmp_path, verdicts=verdicts))

    assert verdicts.after("")[:-1] == [(tmp_path / "status.json").read_text(encoding="utf-8")]


def test_a_failure_is_served_as_the_file_gets_it(tmp_path: Path) -> None:
    verdicts = Verdicts(lambda: 0.0)

    publish_failure(AuditError("Kafka is away."), "shop/orders", options(tmp_path, verdicts=verdicts))

    assert verdicts.after("")[:-1] == [(tmp_path / "status.json").read_text(encoding="utf-8")]


def test_without_the_option_no_document_is_written(tmp_path: Path) -> None:
    publish(sample_report(), options(tmp_path, status_file=None))

    assert [path.name for path in tmp_path.iterdir()] == ["reports"]


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"--status-file: .*/no/status\.json cannot be written: No such file"):
        write_status(sample_report(), None, str(tmp_path / "no" / "status.json"))


def test_a_status_file_is_for_one_delay_topic(tmp_path: Path) -> None:
    file = tmp_path / "topics.yaml"
    file.write_text(TOPIC % "orders" + TOPIC % "invoices", encoding="utf-8")

    answer = CliRunner().invoke(
        cli, ["audit", "run", "-f", str(file), "--status-file", "s.json"], standalone_mode=False
    )

    assert isinstance(answer.exception, InputError)
    assert str(answer.exception) == "--status-file is for one DelayTopic: choose it with --name"
