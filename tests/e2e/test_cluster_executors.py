"""An audit in mode Kubernetes on a real cluster: its executors are pods, and one of them is killed at work."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playground.cluster.clusters import Cluster
from playground.cluster.errors import NotPossible
from playground.kube.kube_client import Object
from playground.kube.pods import pods_of
from playground.platform.installation import LEDGER, LEDGER_ON_NODE, RELAY_NAMESPACE
from playground.platform.installed_platform import InstalledPlatform
from playground.platform.moments import await_audit_of
from playground.traffic.plan import Plan
from tests.e2e.support.storm import crash, is_running
from tests.e2e.support.team import MakeTeam, Sending, Team

from delaytopic_process.waiting import wait_until

pytestmark = pytest.mark.e2e

NAME = "reminders"
RECORDS = 20_000
PER_SECOND = 1_000
EXECUTORS = 2
LATENESS_MS = 15_000
"""One that a slow machine does not exceed."""
PATIENCE_S = 240


@pytest.fixture(scope="module")
def team(cluster: Cluster, platform: InstalledPlatform, make_team: MakeTeam) -> Iterator[Team]:
    """Its audits have executors until the end of this module, and a ledger on the one node."""
    try:
        cluster.exec_on_node("install", "--directory", "--mode=0777", LEDGER_ON_NODE)
    except NotPossible as reason:
        pytest.skip(f"NOT TESTED: {reason}")
    platform.install_executors(EXECUTORS)
    team = make_team("executors")
    team.apply(NAME, slo={"lateness": f"{LATENESS_MS}ms"})
    team.await_ready(NAME)
    yield team
    platform.install()
    # Both go once the audit's pods have gone with their DelayTopic: ended ones hold a claim, too.
    platform.kubectl("delete", f"pvc/{LEDGER}", "-n", RELAY_NAMESPACE, "--wait=false")
    platform.kubectl("delete", f"pv/{LEDGER}", "--wait=false")


@pytest.fixture(scope="module")
def sent(team: Team) -> Sending:
    """Records that have arrived."""
    sending = team.send(NAME, Plan("executors", RECORDS, PER_SECOND, delays_ms=(1_000, 5_000)))
    sending.verdict()
    return sending


def executors_of(team: Team) -> list[Object]:
    """Return the executor pods of the audit of the team's class that run."""
    pods = pods_of(team.client, RELAY_NAMESPACE, **{"app.kubernetes.io/component": "audit-executor"})
    return [pod for pod in pods if is_running(pod)]


def test_an_audit_finds_every_record_though_one_of_its_executor_pods_is_killed(
    cluster: Cluster, platform: InstalledPlatform, team: Team, sent: Sending
) -> None:
    def has_sorted() -> bool:
        return " sorting " in platform.kubectl.run("logs", "-n", RELAY_NAMESPACE, f"job/{job}").stdout

    await_audit_of(sent.last_due_ms, lateness_ms=LATENESS_MS)

    job = platform.start_audit(NAME, "killed")
    assert wait_until(lambda: len(executors_of(team)) == EXECUTORS, timeout_seconds=PATIENCE_S)
    assert wait_until(has_sorted, timeout_seconds=PATIENCE_S)
    crash(cluster, executors_of(team)[0])
    condition = platform.audited(team.namespace, NAME, job)

    everything = f"{RECORDS:,} records: every one arrived or is accounted for, once, and on time as agreed."
    everything += " 100% on time, of 99.9%; error budget left: 100%."
    assert (condition["status"], condition["reason"], condition["message"]) == ("True", "Met", everything)
    assert wait_until(lambda: executors_of(team) == [], timeout_seconds=PATIENCE_S)
