"""A plan with RecurringRecords: what is written for them, what rests, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.support.operator.topic_scenes import wanted
from tests.unit.operator.offline.scenes import (
    API,
    NOW_MS,
    Document,
    against,
    converged,
    delay_class,
    delay_topic,
    offline,
)

from delaytopic_cli.plan.text import text_lines
from delaytopic_operator.config import OperatorConfig
from delaytopic_operator.offline.changes import applied
from delaytopic_operator.offline.cluster_view import ClusterState
from delaytopic_operator.offline.outcome import Judgement, Outcome, RecurringOutcome
from delaytopic_operator.recurring.plan import RecurringObservation, Source, plan_recurring

TOPIC = delay_topic(schedule={"ids": "ByHeader"})
TAKES_IDS = wanted(schedule={"ids": "ByHeader"}).settings
SOURCE = Source("shop.reminders.delayed", "known-after-apply", 4, "known-after-apply", TAKES_IDS)
NEXT = ["2026-11-23T08:00:00Z", "2026-11-24T08:00:00Z", "2026-11-25T08:00:00Z"]


def recurring(name: str = "report", **spec: Any) -> Document:
    rule = {"delayTopic": "reminders", "cron": "0 9 * * mon-fri", "timeZone": "Europe/Berlin"}
    metadata = {"name": name, "namespace": "shop"}
    return {"apiVersion": API, "kind": "RecurringRecord", "metadata": metadata, "spec": {**rule, **spec}}


def written(document: Document) -> ClusterState:
    """A cluster in which the operator has written the record of a RecurringRecord."""
    live = applied(document, None, NOW_MS - 60_000)
    status = plan_recurring(RecurringObservation(NOW_MS - 60_000, live, SOURCE)).status
    assert status is not None
    return replace(converged(delay_class(), TOPIC), recurring=[{**live, "status": status["status"]}])


def the_record(outcome: Outcome) -> RecurringOutcome:
    (record,) = outcome.recurring
    return record


def told(outcome: Outcome) -> tuple[Judgement, str | None, list[tuple[str, str]], list[str]]:
    record = the_record(outcome)
    steps = [(step.action, step.object) for step in record.steps]
    return record.judgement, record.reason, steps, list(record.next)


def test_a_recurring_record_of_files_is_written_to_the_source_of_its_delay_topic() -> None:
    outcome = offline(delay_class(), TOPIC, recurring(value="report"))

    assert told(outcome) == (Judgement.CHANGES, None, [("WriteRecord", "shop.reminders.delayed")], NEXT)
    assert [note for note in outcome.notes if "other kinds" in note] == []


def test_the_text_tells_what_is_done_and_when_it_is_delivered_next() -> None:
    lines = list(text_lines(against(converged(delay_class(), TOPIC), recurring()), objects=False))

    assert lines[:5] == [
        "RecurringRecord shop/report: changes",
        "  To be done:",
        "    + RecurringRecord shop/report",
        "    + record in shop.reminders.delayed",
        f"  Next: {', '.join(NEXT)}",
    ]
    assert lines[-1] == "Plan: 1 with changes."


def test_nothing_is_done_about_a_recurring_record_that_is_as_it_was_written() -> None:
    assert told(against(written(recurring()), recurring())) == (Judgement.NOTHING, None, [], NEXT)


def test_an_edit_replaces_the_record_and_names_the_field() -> None:
    outcome = against(written(recurring()), recurring(value="another"))

    steps = [("Update", "RecurringRecord shop/report"), ("ReplaceRecord", "shop.reminders.delayed")]
    assert told(outcome) == (Judgement.CHANGES, None, steps, NEXT)
    assert [(each.path, each.after) for each in the_record(outcome).steps[0].changes] == [("spec.value", "another")]


def test_suspend_cancels_what_waits() -> None:
    outcome = against(written(recurring()), recurring(suspend=True))

    steps = [("Update", "RecurringRecord shop/report"), ("CancelRecord", "shop.reminders.delayed")]
    assert told(outcome) == (Judgement.CHANGES, "Suspended", steps, [])


def test_a_record_that_is_cancelled_with_its_object_gets_the_finalizer() -> None:
    outcome = offline(delay_class(), TOPIC, recurring(deletionPolicy="Cancel"))

    assert [step.object for step in the_record(outcome).steps] == [
        "delaytopic.dev/cancels-what-recurs",
        "shop.reminders.delayed",
    ]


def test_a_replacement_keeps_away_from_a_delivery_that_is_near() -> None:
    edited = recurring(cron="6 14 * * *", timeZone="UTC", jitter="5m")

    (*_, step) = the_record(against(written(recurring()), edited)).steps

    assert step.detail == "it is written at 2026-11-21T14:11:10Z, behind a delivery that is near"


@pytest.mark.parametrize(
    ("documents", "reason", "says"),
    [
        ([recurring()], "DelayTopicMissing", "there is no DelayTopic shop/reminders: apply it, or name another one"),
        ([delay_topic(), recurring()], "DelayTopicRefused", "the DelayTopic shop/reminders is refused, and has to be"),
        ([delay_class(), delay_topic(schedule={"ids": "Disabled"}), recurring()], "IdsNotTaken", "spec.delayTopic: "),
        ([delay_class(), TOPIC, recurring(cron="0 9 1 1 *")], "BeyondMaxDelay", "spec.cron: its time 2027-01-01T08:00"),
        ([delay_class(), TOPIC, recurring(cron="0 9 31 2 *")], "InvalidSpec", "RecurringRecord shop/report: spec.cron"),
    ],
)
def test_what_would_not_recur_is_refused(documents: list[Document], reason: str, says: str) -> None:
    outcome = offline(*documents)

    assert told(outcome) == (Judgement.REFUSED, reason, [], [])
    assert outcome.judgement is Judgement.REFUSED
    assert (the_record(outcome).message or "").startswith(says)


def test_another_delay_topic_is_refused_as_by_the_api_server() -> None:
    outcome = against(written(recurring()), recurring(delayTopic="others"))

    assert told(outcome) == (Judgement.REFUSED, "ImmutableField", [], [])


def test_a_namespace_that_is_not_there_is_refused() -> None:
    state = ClusterState(OperatorConfig(), is_there=True, namespaces={"shop": None})

    assert told(against(state, recurring())) == (Judgement.REFUSED, "NamespaceNotFound", [], [])


def of_cluster(outcome: Outcome) -> list[tuple[Judgement, str | None, bool]]:
    return [(each.judgement, each.reason, each.in_files) for each in outcome.recurring]


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        ({"ids": "ByHeader", "maxDelay": "12h"}, [(Judgement.REFUSED, "BeyondMaxDelay", False)]),
        ({"ids": "Disabled"}, [(Judgement.REFUSED, "IdsNotTaken", False)]),
        ({"ids": "ByHeader", "maxDelay": "168h"}, []),
    ],
    ids=["too seldom", "without ids", "as before"],
)
def test_a_recurring_record_of_the_cluster_is_told_of_if_an_edit_of_its_delay_topic_ends_it(
    schedule: dict[str, Any], expected: list[tuple[Judgement, str | None, bool]]
) -> None:
    assert of_cluster(against(written(recurring()), delay_topic(schedule=schedule))) == expected


def test_the_text_says_of_a_recurring_record_of_the_cluster_whence_it_comes() -> None:
    outcome = against(written(recurring()), delay_topic(schedule={"ids": "Disabled"}))

    says = "which is in the cluster, and whose DelayTopic these files concern: refused (IdsNotTaken)"
    assert f"RecurringRecord shop/report, {says}" in list(text_lines(outcome, objects=False))


def test_a_recurring_record_that_was_refused_before_the_edit_is_not_told_of() -> None:
    edited = delay_topic(schedule={"ids": "Disabled"})
    live = written(recurring())
    refused = {"type": "Ready", "status": "False", "reason": "IdsNotTaken", "message": "it takes none"}
    refused["lastTransitionTime"] = "2026-11-22T00:00:00Z"
    known = [{**each, "status": {**each["status"], "conditions": [refused]}} for each in live.recurring]

    assert of_cluster(against(replace(live, recurring=known), edited)) == []


def test_a_recurring_record_of_another_delay_topic_is_not_told_of() -> None:
    live = written(recurring(delayTopic="another"))

    assert of_cluster(against(live, delay_topic(schedule={"ids": "Disabled"}))) == []
