"""The operator's view of a real Kafka, and its changes to it."""

from __future__ import annotations

import signal
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from confluent_kafka import Consumer
from tests.harness.shared_servers import KafkaAddress
from tests.support.operator.kafka_help import (
    commit,
    configure_behind_its_back,
    delete_behind_its_back,
    is_missing,
    looked_at,
    made,
    produce,
    wait_for,
)
from tests.support.operator.topic_scenes import NAMESPACE_UID, BucketTopic, Wanted, wanted

from delaytopic_api.documents import ConditionStatus, Ownership
from delaytopic_local.servers.kafka_server import KafkaServer
from delaytopic_local.servers.process import free_port
from delaytopic_operator.errors import KafkaUnavailable, NotLeading, TopicRejected
from delaytopic_operator.kafka.admin import KafkaCluster, KafkaClusters
from delaytopic_operator.model.kafka_view import Committed, PartitionOffsets, TopicFacts, hold_nothing
from delaytopic_operator.model.record import RouteRecord, begin_record
from delaytopic_operator.topics.actions import CreateTopic, DeleteTopic, GrowTopic, SetConfig, TopicAction
from delaytopic_operator.topics.plan import TopicPlan, plan_topics, topic_names

pytestmark = pytest.mark.integration


def route_on(topic: str, **source: object) -> Wanted:
    names = {"source": f"{topic}.delayed", "target": topic, "deadLetter": f"{topic}.dlq"}
    return wanted(**{role: {"topic": name, **(source if role == "source" else {})} for role, name in names.items()})


def planned(cluster: KafkaCluster, route: Wanted, record: RouteRecord, buckets: list[BucketTopic]) -> TopicPlan:
    view = cluster.view(topic_names(route.settings, record, buckets), fresh=True)
    return plan_topics(route.settings, route.spec, view, record, {}, buckets)


def settled(
    cluster: KafkaCluster, route: Wanted, record: RouteRecord | None = None, buckets: list[BucketTopic] | None = None
) -> TopicPlan:
    """Passes until nothing is left to do."""
    state = [record or begin_record(route.settings, NAMESPACE_UID)]

    def is_settled() -> bool:
        plan = planned(cluster, route, state[0], buckets or [])
        state[0] = plan.record
        for action in plan.actions:
            cluster.perform(action)
        return not plan.actions

    wait_for(is_settled)
    return planned(cluster, route, state[0], buckets or [])


def test_asking_for_a_topic_does_not_make_it(cluster: KafkaCluster, topic: str) -> None:
    first = cluster.view([topic])
    second = cluster.view([topic])

    assert (first.missing, second.missing) == (frozenset({topic}), frozenset({topic}))


def test_a_topic_that_is_made_has_an_id_and_what_it_was_given(cluster: KafkaCluster, topic: str) -> None:
    facts = made(cluster, topic, 3, retention_ms="5000")

    assert (facts.name, facts.partitions, facts.replication_factor) == (topic, 3, 1)
    assert len(facts.topic_id) == 22
    assert facts.own_config == {"retention.ms"}
    assert facts.config is not None
    assert (facts.config["retention.ms"], facts.config["cleanup.policy"]) == ("5000", "delete")


def test_every_action_may_be_repeated(cluster: KafkaCluster, topic: str) -> None:
    facts = made(cluster, topic, 1)
    actions: list[TopicAction] = [
        CreateTopic(topic, 1, 1),
        GrowTopic(topic, 2, 1),
        SetConfig(topic, {"retention.ms": "7000"}, {}),
        DeleteTopic(topic, facts.topic_id),
    ]

    did_something = [[cluster.perform(action), cluster.perform(action)] for action in actions[:3]]
    wait_for(lambda: looked_at(cluster, topic).partitions == 2)
    deleted = cluster.perform(actions[3])
    wait_for(lambda: is_missing(cluster.view([topic], fresh=True), topic))
    again = cluster.perform(actions[3])

    assert did_something == [[False, False], [True, False], [True, True]]
    assert (deleted, again) == (True, False)


