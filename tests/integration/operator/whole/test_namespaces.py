"""A namespace of an app team goes: it never hangs, nothing pending is lost, and nobody else gets it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playground.kube.awaiting import await_gone
from tests.cluster.node.local_node import NODE_LABEL, LocalNode
from tests.support.operator.app_team import AppTeam
from tests.support.operator.backlogs import (
    all_arrived,
    await_event,
    await_no_relays,
    await_record,
    redis_keys,
    summary,
    with_pending,
)
from tests.support.operator.platform import Platform
from tests.support.relay.process import wait_for
from tests.support.relay.records import now_ms

from delaytopic_operator.model.record import RecordState

pytestmark = [pytest.mark.integration, pytest.mark.kubernetes, pytest.mark.nightly]

NAME = "reminders"


@pytest.fixture
def team(platform: Platform, tmp_path: Path) -> AppTeam:
    """One that uses a DelayTopic of a running platform."""
    platform.start()
    return AppTeam.of(platform, NAME, tmp_path)


def test_relays_that_go_with_the_namespace_leave_everything_behind(
    platform: Platform, team: AppTeam, node: LocalNode
) -> None:
    apply_inline(platform)
    with_pending(platform, team, [40_000, 45_000])

    delete_namespace(platform)

    record = await_record(platform, NAME, RecordState.RETAINED)
    assert record.pending in (2, None)
    assert redis_keys(platform, NAME)
    make_anew(platform, node)
    apply_inline(platform)
    stalled = platform.await_condition(NAME, "Stalled", reason="RetainedBacklogForeign", seconds=60)
    message = next(each for each in stalled["status"]["conditions"] if each["type"] == "Stalled")["message"]
    assert "delaytopic.dev/discard-retained" in message
    assert team.delivered() == []


def test_a_namespace_made_anew_does_not_get_the_backlog_of_the_former_one(
    platform: Platform, team: AppTeam, node: LocalNode
) -> None:
    platform.apply_topic(NAME, drainTimeout="3s")
    due_ms = with_pending(platform, team, [60_000])
    delete_namespace(platform)
    await_record(platform, NAME, RecordState.RETAINED)
    await_no_relays(platform)

    make_anew(platform, node)
    platform.apply_topic(NAME)
    platform.await_condition(NAME, "Stalled", reason="RetainedBacklogForeign", seconds=60)
    platform.await_condition(NAME, "Ready", "False", reason="RetainedBacklogForeign")
    assert platform.objects("deployments") == []

    wait_for(lambda: now_ms() > due_ms[0])
    discard = {"delaytopic.dev/discard-retained": f"delaytopic.{platform.team}.{NAME}"}
    platform.client.merge(platform.path(NAME), {"metadata": {"annotations": discard}})
    platform.await_condition(NAME, "Ready", seconds=90)
    assert await_event(platform, NAME, "BacklogDiscarded")[0] == "Warning"
    own_ms = team.send_due_in([1_000])
    wait_for(lambda: len(team.delivered()) >= 1)
    assert [record.due_ms for record in team.delivered()] == own_ms


def test_a_drain_of_the_former_namespace_goes_on_beside_the_new_one(
    platform: Platform, team: AppTeam, node: LocalNode
) -> None:
    platform.apply_topic(NAME)
    with_pending(platform, team, [45_000])
    delete_namespace(platform)
    make_anew(platform, node)

    platform.apply_topic(NAME)
    platform.await_condition(NAME, "Stalled", reason="RetainedBacklogForeign")
    assert summary(team.audited(60)) == all_arrived(1)

    platform.await_condition(NAME, "Ready", seconds=60)
    team.send_due_in([0])
    assert summary(team.audited(60)) == all_arrived(2)


@pytest.mark.parametrize("kept", ["paused", "Delete"])
def test_neither_a_pause_nor_a_missing_confirmation_holds_a_namespace(
    kept: str, platform: Platform, team: AppTeam
) -> None:
    policy = "Drain" if kept == "paused" else kept
    annotations = {"delaytopic.dev/pause-reconciliation": "true"} if kept == "paused" else None
    platform.apply_topic(NAME, deletionPolicy=policy)
    with_pending(platform, team, [30_000])
    if annotations:
        platform.client.merge(platform.path(NAME), {"metadata": {"annotations": annotations}})
        platform.await_condition(NAME, "Paused")

    delete_namespace(platform)

    assert summary(team.audited(60)) == all_arrived(1) if kept == "paused" else team.delivered() == []
    assert await_record(platform, NAME, RecordState.RETAINED).pending == (0 if kept == "paused" else 1)


def apply_inline(platform: Platform) -> None:
    """Without a class: relays run beside the object."""
    spec: dict[str, Any] = {
        "connection": {"bootstrapServers": platform.kafka.bootstrap_servers},
        "backend": {"type": "RedisZset", "redis": {"url": platform.redis.url}},
        "source": {"topic": f"{platform.team}.{NAME}.delayed", "partitions": 4, "replicationFactor": 1},
        "target": {"topic": f"{platform.team}.{NAME}", "partitions": 4, "replicationFactor": 1},
        "deadLetter": {"topic": f"{platform.team}.{NAME}.delayed.dlq", "replicationFactor": 1},
    }
    platform.apply("DelayTopic", NAME, spec, namespace=platform.team)


def delete_namespace(platform: Platform) -> None:
    path = f"/api/v1/namespaces/{platform.team}"
    platform.client.delete(path)
    await_gone(platform.client, path, seconds=90)


def make_anew(platform: Platform, node: LocalNode) -> None:
    """By the same name, with a uid of its own; pods in it run."""
    labels = {NODE_LABEL: node.name}
    platform.client.create("/api/v1/namespaces", {"metadata": {"name": platform.team, "labels": labels}})
