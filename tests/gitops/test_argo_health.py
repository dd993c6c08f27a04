"""The customizations for Argo CD, by the table that Argo CD's own tests read."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from tests.gitops.argo import FOLDER, run

from delaytopic_api.documents import DelayTopic, RecurringRecord

Model = type[DelayTopic] | type[RecurringRecord]

MODELS: dict[str, Model] = {"DelayTopic": DelayTopic, "RecurringRecord": RecurringRecord}


def _listed(path: str, key: str) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = yaml.safe_load((FOLDER / path).read_text(encoding="utf-8"))[key]
    return entries


def _document(path: str) -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load((FOLDER / path).read_text(encoding="utf-8"))
    return document


HEALTH = [(kind, case) for kind in MODELS for case in _listed(f"{kind}/health_test.yaml", "tests")]
ACTIONS = _listed("DelayTopic/actions/action_test.yaml", "actionTests")
DISCOVERY = _listed("DelayTopic/actions/action_test.yaml", "discoveryTests")


@pytest.mark.parametrize(("kind", "case"), HEALTH, ids=[f"{kind}-{case['inputPath']}" for kind, case in HEALTH])
def test_argo_cd_shows_what_the_conditions_say(kind: str, case: dict[str, Any]) -> None:
    document = _document(f"{kind}/{case['inputPath']}")

    health = run(f"{kind}/health.lua", document)

    assert health == case["healthStatus"]


@pytest.mark.parametrize("kind", MODELS)
def test_every_document_of_the_table_has_a_verdict_and_is_one_that_the_operator_can_write(kind: str) -> None:
    documents = sorted((FOLDER / kind / "testdata").iterdir())

    for path in documents:
        MODELS[kind].model_validate(_document(f"{kind}/testdata/{path.name}"))

    listed = sorted(case["inputPath"] for of, case in HEALTH if of == kind)
    assert [f"testdata/{path.name}" for path in documents] == listed


@pytest.mark.parametrize(("kind", "name"), [("DelayTopic", "ready"), ("RecurringRecord", "written")])
def test_an_object_with_conditions_but_no_generation_in_its_status_waits(kind: str, name: str) -> None:
    document = _document(f"{kind}/testdata/{name}.yaml")
    del document["status"]["observedGeneration"]

    health = run(f"{kind}/health.lua", document)

    assert health == {"status": "Progressing", "message": "Waiting for the operator"}


@pytest.mark.parametrize("case", ACTIONS, ids=lambda case: f"{case['action']}-{case['inputPath']}")
def test_an_action_changes_its_annotation_and_nothing_else(case: dict[str, Any]) -> None:
    document = _document(f"DelayTopic/actions/{case['inputPath']}")

    changed = run(f"DelayTopic/actions/{case['action']}/action.lua", document)

    assert changed == _document(f"DelayTopic/actions/{case['expectedOutputPath']}")


def test_resuming_what_has_no_annotations_changes_nothing() -> None:
    document = _document("DelayTopic/actions/testdata/bare.yaml")

    changed = run("DelayTopic/actions/resume/action.lua", document)

    assert changed == document


@pytest.mark.parametrize("name", ["running", "bare"])
def test_reconcile_asks_for_one_pass_with_the_time_as_its_text(name: str) -> None:
    document = _document(f"DelayTopic/actions/testdata/{name}.yaml")

    changed = run("DelayTopic/actions/reconcile/action.lua", document)

    requested = changed["metadata"]["annotations"].pop("delaytopic.dev/reconcile-requested-at")
    assert (requested[4], requested[-1], len(requested)) == ("-", "Z", 20)
    if not changed["metadata"]["annotations"]:
        del changed["metadata"]["annotations"]
    assert changed == document


@pytest.mark.parametrize("case", DISCOVERY, ids=lambda case: case["inputPath"])
def test_only_actions_that_would_change_something_are_offered(case: dict[str, Any]) -> None:
    document = _document(f"DelayTopic/actions/{case['inputPath']}")

    offered = run("DelayTopic/actions/discovery.lua", document)

    assert [{"name": name, **offered[name]} for name in ("pause", "resume", "reconcile")] == case["result"]