def test_a_route_is_made_with_its_bucket_topics_and_then_left_alone(cluster: KafkaCluster, topic: str) -> None:
    buckets = [BucketTopic(f"{topic}.delay.{number}", {"retention.ms": "700000000"}) for number in range(3)]
    route = route_on(topic, partitions=3)

    plan = settled(cluster, route, buckets=buckets)

    assert (plan.topics.status, plan.stalled, plan.backend) == (ConditionStatus.TRUE, None, ())
    assert (plan.source.partitions, plan.source.ownership) == (3, Ownership.CREATED)
    assert [looked_at(cluster, bucket.name).partitions for bucket in buckets] == [3, 3, 3]
    config = looked_at(cluster, f"{topic}.delayed").config or {}
    assert (config["message.timestamp.type"], config["retention.ms"]) == ("LogAppendTime", "3196800000")


def test_a_living_route_grows_and_its_settings_are_set_back(
    cluster: KafkaCluster, kafka: KafkaAddress, topic: str
) -> None:
    before = settled(cluster, route_on(topic, partitions=1))
    configure_behind_its_back(
        kafka.bootstrap_servers, f"{topic}.delayed", {"retention.ms": "1000", "segment.ms": "9999999"}
    )

    plan = settled(cluster, route_on(topic, partitions=2), before.record)

    config = looked_at(cluster, f"{topic}.delayed").config or {}
    assert plan.source.partitions == 2
    assert (config["retention.ms"], config["segment.ms"]) == ("3196800000", "9999999")


def test_a_topic_that_is_there_is_refused_and_then_adopted_with_all_it_has(
    cluster: KafkaCluster, kafka: KafkaAddress, topic: str
) -> None:
    made(cluster, f"{topic}.delayed", 2, segment_ms="9999999", retention_ms="-1")
    produce(kafka.bootstrap_servers, f"{topic}.delayed", 3)

    refused = settled(cluster, route_on(topic))
    adopted = settled(cluster, route_on(topic, management="Adopt"), refused.record)

    assert (refused.topics.reason, cluster.view([topic], fresh=True).missing) == ("TopicExists", frozenset())
    assert (adopted.topics.status, adopted.source.ownership) == (ConditionStatus.TRUE, Ownership.ADOPTED)
    config = looked_at(cluster, f"{topic}.delayed").config or {}
    assert (config["segment.ms"], config["retention.ms"]) == ("9999999", "-1")
    assert cluster.offsets([f"{topic}.delayed"])[f"{topic}.delayed"][0] == PartitionOffsets(0, 3)


def test_a_topic_that_was_made_anew_behind_its_back_is_known_by_its_id(
    cluster: KafkaCluster, kafka: KafkaAddress, topic: str
) -> None:
    before = settled(cluster, route_on(topic))
    delete_behind_its_back(kafka.bootstrap_servers, topic)
    wait_for(lambda: is_missing(cluster.view([topic], fresh=True), topic))
    made(cluster, topic)

    plan = settled(cluster, route_on(topic), before.record)

    assert plan.topics.reason == "TopicRecreated"
    assert plan.target.topic_id != before.target.topic_id


def test_a_topic_that_was_made_anew_is_not_deleted_in_the_place_of_the_former(
    cluster: KafkaCluster, topic: str
) -> None:
    made(cluster, topic)

    assert cluster.perform(DeleteTopic(topic, "the id of a former topic")) is False
    assert topic in cluster.view([topic], fresh=True).topics


@pytest.mark.parametrize(
    ("config", "partitions", "copies", "says"),
    [
        ({"retention.ms": "soon"}, 1, 1, "retention.ms"),
        ({"no.such.setting": "1"}, 1, 1, "no.such.setting"),
        ({}, 1, 3, "replication factor of 3"),
    ],
)
def test_what_kafka_refuses_is_told_with_its_own_words(
    cluster: KafkaCluster, topic: str, config: dict[str, str], partitions: int, copies: int, says: str
) -> None:
    with pytest.raises(TopicRejected, match=rf"Kafka refuses to create the topic {topic}: .*{says}"):
        cluster.perform(CreateTopic(topic, partitions, copies, config))


