"""The API server refuses what the models refuse, and says which field has to change."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playground.kube.control_plane import ControlPlane
from playground.kube.kube_client import RequestRefused
from tests.support.crd_cases import SMALLEST, cases, document_of, documents, offer
from tests.support.paths import DATA, ROOT

from delaytopic_api import InvalidDocument, load_document

REFUSED = cases("crds/refused_objects.yaml")
REFUSED_BY_MODELS = [case for case in cases("api/refused_delay_topics.yaml") if "only_the_models_because" not in case]
ACCEPTED = cases("crds/accepted_objects.yaml")
MANIFESTS = [*sorted((DATA / "api").glob("accepted_*.yaml")), *sorted((ROOT / "examples").glob("*.yaml"))]


def each(entries: list[dict[str, Any]]) -> list[Any]:
    return [pytest.param(entry, id=entry["case"]) for entry in entries]


def fields(case: dict[str, Any]) -> set[str]:
    """Return the fields that a case of the models' tests speaks of, as the API server names them: no keys of maps."""
    named = {line.partition(": ")[0].partition('["')[0] for line in case["says"]}
    return {"version" if field == "apiVersion" else field for field in named}


@pytest.mark.parametrize("case", each(REFUSED))
def test_the_models_refuse_it(case: dict[str, Any]) -> None:
    with pytest.raises(InvalidDocument):
        load_document(document_of(case))


@pytest.mark.parametrize("case", each(ACCEPTED))
def test_the_models_accept_it(case: dict[str, Any]) -> None:
    load_document(document_of(case))


@pytest.mark.integration
@pytest.mark.kubernetes
@pytest.mark.parametrize("case", each(REFUSED))
def test_the_api_server_refuses_it_and_names_the_field(control_plane: ControlPlane, case: dict[str, Any]) -> None:
    with pytest.raises(RequestRefused) as refused:
        offer(control_plane.client, document_of(case))

    assert [text for text in case["says"] if text not in refused.value.message] == [], refused.value.message


@pytest.mark.integration
@pytest.mark.kubernetes
@pytest.mark.parametrize("case", each(REFUSED_BY_MODELS))
def test_the_api_server_refuses_what_the_models_refuse_for_the_same_field(
    control_plane: ControlPlane, case: dict[str, Any]
) -> None:
    with pytest.raises(RequestRefused) as refused:
        offer(control_plane.client, document_of(case))

    named = refused.value.message
    assert [field for field in fields(case) if field not in named] == [], named


@pytest.mark.integration
@pytest.mark.kubernetes
@pytest.mark.parametrize("case", each(ACCEPTED))
def test_the_api_server_accepts_it(control_plane: ControlPlane, case: dict[str, Any]) -> None:
    stored = offer(control_plane.client, document_of(case))

    assert stored["kind"] == case.get("kind", "DelayTopic")


@pytest.mark.integration
@pytest.mark.kubernetes
@pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda path: path.name)
def test_the_api_server_accepts_what_the_models_accept(control_plane: ControlPlane, manifest: Path) -> None:
    given = documents(manifest)

    stored = [offer(control_plane.client, document) for document in given]

    assert [load_document(document).metadata.name for document in stored] == [
        document["metadata"]["name"] for document in given
    ]


@pytest.mark.integration
@pytest.mark.kubernetes
def test_a_password_in_a_url_is_not_repeated(control_plane: ControlPlane) -> None:
    redis = {"type": "RedisZset", "redis": {"url": "redis://:hunter2@r:6379"}}
    document = SMALLEST["DelayTopic"] | {"spec": SMALLEST["DelayTopic"]["spec"] | {"backend": redis}}

    with pytest.raises(RequestRefused) as refused:
        offer(control_plane.client, document)

    assert "hunter2" not in refused.value.message
