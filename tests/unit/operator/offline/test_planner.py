"""A plan against what a cluster holds: only what differs, by the operator's own planner."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.unit.operator.offline.scenes import (
    SECRET,
    SERVERS,
    Document,
    against,
    changes_of,
    converged,
    delay_class,
    delay_topic,
    namespace,
    only,
    steps,
    with_annotation,
)

from delaytopic_cli.plan.text import text_lines
from delaytopic_operator.config import GatewayConfig, OperatorConfig, TokenSecret
from delaytopic_operator.offline.cluster_view import ClusterState
from delaytopic_operator.offline.outcome import EXIT_CODES, Judgement
from delaytopic_operator.resources.identity import CONFIG_HASH, stamped

STANDARD, TOPIC = delay_class(), delay_topic()
STATE = converged(STANDARD, TOPIC)


def test_where_all_was_done_nothing_is_to_do() -> None:
    outcome = against(STATE, STANDARD, TOPIC)

    assert (only(outcome).steps, outcome.steps, EXIT_CODES[outcome.judgement]) == ([], [], 0)
    assert next(text_lines(outcome, objects=True)) == "DelayTopic shop/reminders: nothing to do"


def test_a_new_delay_topic_is_made_with_all_that_belongs_to_it() -> None:
    outcome = against(STATE, delay_topic("invoices"))

    assert steps(outcome)[:3] == ["Create DelayTopic", "AddFinalizer delaytopic.dev/drain", "Create ConfigMap"]
    assert EXIT_CODES[outcome.judgement] == 2


def test_a_change_shows_the_fields_and_that_relays_start_anew() -> None:
    outcome = against(STATE, delay_topic(precision="200ms"))

    assert steps(outcome) == ["Update DelayTopic", "Create ConfigMap", "Update Deployment"]
    assert changes_of(outcome, "DelayTopic") == [("spec.precision", "not set", "200ms")]
    assert changes_of(outcome, "ConfigMap") == [('data["relay.yaml"]', "precision: 1s", "precision: 200ms")]
    assert [step.restarts for step in only(outcome).steps] == [False, False, True]


def test_a_change_that_the_operator_has_nothing_to_do_for_is_one_of_the_object_alone() -> None:
    assert steps(against(STATE, delay_topic(slo={"objective": "99%"}))) == ["Update DelayTopic"]
    assert steps(against(STATE, with_annotation(TOPIC, {"team": "orders"}))) == ["Update DelayTopic"]


def test_writing_a_default_out_is_no_change() -> None:
    assert steps(against(STATE, delay_topic(deletionPolicy="Drain", suspend="None"))) == []


def test_more_partitions_are_planned_from_what_the_status_says() -> None:
    outcome = against(STATE, delay_topic(source={"topic": "shop.reminders.delayed", "partitions": 8}))

    grown = {step.object: step.detail for step in only(outcome).steps if step.action == "GrowTopic"}
    assert grown["shop.reminders.delayed"] == "partitions: 8 instead of 4"
    assert grown["delaytopic.shop.reminders.delay.0"] == "partitions: 8 instead of 4"


def test_a_setting_of_a_topic_is_corrected() -> None:
    outcome = against(STATE, delay_topic(schedule={"maxDelay": "1000h"}))

    (set_,) = (step for step in only(outcome).steps if step.action == "SetTopicConfig")
    assert set_.detail == "retention.ms=4204800000 (was 3196800000)"


def test_a_fixed_number_of_relays_is_planned() -> None:
    outcome = against(STATE, delay_topic(autoscaling={"mode": "Fixed"}, relay={"replicas": 3}))

    assert ("spec.replicas", "1", "3") in changes_of(outcome, "Deployment")


@pytest.mark.parametrize(
    ("scaling", "relays", "planned"),
    [
        ({}, 4, []),
        ({"minReplicas": 2}, 1, ["Update Deployment"]),
        ({"minReplicas": 0, "scaleToZero": "WhenNothingPending"}, 0, []),
    ],
)
def test_what_due_times_ask_for_is_left_to_the_operator(
    scaling: dict[str, Any], relays: int, planned: list[str]
) -> None:
    document = delay_topic(autoscaling=scaling)
    state = converged(STANDARD, document)

    assert steps(against(replace(state, made=[_with_relays(each, relays) for each in state.made]), document)) == planned


def test_relays_of_a_former_kind_of_scaling_keep_their_number() -> None:
    document = {**STATE.topics[0], "spec": {**STATE.topics[0]["spec"], "relay": {"replicas": 2}}}

    assert steps(against(replace(STATE, topics=[document]), TOPIC)) == []


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        (delay_topic(source={"topic": "shop.else"}), "ImmutableField"),
        (delay_topic(connection=SERVERS, backend={"type": "KafkaBuckets"}), None),
        (delay_topic(source={"topic": "shop.reminders.delayed", "partitions": 2}), "PartitionDecrease"),
        (delay_topic(precision="none"), "InvalidSpec"),
    ],
)
def test_a_change_that_is_refused_touches_nothing(changed: Document, reason: str | None) -> None:
    outcome = only(against(STATE, changed))

    assert outcome.reason == reason
    assert reason is None or (outcome.steps, outcome.judgement) == ((), Judgement.REFUSED)


def test_another_delay_topic_of_the_cluster_on_the_same_source_is_in_the_way() -> None:
    outcome = only(against(STATE, delay_topic("other", source={"topic": "shop.reminders.delayed"})))

    assert outcome.reason == "ResourceConflict"
    assert outcome.message == (
        "spec.source.topic: shop.reminders.delayed is the source topic of shop/reminders already; use another"
    )


def test_another_delay_topic_of_the_cluster_whose_topic_kafka_takes_for_ones_own_is_in_the_way() -> None:
    outcome = only(against(STATE, delay_topic("other", source={"topic": "shop.reminders_delayed"})))

    assert outcome.reason == "ResourceConflict"
    assert outcome.message == (
        "spec.source.topic: shop.reminders_delayed differs from shop.reminders.delayed of shop/reminders in dots and "
        "underscores only, and Kafka takes one of the two; use another"
    )


def test_a_namespace_that_is_not_there_has_to_be_made_or_be_in_the_files() -> None:
    state = replace(STATE, namespaces={**STATE.namespaces, "billing": None})
    invoices = delay_topic("invoices", "billing")

    missing, made = against(state, invoices), against(state, namespace("billing"), invoices)

    assert only(missing).reason == "NamespaceNotFound"
    assert ([step.object for step in made.steps], only(made).judgement) == (["Namespace billing"], Judgement.CHANGES)


def test_a_change_of_a_class_shows_what_becomes_of_the_delay_topics_that_use_it() -> None:
    outcome = against(STATE, delay_class(defaults={"partitions": 4, "replicationFactor": 3, "precision": "2s"}))

    assert [step.object for step in outcome.steps] == ["DelayClass standard"]
    assert (steps(outcome), only(outcome).in_files) == (["Create ConfigMap", "Update Deployment"], False)


def _with_access(on_revoked: str, **access: Any) -> Document:
    return delay_class(access={"onRevoked": on_revoked, **access})


NARROWED = {"sourceTopics": ["billing.*"]}
SELECTIVE = {"namespaceSelector": {"matchLabels": {"delays": "yes"}}}


@pytest.mark.parametrize(
    ("on_revoked", "planned", "noted"),
    [
        ("Keep", [], ["nothing of what is there is touched: relays that run go on as before"]),
        ("Suspend", [("Scale", "Deployment delaytopic-system/reminders-relay-cpdvynwmq7u3ym5ufb5zbzfy6a", "to 0")], []),
    ],
)
def test_a_class_that_takes_a_right_away_says_what_becomes_of_relays_that_run(
    on_revoked: str, planned: list[tuple[str, ...]], noted: list[str]
) -> None:
    outcome = only(against(STATE, _with_access(on_revoked, **NARROWED)))

    assert (outcome.judgement, outcome.reason, outcome.notes) == (Judgement.REFUSED, "AccessRevoked", noted)
    assert [(step.action, step.object, step.detail) for step in outcome.steps] == planned
    assert (outcome.message or "").startswith(
        "DelayClass standard (access.sourceTopics) no longer allows what the relays do: "
        "spec.source.topic: shop.reminders.delayed is not allowed"
    )


def test_a_right_is_foretold_to_go_from_objects_that_may_not_be_read() -> None:
    unseen = replace(STATE, made=(), unseen=frozenset({"delaytopic-system"}))

    outcome = only(against(unseen, _with_access("Suspend", **NARROWED)))

    assert (outcome.reason, [step.action for step in outcome.steps]) == ("AccessRevoked", ["Scale"])


def test_a_label_that_a_namespace_loses_is_foretold_to_take_the_right_away() -> None:
    of_class = _with_access("Suspend", **SELECTIVE)
    state = converged(of_class, TOPIC, labels={"delays": "yes"})

    assert steps(against(state, of_class, namespace("shop", delays="yes"))) == []
    outcome = only(against(state, of_class, namespace("shop", delays="no")))
    assert (outcome.reason, [step.action for step in outcome.steps]) == ("AccessRevoked", ["Scale"])


def test_a_namespace_in_the_files_shows_what_becomes_of_the_delay_topics_in_it() -> None:
    outcome = against(STATE, delay_topic("invoices", "billing"), namespace("billing"), namespace("shop", team="orders"))

    assert [(str(each.key), each.in_files) for each in outcome.topics] == [
        ("billing/invoices", True),
        ("shop/reminders", False),
    ]


def test_an_edit_that_is_refused_is_no_right_that_was_taken_away() -> None:
    narrow = converged(_with_access("Suspend", targetTopics=["shop.*"]), TOPIC)

    outcome = only(against(narrow, delay_topic(target={"topic": "shop.reminders", "allowedTopics": ["billing.*"]})))

    assert (outcome.reason, outcome.steps) == ("TargetNotAllowed", ())


def test_an_edit_says_what_it_does_to_what_waits() -> None:
    [live] = STATE.topics
    backlog = {"pending": 1_200, "overdue": 0}
    busy = replace(STATE, topics=[{**live, "status": {**live["status"], "backlog": backlog}}])

    notes = only(against(busy, delay_topic(schedule={"maxDelay": "5s"}))).notes
    others = only(against(busy, delay_topic(precision="200ms"))).notes

    assert notes == [
        "what waits keeps maxDelay 720h (up to 1,200 records, the last due by 2026-12-21T14:06:40Z); what is produced "
        "from now on gets maxDelay 5s"
    ]
    assert others == []


def test_an_edit_that_has_to_wait_is_said_to() -> None:
    [note] = only(against(STATE, delay_topic(schedule={"scheduler": {}}))).notes

    assert note.endswith(
        "The edit waits until nothing waits any more, as the ids of dialect Scheduler are others than those of Native: "
        "let producers pause until then, or make another DelayTopic"
    )


def test_a_paused_delay_topic_changes_itself_and_nothing_else() -> None:
    paused = with_annotation(delay_topic(precision="200ms"), {"delaytopic.dev/pause-reconciliation": "true"})

    outcome = against(STATE, paused)

    assert (steps(outcome), only(outcome).reason) == (["Update DelayTopic"], "Paused")


def test_one_that_is_being_deleted_is_not_planned() -> None:
    document: dict[str, Any] = dict(STATE.topics[0])
    going = {**document, "metadata": {**document["metadata"], "deletionTimestamp": "2026-11-21T10:00:00Z"}}

    assert only(against(replace(STATE, topics=[going]), TOPIC)).reason == "Terminating"


def test_what_secrets_hold_is_taken_to_be_unchanged() -> None:
    # Given relays whose pods carry a digest of a Secret that nobody here may read
    of_class = delay_class(connection={**SERVERS, "authentication": SECRET})
    state = converged(of_class, TOPIC)
    secret = replace(state, made=[_with_hash(each) for each in state.made])

    # Then nothing is to do, and a change is one as ever
    assert steps(against(secret, TOPIC)) == []
    assert steps(against(secret, delay_topic(precision="200ms")))[1:] == ["Create ConfigMap", "Update Deployment"]


def test_a_gateways_token_that_is_in_a_secret_is_taken_to_be_the_one_that_relays_know() -> None:
    told = OperatorConfig(gateway=GatewayConfig(token_sha256="0a" * 32))
    reads = OperatorConfig(gateway=GatewayConfig(token_secret=TokenSecret(name="delaytopic-relay-token")))
    state = replace(converged(STANDARD, TOPIC, config=told), config=reads)

    outcome = against(state, STANDARD, TOPIC)

    assert steps(outcome) == []


def test_objects_that_may_not_be_read_are_taken_to_be_as_the_operator_makes_them() -> None:
    unseen = replace(STATE, made=(), unseen=frozenset({"delaytopic-system"}))

    assert steps(against(unseen, TOPIC)) == []
    assert steps(against(unseen, delay_topic(precision="200ms")))[1:] == ["Create ConfigMap", "Update Deployment"]


def test_what_somebody_changed_by_hand_is_put_right() -> None:
    meddled = [{**each, "spec": {**each["spec"], "paused": False, "replicas": 1}} if each["kind"] == "Deployment"
               else {**each, "spec": {**each["spec"], "maxUnavailable": 2}} if each["kind"] == "PodDisruptionBudget"
               else each for each in STATE.made]  # fmt: skip

    assert steps(against(_made(meddled), TOPIC)) == ["Update PodDisruptionBudget"]


def _made(objects: list[Document]) -> ClusterState:
    return replace(STATE, made=objects)


def _with_relays(made: Document, relays: int) -> Document:
    """As the operator has scaled it."""
    if made["kind"] != "Deployment":
        return made
    bare = {name: value for name, value in made["metadata"].items() if name != "annotations"}
    return stamped({**made, "metadata": bare, "spec": {**made["spec"], "replicas": relays}})


def _with_hash(made: Document) -> Document:
    """As if Secrets had been read when it was made."""
    if made["kind"] != "Deployment":
        return made
    spec, template = made["spec"], made["spec"]["template"]
    bare = {name: value for name, value in made["metadata"].items() if name != "annotations"}
    pods = with_annotation(template, {CONFIG_HASH: "0123456789abcdef"})
    return stamped({**made, "metadata": bare, "spec": {**spec, "template": pods}})
