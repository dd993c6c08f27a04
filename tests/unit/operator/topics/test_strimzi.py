"""Topics as KafkaTopic objects, where Strimzi's Topic Operator makes them."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.operator.topic_scenes import (
    DEAD_LETTER,
    NAMESPACE_UID,
    SOURCE,
    TARGET,
    BucketTopic,
    Wanted,
    World,
    facts,
    wanted,
)

from delaytopic_operator.model.reconciliation import Key
from delaytopic_operator.model.record import begin_record
from delaytopic_operator.topics.plan import TopicPlan, plan_topics, topic_names
from delaytopic_operator.topics.strimzi import (
    StrimziPlace,
    StrimziTopic,
    StrimziTopics,
    strimzi_document,
    strimzi_object_name,
    strimzi_place,
    strimzi_topics,
)

PLACE = StrimziPlace("kafka", "my-cluster")
KEY = Key("shop", "reminders")
BY_STRIMZI = {"topicProvisioning": "StrimziKafkaTopic"}
LABELS = {
    "strimzi.io/cluster": "my-cluster",
    "app.kubernetes.io/managed-by": "delaytopic-operator",
    "delaytopic.dev/namespace": "shop",
    "delaytopic.dev/name": "reminders",
}


def plan(world: World, route: Wanted, strimzi: StrimziTopics | None, **more: Any) -> TopicPlan:
    record = world.record or begin_record(route.settings, NAMESPACE_UID)
    view = world.view(topic_names(route.settings, record))
    return plan_topics(route.settings, route.spec, view, record, strimzi=strimzi, **more)


def described(topic: str, *, ours: bool = True, ready: str = "True", seen: int = 1) -> dict[str, Any]:
    condition = {"type": "Ready", "status": ready, "message": "Invalid value"}
    return {
        "metadata": {
            "name": topic,
            "namespace": "kafka",
            "generation": 1,
            "labels": LABELS if ours else {"strimzi.io/cluster": "my-cluster"},
        },
        "spec": {},
        "status": {"observedGeneration": seen, "conditions": [condition]},
    }


@pytest.mark.parametrize(
    ("servers", "place"),
    [
        ("my-cluster-kafka-bootstrap.kafka.svc:9093", PLACE),
        ("my-cluster-kafka-bootstrap.kafka.svc.cluster.local:9093,other:9092", PLACE),
        ("my-cluster-kafka-bootstrap:9093", StrimziPlace("relays", "my-cluster")),
        ("kafka.example.com:9093", None),
    ],
)
def test_the_place_follows_from_the_address_that_strimzi_gives(servers: str, place: StrimziPlace | None) -> None:
    assert strimzi_place(servers, "relays") == place


def test_a_kafka_topic_says_all_that_is_wanted() -> None:
    topic = StrimziTopic("Shop_Reminders", 12, None, {"retention.ms": "1"})

    name = strimzi_object_name("Shop_Reminders")
    assert strimzi_document(topic, PLACE, KEY) == {
        "apiVersion": "kafka.strimzi.io/v1",
        "kind": "KafkaTopic",
        "metadata": {"name": name, "namespace": "kafka", "labels": LABELS},
        "spec": {"topicName": "Shop_Reminders", "partitions": 12, "config": {"retention.ms": "1"}},
    }
    assert name.startswith("shop-reminders---")


@given(st.from_regex(r"[a-zA-Z0-9._-]{1,249}", fullmatch=True), st.from_regex(r"[a-zA-Z0-9._-]{1,20}", fullmatch=True))
def test_every_topic_has_an_object_name_of_its_own_that_kubernetes_allows(one: str, other: str) -> None:
    name = strimzi_object_name(one)

    assert len(name) <= 253
    assert re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", name)
    assert (strimzi_object_name(other) == name) is (one == other)


def test_topics_are_made_by_documents_and_not_by_actions() -> None:
    result = plan(World(), wanted(of_class=BY_STRIMZI, source={"partitions": 3}), StrimziTopics(PLACE))

    assert result.actions == ()
    assert [document["metadata"]["name"] for document in result.documents] == [DEAD_LETTER, TARGET, SOURCE]
    assert result.documents[-1]["spec"] == {
        "partitions": 3,
        "config": {
            "cleanup.policy": "delete",
            "message.timestamp.type": "LogAppendTime",
            "retention.bytes": "-1",
            "retention.ms": "3196800000",
        },
    }
    assert result.reconciling is not None


def test_an_adopted_topic_is_described_with_all_that_is_set_on_it() -> None:
    limits = {"allowedTopicConfig": ["flush.ms"]}
    of_class = {**BY_STRIMZI, "access": {"adoptTopics": ["{namespace}.*"]}, "limits": limits}
    route = wanted(of_class=of_class, source={"management": "Adopt", "config": {"flush.ms": "7"}})
    world = World.of(facts(SOURCE, copies=3, segment_ms="5", retention_ms="-1"))

    result = plan(world, route, StrimziTopics(PLACE))

    assert result.documents[-1]["spec"] == {
        "partitions": 2,
        "replicas": 3,
        "config": {"flush.ms": "7", "retention.ms": "-1", "segment.ms": "5"},
    }


def test_what_the_topic_operator_refuses_is_told() -> None:
    live = {SOURCE: described(SOURCE, ready="False")}

    result = plan(World(), wanted(of_class=BY_STRIMZI), StrimziTopics(PLACE, live))

    assert (result.topics.reason, result.stalled) == ("KafkaTopicNotReady", None)
    assert result.topics.message == f"the KafkaTopic kafka/{SOURCE} is not ready: Invalid value"


def test_a_verdict_on_an_older_document_does_not_count() -> None:
    live = {SOURCE: described(SOURCE, ready="False", seen=0)}

    assert plan(World(), wanted(of_class=BY_STRIMZI), StrimziTopics(PLACE, live)).topics.reason == "TopicMissing"


def test_a_topic_that_somebody_else_describes_is_not_described_twice() -> None:
    live = {SOURCE: described(SOURCE, ours=False)}

    result = plan(World(), wanted(of_class=BY_STRIMZI), StrimziTopics(PLACE, live))

    assert (result.topics.reason, result.documents) == ("TopicExists", ())
    assert "kafka/" not in result.topics.message


def test_an_object_that_describes_another_topic_under_this_name_is_not_overwritten() -> None:
    live = {"another": described(SOURCE, ours=False)}

    result = plan(World(), wanted(of_class=BY_STRIMZI), StrimziTopics(PLACE, live))

    assert (result.topics.reason, result.documents) == ("TopicExists", ())


def test_a_cluster_whose_name_is_not_known_is_not_supported() -> None:
    result = plan(World(), wanted(of_class=BY_STRIMZI), None)

    assert (result.topics.reason, result.actions, result.documents) == ("NotSupported", (), ())
    assert result.stalled is not None


def test_kafka_topics_of_other_clusters_are_left_out() -> None:
    mine = described(SOURCE)
    other = described(TARGET) | {"metadata": {"name": TARGET, "labels": {"strimzi.io/cluster": "other"}}}

    assert strimzi_topics(PLACE, [mine, other]) == StrimziTopics(PLACE, {SOURCE: mine})


def test_an_emptied_topic_of_a_former_backend_loses_its_document() -> None:
    bucket = BucketTopic("delaytopic.shop.reminders.delay.0", {})
    route, world = wanted(of_class=BY_STRIMZI), World()
    world.settle(wanted(), buckets=(bucket,))

    result = plan(world, route, StrimziTopics(PLACE), released=frozenset({bucket.name}))

    assert (result.obsolete, result.actions) == ((bucket.name,), ())
