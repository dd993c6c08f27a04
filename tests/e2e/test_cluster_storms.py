"""Pods killed under load, and an API server that is away: nothing is lost, doubled or early, and delivery goes on."""

from __future__ import annotations

from contextlib import AbstractContextManager

import pytest
from playground.cluster.clusters import Cluster
from playground.cluster.errors import NotPossible
from playground.platform.installation import INFRASTRUCTURE, OPERATOR_NAMESPACE, RELAY_NAMESPACE
from playground.platform.installed_platform import OPERATORS, InstalledPlatform
from playground.platform.moments import await_audit_of, await_moment, now_ms
from playground.traffic.plan import Plan
from tests.e2e.support.promises import PromiseBroken
from tests.e2e.support.storm import Victim, storm, strike_all
from tests.e2e.support.team import MakeTeam, Sending, Team
from urllib3.exceptions import HTTPError

from delaytopic_audit.model.report import ObjectiveName

pytestmark = pytest.mark.e2e

SEED = 20_261_122
STORM_MS = 60_000
PER_SECOND = 1_000
KILLS = {"relay": 3, "operator": 2, "redis": 1, "kafka": 1}
LATENESS_MS = 15_000
PROMISES = (ObjectiveName.COMPLETE, ObjectiveName.UNIQUE, ObjectiveName.NOT_EARLY)
"""A lateness that a slow machine does not explain."""
AWAY_MS = 60_000
HEADLESS = 7_500
"""Sent for as long as the API server takes to go, is away, and begins to come back."""


@pytest.fixture(scope="module")
def team(make_team: MakeTeam) -> Team:
    """Its relays are two, so that the death of one is a hand-over and not a restart."""
    team = make_team("storm")
    # How late records are while brokers or Redis are away is not what the audit is asked here.
    slo = {"lateness": f"{LATENESS_MS}ms", "objective": "1%"}
    team.apply("stormy", autoscaling={"mode": "Fixed"}, relay={"replicas": 2}, slo=slo)
    team.await_ready("stormy")
    return team


@pytest.fixture(scope="module")
def victims(team: Team) -> dict[str, Victim]:
    """Whom a storm may strike."""
    relays = {"delaytopic.dev/namespace": team.namespace, "app.kubernetes.io/component": "relay"}
    return {
        "relay": Victim(RELAY_NAMESPACE, relays),
        "operator": Victim(OPERATOR_NAMESPACE, OPERATORS),
        "redis": Victim(INFRASTRUCTURE, {"app": "redis"}),
        "kafka": Victim(INFRASTRUCTURE, {"app": "kafka"}),
    }


@pytest.fixture(scope="module")
def stormed(
    cluster: Cluster, platform: InstalledPlatform, team: Team, victims: dict[str, Victim]
) -> tuple[Sending, list[str]]:
    """Records that were sent while pods were killed, and the pods that were."""
    records = STORM_MS // 1_000 * PER_SECOND
    plan = Plan("storm", records, PER_SECOND, delays_ms=(1_000, 40_000), cancel_every=100, seed=SEED)
    sending = team.start_sending("stormy", plan)
    killed = strike_all(platform.client, cluster, now_ms(), storm(SEED, STORM_MS, KILLS), victims, SEED)
    return sending, killed


def without_api_server(cluster: Cluster) -> AbstractContextManager[None]:
    """The block to be; the test is skipped, and says so, where nobody may stop the API server."""
    try:
        return cluster.without_api_server()
    except NotPossible as reason:
        pytest.skip(f"NOT TESTED: {reason}")


@pytest.mark.smoke
def test_nothing_is_lost_doubled_or_early_while_pods_are_killed_under_load(
    stormed: tuple[Sending, list[str]],
) -> None:
    sending, killed = stormed

    verdict = sending.verdict(settle_ms=60_000, patience_s=180, quiet_s=5)

    assert {name.partition("/")[0] for name in killed} == set(KILLS)
    assert verdict["records"] == sending.plan.records, verdict


def test_delivery_goes_on_while_the_api_server_is_away_for_a_minute(
    cluster: Cluster, platform: InstalledPlatform, team: Team
) -> None:
    away = without_api_server(cluster)
    sending = team.start_sending("stormy", Plan("headless", HEADLESS, per_second=100, delays_ms=(1_000, 20_000)))
    reading = sending.start_reading()  # a pod that is asked for after an outage comes up to a minute later

    with away:
        with pytest.raises(HTTPError):  # it is away, in whatever way
            platform.client.get("/readyz")
        await_moment(now_ms() + AWAY_MS)
    verdict = reading.verdict()

    assert verdict["records"] == HEADLESS, verdict
    assert verdict["late_ms"]["max"] < 10_000, verdict


def test_the_audit_finds_nothing_lost_doubled_or_early_in_all_of_it(
    platform: InstalledPlatform, team: Team, stormed: tuple[Sending, list[str]]
) -> None:
    await_audit_of(stormed[0].last_due_ms, lateness_ms=LATENESS_MS)

    condition = platform.audit(team.namespace, "stormy", "storm")

    if any(f"{promise}:" in condition["message"] for promise in PROMISES):
        raise PromiseBroken(condition["message"])
    assert condition["reason"] == "Met", condition
    assert "every one arrived or is accounted for, once" in condition["message"]
