"""A living DelayTopic is changed while records are sent and delivered."""

from __future__ import annotations

from typing import Any

import pytest
from playground.kube.awaiting import await_object
from playground.traffic.plan import Plan
from tests.e2e.support.team import MakeTeam, Sending, Team

pytestmark = pytest.mark.e2e

BUCKETS = {"type": "KafkaBuckets"}
CHANGING = 14_000
"""Sent for as long as two rollouts take."""
FLOWING = 5_000
"""Sent for as long as two rollouts take, beside what waits."""


@pytest.fixture(scope="module")
def team(make_team: MakeTeam) -> Team:
    """With two DelayTopics that are ready: schedules of one wait in Redis, of the other in Kafka."""
    team = make_team("change")
    team.apply("changing")
    team.apply("buckets", backend=BUCKETS)
    team.await_ready("changing", "buckets")
    return team


@pytest.fixture(scope="module")
def in_buckets(team: Team) -> Sending:
    """Records that are sent and delivered while the other DelayTopic is changed."""
    plan = Plan("buckets", 1_000, per_second=100, delays_ms=(1_000, 25_000), cancel_every=20)
    return team.start_sending("buckets", plan)


def change(team: Team, name: str, **spec: Any) -> None:
    """Apply what starts the relays anew, and wait until the new ones have taken over."""
    path = team.platform.relay_deployment(team.namespace, name)
    before = team.client.get(path)["metadata"]["generation"]
    team.apply(name, **spec)
    await_object(team.client, path, lambda found: bool(found and found["metadata"]["generation"] > before), seconds=60)
    team.platform.await_relays(team.namespace, name, spec.get("relay", {}).get("replicas", 1))


@pytest.mark.usefixtures("in_buckets")  # the next test looks at these, which take as long to fall due
def test_backend_precision_longest_delay_and_partitions_change_under_load_and_nothing_is_lost(team: Team) -> None:
    sending = team.start_sending("changing", Plan("changing", CHANGING, per_second=200, delays_ms=(1_000, 20_000)))
    reading = sending.start_reading()

    change(team, "changing", backend=BUCKETS)
    moved = team.await_condition("changing", "BackendReady")["status"]["backend"]["type"]
    settings = {"backend": BUCKETS, "precision": "2s", "schedule": {"maxDelay": "48h"}}
    change(team, "changing", **settings)
    # Those that run now find the new partitions: nothing is started anew.
    team.apply("changing", **settings, source={"topic": team.source("changing"), "partitions": 6})
    grown = await_object(
        team.client,
        team.path("changing"),
        lambda found: bool(found and found["status"]["source"].get("partitions") == 6),
        seconds=60,
    )
    later = team.start_sending("changing", Plan("grown", 600, per_second=200, delays_ms=(1_000, 5_000)))
    verdicts = [each.verdict() for each in (reading, later.start_reading())]

    assert [each["records"] for each in verdicts] == [CHANGING, 600], verdicts
    assert moved == "KafkaBuckets"
    effective = (grown or {})["status"]["effective"]
    assert (effective["precision"], effective["maxDelay"]) == ("2s", "48h")


def test_schedules_that_wait_in_kafka_alone_arrive_on_time_exactly_once(in_buckets: Sending) -> None:
    verdict = in_buckets.verdict()

    assert (verdict["records"], verdict["arrived"] + verdict["withdrawn"]) == (1_000, 1_000), verdict
    assert verdict["late_ms"]["p99"] < 5_000, verdict


@pytest.mark.parametrize("backend", ["RedisZset", "KafkaBuckets"])
def test_records_keep_the_rules_they_came_under_while_these_are_edited_and_relays_of_both_run_side_by_side(
    team: Team, backend: str
) -> None:
    name = f"rules-{backend.lower()}"
    usual: dict[str, Any] = {"backend": {"type": backend}, "autoscaling": {"mode": "Fixed"}, "relay": {"replicas": 2}}
    team.apply(name, **usual)
    team.await_ready(name)
    waiting = team.send(name, Plan("waiting", 1_000, per_second=500, delays_ms=(60_000, 90_000)))
    flowing = team.start_sending(name, Plan("flowing", FLOWING, per_second=100, delays_ms=(500, 4_000)))
    readings = [waiting.start_reading(patience_s=90), flowing.start_reading(patience_s=90)]

    # The records that wait are due later than the edited rules allow, and those rules go back again.
    change(team, name, **usual, schedule={"maxDelay": "5s", "defaultDelay": "1s", "ids": "Disabled"})
    kept = team.await_condition(name, "RulesInForce", reason="FormerRulesWait")["status"]["formerRules"]
    change(team, name, **usual, schedule={"maxDelay": "1h"})
    verdicts = [reading.verdict() for reading in readings]

    assert [(each["records"], each["arrived"]) for each in verdicts] == [(1_000, 1_000), (FLOWING, FLOWING)], verdicts
    assert [each["maxDelay"] for each in kept] == ["720h"]
    assert team.topic(name)["status"]["effective"]["maxDelay"] == "1h"
    # Partitions that no record has come to since forget what they have delivered as the others do.
    team.await_condition(name, "RulesInForce", reason="InForce")
