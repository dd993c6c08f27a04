"""JSON schemas of both kinds, for editors and pipelines such as kubeconform, from what the API server has. Pure."""

from __future__ import annotations

import json
from typing import Any, Final

from delaytopic_api.crd.definition import custom_resource_definition
from delaytopic_api.crd.kinds import Kind
from delaytopic_api.documents.metadata import API_VERSION

DIALECT: Final = "http://json-schema.org/draft-07/schema#"
_OF_KUBERNETES: Final = "x-kubernetes-"


def schema_name(kind: Kind) -> str:
    """Return the name of a kind's file as kubeconform asks for it, such as `delaytopic_v1beta1.json`."""
    return f"{kind.singular}_{API_VERSION.rpartition('/')[2]}.json"


def schema_text(kind: Kind) -> str:
    """Return the text of a kind's file."""
    return json.dumps(json_schema(kind), indent=2, ensure_ascii=False) + "\n"


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
