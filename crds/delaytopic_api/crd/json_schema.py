"""JSON schemas of both kinds, for editors and pipelines such as kubeconform, and of outcomes. Pure."""

from __future__ import annotations

import json
from typing import Any, Final

from delaytopic_api.crd.definition import custom_resource_definition
from delaytopic_api.crd.kinds import KINDS, Kind
from delaytopic_api.crd.schema import structural_schema
from delaytopic_api.documents.metadata import API_VERSION
from delaytopic_api.relay import Ending, Outcome

DIALECT: Final = "http://json-schema.org/draft-07/schema#"
OUTCOME_SCHEMA: Final = "outcome.json"
"""The name of the file about outcomes, which have no version: readers pass over fields that they do not know."""
_OF_KUBERNETES: Final = "x-kubernetes-"
_ALWAYS_TOLD: Final = {
    Ending.DELIVERED: ("dueMs",),
    Ending.CANCELLED: ("dueMs", "endedBy"),
    Ending.REPLACED: ("dueMs", "endedBy"),
    Ending.DEAD_LETTERED: ("reason",),
}
"""Fields that each outcome of this kind has, beside those that all have."""


def schema_name(kind: Kind) -> str:
    """Return the name of a kind's file as kubeconform asks for it, such as `delaytopic_v1beta1.json`."""
    return f"{kind.singular}_{API_VERSION.rpartition('/')[2]}.json"


def schema_texts() -> dict[str, str]:
    """Return the text of each file by its name."""
    schemas = {**{schema_name(kind): json_schema(kind) for kind in KINDS}, OUTCOME_SCHEMA: outcome_schema()}
    return {name: json.dumps(schema, indent=2, ensure_ascii=False) + "\n" for name, schema in schemas.items()}


def json_schema(kind: Kind) -> dict[str, Any]:
    """Return the schema of one kind in the version that is stored; fields that it does not name are refused."""
    versions = custom_resource_definition(kind)["spec"]["versions"]
    stored = next(version["schema"]["openAPIV3Schema"] for version in versions if version["storage"])
    schema = _plain(stored)
    fields = schema["properties"]
    fields["apiVersion"] = {"type": "string", "enum": [API_VERSION]}
    fields["kind"] = {"type": "string", "enum": [kind.name]}
    # Kubernetes checks the rest of metadata itself.
    fields["metadata"] |= {"required": ["name"], "additionalProperties": True}
    return {"$schema": DIALECT, **schema, "required": ["apiVersion", "kind", "metadata", "spec"]}


def outcome_schema() -> dict[str, Any]:
    """Return the schema of the value of a record on a topic of outcomes."""
    schema = structural_schema(Outcome)
    told = [
        {"if": {"properties": {"outcome": {"const": str(ending)}}}, "then": {"required": [*fields]}}
        for ending, fields in _ALWAYS_TOLD.items()
    ]
    description = " ".join((Outcome.__doc__ or "").split())
    return {
        "$schema": DIALECT,
        "title": Outcome.__name__,
        "description": description,
        **schema,
        "allOf": told,
        "not": {"required": ["id", "idBase64"]},
    }


def _plain(part: dict[str, Any]) -> dict[str, Any]:
    """Return a part of a structural schema without what only the API server knows, and closed."""
    kept = {name: value for name, value in part.items() if not name.startswith(_OF_KUBERNETES)}
    if "properties" in part:
        kept["properties"] = {name: _plain(field) for name, field in part["properties"].items()}
        kept.setdefault("additionalProperties", False)
    for name in ("items", "additionalProperties"):
        if isinstance(part.get(name), dict):
            kept[name] = _plain(part[name])
    return kept
