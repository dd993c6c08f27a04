"""The verdict as it is served, and how a job with a missed objective ends."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.audit.sample_report import END_MINUTE, NOW_MS, sample_report

from delaytopic_api import Duration, Percent
from delaytopic_api.documents import MOST_FAULTY_HOURS, AuditedSlo, Condition, ConditionStatus
from delaytopic_audit.errors import AuditError
from delaytopic_audit.model.report import BurnRate, FaultyHour, ObjectiveName
from delaytopic_audit.model.rules import Threshold
from delaytopic_audit.report.reporting import no_verdict
from delaytopic_cli.audit.documents import audited_topics
from delaytopic_cli.audit.publishing import (
    LARGEST_BYTES,
    publish,
    publish_failure,
    status_document,
    status_text,
    tell_failure,
    tell_local,
)
from delaytopic_cli.audit.serving import Verdicts
from delaytopic_local.session.known_topics import KnownTopic
from delaytopic_local.session.state import LocalState, read_last_report, write_state

TOPIC = """
apiVersion: delaytopic.dev/v1beta1
kind: DelayTopic
metadata: {name: %s, namespace: shop}
spec: {source: {topic: a}, target: {topic: b}}
---
"""


def options(folder: Path, **more: Any) -> dict[str, Any]:
    usual = {"output": str(folder / "reports"), "verdicts": Verdicts(), "push": None, "quiet": True, "exit_zero": False}
    return {**usual, **more}


def told(given: dict[str, Any]) -> dict[str, Any]:
    """Return the only verdict that is served."""
    text, _ = given["verdicts"].after("")
    document: dict[str, Any] = json.loads(text)
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
def test_the_document_has_a_bounded_size_whatever_the_reasons_are(reasons: list[str]) -> None:
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
    document = status_document(worst, f"/var/lib/delaytopic/reports/{'n' * 63}/{'o' * 253}/report.html")

    text = status_text(document)

    assert len(text.encode()) <= LARGEST_BYTES
    assert json.loads(text)["slo"] == document["slo"]
    assert len(json.loads(text)["condition"]["message"]) > 100


def test_a_verdict_is_served_with_the_place_of_its_report(tmp_path: Path) -> None:
    given_options = options(tmp_path)

    code = publish(sample_report(), given_options)

    assert code == 1
    assert told(given_options)["verdict"] == "Missed"
    assert told(given_options)["slo"]["report"] == str(tmp_path / "reports/shop/order-reminders/report.html")


def test_a_missed_objective_is_a_success_for_a_job_and_no_verdict_is_none(tmp_path: Path) -> None:
    as_a_job = options(tmp_path, exit_zero=True)

    assert publish(sample_report(), as_a_job) == 0
    assert publish(sample_report(faulty=False), as_a_job) == 0
    assert publish(no_verdict("shop/orders", ["The topic is gone."], NOW_MS), as_a_job) == 2


def test_a_run_that_fails_on_its_way_says_so_as_a_verdict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given_options = options(tmp_path, exit_zero=True)

    code = publish_failure(AuditError("Kafka is away.\nTry later."), "shop/orders", given_options)

    assert code == 2
    assert told(given_options)["delayTopic"] == "shop/orders"
    assert told(given_options)["condition"]["status"] == "Unknown"
    assert told(given_options)["condition"]["message"] == "This audit could not judge. Kafka is away. Try later."
    assert capsys.readouterr().err.splitlines() == [
        "error: shop/orders: Kafka is away.",
        "error: shop/orders: Try later.",
    ]


def test_reports_are_in_a_folder_for_each_namespace(tmp_path: Path) -> None:
    publish(sample_report(), options(tmp_path))

    assert (tmp_path / "reports" / "shop" / "order-reminders" / "report.html").is_file()


def test_a_failure_is_told_as_a_verdict_on_each_delay_topic(tmp_path: Path) -> None:
    verdicts = Verdicts()

    tell_failure(AuditError("Kafka is away."), ["shop/orders", "shop/letters"], options(tmp_path, verdicts=verdicts))

    assert [json.loads(line)["delayTopic"] for line in verdicts.after("")[:-1]] == ["shop/orders", "shop/letters"]
