"""From this release to the one before and on again, while records are sent and delivered."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from charts.tools.places import CHART, ROOT
from playground.cluster.clusters import Cluster
from playground.images.build import build_previous, checkout, has_commit
from playground.kube.awaiting import await_object
from playground.platform.installation import Images
from playground.platform.installed_platform import InstalledPlatform
from playground.traffic.plan import Plan
from tests.e2e.support.team import MakeTeam, Team

pytestmark = pytest.mark.e2e

PREVIOUS = os.environ.get("E2E_PREVIOUS", "HEAD~1")
"""The commit to come from."""
RECORDS = 14_000
"""Sent for as long as both rollouts take."""


@pytest.fixture(scope="module", autouse=True)
def needs_a_previous_commit() -> None:
    """Without a commit to come from, nothing can be tested here."""
    if not has_commit(PREVIOUS):
        pytest.skip(f"NOT TESTED: this checkout has no commit {PREVIOUS} to come from; fetch more of its history")


@pytest.fixture(scope="module")
def previous_images(cluster: Cluster, images: Images) -> Images:
    """Relay and operator of that commit, known to the cluster's nodes."""
    previous = build_previous(cluster.docker, PREVIOUS)
    cluster.load_images(*previous.values())
    return {**images, **previous}


@pytest.fixture(scope="module")
def previous_chart() -> Iterator[Path]:
    """The chart of that commit."""
    with checkout(PREVIOUS) as folder:
        yield folder / CHART.relative_to(ROOT)


@pytest.fixture(scope="module")
def team(make_team: MakeTeam) -> Team:
    team = make_team("upgrade")
    # The operators of both releases may want other numbers of relays.
    team.apply("running", autoscaling={"mode": "Fixed"}, relay={"replicas": 1})
    team.await_ready("running")
    return team


def change_release(platform: InstalledPlatform, team: Team, chart: Path, images: Images) -> None:
    """Upgrade, and wait until relays of these images have taken over."""
    platform.upgrade(chart, images)
    await_object(
        platform.client,
        platform.relay_deployment(team.namespace, "running"),
        lambda found: bool(found and found["spec"]["template"]["spec"]["containers"][0]["image"] == images["relay"]),
        seconds=60,
    )
    platform.await_relays(team.namespace, "running", 1)


def test_a_step_back_and_an_upgrade_under_load_lose_nothing_and_deliver_nothing_twice(
    platform: InstalledPlatform, team: Team, images: Images, previous_images: Images, previous_chart: Path
) -> None:
    sending = team.start_sending("running", Plan("upgrade", RECORDS, per_second=200, delays_ms=(1_000, 20_000)))
    reading = sending.start_reading()

    change_release(platform, team, previous_chart, previous_images)
    team.await_ready("running")
    change_release(platform, team, CHART, images)
    team.await_ready("running")
    verdict = reading.verdict()

    assert verdict["arrived"] == RECORDS, verdict
