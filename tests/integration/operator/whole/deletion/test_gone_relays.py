"""A relay whose pod is gone for good: its partitions go to another one before its session ends."""

from __future__ import annotations

import json
import signal
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from playground.kube.pods import await_rollout
from tests.cluster.node.local_node import LocalNode, RunningPod
from tests.support.operator.app_team import AppTeam
from tests.support.operator.platform import Platform
from tests.support.operator.running_platform import RunPlatform
from tests.support.relay.faults import assert_exact
from tests.support.relay.process import wait_for

from delaytopic_operator.model.reconciliation import Key
from delaytopic_operator.observe.relay_pages import DEFAULT_PORT
from delaytopic_operator.resources import relays_name

pytestmark = [pytest.mark.integration, pytest.mark.kubernetes]

NAME = "orders"
DELAYS_MS = [*range(0, 8_000, 20)]


@pytest.fixture(scope="module")
def patient_platform(run_platform: RunPlatform) -> Iterator[Platform]:
    """A platform whose relays' sessions end after the end of any test."""
    with run_platform("patient") as platform:
        platform.apply_class(relay={"sessionTimeout": "10m"})
        yield platform


@pytest.mark.nightly
@pytest.mark.takes_long("two relays start, and one goes")
def test_a_pod_that_is_deleted_by_force_while_its_relay_is_frozen_delays_its_partitions_by_moments(
    patient_platform: Platform, node: LocalNode, tmp_path: Path
) -> None:
    platform = patient_platform
    platform.apply_topic(NAME, autoscaling={"mode": "Fixed"}, relay={"replicas": 2})
    await_rollout(platform.client, platform.namespace, relays_name(Key(platform.team, NAME)), 2, seconds=60)
    platform.await_condition(NAME, "Ready", seconds=60)
    team = AppTeam.of(platform, NAME, tmp_path)
    gone, other = node.pods(platform.namespace, **{"delaytopic.dev/name": NAME})
    # A pod is ready before its relay has joined the group: one that never did could not be taken out of it.
    wait_for(lambda: has_partitions(gone) and has_partitions(other), platform.operator.why)
    team.send_due_in(DELAYS_MS)
    team.await_delivered(len(DELAYS_MS) // 4)

    gone.process.send_signal(signal.SIGSTOP)
    platform.client.delete(f"/api/v1/namespaces/{platform.namespace}/pods/{gone.name}", gracePeriodSeconds=0)

    team.await_delivered(len(DELAYS_MS))
    assert_exact(team.verdict())
    wait_for(lambda: told(platform), platform.operator.why)
    assert told(platform) == [f"{gone.name} is gone, and its partitions were given to other relays"]


def has_partitions(pod: RunningPod) -> bool:
    with urllib.request.urlopen(f"http://{pod.ip}:{DEFAULT_PORT}/status", timeout=5) as page:
        return bool(json.load(page)["shards"])


def told(platform: Platform) -> list[str]:
    """Return what events tell of relays that are gone; they are written when all else is done."""
    events = platform.client.get(f"/apis/events.k8s.io/v1/namespaces/{platform.team}/events")["items"]
    return [each["note"] for each in events if each["reason"] == "RelayGone"]
