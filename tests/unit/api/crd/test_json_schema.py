"""Tests of the JSON schemas that editors and pipelines read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tests.support.crd_cases import cases, document_of, documents
from tests.support.paths import DATA, ROOT

from delaytopic_api.crd import KINDS
from delaytopic_api.crd.__main__ import PUBLISHED, SCHEMAS
from delaytopic_api.crd.json_schema import json_schema, outcome_schema, schema_texts

VALIDATORS = {kind.name: jsonschema.Draft7Validator(json_schema(kind)) for kind in KINDS}
MANIFESTS = [*sorted((DATA / "api").glob("accepted_*.yaml")), *sorted((ROOT / "examples").glob("*.yaml"))]
OUTCOME = jsonschema.Draft7Validator(outcome_schema())
PLACE = {"topic": "shop.delayed", "partition": 3, "offset": 17}
CANCELLED = {"outcome": "Cancelled", "endedMs": 17, "dueMs": 18, "source": PLACE, "endedBy": PLACE, "id": "a"}
UNKNOWN = [
    {"with": {"spec": {"schedule": {"dialect": "Cesium"}}}},
    {"with": {"spec": {"relay": {"resources": {"claims": []}}}}},
    {"with": {"spec": {"target": {"partitions": "12"}}}},
    {"with": {"apiVersion": "delaytopic.dev/v1"}},
    {"kind": "DelayClass", "with": {"spec": {"every": "1h"}}},
]


@pytest.mark.parametrize("folder", [SCHEMAS, PUBLISHED], ids=["wheel", "documentation"])
def test_the_files_are_what_the_models_say(folder: Path) -> None:
    found = {path.name: path.read_text(encoding="utf-8") for path in folder.iterdir() if path.suffix == ".json"}

    assert found == schema_texts(), "run `make generate`"


@pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda path: path.name)
def test_a_manifest_that_the_models_accept_is_accepted(manifest: Path) -> None:
    for document in documents(manifest):
        VALIDATORS[document["kind"]].validate(document)


@pytest.mark.parametrize("case", cases("crds/accepted_objects.yaml"), ids=lambda case: case["case"])
def test_an_object_that_the_models_accept_is_accepted(case: dict[str, Any]) -> None:
    document = document_of(case)

    VALIDATORS[document["kind"]].validate(document)


@pytest.mark.parametrize("case", UNKNOWN, ids=str)
def test_a_field_that_nobody_knows_or_of_another_type_is_refused(case: dict[str, Any]) -> None:
    document = document_of(case)

    assert not VALIDATORS[document["kind"]].is_valid(document)


def test_an_outcome_may_have_fields_that_its_reader_does_not_know() -> None:
    OUTCOME.validate({**CANCELLED, "source": {**PLACE, "leaderEpoch": 4}, "tenant": "shop"})


@pytest.mark.parametrize(
    "changes",
    [
        {"outcome": "Lost"},
        {"outcome": "DeadLettered"},
        {"endedBy": None},
        {"dueMs": "18"},
        {"source": {"topic": "shop.delayed"}},
        {"idBase64": "YQ=="},
    ],
    ids=str,
)
def test_an_outcome_that_no_relay_writes_is_refused(changes: dict[str, Any]) -> None:
    assert not OUTCOME.is_valid({**CANCELLED, **changes})