def test_a_name_that_collides_with_anothers_is_told(cluster: KafkaCluster, topic: str) -> None:
    made(cluster, f"{topic}.x")

    with pytest.raises(TopicRejected, match="collides with existing topic"):
        cluster.perform(CreateTopic(f"{topic}_x", 1, 1))


def test_many_who_ask_at_once_are_a_few_questions_and_none_a_moment_later(
    cluster: KafkaCluster, asked: Counter[tuple[str, str]], topic: str
) -> None:
    names = [f"{topic}-{number}" for number in range(40)]
    for name in names:
        cluster.perform(CreateTopic(name, 1, 1))
    wait_for(lambda: len(cluster.view(names, fresh=True).topics) == 40)
    for name in names:
        cluster.perform(SetConfig(name, {"retention.ms": "1000"}, {}))
    asked.clear()

    with ThreadPoolExecutor(40) as pool:
        views = list(pool.map(lambda name: cluster.view([name]), names))
    at_once = asked.pop(("describe", "ok"))
    later = [cluster.view([name]) for name in names]

    assert all((facts.config or {})["retention.ms"] == "1000" for view in views for facts in view.topics.values())
    # The first few ask for themselves, and the next one for all who have waited meanwhile: two requests each.
    assert (at_once <= 16, later, asked) == (True, views, {})


def test_what_is_known_may_be_a_minute_old_unless_it_is_asked_for_afresh(
    cluster: KafkaCluster, kafka: KafkaAddress, topic: str
) -> None:
    made(cluster, topic, retention_ms="1000")
    cluster.view([topic])
    configure_behind_its_back(kafka.bootstrap_servers, topic, {"retention.ms": "2000"})

    known = cluster.view([topic]).topics[topic].config or {}

    assert known["retention.ms"] == "1000"
    wait_for(lambda: (looked_at(cluster, topic).config or {})["retention.ms"] == "2000")


def test_offsets_are_those_of_the_topic_and_of_the_group(
    cluster: KafkaCluster, kafka: KafkaAddress, topic: str
) -> None:
    made(cluster, topic, 2)
    produce(kafka.bootstrap_servers, topic, 5)
    commit(kafka.bootstrap_servers, f"group.{topic}", topic, 3, "1;4;77;2;relay-a")

    offsets = cluster.offsets([topic, f"{topic}.missing"], f"group.{topic}")

    assert offsets == {topic: {0: PartitionOffsets(0, 5, 3), 1: PartitionOffsets(0, 0, None)}}
    assert hold_nothing(offsets) == frozenset()
    assert cluster.committed(f"group.{topic}", topic) == {0: Committed(3, "1;4;77;2;relay-a")}


def test_offsets_by_time_are_those_of_the_first_record_of_that_time_or_later(
    cluster: KafkaCluster, kafka: KafkaAddress, topic: str
) -> None:
    made(cluster, topic, 2)
    produce(kafka.bootstrap_servers, topic, 5)

    found = cluster.offsets_at(topic, [0, (int(time.time()) + 3_600) * 1_000])

    assert list(found.values()) == [{0: 0, 1: None}, {0: None, 1: None}]
    assert cluster.offsets_at(f"{topic}.missing", [0]) == {}


def test_a_group_that_is_not_there_has_committed_nothing(cluster: KafkaCluster, topic: str) -> None:
    assert cluster.committed(f"group.{topic}", topic) == {}


def test_progress_that_kafka_forgot_is_restored_and_newer_progress_is_kept(
    cluster: KafkaCluster, kafka: KafkaAddress, topic: str
) -> None:
    made(cluster, topic, 2)
    group = f"group.{topic}"
    commit(kafka.bootstrap_servers, group, topic, 3, "newer")
    remembered = {0: Committed(2, "older"), 1: Committed(9, "1;9;77;2;")}

    restored = [cluster.restore_offsets(group, topic, remembered) for _ in range(2)]

    assert restored == [{1}, frozenset()]
    assert cluster.committed(group, topic) == {0: Committed(3, "newer"), 1: Committed(9, "1;9;77;2;")}


