"""DelayTopics that a GitOps tool applies: twice is once, and its health check says what the cluster's status says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from playground.kube.kube_client import Object
from tests.e2e.support.team import MakeTeam, Team
from tests.gitops.argo import run

pytestmark = pytest.mark.e2e

MANAGER = "gitops"
PAUSED = {"metadata": {"annotations": {"delaytopic.dev/pause-reconciliation": "true"}}}


@pytest.fixture(scope="module")
def team(make_team: MakeTeam) -> Team:
    return make_team("gitops")


@pytest.fixture(scope="module")
def folder(team: Team, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return what is in Git: one DelayTopic that is fine, one with more to say, one that its class refuses."""
    folder = tmp_path_factory.mktemp("git")
    documents = [
        team.document("plain"),
        team.document("rich", precision="2s", schedule={"maxDelay": "48h"}, slo={"objective": "99%"}),
        team.document("refused", target={"topic": "somebody-elses"}),
    ]
    for document in documents:
        (folder / f"{document['metadata']['name']}.yaml").write_text(yaml.safe_dump(document), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def synced(team: Team, folder: Path) -> Team:
    """The team once everything in the folder was applied, and came to rest."""
    sync(team, folder)
    team.await_ready("plain", "rich")
    team.await_condition("refused", "Stalled")
    return team


def sync(team: Team, folder: Path) -> str:
    return team.platform.kubectl("apply", "--server-side", f"--field-manager={MANAGER}", "-f", str(folder))


def state(team: Team) -> dict[str, Any]:
    """Return what an application changes when it is none: generations, and what the tool set, and when."""
    found = {name: team.topic(name)["metadata"] for name in ("plain", "rich", "refused")}
    relays = {name: team.client.get(team.platform.relay_deployment(team.namespace, name)) for name in ("plain", "rich")}
    return {
        "generations": {name: metadata["generation"] for name, metadata in found.items()},
        "fields": {name: _fields(metadata) for name, metadata in found.items()},
        "relays": {name: deployment["metadata"]["generation"] for name, deployment in relays.items()},
    }


def _fields(metadata: Object) -> list[Object]:
    return [entry for entry in metadata["managedFields"] if entry["manager"] == MANAGER]


def health(topic: Object) -> str:
    """Argo CD's word for it."""
    return str(run("DelayTopic/health.lua", topic)["status"])


def test_a_folder_that_is_applied_a_second_time_changes_nothing(synced: Team, folder: Path) -> None:
    before = state(synced)

    sync(synced, folder)
    different = synced.platform.kubectl.run("diff", "--server-side", f"--field-manager={MANAGER}", "-f", str(folder))

    assert state(synced) == before
    assert (different.returncode, different.stdout) == (0, ""), different.stderr


def test_argo_cd_shows_what_the_status_of_live_objects_says(synced: Team) -> None:
    ready, refused = (health(synced.topic(name)) for name in ("plain", "refused"))
    synced.apply("new")
    fresh = health({**synced.document("new"), "metadata": {**synced.topic("new")["metadata"], "generation": 1}})
    synced.client.merge(synced.path("rich"), PAUSED)
    paused = health(synced.await_condition("rich", "Paused"))

    assert (ready, refused, fresh, paused) == ("Healthy", "Degraded", "Progressing", "Suspended")
