"""A class that takes a right away stops relays where it says so, and they go on with what waited when it is back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playground.kube.awaiting import await_object
from playground.kube.kube_client import Object
from tests.cluster.node.local_node import LocalNode
from tests.support.operator.app_team import AppTeam
from tests.support.operator.backlogs import all_arrived, summary, with_pending
from tests.support.operator.platform import Platform
from tests.support.relay.process import wait_for
from tests.support.relay.records import now_ms

from delaytopic_operator.model.reconciliation import Key
from delaytopic_operator.resources import relays_name

pytestmark = [pytest.mark.integration, pytest.mark.kubernetes]

NAME = "reminders"


def deployment(platform: Platform) -> str:
    return f"/apis/apps/v1/namespaces/{platform.namespace}/deployments/{relays_name(Key(platform.team, NAME))}"


def await_relays(platform: Platform, count: int) -> None:
    def holds(found: Object | None) -> bool:
        return bool(found and found["spec"]["replicas"] == found["status"].get("readyReplicas", 0) == count)

    await_object(platform.client, deployment(platform), holds, seconds=60)


def narrow(platform: Platform, **access: Any) -> None:
    platform.apply_class(access={"sourceTopics": ["nobody.*"], **access})


@pytest.mark.takes_long("relays stop, start again, and deliver what came due meanwhile")
def test_relays_whose_topics_a_class_takes_away_stop_and_go_on_when_it_gives_them_back(
    platform: Platform, node: LocalNode, tmp_path: Path
) -> None:
    platform.start()
    team = AppTeam.of(platform, NAME, tmp_path)
    platform.apply_topic(NAME)
    due_ms = with_pending(platform, team, [12_000, 15_000])

    narrow(platform, onRevoked="Suspend")
    platform.await_condition(NAME, "Stalled", reason="AccessRevoked")
    await_relays(platform, 0)
    # An edit and a pause of the author's keep nothing running.
    annotations = {"delaytopic.dev/pause-reconciliation": "true"}
    platform.client.merge(platform.path(NAME), {"metadata": {"annotations": annotations}})
    platform.client.merge(deployment(platform), {"spec": {"replicas": 2}})
    await_relays(platform, 0)
    wait_for(lambda: now_ms() > due_ms[-1] + 2_000)
    none_arrived = team.delivered()
    platform.client.merge(platform.path(NAME), {"metadata": {"annotations": None}})
    platform.apply_class()

    platform.await_condition(NAME, "Ready", seconds=60)
    assert none_arrived == []
    assert summary(team.audited(60)) == all_arrived(2)


@pytest.mark.nightly  # each day decisions run on by default
@pytest.mark.takes_long("a class changes while relays run")
def test_relays_whose_topics_a_class_takes_away_run_on_by_default_and_say_so(
    platform: Platform, node: LocalNode, tmp_path: Path
) -> None:
    platform.start()
    team = AppTeam.of(platform, NAME, tmp_path)
    platform.apply_topic(NAME)
    with_pending(platform, team, [15_000])

    narrow(platform)
    platform.await_condition(NAME, "PolicyAccepted", "False", reason="AccessRevoked")

    assert summary(team.audited(60)) == all_arrived(1)
    message = platform.condition(NAME, "PolicyAccepted")["message"]
    assert f"DelayClass {platform.class_name} (access.sourceTopics) no longer allows" in message
