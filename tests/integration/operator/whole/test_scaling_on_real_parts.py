"""Tests of scaling: as others say, as the schedule ahead asks for, and to zero while there is nothing to do."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playground.kube.awaiting import await_object
from playground.kube.control_plane import ControlPlane
from playground.kube.kube_client import Object
from tests.cluster.node.local_node import LocalNode
from tests.harness.shared_servers import KafkaAddress, RedisAddress
from tests.support.operator.app_team import AppTeam
from tests.support.operator.platform import Platform
from tests.support.operator.running_platform import running_platform
from tests.support.relay.process import wait_for
from tests.support.relay.records import now_ms

from delaytopic_operator.model.reconciliation import Key
from delaytopic_operator.resources import relays_name, selector

pytestmark = [pytest.mark.integration, pytest.mark.kubernetes, pytest.mark.nightly]

BURST = 40_000
"""Due at one moment: more than a relay is taken to deliver in a few seconds, before its rate was measured."""
AHEAD_MS = 90_000


@pytest.fixture(scope="module")
def impatient(
    control_plane: ControlPlane,
    node: LocalNode,
    kafka: KafkaAddress,
    redis: RedisAddress,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Platform]:
    """Its operator takes a source to be silent after five seconds; with the usual ten minutes a test would last so."""
    directory = tmp_path_factory.mktemp("impatient")
    module = "tests.support.operator.impatient"
    with running_platform(control_plane, node, kafka, redis, directory, module=module) as platform:
        yield platform


def deployment(platform: Platform, name: str) -> str:
    return f"/apis/apps/v1/namespaces/{platform.namespace}/deployments/{relays_name(Key(platform.team, name))}"


def await_replicas(platform: Platform, name: str, count: int, seconds: float = 40.0) -> Object:
    """The Deployment as soon as it asks for so many."""

    def holds(found: Object | None) -> bool:
        return bool(found and found["spec"]["replicas"] == count)

    return await_object(platform.client, deployment(platform, name), holds, seconds=seconds) or {}


def events(platform: Platform, name: str, reason: str) -> list[str]:
    """The notes of the events about a DelayTopic."""
    found = platform.client.get(f"/apis/events.k8s.io/v1/namespaces/{platform.team}/events")["items"]
    return [each["note"] for each in found if (each["regarding"]["name"], each["reason"]) == (name, reason)]


def test_an_external_scaler_reads_and_writes_the_scale_subresource(running: Platform) -> None:
    running.apply_topic("external", autoscaling={"mode": "External"})
    running.await_condition("external", "Ready", seconds=60)

    running.plane.kubectl("scale", "delaytopic", "external", "-n", running.team, "--replicas=2")
    await_replicas(running, "external", 2)
    topic = await_object(
        running.client,
        running.path("external"),
        lambda found: bool(found and found["status"].get("relay", {}).get("readyReplicas") == 2),
        seconds=60,
    )
    scale = running.client.get(f"{running.path('external')}/scale")

    assert topic is not None
    labels = selector(Key(running.team, "external"))
    assert (scale["spec"]["replicas"], scale["status"]["replicas"]) == (2, 2)
    assert dict(pair.split("=") for pair in scale["status"]["selector"].split(",")) == labels
    active = running.condition("external", "AutoscalingActive")
    assert (active["status"], active["reason"]) == ("False", "ExternalScaler")


def test_an_autoscaler_of_kubernetes_may_name_a_delay_topic(running: Platform) -> None:
    running.apply_topic("hpa", autoscaling={"mode": "External"})
    target = {"apiVersion": "delaytopic.dev/v1beta1", "kind": "DelayTopic", "name": "hpa"}
    metric = {"type": "External", "external": {"metric": {"name": "due"}, "target": {"type": "Value", "value": "1k"}}}

    made = running.client.create(
        f"/apis/autoscaling/v2/namespaces/{running.team}/horizontalpodautoscalers",
        {"metadata": {"name": "hpa"}, "spec": {"scaleTargetRef": target, "maxReplicas": 4, "metrics": [metric]}},
    )

    assert made["spec"]["scaleTargetRef"] == target


def test_fixed_is_as_written_and_stays_so(running: Platform) -> None:
    running.apply_topic("fixed", autoscaling={"mode": "Fixed"}, relay={"replicas": 2})
    running.await_condition("fixed", "Ready", seconds=60)

    running.client.merge(deployment(running, "fixed"), {"spec": {"replicas": 1}})
    await_replicas(running, "fixed", 2)
    wait_for(lambda: events(running, "fixed", "ScaledByHand"), running.operator.why)
    running.apply_topic("fixed", autoscaling={"mode": "Fixed"}, relay={"replicas": 1})
    await_replicas(running, "fixed", 1)

    assert running.condition("fixed", "AutoscalingActive")["reason"] == "Fixed"
    assert events(running, "fixed", "ScaledByHand") == [
        "Somebody changed the relays' Deployment from 2 to 1: it is set back, as autoscaling.mode is Fixed; change "
        "relay.replicas instead."
    ]


def test_relays_are_there_before_a_burst_that_is_known_and_gone_after_it(running: Platform, tmp_path: Path) -> None:
    autoscaling = {"scaleDownStabilization": "5s", "lookAhead": "5m"}
    running.apply_topic("burst", autoscaling=autoscaling)
    running.await_condition("burst", "Ready", seconds=60)
    team = AppTeam.of(running, "burst", tmp_path)

    due_ms = team.send_due_in([AHEAD_MS] * BURST)[0]
    scaled = await_object(
        running.client,
        deployment(running, "burst"),
        lambda found: bool(found and found["spec"]["replicas"] > 1),
        seconds=AHEAD_MS / 1_000,
    )
    scaled_ms = now_ms()
    # The Deployment comes first, status and events after it.
    wait_for(lambda: running.topic("burst")["status"]["scaling"]["reason"] == "DueSoon", running.operator.why)
    verdict = team.audited(AHEAD_MS / 1_000 + 60)
    await_replicas(running, "burst", 1, seconds=120)

    assert scaled is not None
    assert scaled_ms < due_ms - 20_000
    assert (verdict.faults, verdict.delivered) == ({}, BURST)
    # How many steps lead up depends on how fast the records are seen to arrive; the last one leads down.
    wait_for(
        lambda: any(" to 1 relay: " in note for note in events(running, "burst", "RelayScaled")), running.operator.why
    )
    notes = events(running, "burst", "RelayScaled")
    assert any(note.startswith("From 1 to ") for note in notes), notes


def test_that_the_relays_allowed_will_not_do_is_said_before_it_is_late(running: Platform, tmp_path: Path) -> None:
    running.apply_topic("tight", autoscaling={"maxReplicas": 1, "lookAhead": "5m"})
    running.await_condition("tight", "Ready", seconds=60)
    team = AppTeam.of(running, "tight", tmp_path)

    due_ms = team.send_due_in([AHEAD_MS] * BURST)[0]
    running.await_condition("tight", "CapacitySufficient", "False", reason="CapacityInsufficient", seconds=60)
    told_ms = now_ms()

    assert told_ms < due_ms - 20_000
    assert running.condition("tight", "Ready")["status"] == "True"
    assert [note[:21] for note in events(running, "tight", "CapacityInsufficient")] == ["Records will be up to"]


def test_none_runs_while_nothing_is_pending_and_a_new_record_wakes_one(impatient: Platform, tmp_path: Path) -> None:
    autoscaling = {"minReplicas": 0, "scaleToZero": "WhenNothingPending", "scaleDownStabilization": "0s"}
    impatient.apply_topic("sleeper", autoscaling=autoscaling)
    impatient.await_condition("sleeper", "Ready", seconds=60)
    team = AppTeam.of(impatient, "sleeper", tmp_path)
    team.send_due_in([0])
    first = team.audited()

    await_replicas(impatient, "sleeper", 0, seconds=180)
    asleep = impatient.await_condition("sleeper", "RelayAvailable", reason="ScaledToZero", seconds=60)
    team.send_due_in([1_000])
    await_replicas(impatient, "sleeper", 1)
    verdict = team.audited(60)

    assert (first.faults, first.delivered) == ({}, 1)
    assert next(each for each in asleep["status"]["conditions"] if each["type"] == "Ready")["status"] == "True"
    assert (verdict.faults, verdict.delivered) == ({}, 2)


def test_a_due_time_wakes_relays_that_somebody_put_to_sleep(impatient: Platform, tmp_path: Path) -> None:
    autoscaling = {"minReplicas": 0, "scaleToZero": "WhenNothingPending", "scaleDownStabilization": "0s"}
    impatient.apply_topic("alarm", autoscaling=autoscaling)
    impatient.await_condition("alarm", "Ready", seconds=60)
    team = AppTeam.of(impatient, "alarm", tmp_path)
    due_ms = team.send_due_in([150_000])[0]
    await_object(
        impatient.client,
        impatient.path("alarm"),
        lambda found: bool(found and found["status"].get("backlog", {}).get("nextDue")),
        seconds=40,
    )

    impatient.client.merge(deployment(impatient, "alarm"), {"spec": {"replicas": 0}})
    impatient.await_condition("alarm", "RelayAvailable", reason="ScaledToZero")
    await_replicas(impatient, "alarm", 1, seconds=150)
    woken_ms = now_ms()
    verdict = team.audited(160)

    assert 20_000 < due_ms - woken_ms < 120_000
    assert (verdict.faults, verdict.delivered) == ({}, 1)
