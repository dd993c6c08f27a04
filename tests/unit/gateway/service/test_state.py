"""Statuses and reports of a DelayTopic, and the documents and pages that tell of them."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any

import pytest
from tests.support.gateway.gateway import NOW_MS, REMINDERS, Scene, gateway_over
from tests.unit.audit.sample_report import sample_report
from tests.unit.gateway.console.test_pages import texts

from delaytopic_api import DelayTopic, Settings, load_document, resolve
from delaytopic_audit.report.status import slo_condition, slo_status
from delaytopic_gateway.service.state import (
    HOW_TO_AUDIT_A_CLUSTER,
    UNKNOWN,
    AuditDocument,
    ReadyDocument,
    State,
    audit_of_report,
    state_of_status,
)

PAGE = "/delaytopics/shop/reminders"
MINUTE_MS = 60_000
AUDIT = AuditDocument(
    verdict="Missed",
    at_ms=NOW_MS - 5 * MINUTE_MS,
    message="2 of 10 records were <late>.",
    lateness="250ms",
    objective="99.9%",
    attainment="80%",
    window="720h",
    budget_remaining=-0.25,
    lateness_p99_ms=1_033,
    report="https://reports.example/shop",
)
READY = ReadyDocument(status="False", reason="RelaysNotReady", message="1 of 2 <relays>")


def settings() -> Settings:
    spec = {
        "connection": {"bootstrapServers": "kafka:9092"},
        "source": {"topic": "shop.delayed"},
        "target": {"topic": "shop"},
        "precision": "50ms",
    }
    document = {"apiVersion": "delaytopic.dev/v1beta1", "kind": "DelayTopic", "spec": spec}
    topic = load_document({**document, "metadata": {"namespace": "shop", "name": "reminders"}})
    assert isinstance(topic, DelayTopic)
    return resolve(topic, None)


def condition(type: str, status: str, reason: str, message: str = "words") -> dict[str, Any]:
    since = "2026-11-24T00:00:00Z"
    return {"type": type, "status": status, "reason": reason, "message": message, "lastTransitionTime": since}


@pytest.fixture(scope="module")
def served() -> Iterator[Scene]:
    with gateway_over(Scene()) as found:
        yield found


@pytest.fixture
def scene(served: Scene) -> Scene:
    return served.begin({REMINDERS: []})


def test_a_status_has_the_verdict_that_the_audit_gave_it() -> None:
    report = sample_report()
    met = slo_condition(report, 3, None).to_document()
    status = {"slo": slo_status(report, "/reports/report.html").to_document(), "conditions": [met]}

    audit = state_of_status(status, settings()).audit

    assert audit is not None
    assert audit.to_document() == {
        "verdict": "Missed",
        "atMs": report.generated_at_ms // 1_000 * 1_000,
        "message": met["message"],
        "lateness": "250ms",
        "objective": "99.9%",
        "attainment": "99.8226%",
        "window": "720h",
        "budgetRemaining": pytest.approx(-0.773205),
        "latenessP99Ms": audit.lateness_p99_ms,
        "report": "/reports/report.html",
    }


def test_a_report_has_what_is_left_of_the_budget_too() -> None:
    report = sample_report()
    assert report.budget is not None
    assert report.lateness is not None
    assert report.lateness.p99_ms is not None

    audit = audit_of_report(report.model_dump_json(by_alias=True, exclude_none=True), settings())

    assert audit is not None
    assert (audit.verdict, audit.at_ms, audit.attainment) == ("Missed", report.generated_at_ms, "99.8226%")
    assert audit.budget_remaining == report.budget.remaining
    assert audit.lateness_p99_ms == round(report.lateness.p99_ms)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", json.dumps({"verdict": 7, "sentence": "", "generatedAtMs": 1})])
def test_what_is_no_report_is_no_verdict(text: str) -> None:
    assert audit_of_report(text, settings()) is None


@pytest.mark.parametrize(
    ("status", "state"),
    [
        ({}, UNKNOWN),
        ({"conditions": [condition("SLOMet", "Unknown", "NoAudit", "no volume")]}, State(no_audit="no volume")),
        ({"conditions": 7}, UNKNOWN),
        (
            {"conditions": [condition("Ready", "False", "RelaysNotReady", "1 of 2 <relays>")]},
            State(READY, None, HOW_TO_AUDIT_A_CLUSTER),
        ),
    ],
)
def test_nothing_is_guessed_where_a_status_says_nothing(status: dict[str, Any], state: State) -> None:
    assert state_of_status(status, settings()) == state


def test_a_verdict_of_an_earlier_operator_has_no_time() -> None:
    status = {"conditions": [condition("SLOMet", "True", "Met")], "slo": {"latenessP99": "broken"}}

    audit = state_of_status(status, settings()).audit

    assert audit is not None
    assert (audit.verdict, audit.at_ms, audit.lateness_p99_ms) == ("Met", None, None)


@pytest.mark.parametrize(
    ("state", "text"),
    [
        (UNKNOWN, None),
        (State(late_p99_ms=20.0), "≤ 20 ms (last 30 s)"),
        (State(late_p99_ms=math.inf), "> 1 h (last 30 s)"),
        (State(audit=AUDIT), "1.03 s (audit)"),
        (State(audit=AUDIT, late_p99_ms=20.0), "≤ 20 ms (last 30 s)"),
    ],
)
def test_lateness_says_who_measured_it(state: State, text: str | None) -> None:
    assert state.lateness == text


def test_documents_have_it(scene: Scene) -> None:
    scene.states["shop/reminders"] = State(READY, AUDIT, late_p99_ms=20.0)

    one = scene.get("/v1/delaytopics/shop/reminders").document
    (listed,) = scene.get("/v1/delaytopics").document

    assert listed == one
    assert (one["audit"]["verdict"], one["ready"]["status"], one["latenessP99Ms"]) == ("Missed", "False", 20)


def test_the_first_page_has_it_in_its_columns(scene: Scene) -> None:
    scene.states["shop/reminders"] = State(READY, AUDIT, late_p99_ms=20.0)

    told = texts(scene.get("/").text)

    assert "no RelaysNotReady 0 0 - 0 ≤ 20 ms (last 30 s) Missed 5m ago" in told


def test_without_an_operator_no_page_speaks_of_ready(scene: Scene) -> None:
    told = texts(scene.get("/").text)

    assert "Ready" not in told
    assert "0 0 - 0 - no audit yet" in told


def test_a_delay_topic_tells_what_was_attained_and_leads_to_the_report(scene: Scene) -> None:
    scene.states["shop/reminders"] = State(READY, AUDIT)

    page = scene.get(PAGE).text

    assert "Objective 99.9% at most 250ms late Attained 80% Budget left -25.0 % Window 720h" in texts(page)
    assert '<a href="https://reports.example/shop" rel="noreferrer">' in page
    assert "2 of 10 records were &lt;late&gt;." in page
    assert "1 of 2 &lt;relays&gt;" in page


@pytest.mark.parametrize("place", ["javascript:alert(1)", "/reports/shop", "file:///etc", "data:text/html,x", "//evil"])
def test_a_report_elsewhere_than_at_an_address_is_no_link(scene: Scene, place: str) -> None:
    scene.states["shop/reminders"] = State(audit=AUDIT.model_copy(update={"report": place}))

    page = scene.get(PAGE).text

    assert place in page
    assert not re.search(f'href="{re.escape(place)}', page)


def test_how_to_get_a_verdict_is_told_where_there_is_none(scene: Scene) -> None:
    scene.states["shop/reminders"] = State(no_audit="no audit yet: run delaytopic audit run -f <file>.yaml")

    assert "No audit yet: run delaytopic audit run -f &lt;file&gt;.yaml." in scene.get(PAGE).text
