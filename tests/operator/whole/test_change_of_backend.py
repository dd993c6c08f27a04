"""The backend of a living DelayTopic is changed, both ways, with records that wait in the former one."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cluster.awaiting import await_object
from tests.cluster.pods import await_rollout
from tests.support.app_team import AppTeam
from tests.support.kafka_topics import KafkaTopics
from tests.support.platform import Platform

from delaytopic_operator.desired import child_name
from delaytopic_operator.keys import Key

pytestmark = [pytest.mark.integration, pytest.mark.kubernetes]


def change_backend(platform: Platform, name: str, type: str) -> None:
    """Apply it, and wait until the relays of the new one have taken over."""
    child = child_name(Key(platform.team, name))
    path = f"/apis/apps/v1/namespaces/{platform.namespace}/deployments/{child}"
    before = platform.client.get(path)["metadata"]["generation"]
    platform.apply_topic(name, backend={"type": type})
    await_object(platform.client, path, lambda found: bool(found and found["metadata"]["generation"] > before))
    await_rollout(platform.client, platform.namespace, child, 1, seconds=60)


def test_a_backlog_moves_to_bucket_topics_and_back_while_it_is_delivered(running: Platform, tmp_path: Path) -> None:
    running.apply_topic("moved")
    running.await_condition("moved", "Ready", seconds=60)
    team = AppTeam.of(running, "moved", tmp_path)
    team.send_due_in(range(1_000, 91_000, 500))

    change_backend(running, "moved", "KafkaBuckets")
    of_buckets = running.await_condition("moved", "Ready", seconds=60)["status"]["backend"]
    bucket = f"{of_buckets['id']}.delay.0"
    partitions = KafkaTopics(running.kafka.bootstrap_servers).partitions(bucket)
    change_backend(running, "moved", "RedisZset")
    of_redis = running.await_condition("moved", "Ready", seconds=60)["status"]["backend"]
    verdict = team.audited(100)

    assert (of_buckets["type"], of_redis["type"], partitions) == ("KafkaBuckets", "RedisZset", 4)
    assert (verdict.faults, verdict.delivered) == ({}, 180)