def test_a_group_with_members_is_not_meddled_with(cluster: KafkaCluster, kafka: KafkaAddress, topic: str) -> None:
    made(cluster, topic)
    group = f"group.{topic}"
    member = Consumer({"bootstrap.servers": kafka.bootstrap_servers, "group.id": group})
    member.subscribe([topic])
    wait_for(lambda: member.poll(0.1) is None and bool(member.assignment()))

    with pytest.raises(KafkaUnavailable, match="still has members"):
        cluster.delete_group(group)
    with pytest.raises(KafkaUnavailable, match="still has members"):
        cluster.restore_offsets(group, topic, {0: Committed(0)})
    member.close()


def test_whoever_does_not_lead_changes_nothing(kafka: KafkaAddress, topic: str) -> None:
    def refuse() -> None:
        raise NotLeading("another operator leads")

    cluster = KafkaClusters(before_write=refuse).cluster({"bootstrap.servers": kafka.bootstrap_servers})

    with pytest.raises(NotLeading):
        cluster.perform(CreateTopic(topic))
    with pytest.raises(NotLeading):
        cluster.delete_group(topic)
    assert is_missing(cluster.view([topic]), topic)


def test_one_connection_serves_all_who_have_the_same_and_an_unused_one_is_closed(
    clusters: KafkaClusters, kafka: KafkaAddress
) -> None:
    settings = {"bootstrap.servers": kafka.bootstrap_servers}

    same = clusters.cluster(settings) is clusters.cluster(dict(settings))
    for number in range(70):
        clusters.cluster({**settings, "client.id": str(number)})

    assert same
    assert len(clusters) == 64


def test_where_nobody_listens_it_is_told_and_then_left_alone_for_a_while() -> None:
    cluster = KafkaClusters(timeout_s=0.5).cluster({"bootstrap.servers": f"127.0.0.1:{free_port()}"})

    with pytest.raises(KafkaUnavailable, match="did not describe"):
        cluster.view(["topic"], fresh=True)

    with pytest.raises(KafkaUnavailable, match="asked again within"):
        cluster.view(["topic"], fresh=True)
    with pytest.raises(KafkaUnavailable, match="asked again within"):
        cluster.perform(CreateTopic("other"))


@pytest.mark.nightly
def test_a_kafka_that_does_not_answer_is_told_and_found_again(
    own_kafka: KafkaServer, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("delaytopic_operator.kafka.client.QUIET_S", 1.0)
    settings = {"bootstrap.servers": own_kafka.bootstrap_servers}
    before = made(KafkaClusters().cluster(settings), topic)
    impatient = KafkaClusters(timeout_s=1).cluster(settings)
    wait_for(lambda: is_known(impatient, before), 60)
    freeze(own_kafka)
    try:
        with pytest.raises(KafkaUnavailable):
            impatient.view(["topic"], fresh=True)
    finally:
        own_kafka.send_signal(signal.SIGCONT)

    wait_for(lambda: is_known(impatient, before), 60)


def freeze(kafka: KafkaServer) -> None:
    """Wait until the last of its threads stands still: the signal alone leaves time for an answer."""
    kafka.send_signal(signal.SIGSTOP)
    tasks = Path(f"/proc/{kafka.pid}/task")
    wait_for(lambda: all(" T " in (task / "stat").read_text() for task in tasks.iterdir()))


def is_known(cluster: KafkaCluster, topic: TopicFacts) -> bool:
    try:
        return cluster.view([topic.name], fresh=True).find(topic.name) == topic
    except KafkaUnavailable:
        return False


def test_many_threads_may_ask_at_once(cluster: KafkaCluster, topic: str) -> None:
    names = [f"{topic}-{number}" for number in range(8)]
    results: list[bool] = []

    def make_and_look(name: str) -> None:
        made(cluster, name)
        results.append(cluster.view([name]).find(name) is not None)

    threads = [threading.Thread(target=make_and_look, args=[name]) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    assert results == [True] * 8
