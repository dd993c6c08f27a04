"""Tests that the operator remembers what relays have delivered when Kafka forgets it: no record comes twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from tests.support.operator.app_team import AppTeam
from tests.support.operator.backlogs import (
    all_arrived,
    await_event,
    await_record,
    groups_of,
    record_path,
    summary,
    with_pending,
)
from tests.support.operator.platform import Platform
from tests.support.relay.process import wait_for

from delaytopic_operator.model.record import RecordState, RouteRecord, parse_record

pytestmark = [pytest.mark.integration, pytest.mark.kubernetes, pytest.mark.nightly]


def group_of(platform: Platform, name: str) -> str:
    return f"delaytopic.{platform.team}.{name}"


def record_of(platform: Platform, name: str) -> RouteRecord:
    return parse_record(platform.client.get(record_path(platform, name)))


def kept_offsets(platform: Platform, name: str) -> dict[int, int]:
    """The offsets that are written down, by partition."""
    offsets = record_of(platform, name).offsets
    return {number: one.offset for number, one in offsets.partitions.items()} if offsets is not None else {}


def forget(platform: Platform, name: str) -> None:
    """Let Kafka forget, as it does a week after the last relay has gone."""
    admin, group = AdminClient({"bootstrap.servers": platform.kafka.bootstrap_servers}), group_of(platform, name)

    def forgotten() -> bool:
        try:
            admin.delete_consumer_groups([group])[group].result(30)
        except KafkaException:
            return False  # the last relay is about to leave
        return True

    wait_for(forgotten)
    wait_for(lambda: groups_of(platform, name) == [])


def delivered_and_waiting(platform: Platform, name: str, directory: Path, later_ms: int) -> AppTeam:
    """Eight records that have arrived, and two that are taken in and wait."""
    team = AppTeam.of(platform, name, directory)
    platform.await_condition(name, "Ready", seconds=60)
    team.send_due_in([0] * 8)
    wait_for(lambda: len(team.delivered()) == 8)
    with_pending(platform, team, [later_ms, later_ms + 500])
    return team


@pytest.mark.parametrize("name", ["retained", "inlined"])
def test_after_retain_and_a_week_nothing_is_delivered_twice(running: Platform, tmp_path: Path, name: str) -> None:
    apply = apply_inline if name == "inlined" else apply_of_class
    apply(running, name)
    team = delivered_and_waiting(running, name, tmp_path, 30_000)

    running.delete_topic(name)
    running.await_gone(name)
    await_record(running, name, RecordState.RETAINED)
    wait_for(lambda: sum(kept_offsets(running, name).values()) >= 8, lambda: str(record_of(running, name)))
    forget(running, name)
    apply(running, name)

    assert summary(team.audited(90)) == all_arrived(10)
    assert await_event(running, name, "OffsetsRestored")[0] == "Normal"


def apply_of_class(platform: Platform, name: str) -> None:
    platform.apply_topic(name, deletionPolicy="Retain")


def apply_inline(platform: Platform, name: str) -> None:
    """Without a class: relays run beside the object, and only the record knows where its topics are."""
    topic, size = f"{platform.team}.{name}", {"partitions": 4, "replicationFactor": 1}
    spec: dict[str, Any] = {
        "connection": {"bootstrapServers": platform.kafka.bootstrap_servers},
        "backend": {"type": "RedisZset", "redis": {"url": platform.redis.url}},
        "source": {"topic": f"{topic}.delayed", **size},
        "target": {"topic": topic, **size},
        "deadLetter": {"topic": f"{topic}.delayed.dlq", "replicationFactor": 1},
        "deletionPolicy": "Retain",
    }
    platform.apply("DelayTopic", name, spec, namespace=platform.team)


def test_after_a_drain_that_timed_out_and_a_week_nothing_is_delivered_twice(running: Platform, tmp_path: Path) -> None:
    running.apply_topic("drained", drainTimeout="3s")
    team = delivered_and_waiting(running, "drained", tmp_path, 40_000)

    running.delete_topic("drained")
    running.await_gone("drained")

    assert sum(kept_offsets(running, "drained").values()) >= 8
    forget(running, "drained")
    running.apply_topic("drained")
    assert summary(team.audited(90)) == all_arrived(10)


def test_after_a_week_at_zero_nothing_is_delivered_twice(running: Platform, tmp_path: Path) -> None:
    external = {"autoscaling": {"mode": "External"}}
    running.apply_topic("idle", **external)
    team = delivered_and_waiting(running, "idle", tmp_path, 30_000)

    running.apply_topic("idle", **external, relay={"replicas": 0})
    running.await_condition("idle", "RelayAvailable", reason="ScaledToZero")
    wait_for(lambda: sum(kept_offsets(running, "idle").values()) >= 8, lambda: str(record_of(running, "idle")))
    forget(running, "idle")
    team.send_due_in([0])
    running.apply_topic("idle", **external, relay={"replicas": 1})

    assert summary(team.audited(90)) == all_arrived(11)


def test_what_is_committed_meanwhile_is_not_overwritten(running: Platform, tmp_path: Path) -> None:
    external = {"autoscaling": {"mode": "External"}}
    running.apply_topic("newer", **external)
    team = delivered_and_waiting(running, "newer", tmp_path, 15_000)
    running.apply_topic("newer", **external, relay={"replicas": 0})
    wait_for(lambda: sum(kept_offsets(running, "newer").values()) >= 8)
    first = record_of(running, "newer").offsets

    running.apply_topic("newer", **external, relay={"replicas": 1})
    team.send_due_in([0] * 4)
    assert summary(team.audited(60)) == all_arrived(14)
    running.apply_topic("newer", **external, relay={"replicas": 0})
    wait_for(lambda: sum(kept_offsets(running, "newer").values()) >= 14)
    running.apply_topic("newer", **external, relay={"replicas": 1})
    team.send_due_in([0])

    assert summary(team.audited(60)) == all_arrived(15)
    assert first != record_of(running, "newer").offsets
