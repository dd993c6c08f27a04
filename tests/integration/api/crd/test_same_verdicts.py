"""Models and API server refuse the same objects, and name the same fields: thousands with one fault each."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playground.kube.control_plane import ControlPlane
from playground.kube.kube_client import RequestRefused
from tests.support.crd_cases import cases, document_of, documents, offer
from tests.support.crd_faults import faulty
from tests.support.paths import DATA, ROOT

from delaytopic_api import InvalidDocument, load_document

MANIFESTS = [*sorted((DATA / "api").glob("accepted_*.yaml")), *sorted((ROOT / "examples").glob("*.yaml"))]
ACCEPTED = [
    *(document_of(case) for case in cases("crds/accepted_objects.yaml")),
    *(document for manifest in MANIFESTS for document in documents(manifest)),
]
EVERY_DAY, BY_NIGHT = 500, 10_000

pytestmark = [pytest.mark.integration, pytest.mark.kubernetes]


def fields_named(document: dict[str, Any]) -> list[str] | None:
    """Return the fields that the models name, without the keys of maps; None for what they accept."""
    try:
        load_document(document)
    except InvalidDocument as error:
        return [problem.path.partition('["')[0] for problem in error.problems]
    return None


def disagreement(control_plane: ControlPlane, document: dict[str, Any]) -> str | None:
    """Return how the two verdicts differ; None where they are the same."""
    fields = fields_named(document)
    try:
        offer(control_plane.client, document)
    except RequestRefused as refused:
        if fields is None:
            return f"accepted by the models, and refused by the server: {refused.message}"
        # The server writes the keys of a map in brackets, as it does the numbers of a list.
        said = re.sub(r"\[([a-z]\w*)\]", r".\1", refused.message)
        named = any(field in said for field in fields)
        return None if named else f"the models name {fields}, and the server says: {refused.message}"
    return None if fields is None else f"refused by the models for {fields}, and accepted by the server"


def disagreements(control_plane: ControlPlane, seeds: range) -> dict[str, str]:
    objects = ((seed, faulty(seed, ACCEPTED)) for seed in seeds)
    return {
        f"{seed}: {each.fault}": difference
        for seed, each in objects
        if (difference := disagreement(control_plane, each.document)) is not None
    }


def test_models_and_server_agree_about_objects_with_one_fault(control_plane: ControlPlane) -> None:
    assert disagreements(control_plane, range(EVERY_DAY)) == {}


@pytest.mark.nightly
def test_models_and_server_agree_about_ten_thousand_objects_with_one_fault(control_plane: ControlPlane) -> None:
    assert disagreements(control_plane, range(EVERY_DAY, BY_NIGHT)) == {}
