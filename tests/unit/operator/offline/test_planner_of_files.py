"""A plan from files alone: what is in force, what is refused, and what would be made."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from tests.support.paths import ROOT
from tests.unit.operator.offline.scenes import (
    REDIS,
    SECRET,
    SERVERS,
    delay_class,
    delay_topic,
    files,
    namespace,
    offline,
    only,
    steps,
)

from delaytopic_cli.plan.text import text_lines
from delaytopic_operator.offline.documents import DocumentsUnreadable, sorted_out
from delaytopic_operator.offline.outcome import EXIT_CODES, Judgement


def test_all_that_the_operator_makes_is_planned_in_its_order() -> None:
    outcome = offline(delay_class(backend=REDIS), delay_topic())

    assert steps(outcome) == [
        "AddFinalizer delaytopic.dev/drain", "Create ConfigMap", "CreateTopic shop.reminders.delayed.dlq",
        "CreateTopic shop.reminders",
        "CreateTopic shop.reminders.delayed", "Create ServiceAccount", "Create ConfigMap", "Create NetworkPolicy",
        "Create PodDisruptionBudget", "Create Deployment",
    ]  # fmt: skip
    assert EXIT_CODES[outcome.judgement] == 2


def test_a_topic_is_planned_with_its_settings() -> None:
    outcome = offline(delay_class(), delay_topic())

    (target,) = (step for step in only(outcome).steps if step.object == "shop.reminders")
    assert target.detail == "partitions=4, replicationFactor=3, message.timestamp.type=LogAppendTime"


def test_every_setting_says_where_it_comes_from() -> None:
    limits = {"maxReplicas": 6}
    outcome = offline(delay_class(limits=limits), delay_topic(precision="200ms"))

    origins = {each.field: (each.value, each.origin) for each in only(outcome).in_force}
    fields = (
        "spec.delayClassName", "spec.precision", "spec.source.partitions", "spec.source.retention",
        "spec.deadLetter.topic", "spec.slo.lateness", "spec.autoscaling.maxReplicas", "spec.guarantee",
    )  # fmt: skip
    assert {field: origins[field] for field in fields} == {
        "spec.delayClassName": ("standard", "the default class"),
        "spec.precision": ("200ms", "this document"),
        "spec.source.partitions": ("4", "DelayClass standard, defaults.partitions"),
        "spec.source.retention": ("888h", "maxDelay + 168h"),
        "spec.deadLetter.topic": ("shop.reminders.delayed.dlq", "the source's name"),
        "spec.slo.lateness": ("1s", "5 x precision"),
        "spec.autoscaling.maxReplicas": ("6", "DelayClass standard, limits.maxReplicas"),
        "spec.guarantee": ("ExactlyOnce", "default"),
    }


NOT_LISTED = (
    # Where Secrets and certificates are; what stands in them is nobody's to print.
    r"spec\.connection\.(tls|authentication\.(username|passwordSecret|certificateAndKey|oauth))\..*",
    r"spec\.connection\.authentication\.username",
    r"spec\.backend\.(signingKey|redis\.(urlSecret|passwordSecret|tls))\..*",
    # Pods, of which the plan shows the whole Deployment with `-o json`.
    r"spec\.relay\.(image|resources\..*|podTemplate\..*)",
    # In the row of the objective.
    r"spec\.slo\.(window|calendar)",
)
THRESHOLD = {"lateness": "1s", "objective": "90%"}
SLO = {"timeZone": "Europe/Berlin", "calendar": "Month", "thresholds": [THRESHOLD]}


def test_every_field_that_is_written_is_in_force() -> None:
    exclusions = [{"from": "2026-11-21T02:00:00Z", "until": "2026-11-21T03:00:00Z", "reason": "upgrade"}]
    topic = {"config": {"retention.bytes": "-1"}}
    history = {"topic": "shop.e", **topic}
    documents = [
        delay_topic(
            source={"topic": "shop.a", **topic},
            target={"topic": "shop.b", "allowedTopics": ["shop.*"], **topic},
            deadLetter={"topic": "shop.c", **topic},
            outcomes={"topic": "shop.d", **topic},
            schedule={"defaultDelay": "1m"},
            slo={**SLO, "exclusions": exclusions},
        ),
        delay_topic(schedule={"fixedDelay": "1m"}),
        delay_topic(schedule={"cesium": {}}),
        delay_topic(schedule={"scheduler": {"graceInterval": "1m", "sinceDays": 1, "history": history}}),
        delay_topic(schedule={"redelivery": {"maxRedeliveries": 3}}),
    ]
    connection = {**SERVERS, "authentication": SECRET}

    outcomes = [only(offline(delay_class(connection=connection, backend=REDIS), each)) for each in documents]

    assert [each.reason for each in outcomes] == [None] * len(outcomes)
    listed = {row.field for each in outcomes for row in each.in_force}
    missing = [each for each in _fields_of_spec() if each not in listed]
    assert [each for each in missing if not any(re.fullmatch(known, each) for known in NOT_LISTED)] == []


def _fields_of_spec() -> list[str]:
    """The fields of `spec` that hold no further ones, from the CRD."""
    crd = yaml.safe_load((ROOT / "crds/delaytopic.dev_delaytopics.yaml").read_text(encoding="utf-8"))
    return list(_leaves(crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"], "spec"))


def _leaves(schema: dict[str, Any], path: str) -> Iterator[str]:
    if "properties" not in schema:
        yield path
    for name, inner in schema.get("properties", {}).items():
        yield from _leaves(inner, f"{path}.{name}")


def test_every_exclusion_is_in_force_with_its_reason() -> None:
    exclusions = [{"from": "2026-11-21T02:00:00Z", "until": "2026-11-21T03:00:00Z", "reason": "upgrade"}]

    outcome = offline(delay_class(), delay_topic(slo={"exclusions": exclusions}))

    found = [(each.value, each.origin) for each in only(outcome).in_force if each.field == "spec.slo.exclusions"]
    assert found == [("2026-11-21T02:00:00Z to 2026-11-21T03:00:00Z: upgrade", "this document")]


@pytest.mark.parametrize(
    ("documents", "reason"),
    [
        ([delay_topic()], "ClassNotFound"),
        ([delay_class(), delay_topic(delayClassName="other")], "ClassNotFound"),
        ([delay_class(access={"sourceTopics": ["billing.*"]}), delay_topic()], "SourceNotAllowed"),
        ([delay_class(limits={"maxDelay": "1h"}), delay_topic(schedule={"maxDelay": "2h"})], "LimitExceeded"),
        ([delay_class(), delay_topic(precision="soon")], "InvalidSpec"),
        ([delay_topic(connection=SERVERS, backend={"type": "RedisZset"})], "InvalidSpec"),
        ([delay_class(), delay_topic(relay={"image": "mine:1"})], "InvalidSpec"),
    ],
)
def test_what_the_operator_refuses_is_refused_with_its_reason(documents: list[dict[str, object]], reason: str) -> None:
    outcome = offline(*documents)

    assert (only(outcome).reason, only(outcome).steps, EXIT_CODES[outcome.judgement]) == (reason, (), 3)


def test_of_two_on_one_source_the_later_one_in_the_files_is_refused() -> None:
    source = {"topic": "shop.a"}

    outcome = offline(delay_class(), delay_topic("zebra", source=source), delay_topic("ant", source=source))

    assert [topic.reason for topic in outcome.topics] == [None, "ResourceConflict"]
    assert outcome.judgement is Judgement.REFUSED


def test_the_labels_of_a_namespace_in_the_files_count() -> None:
    selector = {"namespaceSelector": {"matchLabels": {"team": "yes"}}}
    documents = [delay_class(access=selector), delay_topic()]

    assumed, allowed, refused = (
        offline(*documents, *more) for more in ([], [namespace(team="yes")], [namespace(team="no")])
    )

    assert only(assumed).notes == ["the namespace shop is taken to have the labels that the class asks for"]
    assert (only(allowed).notes, only(refused).reason) == ([], "NamespaceNotAllowed")


def test_an_observed_topic_is_taken_to_be_there() -> None:
    outcome = offline(delay_class(backend=REDIS), delay_topic(target={"topic": "shop.there", "management": "Observe"}))

    assert [step for step in steps(outcome) if step.startswith("CreateTopic")] == [
        "CreateTopic shop.reminders.delayed.dlq",
        "CreateTopic shop.reminders.delayed",
    ]


def test_topics_of_the_backend_are_planned() -> None:
    outcome = offline(delay_class(), delay_topic(schedule={"maxDelay": "1m"}))

    buckets = [step for step in only(outcome).steps if ".delay." in step.object]
    assert [step.object.removeprefix("delaytopic.shop.reminders.delay.") for step in buckets] == [
        "0",
        "1",
        "2",
        "3",
        "ids",
    ]
    assert {(step.action, (step.detail or "").split(",")[0]) for step in buckets} == {("CreateTopic", "partitions=4")}


def test_topics_of_strimzi_are_planned_as_objects() -> None:
    connection = {"bootstrapServers": "main-kafka-bootstrap.kafka.svc:9093"}

    outcome = offline(
        delay_class(connection=connection, topicProvisioning="StrimziKafkaTopic", backend=REDIS), delay_topic()
    )

    assert [step for step in steps(outcome) if "Topic" in step] == ["Create KafkaTopic"] * 3
    assert "Create Deployment" in steps(outcome)


def test_a_policy_that_needs_no_hold_gets_no_finalizer() -> None:
    outcome = offline(delay_class(), delay_topic(deletionPolicy="Retain"))

    assert "AddFinalizer delaytopic.dev/drain" not in steps(outcome)


def test_the_text_ends_with_a_summary_and_shows_objects_when_asked() -> None:
    outcome = offline(delay_class(), delay_topic())

    brief, whole = (list(text_lines(outcome, objects=objects)) for objects in (False, True))
    assert brief[0] == "DelayTopic shop/reminders: changes"
    assert brief[-1] == "Plan: 1 with changes."
    assert "        | kind: Deployment" in whole
    assert [line for line in whole if "        |" not in line] == brief


def test_lists_and_documents_of_other_kinds_are_understood() -> None:
    listed = {"apiVersion": "v1", "kind": "List", "items": [delay_topic(), {"kind": "Secret"}]}

    found = sorted_out([("a.yaml", listed), ("a.yaml", None)], "default")

    assert ([each["metadata"]["name"] for each in found.topics], found.others) == (["reminders"], 1)


@pytest.mark.parametrize(
    ("documents", "says"),
    [
        ([], "the files hold no DelayTopic, no DelayClass and no RecurringRecord"),
        ([delay_topic(), delay_topic()], "the files hold DelayTopic shop/reminders more than once"),
        ([{"kind": "DelayTopic"}], "topics.yaml: DelayTopic: metadata.name: is required"),
        ([{**delay_class(), "spec": {}}], "topics.yaml: DelayClass standard: spec.connection: is required"),
    ],
)
def test_files_that_cannot_be_judged_say_why(documents: list[dict[str, object]], says: str) -> None:
    with pytest.raises(DocumentsUnreadable) as refused:
        files(*documents)

    assert (str(refused.value), refused.value.exit_code) == (says, 1)


def test_a_plan_needs_no_client_library() -> None:
    program = (
        "import sys\n"
        "for name in ('confluent_kafka', 'kopf', 'kubernetes', 'prometheus_client', 'redis', 'structlog', 'urllib3'):\n"
        "    sys.modules[name] = None\n"
        "import delaytopic_cli.plan.run, delaytopic_operator.scaling.explain\n"
    )

    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)

    assert (result.returncode, result.stderr) == (0, "")
