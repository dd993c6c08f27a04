"""The customizations for Argo CD, by the table that Argo CD's own tests read."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from tests.gitops.argo import FOLDER, run

from delaytopic_api.documents import DelayTopic


def _listed(path: str, key: str) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = yaml.safe_load((FOLDER / path).read_text(encoding="utf-8"))[key]
    return entries


def _document(path: str) -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load((FOLDER / path).read_text(encoding="utf-8"))
    return document


HEALTH = _listed("health_test.yaml", "tests")
ACTIONS = _listed("actions/action_test.yaml", "actionTests")
DISCOVERY = _listed("actions/action_test.yaml", "discoveryTests")


@pytest.mark.parametrize("case", HEALTH, ids=lambda case: case["inputPath"])
def test_argo_cd_shows_what_the_conditions_say(case: dict[str, Any]) -> None:
    document = _document(case["inputPath"])

    health = run("health.lua", document)

    assert health == case["healthStatus"]


def test_every_document_of_the_table_has_a_verdict_and_is_one_that_the_operator_can_write() -> None:
    documents = sorted((FOLDER / "testdata").iterdir())

    for path in documents:
        DelayTopic.model_validate(_document(f"testdata/{path.name}"))

    assert [f"testdata/{path.name}" for path in documents] == sorted(case["inputPath"] for case in HEALTH)


def test_an_object_with_conditions_but_no_generation_in_its_status_waits() -> None:
    document = _document("testdata/ready.yaml")
    del document["status"]["observedGeneration"]

    health = run("health.lua", document)

    assert health == {"status": "Progressing", "message": "Waiting for the operator"}


@pytest.mark.parametrize("case", ACTIONS, ids=lambda case: f"{case['action']}-{case['inputPath']}")
def test_an_action_changes_its_annotation_and_nothing_else(case: dict[str, Any]) -> None:
    document = _document(f"actions/{case['inputPath']}")

    changed = run(f"actions/{case['action']}/action.lua", document)

    assert changed == _document(f"actions/{case['expectedOutputPath']}")


def test_resuming_what_has_no_annotations_changes_nothing() -> None:
    document = _document("actions/testdata/bare.yaml")

    changed = run("actions/resume/action.lua", document)

    assert changed == document


@pytest.mark.parametrize("name", ["running", "bare"])
def test_reconcile_asks_for_one_pass_with_the_time_as_its_text(name: str) -> None:
    document = _document(f"actions/testdata/{name}.yaml")

    changed = run("actions/reconcile/action.lua", document)

    requested = changed["metadata"]["annotations"].pop("delaytopic.dev/reconcile-requested-at")
    assert (requested[4], requested[-1], len(requested)) == ("-", "Z", 20)
    if not changed["metadata"]["annotations"]:
        del changed["metadata"]["annotations"]
    assert changed == document


@pytest.mark.parametrize("case", DISCOVERY, ids=lambda case: case["inputPath"])
def test_only_actions_that_would_change_something_are_offered(case: dict[str, Any]) -> None:
    document = _document(f"actions/{case['inputPath']}")

    offered = run("actions/discovery.lua", document)

    assert [{"name": name, **offered[name]} for name in ("pause", "resume", "reconcile")] == case["result"]
