"""A configuration stays for as long as a relay may start from it, and no longer."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.operator.scenes import CONFIG, DEPLOYMENT, seen

from delaytopic_operator.decide.relay_configs import MOST_UNSEEN, configs_in_use
from delaytopic_operator.observe.fleet import FleetFacts
from delaytopic_operator.observe.observation import Observation

PLACE = CONFIG.namespace


def spec(config: str) -> dict[str, Any]:
    return {"volumes": [{"name": "tmp"}, {"name": "config", "configMap": {"name": config}}]}


def deployment(config: str, updated: int = 2, **status: int) -> dict[str, Any]:
    counts = {"replicas": 2, "updatedReplicas": updated, "readyReplicas": 2, "observedGeneration": 1, **status}
    return {**DEPLOYMENT, "spec": {"replicas": 2, "template": {"spec": spec(config)}}, "status": counts}


def pod(config: str, phase: str = "Running") -> dict[str, Any]:
    metadata = {"name": f"of-{config}-{phase}", "namespace": PLACE}
    return {"metadata": metadata, "spec": spec(config), "status": {"phase": phase}}


def config_map(name: str, made: int = 0) -> dict[str, Any]:
    metadata = {"name": name, "namespace": PLACE, "creationTimestamp": f"2026-11-27T10:00:{made:02}Z"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "immutable": True}


def look(made: dict[str, Any] | None, *pods: dict[str, Any], configs: int = 0) -> Observation:
    objects = [config_map(f"c{number}", number) for number in range(configs)]
    return seen(None, fleet=FleetFacts(made, pods, (), 1), objects=objects)


@pytest.mark.parametrize(
    ("found", "used"),
    [
        pytest.param(look(deployment("new"), pod("new")), {"new"}, id="rolled out"),
        pytest.param(look(deployment("new"), pod("new"), pod("old")), {"new", "old"}, id="an old pod ends"),
        pytest.param(look(deployment("new"), pod("old", "Failed")), {"new"}, id="a pod that will not run again"),
        pytest.param(look(deployment("new", 1), configs=2), {"new", "c0", "c1"}, id="a rollout whose pods nobody sees"),
        pytest.param(look(deployment("new"), configs=2), {"new"}, id="rolled out, with former ones left"),
        pytest.param(look(None, pod("old")), {"old"}, id="the Deployment is gone, and not its pods"),
    ],
)
def test_a_configuration_is_kept_while_relays_may_start_from_it(found: Observation, used: set[str]) -> None:
    assert configs_in_use(found) == {(PLACE, name) for name in used}


def test_a_rollout_that_never_ends_keeps_the_newest_configurations_only() -> None:
    found = look(deployment("new", 1), configs=MOST_UNSEEN + 5)

    assert configs_in_use(found) == {(PLACE, "new"), *((PLACE, f"c{number}") for number in range(5, MOST_UNSEEN + 5))}
