"""The structural OpenAPI v3 schema that a CustomResourceDefinition holds, made of a pydantic model. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from delaytopic_api.crd.rules import rules_of
from delaytopic_api.documents.connection import TrustedCertificate
from delaytopic_api.documents.descriptions import described, models_in
from delaytopic_api.documents.model import Model
from delaytopic_api.documents.relays import RelaySpec
from delaytopic_api.values.cluster_rules import KEY
from delaytopic_api.values.lists import LIST_KEYS, LIST_TYPE

Schema = dict[str, Any]

STORED_DEFAULTS: Final[Mapping[type[Model], frozenset[str]]] = {
    RelaySpec: frozenset({"replicas"}),
    TrustedCertificate: frozenset({"certificate"}),
}
"""Defaults that the API server writes into objects: the scale subresource needs a number to read, and a list of which
several managers own items the fields that tell these apart. All others are only described, so that they, or those of a
class, may change without touching objects."""

_KEPT = (
    "description",
    "type",
    "format",
    "enum",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "pattern",
    "maxItems",
    "maxProperties",
    "anyOf",
    "x-kubernetes-int-or-string",
    LIST_TYPE,
    LIST_KEYS,
    "x-kubernetes-preserve-unknown-fields",
)
_LARGEST_INT32 = 2**31 - 1


def structural_schema(model: type[Model]) -> Schema:
    """Return the schema of a model and all that it holds: no references, no nulls, nothing that the API server would
    not know.
    """
    whole = described(model).model_json_schema()
    models = {reached.__name__: reached for reached in models_in(model)}
    return _Translation(whole.get("$defs", {}), models).of(whole)


class _Translation:
    """A translation of pydantic's words to those of Kubernetes, part by part."""

    def __init__(self, definitions: Mapping[str, Schema], models: Mapping[str, type[Model]]) -> None:
        self._definitions = definitions
        self._models = models

    def of(self, part: Schema) -> Schema:
        part = self._resolved(part)
        kept = {name: part[name] for name in _KEPT if name in part}
        kept |= _text_of(part) | _number_of(part) | _choice_of(part)
        if "items" in part:
            kept["items"] = self.of(part["items"])
        if isinstance(part.get("additionalProperties"), dict):
            kept["additionalProperties"] = self.of(part["additionalProperties"])
        rules = part.get(KEY, [])
        if "properties" in part:
            model = self._models[part["title"]]
            kept |= self._fields_of(part, model)
            rules = [rule.document() for rule in rules_of(model)]
        return kept | ({KEY: rules} if rules else {})

    def _resolved(self, part: Schema) -> Schema:
        """Return a part without references and without null, which is for absent fields; a field's own description
        wins.
        """
        beside = {name: value for name, value in part.items() if name not in ("$ref", "anyOf", "title")}
        if "$ref" in part:
            return self._resolved(self._definitions[part["$ref"].rpartition("/")[2]]) | beside
        choices = [choice for choice in part.get("anyOf", []) if choice != {"type": "null"}]
        if len(choices) == 1:
            return self._resolved(choices[0]) | beside
        return part

    def _fields_of(self, part: Schema, model: type[Model]) -> Schema:
        fields = {name: self.of(field) for name, field in part["properties"].items()}
        for name, field in fields.items():
            default = part["properties"][name].get("default")
            if name in STORED_DEFAULTS.get(model, ()):
                field["default"] = default
            elif default is not None and any("default" in inner for inner in field.get("properties", {}).values()):
                field["default"] = {}
            elif isinstance(default, str | int):
                field["description"] += f" Default: {default}."
        required = {"required": part["required"]} if part.get("required") else {}
        return {**required, "properties": fields}


def _text_of(part: Schema) -> Schema:
    return {"description": " ".join(part["description"].split())} if "description" in part else {}


def _number_of(part: Schema) -> Schema:
    if part.get("type") != "integer":
        return {}
    small = part.get("maximum", _LARGEST_INT32 + 1) <= _LARGEST_INT32
    return {"format": "int32" if small else "int64"}


def _choice_of(part: Schema) -> Schema:
    return {"enum": [part["const"]]} if "const" in part else {}
