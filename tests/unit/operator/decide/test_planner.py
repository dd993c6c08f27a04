"""Tests of what a reconciliation decides about a living DelayTopic, from all that may be known of it or not."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from typing import Any

import pytest
from tests.support.operator.scenes import (
    CONFIG,
    DEPLOYMENT,
    NO_FLEET,
    NOW_MS,
    altered,
    delay_class,
    document,
    record,
    seen,
)

from delaytopic_api import Duration
from delaytopic_api.documents import AuditedSlo, ConditionStatus, ConditionType, Ownership
from delaytopic_operator.decide.plan import AddFinalizer, Apply, Delete, DoTopic, Plan, RemoveFinalizer, WriteRecord
from delaytopic_operator.decide.planner import plan
from delaytopic_operator.errors import RedisUnavailable
from delaytopic_operator.model.conditions import UNKNOWN, Condition, instant
from delaytopic_operator.model.kafka_view import KafkaView, TopicFacts
from delaytopic_operator.model.reconciliation import Key
from delaytopic_operator.model.record import Role, RouteRecord, TopicRecord
from delaytopic_operator.model.rollouts import NoTurn
from delaytopic_operator.observe.audit_verdict import AuditVerdict
from delaytopic_operator.observe.observation import Observation, Problem, Topics
from delaytopic_operator.redis.check import redis_failure
from delaytopic_operator.report.status import status_document
from delaytopic_operator.resources.identity import IN_TURN
from delaytopic_operator.rules.validate import QuotaUsage, Refusal, Subject, check

TOPICS = {"source": "shop.a", "target": "shop.b", "dead letter": "shop.a.dlq"}
MAKES = ["ServiceAccount", "ConfigMap", "NetworkPolicy", "PodDisruptionBudget", "Deployment"]


def id_of(topic: str) -> str:
    """A topic's id, in the form of Kafka's."""
    return sha256(topic.encode()).hexdigest()[:22]


def topics(*missing: str, partitions: int = 4) -> Topics:
    config = {
        "cleanup.policy": "delete",
        "message.timestamp.type": "LogAppendTime",
        "retention.ms": "-1",
        "retention.bytes": "-1",
        "max.message.bytes": "1048588",
    }
    larger = {**config, "max.message.bytes": "1114124"}
    there = {
        name: TopicFacts(name, id_of(name), partitions, 1, larger if role == "dead letter" else config, frozenset())
        for role, name in TOPICS.items()
    }
    facts = {name: topic for name, topic in there.items() if name not in missing}
    return Topics(KafkaView(facts, frozenset(missing), frozenset()))


def owned() -> RouteRecord:
    made = record()
    for role, name in zip((Role.SOURCE, Role.TARGET, Role.DEAD_LETTER), TOPICS.values(), strict=True):
        made = made.with_role(role, TopicRecord(name=name, ownership=Ownership.CREATED, topic_id=id_of(name)))
    return made


def living(*, finalizers: list[str] | None = None, annotations: dict[str, str] | None = None, **spec: Any) -> Any:
    found = document(deleted_ms=None, annotations=annotations, **spec)
    if finalizers is not None:
        found["metadata"]["finalizers"] = finalizers
    return found


def look(found: Any = None, **changes: Any) -> Observation:
    """At one whose topics are there and owned."""
    return seen(found or living(), **{"topics": topics(), "record": owned(), **changes})


def said(found: Observation) -> dict[str, tuple[str, str]]:
    """Conditions as the status has them: status and reason."""
    conditions = status_document(found, plan(found))["status"]["conditions"]
    return {each["type"]: (each["status"], each["reason"]) for each in conditions}


def test_the_figures_of_an_audit_are_written_down_once_and_the_status_shows_some() -> None:
    condition = Condition(ConditionType.SLO_MET, ConditionStatus.TRUE, "Met", "On time.")
    figures = {"verdict": "Met", "auditedAt": instant(NOW_MS), "records": 3}
    first = look(slo=AuditVerdict(condition, figures))

    decided = plan(first)
    (written,) = [action.record for action in decided.actions if isinstance(action, WriteRecord)]
    again = plan(look(slo=AuditVerdict(condition, figures), record=written))

    assert written.audited == AuditedSlo.model_validate(figures)
    assert [action for action in again.actions if isinstance(action, WriteRecord)] == []
    shown = {"verdict": "Met", "auditedAt": instant(NOW_MS)}
    assert status_document(first, decided)["status"]["slo"] == shown


def test_a_new_one_is_held_written_down_and_gets_its_topics_and_no_relays_before_them() -> None:
    found = seen(
        living(finalizers=[]),
        record=None,
        objects=[],
        fleet=NO_FLEET,
        topics=topics(*TOPICS.values()),
    )

    decided = plan(found)

    assert [type(action) for action in decided.actions] == [AddFinalizer, WriteRecord, DoTopic, DoTopic, DoTopic]
    assert decided.next_at_ms == NOW_MS
    assert said(found)["Ready"] == ("False", "TopicMissing")
    assert said(found)["Reconciling"] == ("True", "Reconciling")


def test_once_its_topics_are_there_relays_are_made_what_they_need_before_them() -> None:
    found = look(objects=[], fleet=NO_FLEET)

    made = [action.document["kind"] for action in plan(found).actions if isinstance(action, Apply)]

    assert made == MAKES


@pytest.mark.parametrize(
    ("autoscaling", "replicas", "begun"),
    [({"mode": "Fixed"}, 0, 0), ({"mode": "Fixed", "minReplicas": 2}, 3, 3), ({"mode": "External"}, 0, 0), ({}, 0, 1)],
)
def test_relays_begin_with_the_number_that_is_asked_for_and_within_limits_only_where_the_operator_decides(
    autoscaling: dict[str, Any], replicas: int, begun: int
) -> None:
    found = look(living(autoscaling=autoscaling, relay={"replicas": replicas}), objects=[], fleet=NO_FLEET)

    (made,) = (
        action.document["spec"]["replicas"]
        for action in plan(found).actions
        if isinstance(action, Apply) and action.document["kind"] == "Deployment"
    )

    assert made == begun


@pytest.mark.parametrize(
    "changes",
    [
        {"topics": None, "topics_problem": Problem("KafkaUnreachable", "away", passing=True)},
        {"topics": topics("shop.b")},
        {"secrets_problem": Problem("SecretMissing", "gone")},
    ],
)
def test_no_relay_is_made_before_all_that_it_reads_is_there(changes: dict[str, Any]) -> None:
    found = look(objects=[], fleet=NO_FLEET, **changes)

    assert not [action for action in plan(found).actions if isinstance(action, Apply)]


def test_what_works_is_left_alone_and_looked_at_again_at_the_next_poll() -> None:
    settled = _settled()

    decided = plan(settled)

    assert decided.actions == []
    assert decided.next_at_ms == NOW_MS + CONFIG.poll.ms
    assert said(settled)["Ready"] == ("True", "Ready")
    assert {"Reconciling", "Stalled"} & said(settled).keys() == set()


@pytest.mark.parametrize(
    ("policy", "finalizers", "action"),
    [
        ("Retain", ["delaytopic.dev/drain"], RemoveFinalizer),
        ("Drain", [], AddFinalizer),
        ("Delete", [], AddFinalizer),
    ],
)
def test_the_finalizer_follows_the_policy(policy: str, finalizers: list[str], action: type) -> None:
    found = look(living(finalizers=finalizers, deletionPolicy=policy))

    assert type(plan(found).actions[0]) is action


@pytest.mark.parametrize(
    ("problem", "status", "stalled"),
    [
        (Problem("KafkaUnreachable", "away", passing=True), "Unknown", False),
        (Problem("AuthenticationFailed", "wrong password"), "False", False),
        (Problem("NotSupported", "use another", stalled=True), "False", True),
    ],
)
def test_what_of_kafka_cannot_be_had_is_said_and_nothing_is_touched(
    problem: Problem, status: str, stalled: bool
) -> None:
    found = _settled(topics=None, topics_problem=problem)

    conditions = said(found)

    assert conditions["TopicsReady"] == (status, problem.reason)
    assert conditions["Ready"] == (status, problem.reason)
    assert ("Stalled" in conditions) is stalled
    assert plan(found).actions == []


def test_of_a_topic_that_is_gone_the_status_says_nothing_more() -> None:
    found = _settled({**living(), "status": {"source": {"topicId": id_of("shop.a"), "partitions": 4}}})

    parts = plan(replace(found, topics=topics("shop.a"))).parts

    assert "source" not in parts, "an empty object would become null, and be refused"
    assert parts["target"] == {"topicId": id_of("shop.b"), "partitions": 4, "ownership": "Created"}


def test_a_secret_that_is_gone_stops_no_relay() -> None:
    found = _settled(topics=None, secrets_problem=Problem("SecretMissing", "create it"))

    assert plan(found).actions == []
    assert said(found)["Ready"] == ("False", "SecretMissing")
    assert said(found)["RelayAvailable"] == ("True", "RelaysReady")


def test_one_that_is_refused_keeps_its_relays() -> None:
    found = _settled(verdict=Refusal("SourceNotAllowed", "spec.source.topic: not this one"))

    assert plan(found).actions == []
    assert said(found)["Ready"] == ("False", "SourceNotAllowed")
    assert said(found)["Stalled"] == ("True", "SourceNotAllowed")


NO_TURN = NoTurn(CONFIG.images.relay)


def test_a_changed_class_waits_for_its_turn_and_says_which_one_is_applied() -> None:
    waiting = altered(_other_class(), no_turn=NO_TURN)

    decided = plan(waiting)

    # A relay that starts again meanwhile is of the old image, and must find what that image understands.
    assert [action for action in decided.actions if isinstance(action, Apply | Delete)] == []
    assert decided.parts["effective"]["delayClassGeneration"] == 1


def test_when_it_is_its_turn_it_rolls() -> None:
    decided = plan(_other_class())

    applied = [action.document["kind"] for action in decided.actions if isinstance(action, Apply)]
    assert applied == ["ConfigMap", "Deployment"]
    assert decided.parts["effective"]["delayClassGeneration"] == 2


def test_relays_without_what_they_start_from_wait_for_nobody() -> None:
    other_class = _other_class()
    left = [each for each in other_class.route.objects if each["kind"] != "ConfigMap"]

    decided = plan(altered(other_class, objects=left, no_turn=NO_TURN))

    assert [each.document["kind"] for each in decided.actions if isinstance(each, Apply)] == ["ConfigMap", "Deployment"]


def test_what_its_author_changed_does_not_wait_for_a_turn() -> None:
    other_class = _other_class()
    status = {"effective": {"delayClass": "standard", "delayClassGeneration": 2}}

    decided = plan(
        altered(other_class, document={**(other_class.route.document or {}), "status": status}, no_turn=NO_TURN)
    )

    assert [action.document["kind"] for action in decided.actions if isinstance(action, Apply)] == [
        "ConfigMap",
        "Deployment",
    ]
    assert decided.image_in_turn is None


def test_what_the_operator_itself_changes_waits_for_its_turn_too() -> None:
    settled = _settled()
    upgraded = CONFIG.model_copy(update={"images": CONFIG.images.model_copy(update={"relay": "relay:next"})})
    status = {"observedGeneration": settled.route.metadata["generation"]}
    upgrading = altered(settled, config=upgraded, document={**(settled.route.document or {}), "status": status})

    waiting = plan(altered(upgrading, no_turn=NO_TURN))
    turn = plan(upgrading)

    assert [action for action in waiting.actions if isinstance(action, Apply)] == []
    assert [action.document["kind"] for action in turn.actions if isinstance(action, Apply)] == ["Deployment"]
    assert turn.image_in_turn == "relay:next"


def deployment_in(decided: Plan) -> dict[str, Any]:
    applied = [action.document for action in decided.actions if isinstance(action, Apply)]
    return next(each for each in applied if each["kind"] == "Deployment")


def test_a_deployment_says_that_its_relays_start_anew_in_a_turn_until_its_author_changes_it() -> None:
    other_class = _other_class()
    turn = deployment_in(plan(other_class))
    live = {**turn, "metadata": {**turn["metadata"], "uid": "d-1"}, "status": DEPLOYMENT["status"]}
    others = [each for each in other_class.route.objects if each["kind"] != "Deployment"]
    by_hand = {**live, "spec": {**live["spec"], "replicas": 7}}
    scaled = altered(other_class, objects=[*others, by_hand])
    changed = altered(
        scaled, document={**(scaled.route.document or {}), "status": {}}, verdict=_settled().route.verdict
    )

    found = [IN_TURN in deployment_in(plan(each))["metadata"]["annotations"] for each in (other_class, scaled, changed)]

    assert found == [True, True, False]


def test_what_somebody_changed_is_corrected_and_what_is_too_much_is_removed() -> None:
    settled = _settled()
    config_map = next(each for each in settled.route.objects if each["kind"] == "ConfigMap")
    others = [each for each in settled.route.objects if each is not config_map]
    stray = {**config_map, "metadata": {**config_map["metadata"], "name": "of-an-older-release", "uid": "stray"}}
    changed = {**config_map, "data": {"relay.yaml": "mischief"}}

    decided = plan(altered(settled, objects=[*others, changed, stray]))

    told = [action.planned() for action in decided.actions]
    namespace = CONFIG.namespace
    assert [(each.action, each.object) for each in told] == [
        ("Delete", f"ConfigMap {namespace}/{config_map['metadata']['name']}"),
        ("Create", f"ConfigMap {namespace}/{config_map['metadata']['name']}"),
        ("Delete", f"ConfigMap {namespace}/of-an-older-release"),
    ]


@pytest.mark.parametrize(
    ("suspend", "message"),
    [
        ("Delivery", "spec.suspend is Delivery: what is due is held"),
        ("Ingest", "spec.suspend is Ingest: nothing is taken in"),
        ("All", "spec.suspend is All: nothing is taken in, and what is due is held"),
    ],
)
def test_what_stands_still_on_purpose_is_not_ready_and_says_so(suspend: str, message: str) -> None:
    found = _settled(living(suspend=suspend))

    ready = status_document(found, plan(found))["status"]["conditions"][0]

    assert (ready["type"], ready["status"], ready["reason"], ready["message"]) == (
        "Ready",
        "False",
        "Suspended",
        message,
    )


def test_redis_that_is_away_is_unknown_and_does_not_stop_a_change() -> None:
    away = redis_failure(RedisUnavailable("Redis at r:6379 is not available"))
    found = look(backend=away, fleet=NO_FLEET, objects=[])

    assert said(found)["BackendReady"] == (str(UNKNOWN), "RedisUnreachable")
    assert [action.document["kind"] for action in plan(found).actions if isinstance(action, Apply)] == MAKES


def test_a_backlog_that_has_used_up_its_share_of_redis_is_told_and_leaves_the_condition_true() -> None:
    found = look()
    (page, *pages) = found.fleet.pages
    assert page.status is not None
    shards = [shard.model_copy(update={"redis_full": True}) for shard in page.status.shards]
    status = page.status.model_copy(update={"shards": shards})
    full = replace(found.fleet, pages=[replace(page, status=status), *pages])

    assert said(replace(found, fleet=full))["BackendReady"] == ("True", "RedisQuotaReached")


def _settled(found: Any = None, **changes: Any) -> Observation:
    """One about which nothing is to be done: its objects are as they were applied."""
    began = look(found, objects=[], fleet=NO_FLEET)
    applied = [action.document for action in plan(began).actions if isinstance(action, Apply)]
    objects = [{**each, "metadata": {**each["metadata"], "uid": f"uid-{n}"}} for n, each in enumerate(applied)]
    deployment = {**objects[-1], "status": DEPLOYMENT["status"]}
    deployment["metadata"] = {**deployment["metadata"], "generation": 1}
    fleet = replace(look().fleet, deployment=deployment)
    status = {"effective": {"delayClass": "standard", "delayClassGeneration": 1}}
    looked = look({**(found or living()), "status": status}, objects=[*objects[:-1], deployment], fleet=fleet)
    return altered(looked, **changes)


def _other_class() -> Observation:
    """The same once the class asks for another precision, in its second generation."""
    settled = _settled()
    former = delay_class()
    defaults = former.spec.defaults.model_copy(update={"precision": Duration("250ms")})
    spec = former.spec.model_copy(update={"defaults": defaults})
    metadata = former.metadata.model_copy(update={"generation": 2})
    changed = former.model_copy(update={"metadata": metadata, "spec": spec})
    assert settled.route.document is not None
    verdict = check(Subject(Key("shop", "reminders"), settled.route.document, [changed], {}, QuotaUsage(0, 0), None))
    return altered(settled, verdict=verdict)
