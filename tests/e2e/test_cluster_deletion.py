"""Deleting on a real cluster: what is pending is delivered or kept, and comes to nobody twice."""

from __future__ import annotations

import pytest
from tests.cluster.awaiting import await_gone, await_object
from tests.cluster.kube_client import Object
from tests.e2e.support.installed_platform import InstalledPlatform
from tests.e2e.support.moments import now_ms
from tests.e2e.support.team import MakeTeam, Team
from tests.e2e.traffic.plan import Plan

pytestmark = pytest.mark.e2e

RECORDS = 200
SHORT_DRAIN = {"drainTimeout": "5s"}


@pytest.fixture(scope="module")
def team(make_team: MakeTeam) -> Team:
    """With three DelayTopics that are ready."""
    team = make_team("delete")
    team.apply("drained")
    team.apply("retained", deletionPolicy="Retain")
    team.apply("pruned", **SHORT_DRAIN)
    team.await_ready("drained", "retained", "pruned")
    return team


def waiting(run: str, delays_ms: tuple[int, int]) -> Plan:
    """Records that still wait when they were all counted."""
    return Plan(run, RECORDS, delays_ms=delays_ms, from_start=True)


def is_being_deleted(found: Object | None) -> bool:
    return found is not None and "deletionTimestamp" in found["metadata"]


def no_relays_of(team: Team, name: str) -> None:
    """Until the Deployment is gone."""
    await_gone(team.client, team.platform.relay_deployment(team.namespace, name), seconds=60)


def test_a_drain_delivers_what_is_pending_at_its_own_time_and_then_goes(team: Team) -> None:
    sending = team.send("drained", waiting("drained", (18_000, 24_000)))
    team.await_pending("drained", RECORDS)

    team.delete("drained")
    team.await_gone("drained")
    gone_ms = now_ms()
    no_relays_of(team, "drained")
    verdict = sending.verdict()

    assert (verdict["arrived"], verdict["faults"]) == (RECORDS, {}), verdict
    assert gone_ms >= sending.last_due_ms


def test_what_is_retained_goes_on_when_the_same_object_is_applied_again(team: Team) -> None:
    sending = team.send("retained", waiting("retained", (15_000, 22_000)))
    team.await_pending("retained", RECORDS)

    team.delete("retained")
    team.await_gone("retained", seconds=5)
    no_relays_of(team, "retained")
    team.apply("retained", deletionPolicy="Retain")
    verdict = sending.verdict(patience_s=90)

    assert (verdict["arrived"], verdict["faults"]) == (RECORDS, {}), verdict


def test_an_accidental_prune_and_the_next_sync_lose_nothing(team: Team) -> None:
    sending = team.send("pruned", waiting("pruned", (18_000, 28_000)))
    team.await_pending("pruned", RECORDS)

    team.platform.kubectl("delete", "delaytopic", "pruned", "-n", team.namespace, "--wait=false")
    team.apply("pruned", **SHORT_DRAIN)
    await_object(team.client, team.path("pruned"), lambda found: not is_being_deleted(found), seconds=90)
    team.apply("pruned", **SHORT_DRAIN)
    verdict = sending.verdict(patience_s=90)

    assert (verdict["arrived"], verdict["faults"]) == (RECORDS, {}), verdict


def test_a_namespace_deleted_under_load_does_not_hang_and_nothing_comes_twice(
    platform: InstalledPlatform, make_team: MakeTeam
) -> None:
    team = Team(platform, make_team("goes").namespace, senders=make_team("stays").namespace)
    team.apply("loaded")
    team.await_ready("loaded")
    sending = team.start_sending("loaded", Plan("loaded", 1_500, per_second=100, delays_ms=(1_000, 10_000)))
    team.await_backlog("loaded", 100)

    platform.client.delete(f"/api/v1/namespaces/{team.namespace}")
    await_gone(platform.client, f"/api/v1/namespaces/{team.namespace}", seconds=90)
    no_relays_of(team, "loaded")
    verdict = sending.verdict(patience_s=1)

    # What was sent after the end waits on the source topic, untouched.
    assert verdict["faults"].keys() <= {"lost"}, verdict
    assert verdict["arrived"] > 0
