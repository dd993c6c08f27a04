"""Relays that die under load on a real cluster: how long nothing of theirs arrives, which the closing report prints."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import pytest
from playground.cluster.clusters import Cluster
from playground.cluster.errors import NotPossible
from playground.kube.kube_client import Object
from playground.platform.installation import RELAY_NAMESPACE, delay_class
from playground.platform.installed_platform import InstalledPlatform
from playground.platform.moments import await_moment, now_ms
from playground.traffic.plan import Plan
from tests.e2e.support.storm import crash, is_running, kill
from tests.e2e.support.team import MakeTeam, Reading, Team

pytestmark = pytest.mark.e2e

PATIENT = "patient"
SESSION_MS = 60_000
"""Long enough that no death is noticed by the end of a session."""
NOTICED_MS = SESSION_MS // 2
"""A gap that a slow machine does not exceed, and a session that has to end does."""
OF_ITS_OWN = {"requests": {"cpu": "150m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}}
"""The share by which a relay that starts on a busy node is not the last to be given a processor."""
PER_SECOND = 2_000
RECORDS = 40_000
DELAYS_MS = (1_000, 3_000)
UNTIL_THE_DEATH_MS = 8_000
"""From the first record on, so that all partitions deliver by then."""
FIRST_LINES = ("--timestamps", "--limit-bytes=3000")
"""Of a log: what a relay writes when it starts, and when."""

Record = Callable[[str, object], None]


@pytest.fixture(scope="module")
def team(platform: InstalledPlatform, make_team: MakeTeam) -> Iterator[Team]:
    """Two relays, whose class lets sessions last a minute; it goes again, as classes are everybody's."""
    patient = delay_class()
    patient["metadata"] = {"name": PATIENT}
    patient["spec"]["relay"] = {"sessionTimeout": f"{SESSION_MS // 1_000}s", "resources": OF_ITS_OWN}
    platform.kubectl.apply([patient])
    team = make_team("crashes")
    team.apply("steady", delayClassName=PATIENT, autoscaling={"mode": "Fixed"}, relay={"replicas": 2})
    team.await_ready("steady")
    platform.await_relays(team.namespace, "steady", 2)
    yield team
    platform.kubectl("delete", "delaytopic", "steady", "-n", team.namespace, "--timeout=2m")
    platform.kubectl("delete", "delayclass", PATIENT, "--timeout=1m")


def reading_until_the_death(team: Team, run: str) -> Reading:
    """Send and read a run; it is time for the death when this returns."""
    sending = team.start_sending("steady", Plan(run, RECORDS, PER_SECOND, DELAYS_MS))
    reading = sending.start_reading()
    await_moment(now_ms() + UNTIL_THE_DEATH_MS)
    return reading


def container_of(platform: InstalledPlatform, pod: Object) -> Object:
    """Return what the API server knows by now of the pod's container."""
    found = platform.client.get(f"/api/v1/namespaces/{RELAY_NAMESPACE}/pods/{pod['metadata']['name']}")
    container: Object = found["status"]["containerStatuses"][0]
    return container


def test_a_relay_whose_pod_is_deleted_by_force_is_replaced_before_its_session_ends(
    cluster: Cluster, platform: InstalledPlatform, team: Team, record_property: Record
) -> None:
    reading = reading_until_the_death(team, "forced")

    kill(platform.client, cluster, next(pod for pod in platform.relays(team.namespace, "steady") if is_running(pod)))
    verdict = reading.verdict()

    record_property("silent_ms", verdict["silent_ms"])
    record_property("late_ms", verdict["late_ms"])
    assert verdict["arrived"] == RECORDS, verdict
    assert verdict["late_ms"]["max"] < NOTICED_MS, verdict


def test_a_relay_that_is_started_again_in_its_pod_goes_on_before_its_session_ends(
    cluster: Cluster, platform: InstalledPlatform, team: Team, record_property: Record
) -> None:
    platform.await_relays(team.namespace, "steady", 2)
    reading = reading_until_the_death(team, "in-place")
    pod = next(pod for pod in platform.relays(team.namespace, "steady") if is_running(pod))

    crashed_at = datetime.now(UTC).isoformat()
    try:
        crash(cluster, pod)
    except NotPossible as reason:
        pytest.skip(f"NOT TESTED: {reason}")
    verdict = reading.verdict()

    container = container_of(platform, pod)
    record_property("silent_ms", verdict["silent_ms"])
    record_property("late_ms", verdict["late_ms"])
    record_property("crashed_at", crashed_at)
    record_property("seen_by_the_kubelet", {field: container[field] for field in ("lastState", "state")})
    record_property("logged", platform.kubectl("logs", pod["metadata"]["name"], "-n", RELAY_NAMESPACE, *FIRST_LINES))
    assert container["restartCount"] == 1
    assert verdict["arrived"] == RECORDS, verdict
    assert verdict["late_ms"]["max"] < NOTICED_MS, verdict
