"""One audit for all DelayTopics of a class on a real cluster: one pod, whose verdicts the operator asks for."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playground.kube.awaiting import await_object, condition_of
from playground.kube.kube_client import Object
from playground.kube.pods import pods_of
from playground.platform.installation import RELAY_NAMESPACE, delay_class
from playground.platform.installed_platform import InstalledPlatform
from playground.traffic.plan import Plan
from tests.e2e.support.team import MakeTeam, Sending, Team

pytestmark = pytest.mark.e2e

TOGETHER = "together"
BUSY, IDLE = "busy", "idle"
RECORDS = 2_000
PER_SECOND = 200
LATENESS_MS = 15_000
"""One that a slow machine does not exceed."""
PATIENCE_S = 420
"""For Spark to start beside everything else, and for rounds of a minute until the last record can be judged."""


@pytest.fixture(scope="module")
def team(platform: InstalledPlatform, make_team: MakeTeam) -> Iterator[Team]:
    """Two DelayTopics of a class of their own, which goes again, as classes are everybody's."""
    together = delay_class()
    together["metadata"] = {"name": TOGETHER}
    together["spec"]["audit"] = {"every": "1m"}
    platform.kubectl.apply([together])
    team = make_team(TOGETHER)
    for name in (BUSY, IDLE):
        team.apply(name, delayClassName=TOGETHER, slo={"lateness": f"{LATENESS_MS}ms"})
    team.await_ready(BUSY, IDLE)
    yield team
    platform.kubectl("delete", "delaytopic", "--all", "-n", team.namespace, "--timeout=2m")
    platform.kubectl("delete", "delayclass", TOGETHER, "--timeout=1m")


@pytest.fixture(scope="module")
def sent(team: Team) -> Sending:
    """Records that have arrived."""
    sending = team.send(BUSY, Plan(TOGETHER, RECORDS, PER_SECOND, delays_ms=(1_000, 5_000)))
    sending.verdict()
    return sending


def audit_pods(team: Team) -> list[Object]:
    """Return the pods of the class's audit."""
    pods = pods_of(team.client, RELAY_NAMESPACE, **{"app.kubernetes.io/name": "delaytopic-audit"})
    return [pod for pod in pods if pod["metadata"].get("annotations", {}).get("delaytopic.dev/delay-class") == TOGETHER]


@pytest.mark.usefixtures("sent")
def test_one_pod_tells_the_verdict_on_each_delay_topic_of_a_class(team: Team) -> None:
    def has_judged_all(found: Object | None) -> bool:
        said = str(condition_of(found or {}, "SLOMet").get("message", ""))
        return said.startswith(f"{RECORDS:,} records: ")

    busy = await_object(team.client, team.path(BUSY), has_judged_all, seconds=PATIENCE_S)

    assert busy is not None
    condition = condition_of(busy, "SLOMet")
    everything = f"{RECORDS:,} records: every one arrived or is accounted for, once, and on time as agreed."
    everything += " 100% on time, of 99.9%; error budget left: 100%."
    assert (condition["status"], condition["reason"], condition["message"]) == ("True", "Met", everything)
    assert team.topic(IDLE)["status"]["slo"]["verdict"] == "Met"
    (pod,) = audit_pods(team)
    assert [each["restartCount"] for each in pod["status"]["containerStatuses"]] == [0]
