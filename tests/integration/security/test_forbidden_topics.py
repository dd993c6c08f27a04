"""Records name topics that the relay's user may not see or write to: that costs no other record its time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AclOperation  # type: ignore[attr-defined]  # a public name, by implicit re-export
from tests.support.relay.process import RelayProcess, wait_for
from tests.support.relay.records import Sent, produce
from tests.support.relay.route import PARTITIONS
from tests.support.servers.secure_servers import SCRAM, GuardedRoute, SecureKafka, allow_again, by_password, deny
from tests.support.servers.tls import Certificates

from delaytopic_gateway.client.topics import TopicPlan, create_topics

pytestmark = pytest.mark.integration


def unanswered_for_the_right(relay: RelayProcess) -> list[dict[str, Any]]:
    """The topics that nobody answers for, once it is known why: a busy broker is first taken for one that is silent."""
    found: list[dict[str, Any]] = relay.status()["unanswered"]
    return found if all("this relay's user may not write to it" in each["message"] for each in found) else []


@pytest.mark.parametrize("guarantee", ["ExactlyOnce", pytest.param("AtLeastOnce", marks=pytest.mark.nightly)])
def test_records_for_topics_without_the_right_become_dead_letters_and_the_others_arrive(
    guarded_route: GuardedRoute,
    guarded_kafka: SecureKafka,
    certificates: Certificates,
    tmp_path: Path,
    guarantee: str,
) -> None:
    target = {"allowedTopics": ["*.other", "*.unseen"]}
    security = by_password(tmp_path, certificates, SCRAM)
    route = guarded_route(guarded_kafka.sasl, security, guarantee=guarantee, target=target)
    unseen = f"{route.name}.unseen"
    create_topics(guarded_kafka.plain, [TopicPlan(unseen)])
    deny(guarded_kafka.plain, route.other, AclOperation.WRITE)
    deny(guarded_kafka.plain, unseen, AclOperation.DESCRIBE)
    relay = route.start_relay().wait_until_delivering(PARTITIONS)

    elsewhere = [Sent(b"k", b"elsewhere", [("deliver-to", topic.encode())]) for topic in (route.other, unseen)]
    *forbidden, allowed = produce(guarded_kafka.plain, route.source, [*elsewhere, Sent(b"k", b"v")])
    wait_for(lambda: route.delivered() and len(route.dead_letters()) >= len(forbidden), relay.why)

    assert [record.source for record in route.delivered()] == [allowed]
    assert {letter.source: letter.reason for letter in route.dead_letters()} == dict.fromkeys(
        forbidden, "unknown-target"
    )


@pytest.mark.parametrize("guarantee", ["ExactlyOnce", pytest.param("AtLeastOnce", marks=pytest.mark.nightly)])
def test_what_recurs_becomes_a_dead_letter_where_the_source_may_not_be_written_and_the_others_arrive(
    guarded_route: GuardedRoute,
    guarded_kafka: SecureKafka,
    certificates: Certificates,
    tmp_path: Path,
    guarantee: str,
) -> None:
    route = guarded_route(guarded_kafka.sasl, by_password(tmp_path, certificates, SCRAM), guarantee=guarantee)
    deny(guarded_kafka.plain, route.source, AclOperation.WRITE)
    relay = route.start_relay().wait_until_delivering(PARTITIONS)

    again = Sent(b"k", b"again", [("deliver-id", b"id"), ("deliver-every", b"1s"), ("deliver-count", b"2")])
    refused, allowed = produce(guarded_kafka.plain, route.source, [again, Sent(b"k", b"v")])
    wait_for(lambda: route.delivered() and route.dead_letters(), relay.why)

    assert [record.source for record in route.delivered()] == [allowed]
    [letter] = route.dead_letters()
    assert (letter.source, letter.reason, letter.value) == (refused, "unsupported", b"again")


@pytest.mark.takes_long("the client tries for a second before it is looked up why nothing is acknowledged")
@pytest.mark.parametrize("guarantee", ["ExactlyOnce", pytest.param("AtLeastOnce", marks=pytest.mark.nightly)])
def test_a_dead_letter_topic_without_the_right_keeps_only_the_partition_with_a_bad_record_waiting(
    guarded_route: GuardedRoute,
    guarded_kafka: SecureKafka,
    certificates: Certificates,
    tmp_path: Path,
    guarantee: str,
) -> None:
    route = guarded_route(guarded_kafka.sasl, by_password(tmp_path, certificates, SCRAM), guarantee=guarantee)
    deny(guarded_kafka.plain, route.dead_letter, AclOperation.WRITE)
    relay = route.start_relay().wait_until_delivering(PARTITIONS)

    produce(guarded_kafka.plain, route.source, [Sent(b"k", b"v", [("deliver-at", b"soon")], 0)])
    good = produce(guarded_kafka.plain, route.source, [Sent(b"k", b"v", [], partition) for partition in (1, 2, 3)])

    wait_for(lambda: {record.source for record in route.delivered()} >= {*good}, relay.why)
    wait_for(lambda: unanswered_for_the_right(relay), relay.why)
    (waiting,) = [shard for shard in relay.status()["shards"] if shard["reason"] == "TargetUnavailable"]
    assert waiting["partition"] == 0
    assert "this relay's user may not write to it" in waiting["message"]


@pytest.mark.takes_long("the client tries for a second before it is looked up why nothing is acknowledged")
@pytest.mark.parametrize("guarantee", ["ExactlyOnce", pytest.param("AtLeastOnce", marks=pytest.mark.nightly)])
def test_outcomes_without_the_right_hold_up_what_ends_until_the_right_is_there(
    guarded_route: GuardedRoute,
    guarded_kafka: SecureKafka,
    certificates: Certificates,
    tmp_path: Path,
    guarantee: str,
) -> None:
    security = by_password(tmp_path, certificates, SCRAM)
    route = guarded_route(guarded_kafka.sasl, security, guarantee=guarantee, outcomes={})
    deny(guarded_kafka.plain, route.outcomes, AclOperation.WRITE)
    relay = route.start_relay().wait_until_delivering(PARTITIONS)

    records = produce(guarded_kafka.plain, route.source, [Sent(b"k", b"v", [], partition) for partition in (0, 1)])
    unanswered = wait_for(lambda: unanswered_for_the_right(relay), relay.why)

    assert {each["topic"] for each in unanswered} == {route.outcomes}
    assert all("this relay's user may not write to it" in each["message"] for each in unanswered)
    assert guarantee == "AtLeastOnce" or route.delivered() == []
    allow_again(guarded_kafka.plain, route.outcomes)
    told = wait_for(lambda: len(found := route.read(route.outcomes)) == len(records) and found, relay.why)
    assert {json.loads(each.value or b"")["outcome"] for each in told} == {"Delivered"}
    assert guarantee == "AtLeastOnce" or sorted(each.source for each in route.delivered()) == sorted(records)
    wait_for(lambda: relay.status()["unanswered"] == [], relay.why)
