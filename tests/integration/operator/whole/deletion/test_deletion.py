"""A DelayTopic is deleted by a person, by a prune and with its namespace: nothing that is pending is lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pytest
from playground.kube.awaiting import await_gone, await_object
from playground.kube.kube_client import Object
from tests.support.operator.app_team import AppTeam
from tests.support.operator.backlogs import (
    all_arrived,
    await_no_relays,
    await_nothing_taken_in,
    await_record,
    events_of,
    summary,
    with_pending,
)
from tests.support.operator.platform import Platform
from tests.support.operator.running_platform import RunPlatform
from tests.support.relay.records import now_ms

from delaytopic_operator.model.record import RecordState

pytestmark = [
    pytest.mark.integration,
    pytest.mark.kubernetes,
    pytest.mark.takes_long("the first test waits for all deletions, whose records become due at one time"),
]

SHORT_DRAIN: dict[str, Any] = {"drainTimeout": "10s"}


@dataclass(frozen=True)
class Outcome:
    """The records that arrived, and the cluster's report of the deletion."""

    summary: tuple[int, int, dict[str, int]]
    """As `tests.support.operator.backlogs.summary` has it."""
    due_ms: list[int]
    """Of the records that were pending when the DelayTopic was deleted."""
    delivered_when_gone: list[tuple[int, bool]]
    """Of the records that had arrived when the object was gone: when they were due, and whether they were not early."""
    gone_ms: int
    events: dict[str, str]
    """Their types, by reason, when the object was gone."""


@pytest.fixture(scope="module")
def platform(run_platform: RunPlatform) -> Iterator[Platform]:
    """One with two app teams, the second of which loses its namespace."""
    with run_platform("deletions", teams=2) as platform:
        platform.apply_topic("drained")
        platform.apply_topic("pruned", **SHORT_DRAIN)
        platform.of_team(1).apply_topic("orphaned")
        yield platform


@pytest.fixture(scope="module")
def outcomes(platform: Platform, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Future[Outcome]]:
    """Of all deletions, which happen at one time: each has to wait until its own records are due."""
    stories: dict[str, tuple[Callable[[Platform, AppTeam], Outcome], Platform]] = {
        "drained": (drain, platform),
        "pruned": (prune_and_apply_anew, platform),
        "orphaned": (delete_the_namespace, platform.of_team(1)),
    }
    with ThreadPoolExecutor(len(stories)) as threads:
        return {
            name: threads.submit(story, of_team, AppTeam.of(of_team, name, tmp_path_factory.mktemp(name)))
            for name, (story, of_team) in stories.items()
        }


def drain(platform: Platform, team: AppTeam) -> Outcome:
    due_ms = with_pending(platform, team, [15_000, 15_500, 16_000])
    platform.delete_topic(team.name)
    await_nothing_taken_in(platform, team.name)
    team.send_due_in([0, 0])
    platform.await_gone(team.name, seconds=60)
    await_no_relays(platform, team.name)
    gone_ms, delivered, events = now_ms(), delivered_by(team), types_of_events(platform, team)
    platform.apply_topic(team.name)
    return Outcome(summary(team.audited(60)), due_ms, delivered, gone_ms, events)


def prune_and_apply_anew(platform: Platform, team: AppTeam) -> Outcome:
    """The object that is applied while the old one still goes is gone with it; the next sync brings it back."""
    # The first is due within the drain, and late enough that a busy machine shows it as pending before.
    due_ms = with_pending(platform, team, [12_000, 28_000])
    platform.delete_topic(team.name)
    platform.apply_topic(team.name, **SHORT_DRAIN)
    await_object(platform.client, platform.path(team.name), is_not_going, seconds=60)
    gone_ms, delivered, events = now_ms(), delivered_by(team), types_of_events(platform, team)
    platform.apply_topic(team.name, **SHORT_DRAIN)
    team.send_due_in([1_000])
    return Outcome(summary(team.audited(60)), due_ms, delivered, gone_ms, events)


def is_not_going(found: Object | None) -> bool:
    return found is None or "deletionTimestamp" not in found["metadata"]


def delete_the_namespace(platform: Platform, team: AppTeam) -> Outcome:
    due_ms = with_pending(platform, team, [15_000, 15_500, 16_000])
    namespace = f"/api/v1/namespaces/{platform.team}"
    platform.client.delete(namespace)
    await_gone(platform.client, namespace, seconds=90)
    gone_ms, delivered = now_ms(), delivered_by(team)
    arrived = summary(team.audited(60))
    await_no_relays(platform, team.name)
    assert await_record(platform, team.name, RecordState.RETAINED).pending == 0
    return Outcome(arrived, due_ms, delivered, gone_ms, {})


def delivered_by(team: AppTeam) -> list[tuple[int, bool]]:
    return sorted((record.due_ms, record.sent_ms >= record.due_ms) for record in team.delivered())


def types_of_events(platform: Platform, team: AppTeam) -> dict[str, str]:
    return {reason: kind for reason, (kind, _) in events_of(platform, team.name).items()}


def test_a_drain_delivers_what_is_pending_at_its_own_time_before_the_object_goes(
    outcomes: dict[str, Future[Outcome]],
) -> None:
    drained = outcomes["drained"].result()

    assert drained.delivered_when_gone == [(due_ms, True) for due_ms in drained.due_ms]
    assert drained.gone_ms >= drained.due_ms[-1]
    assert {drained.events["DrainStarted"], drained.events["DrainCompleted"]} == {"Normal"}
    assert not {"BacklogRetained", "NotReady"} & drained.events.keys()


def test_records_sent_during_a_drain_wait_for_the_next_object_of_the_name(
    outcomes: dict[str, Future[Outcome]],
) -> None:
    assert outcomes["drained"].result().summary == all_arrived(5)


def test_an_accidental_prune_loses_nothing(outcomes: dict[str, Future[Outcome]]) -> None:
    assert outcomes["pruned"].result().summary == all_arrived(3)


def test_relays_of_a_class_deliver_on_after_the_namespace_is_gone(outcomes: dict[str, Future[Outcome]]) -> None:
    assert outcomes["orphaned"].result().summary == all_arrived(3)
