"""Deleting on a real cluster: what is pending is delivered or kept, and comes to nobody twice."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple

import pytest
from playground.kube.awaiting import await_gone, await_object
from playground.kube.kube_client import Object
from playground.platform.installed_platform import InstalledPlatform
from playground.platform.moments import now_ms
from playground.traffic.plan import Plan
from tests.e2e.support.team import MakeTeam, Team

pytestmark = pytest.mark.e2e

RECORDS = 200
SHORT_DRAIN = {"drainTimeout": "5s"}


class Outcome(NamedTuple):
    """The reader's result, when the last record was due, and when the deleted object was gone."""

    verdict: dict[str, Any]
    last_due_ms: int
    gone_ms: int


Outcomes = dict[str, Future[Outcome]]


@pytest.fixture(scope="module")
def team(make_team: MakeTeam) -> Team:
    """With three DelayTopics that are ready."""
    team = make_team("delete")
    team.apply("drained")
    team.apply("retained", deletionPolicy="Retain")
    team.apply("pruned", **SHORT_DRAIN)
    team.await_ready("drained", "retained", "pruned")
    return team


@pytest.fixture(scope="module")
def doomed(platform: InstalledPlatform, make_team: MakeTeam) -> Team:
    """Its namespace is going to be deleted, and what sends is in another one."""
    team = Team(platform, make_team("goes").namespace, senders=make_team("stays").namespace)
    team.apply("loaded")
    team.await_ready("loaded")
    return team


@pytest.fixture(scope="module")
def outcomes(team: Team, doomed: Team) -> Iterator[Outcomes]:
    """Of all deletions, which happen at one time: each has to wait until its own records are due."""
    with ThreadPoolExecutor() as all_at_once:
        yield {
            "drained": all_at_once.submit(drain, team),
            "retained": all_at_once.submit(retain_and_apply_again, team),
            "pruned": all_at_once.submit(prune_and_sync, team),
            "namespace": all_at_once.submit(delete_the_namespace, doomed),
        }


def waiting(run: str, delays_ms: tuple[int, int]) -> Plan:
    """Records that still wait when they were all counted."""
    return Plan(run, RECORDS, delays_ms=delays_ms, from_start=True)


def is_being_deleted(found: Object | None) -> bool:
    return found is not None and "deletionTimestamp" in found["metadata"]


def no_relays_of(team: Team, name: str) -> None:
    """Until the Deployment is gone."""
    await_gone(team.client, team.platform.relay_deployment(team.namespace, name), seconds=60)


def drain(team: Team) -> Outcome:
    sending = team.send("drained", waiting("drained", (25_000, 31_000)))
    team.await_pending("drained", RECORDS)
    team.delete("drained")
    team.await_gone("drained")
    gone_ms = now_ms()
    no_relays_of(team, "drained")
    return Outcome(sending.verdict(), sending.last_due_ms, gone_ms)


def retain_and_apply_again(team: Team) -> Outcome:
    sending = team.send("retained", waiting("retained", (25_000, 32_000)))
    team.await_pending("retained", RECORDS)
    team.delete("retained")
    team.await_gone("retained", seconds=10)
    gone_ms = now_ms()
    no_relays_of(team, "retained")
    team.apply("retained", deletionPolicy="Retain")
    return Outcome(sending.verdict(patience_s=90), sending.last_due_ms, gone_ms)


def prune_and_sync(team: Team) -> Outcome:
    """The object that is applied while the old one still goes is gone with it; the next sync brings it back."""
    sending = team.send("pruned", waiting("pruned", (25_000, 35_000)))
    team.await_pending("pruned", RECORDS)
    team.platform.kubectl("delete", "delaytopic", "pruned", "-n", team.namespace, "--wait=false")
    team.apply("pruned", **SHORT_DRAIN)
    await_object(team.client, team.path("pruned"), lambda found: not is_being_deleted(found), seconds=90)
    gone_ms = now_ms()
    team.apply("pruned", **SHORT_DRAIN)
    return Outcome(sending.verdict(patience_s=90), sending.last_due_ms, gone_ms)


def delete_the_namespace(team: Team) -> Outcome:
    """While records are sent, and some wait."""
    sending = team.start_sending("loaded", Plan("loaded", 1_500, per_second=100, delays_ms=(1_000, 10_000)))
    team.await_backlog("loaded", 100)
    team.client.delete(f"/api/v1/namespaces/{team.namespace}")
    await_gone(team.client, f"/api/v1/namespaces/{team.namespace}", seconds=90)
    gone_ms = now_ms()
    no_relays_of(team, "loaded")
    # What was sent after the end waits on the source topic, untouched.
    return Outcome(sending.verdict(patience_s=1, besides={"lost"}), sending.last_due_ms, gone_ms)


def test_a_drain_delivers_what_is_pending_at_its_own_time_and_then_goes(outcomes: Outcomes) -> None:
    drained = outcomes["drained"].result()

    assert drained.verdict["arrived"] == RECORDS, drained
    assert drained.gone_ms >= drained.last_due_ms


def test_what_is_retained_goes_at_once_and_goes_on_when_the_same_object_is_applied_again(outcomes: Outcomes) -> None:
    retained = outcomes["retained"].result()

    assert retained.verdict["arrived"] == RECORDS, retained
    assert retained.gone_ms < retained.last_due_ms


def test_an_accidental_prune_and_the_next_sync_lose_nothing(outcomes: Outcomes) -> None:
    pruned = outcomes["pruned"].result()

    assert pruned.verdict["arrived"] == RECORDS, pruned


def test_a_namespace_deleted_under_load_does_not_hang_and_nothing_comes_twice(outcomes: Outcomes) -> None:
    loaded = outcomes["namespace"].result()

    assert loaded.verdict["arrived"] > 0, loaded
