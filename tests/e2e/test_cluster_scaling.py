"""The number of relays on a real cluster follows the due times ahead, or an autoscaler."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from playground.kube.awaiting import await_object
from playground.kube.kube_client import Object
from playground.platform.moments import now_ms
from playground.traffic.plan import Plan
from tests.e2e.support.team import MakeTeam, Team

pytestmark = pytest.mark.e2e

BURST = 40_000
"""Due at one moment: more than a relay is taken to deliver in a few seconds, before its rate was measured."""
AHEAD_MS = 70_000


@pytest.fixture(scope="module")
def team(make_team: MakeTeam) -> Team:
    """With two DelayTopics that are ready."""
    team = make_team("scale")
    team.apply("burst", autoscaling={"scaleDownStabilization": "5s", "lookAhead": "5m"})
    team.apply("external", autoscaling={"mode": "External"})
    team.await_ready("burst", "external")
    return team


def await_replicas(team: Team, name: str, holds: range, seconds: float) -> Object:
    """The Deployment as soon as it asks for a number of relays in that range."""
    path = team.platform.relay_deployment(team.namespace, name)
    found = await_object(
        team.client, path, lambda found: bool(found and found["spec"]["replicas"] in holds), seconds=seconds
    )
    return found or {}


def why_scale(team: Team, name: str, kubectl: Path, kubeconfig: Path) -> str:
    """Return what `kubectl delaytopic why-scale` prints."""
    command = [sys.executable, "-m", "delaytopic_cli.kubectl", "why-scale", name, "-n", team.namespace]
    environment = {**os.environ, "PATH": f"{kubectl.parent}:{os.environ['PATH']}"}
    answer = subprocess.run(
        [*command, f"--kubeconfig={kubeconfig}"],
        capture_output=True,
        text=True,
        env=environment,
        check=True,
        timeout=60,
    )
    return answer.stdout


def test_relays_come_before_a_burst_that_is_known_go_after_it_and_why_is_told(
    team: Team, kubectl_program: Path, kubeconfig: Path
) -> None:
    sending = team.send("burst", Plan("burst", BURST, delays_ms=(AHEAD_MS, AHEAD_MS), from_start=True))
    await_replicas(team, "burst", range(2, 5), seconds=AHEAD_MS / 1_000)
    scaled_ms = now_ms()
    told = why_scale(team, "burst", kubectl_program, kubeconfig)
    verdict = sending.verdict()
    await_replicas(team, "burst", range(1, 2), seconds=180)

    assert verdict["arrived"] == BURST, verdict
    assert scaled_ms < sending.last_due_ms - 20_000
    assert "Needs, in relays:" in told
    assert f"{BURST:,} records" in told, told


def test_an_autoscaler_of_kubernetes_may_name_a_delay_topic_and_scale_it(team: Team) -> None:
    """Scale as an HPA would: it is accepted as one's target, and the same subresource is written.

    No metrics server runs here, so that no HPA decides anything itself.
    """
    target = {"apiVersion": "delaytopic.dev/v1beta1", "kind": "DelayTopic", "name": "external"}
    metric = {"type": "External", "external": {"metric": {"name": "due"}, "target": {"type": "Value", "value": "1k"}}}
    team.client.create(
        f"/apis/autoscaling/v2/namespaces/{team.namespace}/horizontalpodautoscalers",
        {"metadata": {"name": "hpa"}, "spec": {"scaleTargetRef": target, "maxReplicas": 4, "metrics": [metric]}},
    )

    team.platform.kubectl("scale", "delaytopic", "external", "-n", team.namespace, "--replicas=2")
    await_replicas(team, "external", range(2, 3), seconds=60)
    team.platform.await_relays(team.namespace, "external", 2)
    scale = await_object(
        team.client,
        team.path("external"),
        lambda found: bool(found and found["status"].get("relay", {}).get("readyReplicas") == 2),
        seconds=60,
    )
    active = team.await_condition("external", "AutoscalingActive", "False", reason="ExternalScaler")

    assert scale is not None
    assert active["status"]["relay"]["replicas"] == 2
