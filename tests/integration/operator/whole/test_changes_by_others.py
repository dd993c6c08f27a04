"""Tests of what others change around a living DelayTopic: topics in Kafka, its class, and a connection of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playground.kube.awaiting import await_object
from playground.kube.kube_client import Object
from tests.support.operator.app_team import AppTeam
from tests.support.operator.platform import Platform
from tests.support.operator.running_platform import RunPlatform
from tests.support.relay.process import wait_for
from tests.support.servers.kafka_topics import KafkaTopics

from delaytopic_operator.model.reconciliation import Key
from delaytopic_operator.observe.fleet import FleetFacts
from delaytopic_operator.resources.identity import relays_name

pytestmark = [pytest.mark.integration, pytest.mark.kubernetes, pytest.mark.nightly]

NAMES = ("one", "two", "three")
NOTICED_SECONDS = 100.0
"""The time for which a reading of a topic counts."""


@pytest.fixture(scope="module")
def one_by_one(run_platform: RunPlatform) -> Iterator[Platform]:
    """A platform whose operator lets one DelayTopic at a time roll, with three that are ready."""
    with run_platform("one-by-one", rollouts=1) as platform:
        for name in NAMES:
            platform.apply_topic(name)
        for name in NAMES:
            platform.await_condition(name, "Ready", seconds=90)
        yield platform


def test_settings_that_are_listed_are_corrected_and_others_left_alone(running: Platform) -> None:
    topics = KafkaTopics(running.kafka.bootstrap_servers)
    source = f"{running.team}.drifted.delayed"
    running.apply_topic("drifted", source={"topic": source, "config": {"delete.retention.ms": "3600000"}})
    running.await_condition("drifted", "Ready", seconds=60)

    topics.set(source, delete_retention_ms="60000", file_delete_delay_ms="70000", retention_ms="1000")

    # What is pending may be as old as the retention. The operator may see a part of the changes first.
    corrected = {"delete.retention.ms": "3600000", "retention.ms": str(888 * 3_600_000)}
    wait_for(
        lambda: corrected.items() <= topics.config(source).items(), running.operator.why, timeout_s=NOTICED_SECONDS
    )
    assert topics.config(source)["file.delete.delay.ms"] == "70000"


def test_a_source_that_was_deleted_waits_for_a_person(running: Platform, tmp_path: Path) -> None:
    topics = KafkaTopics(running.kafka.bootstrap_servers)
    source = running.apply_topic("lost")
    running.await_condition("lost", "Ready", seconds=60)
    former = topics.id(source)

    topics.delete(source)
    missing = running.await_condition("lost", "Stalled", reason="TopicMissing", seconds=NOTICED_SECONDS)
    running.client.merge(
        running.path("lost"), {"metadata": {"annotations": {"delaytopic.dev/accept-topic-recreation": former}}}
    )
    running.await_condition("lost", "Ready", seconds=NOTICED_SECONDS)
    team = AppTeam.of(running, "lost", tmp_path)
    team.send_due_in([100])
    verdict = team.audited(60)

    said = next(each["message"] for each in missing["status"]["conditions"] if each["type"] == "Stalled")
    assert said.endswith(f"set the annotation delaytopic.dev/accept-topic-recreation: {former}")
    assert (verdict.faults, verdict.delivered) == ({}, 1)


def test_a_topic_that_somebody_made_anew_waits_for_a_person(running: Platform) -> None:
    topics = KafkaTopics(running.kafka.bootstrap_servers)
    source = running.apply_topic("swapped")
    running.await_condition("swapped", "Ready", seconds=60)

    topics.delete(source)
    topics.create(source, 4)
    swapped = running.await_condition("swapped", "Stalled", reason="TopicRecreated", seconds=NOTICED_SECONDS)
    running.client.merge(
        running.path("swapped"),
        {"metadata": {"annotations": {"delaytopic.dev/accept-topic-recreation": topics.id(source)}}},
    )
    running.await_condition("swapped", "TopicsReady", seconds=NOTICED_SECONDS)

    said = next(each["message"] for each in swapped["status"]["conditions"] if each["type"] == "Stalled")
    assert f"its id is {topics.id(source)}" in said


def test_a_connection_of_its_own_keeps_everything_in_the_teams_namespace(running: Platform, tmp_path: Path) -> None:
    sizes = {"partitions": 2, "replicationFactor": 1}
    spec = {
        "connection": {"bootstrapServers": running.kafka.bootstrap_servers},
        "backend": {"type": "RedisZset", "redis": {"url": running.redis.url}},
        "source": {"topic": f"{running.team}.alone.delayed", **sizes},
        "target": {"topic": f"{running.team}.alone", **sizes},
        "deadLetter": {"topic": f"{running.team}.alone.delayed.dlq", **sizes},
    }

    running.apply("DelayTopic", "alone", spec, running.team)
    topic = running.await_condition("alone", "Ready", seconds=60)
    team = AppTeam.of(running, "alone", tmp_path)
    team.send_due_in([0, 1_000])
    verdict = team.audited()

    assert (verdict.faults, verdict.delivered) == ({}, 2)
    path = f"/apis/apps/v1/namespaces/{running.team}/deployments"
    (deployment,) = running.client.get(path, labelSelector="delaytopic.dev/name=alone")["items"]
    (owner,) = deployment["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"]) == ("DelayTopic", topic["metadata"]["uid"])


def test_a_changed_class_starts_relays_anew_one_by_one(one_by_one: Platform) -> None:
    seen: list[int] = []
    one_by_one.apply_class(defaults={"partitions": 4, "replicationFactor": 1, "precision": "2s"})
    for name in NAMES:
        await_object(
            one_by_one.client, one_by_one.path(name), lambda found: _applied(one_by_one, found, seen), seconds=240
        )

    assert max(seen) == 1, "never two at once"
    assert {one_by_one.topic(name)["status"]["effective"]["precision"] for name in NAMES} == {"2s"}


def test_an_upgraded_operator_starts_relays_anew_one_by_one(one_by_one: Platform) -> None:
    deployments = f"/apis/apps/v1/namespaces/{one_by_one.namespace}/deployments"
    resources = {"requests": {"cpu": "30m", "memory": "100Mi"}, "limits": {"memory": "200Mi"}}
    seen: list[int] = []

    def is_upgraded(found: Object | None) -> bool:
        seen.append(_rolling(one_by_one))
        (container,) = found["spec"]["template"]["spec"]["containers"] if found else [{}]
        return bool(container.get("resources") == resources)

    one_by_one.operator.stop_whatever_happens()
    one_by_one.operator = one_by_one.make_operator("upgraded", relayResources=resources).start()
    for name in NAMES:
        relays = relays_name(Key(one_by_one.team, name))
        await_object(one_by_one.client, f"{deployments}/{relays}", is_upgraded, seconds=240)

    assert max(seen) == 1, "never two at once"


def _rolling(platform: Platform) -> int:
    """Return how many Deployments of relays roll just now."""
    fleets = [FleetFacts(each, (), (), None) for each in platform.objects("deployments")]
    return sum(fleet.rolling is not None for fleet in fleets)


def _applied(platform: Platform, found: Object | None, rolling: list[int]) -> bool:
    """Tell whether the second generation of the class is applied; notes how many Deployments roll just now."""
    rolling.append(_rolling(platform))
    return bool(found and found["status"].get("effective", {}).get("delayClassGeneration") == 2)
