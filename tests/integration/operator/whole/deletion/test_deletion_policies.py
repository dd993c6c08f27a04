"""Each policy of deletion, step by step: nothing pending is destroyed, unless that is asked for twice."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest
from playground.kube.awaiting import await_condition, await_object
from playground.kube.kube_client import Object
from tests.support.operator.app_team import AppTeam
from tests.support.operator.backlogs import (
    all_arrived,
    await_event,
    await_no_relays,
    await_pending,
    await_record,
    events_of,
    groups_of,
    objects_of,
    record_path,
    redis_keys,
    relay_config_path,
    retained_metric,
    summary,
    topics_of,
    with_pending,
)
from tests.support.operator.platform import API, Platform
from tests.support.relay.process import wait_for
from tests.support.relay.records import now_ms

from delaytopic_gateway.client.topics import TopicPlan, create_topics
from delaytopic_operator.model.reconciliation import Key
from delaytopic_operator.model.record import RecordState
from delaytopic_operator.resources import relays_name

pytestmark = [pytest.mark.integration, pytest.mark.kubernetes, pytest.mark.nightly]

NAME = "reminders"
APPEND_TIME = {"message.timestamp.type": "LogAppendTime", "retention.ms": "-1"}


@pytest.fixture
def team(platform: Platform, tmp_path: Path) -> AppTeam:
    """One that uses a DelayTopic of a running platform."""
    platform.start()
    return AppTeam.of(platform, NAME, tmp_path)


def test_what_is_pending_when_the_drain_times_out_is_kept_and_goes_on(platform: Platform, team: AppTeam) -> None:
    platform.apply_topic(NAME, drainTimeout="3s")
    with_pending(platform, team, [50_000, 51_000, 52_000])

    platform.delete_topic(NAME)
    platform.await_gone(NAME)

    kind, note = await_event(platform, NAME, "BacklogRetained")
    assert (kind, "3 pending records stay" in note) == ("Warning", True), note
    record = await_record(platform, NAME, RecordState.RETAINED)
    assert (record.pending, record.source is not None) == (3, True)
    await_no_relays(platform)
    wait_for(lambda: retained_metric(platform, NAME) == 3)

    platform.apply_topic(NAME)
    resumed = platform.await_condition(NAME, "BackendReady", reason="ResumedBacklog")

    message = next(each for each in resumed["status"]["conditions"] if each["type"] == "BackendReady")["message"]
    assert message == "the backlog of before goes on: 3 records were pending"
    assert await_event(platform, NAME, "BacklogResumed") == ("Normal", "3 retained records go on")
    assert summary(team.audited(90)) == all_arrived(3)
    platform.await_condition(NAME, "BackendReady", reason="Ready")
    assert retained_metric(platform, NAME) is None


def test_retain_lets_the_object_go_at_once_and_keeps_everything(platform: Platform, team: AppTeam) -> None:
    platform.apply_topic(NAME, deletionPolicy="Retain")
    with_pending(platform, team, [25_000, 30_000])
    assert "finalizers" not in platform.topic(NAME)["metadata"]

    platform.delete_topic(NAME)
    platform.await_gone(NAME)
    await_no_relays(platform)
    team.send_due_in([0])
    assert await_record(platform, NAME, RecordState.RETAINED).pending in (2, None)
    assert topics_of(platform, NAME) == {"", ".delayed", ".delayed.dlq"}

    platform.apply_topic(NAME, deletionPolicy="Retain")

    assert summary(team.audited(90)) == all_arrived(3)


def test_delete_waits_for_a_confirmation_and_then_removes_all_but_the_target(platform: Platform, team: AppTeam) -> None:
    platform.apply_topic(NAME, deletionPolicy="Delete")
    with_pending(platform, team, [600_000, 700_000])
    team.send_due_in([0])
    wait_for(lambda: len(team.delivered()) == 1)
    assert redis_keys(platform, NAME)

    platform.delete_topic(NAME)
    waiting = platform.await_condition(NAME, "Stalled", reason="ConfirmationMissing")

    message = next(each for each in waiting["status"]["conditions"] if each["type"] == "Stalled")["message"]
    assert "delaytopic.dev/confirm-delete" in message
    assert "2 pending records" in message
    platform.client.merge(
        platform.path(NAME), {"metadata": {"annotations": {"delaytopic.dev/confirm-delete": "another"}}}
    )
    assert topics_of(platform, NAME) == {"", ".delayed", ".delayed.dlq"}

    platform.client.merge(platform.path(NAME), {"metadata": {"annotations": {"delaytopic.dev/confirm-delete": NAME}}})
    platform.await_gone(NAME, seconds=60)

    wait_for(lambda: topics_of(platform, NAME) == {""}, lambda: str(topics_of(platform, NAME)))
    assert (redis_keys(platform, NAME), groups_of(platform, NAME)) == ([], [])
    assert len(team.delivered()) == 1
    assert platform.client.find(record_path(platform, NAME)) is None
    await_no_relays(platform)
    assert "DrainStarted" not in events_of(platform, NAME)
    assert await_event(platform, NAME, "BacklogRemoved")[0] == "Warning"


def test_delete_with_a_source_of_others_keeps_it_and_delivers_nothing_of_it_again(
    platform: Platform, team: AppTeam
) -> None:
    platform.apply_class(access={"adoptTopics": ["{namespace}.*"]})
    create_topics(platform.kafka.bootstrap_servers, [TopicPlan(team.source, 4, APPEND_TIME)])
    spec: dict[str, Any] = {"source": {"topic": team.source, "management": "Observe"}, "deletionPolicy": "Delete"}
    confirmed = {"delaytopic.dev/confirm-delete": NAME}
    platform.apply_topic(NAME, annotations=confirmed, **spec)
    with_pending(platform, team, [20_000, 600_000])

    platform.delete_topic(NAME)
    platform.await_gone(NAME, seconds=60)
    wait_for(lambda: topics_of(platform, NAME) == {"", ".delayed"})
    platform.apply_topic(NAME, **{**spec, "target": {"topic": team.target, "management": "Adopt"}})
    platform.await_condition(NAME, "Ready", seconds=60)
    later_ms = team.send_due_in([2_000])

    wait_for(lambda: len(team.delivered()) >= 1)
    wait_for(lambda: now_ms() > later_ms[0] + 15_000)
    assert [record.due_ms for record in team.delivered()] == later_ms


def test_a_retained_backlog_is_discarded_when_the_annotation_names_it(platform: Platform, team: AppTeam) -> None:
    platform.apply_topic(NAME, deletionPolicy="Retain")
    former_ms = with_pending(platform, team, [25_000, 26_000])
    platform.delete_topic(NAME)
    platform.await_gone(NAME)
    await_record(platform, NAME, RecordState.RETAINED)

    backlog = {"delaytopic.dev/discard-retained": f"delaytopic.{platform.team}.{NAME}"}
    platform.apply_topic(NAME, annotations=backlog)
    platform.await_condition(NAME, "Ready", seconds=90)
    new_ms = team.send_due_in([1_000])

    wait_for(lambda: len(team.delivered()) >= 1)
    wait_for(lambda: now_ms() > former_ms[-1] + 5_000)
    assert [record.due_ms for record in team.delivered()] == new_ms
    assert await_event(platform, NAME, "BacklogDiscarded")[0] == "Warning"


def is_another(uid: str, found: Object | None) -> bool:
    return found is not None and found["metadata"]["uid"] != uid


def test_objects_deleted_by_hand_come_back(platform: Platform, team: AppTeam) -> None:
    platform.apply_topic(NAME)
    with_pending(platform, team, [30_000])
    before = {each.rpartition("/")[0] for each in objects_of(platform)}
    relays = relays_name(Key(platform.team, NAME))

    for path in (
        f"/apis/apps/v1/namespaces/{platform.namespace}/deployments/{relays}",
        relay_config_path(platform, NAME),
        f"/apis/policy/v1/namespaces/{platform.namespace}/poddisruptionbudgets/{relays}",
    ):
        uid = platform.client.get(path)["metadata"]["uid"]
        platform.client.delete(path)
        await_object(platform.client, path, partial(is_another, uid))

    wait_for(lambda: {each.rpartition("/")[0] for each in objects_of(platform)} == before)
    assert summary(team.audited(60)) == all_arrived(1)


def test_a_topic_whose_class_is_gone_can_be_deleted(platform: Platform, team: AppTeam) -> None:
    platform.apply_topic(NAME)
    with_pending(platform, team, [15_000])

    _delete_in_spite_of_its_users(platform, f"{API}/delayclasses/{platform.class_name}")
    platform.await_condition(NAME, "Ready", "False", reason="ClassNotFound")
    platform.delete_topic(NAME)
    platform.await_gone(NAME, seconds=60)

    assert summary(team.audited(20)) == all_arrived(1)
    await_no_relays(platform)


def _delete_in_spite_of_its_users(platform: Platform, path: str) -> None:
    """Delete a DelayClass by force: its finalizer would hold it for as long as a DelayTopic uses it."""
    await_object(platform.client, path, lambda found: bool(found and found["metadata"].get("finalizers")))
    platform.client.delete(path)
    platform.client.merge(path, {"metadata": {"finalizers": None}})


def test_while_paused_nothing_is_changed_and_a_deletion_waits(platform: Platform, team: AppTeam) -> None:
    platform.apply_topic(NAME)
    with_pending(platform, team, [5_000])
    paused = {"metadata": {"annotations": {"delaytopic.dev/pause-reconciliation": "true"}}}
    platform.client.merge(platform.path(NAME), paused)
    platform.await_condition(NAME, "Paused")

    platform.delete_topic(NAME)
    passes = platform.operator.metric('delaytopic_operator_reconcile_total{result="Success"}')
    wait_for(lambda: platform.operator.metric('delaytopic_operator_reconcile_total{result="Success"}') >= passes + 2)
    assert platform.topic(NAME)["metadata"]["finalizers"] == ["delaytopic.dev/drain"]
    assert len(platform.objects("deployments")) == 1
    assert summary(team.audited(30)) == all_arrived(1)

    platform.client.merge(
        platform.path(NAME), {"metadata": {"annotations": {"delaytopic.dev/pause-reconciliation": None}}}
    )
    platform.await_gone(NAME)


def test_a_fixed_delay_drains_too(platform: Platform, team: AppTeam) -> None:
    platform.apply_topic(NAME, schedule={"fixedDelay": "12s"})
    platform.await_condition(NAME, "Ready", seconds=60)
    team.send([(b"key", b"value", []), (b"other", b"value", [])])
    await_pending(platform, NAME, 2)

    platform.delete_topic(NAME)
    await_condition(platform.client, platform.path(NAME), "Draining", reason="Draining")
    platform.await_gone(NAME, seconds=60)

    assert len(team.delivered()) == 2


def test_a_topic_with_nothing_pending_goes_at_once(platform: Platform, team: AppTeam) -> None:
    platform.apply_topic(NAME)
    platform.await_condition(NAME, "Ready", seconds=60)
    await_pending(platform, NAME, 0)

    platform.delete_topic(NAME)
    platform.await_gone(NAME)
    assert await_record(platform, NAME, RecordState.RETAINED).pending == 0
    assert "BacklogRetained" not in events_of(platform, NAME)
