"""A whole CustomResourceDefinition, as a plain object. Pure."""

from __future__ import annotations

from typing import Any

from delaytopic_api.crd.kinds import Kind, Scale
from delaytopic_api.crd.schema import Schema, structural_schema
from delaytopic_api.documents.metadata import API_VERSION, GROUP, ApiVersion


def custom_resource_definition(kind: Kind) -> dict[str, Any]:
    """Return the CustomResourceDefinition of one kind, in all versions that are served."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.plural}.{GROUP}", "labels": {"app.kubernetes.io/part-of": "delaytopic"}},
        "spec": {
            "group": GROUP,
            "scope": kind.scope,
            "names": {
                "kind": kind.name,
                "listKind": f"{kind.name}List",
                "plural": kind.plural,
                "singular": kind.singular,
                "shortNames": [kind.short_name],
                "categories": ["delay"],
            },
            "versions": [_version(kind, version) for version in ApiVersion],
        },
    }


def _version(kind: Kind, version: ApiVersion) -> dict[str, Any]:
    selectable = [{"jsonPath": path} for path in kind.selectable]
    subresources = _subresources(kind)
    return {
        "name": version.rpartition("/")[2],
        "served": True,
        "storage": version == API_VERSION,
        **({"subresources": subresources} if subresources else {}),
        **({"selectableFields": selectable} if selectable else {}),
        "additionalPrinterColumns": [column.document() for column in kind.columns],
        "schema": {"openAPIV3Schema": _object_schema(kind)},
    }


def _subresources(kind: Kind) -> dict[str, Any]:
    status: dict[str, Any] = {"status": {}} if "status" in kind.model.model_fields else {}
    return status | ({"scale": _scale(kind.scale)} if kind.scale else {})


def _scale(scale: Scale) -> dict[str, str]:
    return {
        "specReplicasPath": scale.spec_replicas,
        "statusReplicasPath": scale.status_replicas,
        "labelSelectorPath": scale.selector,
    }


def _object_schema(kind: Kind) -> Schema:
    """Kubernetes itself knows apiVersion, kind and metadata; of metadata, a schema may only restrict the name."""
    schema = structural_schema(kind.model)
    fields = schema["properties"]
    name = fields["metadata"]["properties"]["name"]
    restricted = {key: name[key] for key in ("type", "maxLength", "pattern")}
    fields["metadata"] = {"type": "object", "properties": {"name": restricted}}
    for field in ("apiVersion", "kind"):
        fields[field] = {"type": "string"}
    return schema | {"required": ["spec"]}
