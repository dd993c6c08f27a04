"""The audit of all DelayTopics of a class on a real cluster: one pod, which is killed once, and a verdict on each."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playground.cluster.clusters import Cluster
from playground.kube.awaiting import condition_of
from playground.kube.kube_client import Object
from playground.kube.pods import pods_of
from playground.platform.installation import RELAY_NAMESPACE, delay_class
from playground.platform.installed_platform import InstalledPlatform
from playground.platform.moments import await_audit_of
from playground.traffic.plan import Plan
from tests.e2e.support.storm import crash, is_running
from tests.e2e.support.team import MakeTeam, Sending, Team

from delaytopic_process.waiting import wait_until

pytestmark = pytest.mark.e2e

TOGETHER = "together"
BUSY = "busy"
BLIND = "blind"
"""A DelayTopic that cannot be judged: no broker's clock says when its records arrived."""
IDLE = [f"idle-{number:02}" for number in range(48)]
"""Without relays: an audit has no need of them."""
RECORDS = 2_000
PER_SECOND = 200
LATENESS_MS = 15_000
"""One that a slow machine does not exceed."""
PATIENCE_S = 240


@pytest.fixture(scope="module")
def team(platform: InstalledPlatform, make_team: MakeTeam) -> Iterator[Team]:
    """Fifty DelayTopics of a class of their own, which goes again, as classes are everybody's."""
    together = delay_class()
    together["metadata"] = {"name": TOGETHER}
    together["spec"]["defaults"] = {**together["spec"].get("defaults", {}), "partitions": 1}
    platform.kubectl.apply([together])
    team = make_team(TOGETHER)
    given = {"delayClassName": TOGETHER, "slo": {"lateness": f"{LATENESS_MS}ms"}}
    team.apply(BUSY, **given)
    nobody = {"autoscaling": {"mode": "Fixed"}, "relay": {"replicas": 0}}
    clocks = {"topic": team.target(BLIND), "config": {"message.timestamp.type": "CreateTime"}}
    blind = team.document(BLIND, **given, **nobody, target=clocks)
    platform.kubectl.apply([blind, *(team.document(name, **given, **nobody) for name in IDLE)])
    team.await_ready(BUSY)
    for name in (BLIND, *IDLE):
        team.await_condition(name, "TopicsReady", seconds=240)
    yield team
    platform.kubectl("delete", "delaytopic", "--all", "-n", team.namespace, "--wait=false")
    for name in (BUSY, BLIND, *IDLE):
        team.await_gone(name, seconds=240)
    platform.kubectl("delete", "delayclass", TOGETHER, "--timeout=1m")


@pytest.fixture(scope="module")
def sent(team: Team) -> Sending:
    """Records that have arrived."""
    sending = team.send(BUSY, Plan(TOGETHER, RECORDS, PER_SECOND, delays_ms=(1_000, 5_000)))
    sending.verdict()
    return sending


def pods_of_job(team: Team, job: str) -> list[Object]:
    """Return the pods that a Job has made."""
    return pods_of(team.client, RELAY_NAMESPACE, **{"batch.kubernetes.io/job-name": job})


def test_each_of_fifty_delay_topics_has_its_verdict_though_the_pod_is_killed_once_and_one_cannot_be_judged(
    cluster: Cluster, platform: InstalledPlatform, team: Team, sent: Sending
) -> None:
    def has_sorted() -> bool:
        return " sorting " in platform.kubectl.run("logs", "-n", RELAY_NAMESPACE, f"job/{job}").stdout

    await_audit_of(sent.last_due_ms, lateness_ms=LATENESS_MS)

    job = platform.start_audit(TOGETHER, "killed", TOGETHER)
    assert wait_until(has_sorted, timeout_seconds=PATIENCE_S, poll_seconds=1)
    (pod,) = filter(is_running, pods_of_job(team, job))
    crash(cluster, pod)
    condition = platform.audited(team.namespace, BUSY, job)

    everything = f"{RECORDS:,} records: every one arrived or is accounted for, once, and on time as agreed."
    everything += " 100% on time, of 99.9%; error budget left: 100%."
    assert (condition["status"], condition["reason"], condition["message"]) == ("True", "Met", everything)
    assert {name: team.topic(name)["status"]["slo"]["verdict"] for name in (BLIND, *IDLE)} == {
        BLIND: "CannotJudge",
        **dict.fromkeys(IDLE, "Met"),
    }
    cannot = condition_of(team.topic(BLIND), "SLOMet")
    assert (cannot["status"], cannot["reason"]) == ("Unknown", "CannotJudge")
    assert "message.timestamp.type=CreateTime" in cannot["message"]
    assert len(pods_of_job(team, job)) == 2
