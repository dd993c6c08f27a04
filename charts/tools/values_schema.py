"""values.schema.json: the types of the values, with the descriptions of values.yaml. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from charts.tools.values_text import Value

from delaytopic_api.documents.descriptions import described
from delaytopic_operator.config import OperatorConfig

Schema = dict[str, Any]

FROM_THE_RELEASE: Final = (
    "apiVersion", "kind", "namespace", "images", "watchNamespaces", "relayNamespaces", "operatorLabels",
    "gateway", "httpPort",
)  # fmt: skip
"""Fields of OperatorConfig that follow from other values, or must not differ."""

_NAME = {"type": "string", "pattern": "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$"}
_TEXT = {"type": "string"}
_SWITCH = {"type": "boolean"}
_REPOSITORY = {"type": "string", "pattern": "^[a-z0-9]([-a-z0-9._:/]*[a-z0-9])?$"}
_TAG = {"type": "string", "pattern": "^([A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?$"}
_DIGEST = {"type": "string", "pattern": "^(sha256:[0-9a-f]{64})?$"}
_QUANTITY = {"type": "string", "pattern": "^[0-9]+([.][0-9]+)?(m|k|Ki|M|Mi|G|Gi|T|Ti)?$"}
_DURATION = {"type": "string", "pattern": "^([0-9]+(h|m|s|ms))+$"}
_OBJECT = {"type": "object"}
_TEXTS = {"type": "object", "additionalProperties": {"type": "string"}}
_OBJECTS = {"type": "array", "items": {"type": "object"}}
_NAMES = {"type": "array", "items": _NAME, "uniqueItems": True}
_REFERENCES = {
    "type": "array",
    "items": {"type": "object", "required": ["name"], "additionalProperties": False, "properties": {"name": _TEXT}},
}
_NOT_ROOT = {
    "type": "object",
    "properties": {"runAsNonRoot": {"const": True}, "runAsUser": {"type": "integer", "minimum": 1}},
}
_PORTS = {"type": "array", "items": {"type": "integer", "minimum": 1, "maximum": 65_535}}
_AMOUNTS = {"type": "object", "additionalProperties": {"type": ["string", "number"]}}
_RESOURCES = {
    "type": "object",
    "additionalProperties": False,
    "properties": {"requests": _AMOUNTS, "limits": _AMOUNTS, "claims": _OBJECTS},
}

TYPES: Final[Mapping[str, Schema]] = {
    "nameOverride": _TEXT,
    "fullnameOverride": _TEXT,
    "commonLabels": _TEXTS,
    "global.imageRegistry": _TEXT,
    **{
        f"{image}.{field}": schema
        for image in ("image", "relay.image", "gateway.image", "audit.image", "redis.image")
        for field, schema in (("repository", _REPOSITORY), ("tag", _TAG), ("digest", _DIGEST))
    },
    "image.pullPolicy": {"enum": ["Always", "IfNotPresent", "Never"]},
    "imagePullSecrets": _REFERENCES,
    "watchNamespaces": _NAMES,
    "relayNamespaces": _NAMES,
    "createRelayNamespaces": _SWITCH,
    "relaysEverywhere": _SWITCH,
    "secretNamespaces": _NAMES,
    "secretsEverywhere": _SWITCH,
    "strimziNamespaces": _NAMES,
    "replicaCount": {"type": "integer", "minimum": 1, "maximum": 5},
    "resources": _RESOURCES,
    "logLevel": {"enum": ["debug", "info", "warning", "error"]},
    "extraEnv": _OBJECTS,
    "podSecurityContext": {**_NOT_ROOT, "required": ["runAsNonRoot"]},
    "securityContext": _NOT_ROOT,
    **{
        f"{of}{field}": schema
        for of in ("", "gateway.")
        for field, schema in (
            ("extraVolumes", _OBJECTS),
            ("extraVolumeMounts", _OBJECTS),
            ("podAnnotations", _TEXTS),
            ("podLabels", _TEXTS),
            ("nodeSelector", _TEXTS),
            ("tolerations", _OBJECTS),
            ("affinity", _OBJECT),
            ("topologySpreadConstraints", _OBJECTS),
            ("priorityClassName", _TEXT),
            ("networkPolicy.from", _OBJECTS),
            ("networkPolicy.egressPorts", _PORTS),
            ("networkPolicy.egress", _OBJECTS),
        )
    },
    "podDisruptionBudget.enabled": _SWITCH,
    "networkPolicy.enabled": _SWITCH,
    "serviceAccount.create": _SWITCH,
    "serviceAccount.name": _TEXT,
    "serviceAccount.annotations": _TEXTS,
    "rbac.create": _SWITCH,
    "rbac.aggregate": _SWITCH,
    "gateway.enabled": _SWITCH,
    "gateway.replicaCount": {"type": "integer", "minimum": 1, "maximum": 5},
    "gateway.kafkaConfig.secret": _TEXT,
    "gateway.kafkaConfig.key": {"type": "string", "minLength": 1},
    "gateway.relayToken.secret": _TEXT,
    "gateway.relayToken.key": {"type": "string", "minLength": 1},
    "gateway.relayToken.sha256": {"type": "string", "pattern": "^([0-9a-f]{64})?$"},
    "gateway.jobsTopic": {"type": "string", "pattern": "^[a-zA-Z0-9._-]{1,249}$"},
    "gateway.hosts": {"type": "array", "items": _TEXT},
    "gateway.proxy.userHeader": _TEXT,
    "gateway.proxy.groupsHeader": _TEXT,
    "gateway.proxy.networks": {"type": "array", "items": _TEXT},
    "gateway.resources": _RESOURCES,
    "test.kafkaConfig.secret": _TEXT,
    "test.kafkaConfig.key": {"type": "string", "minLength": 1},
    "test.source": _TEXT,
    "test.target": _TEXT,
    "test.after": _DURATION,
    "admissionPolicy.enabled": _SWITCH,
    "admissionPolicy.action": {"enum": ["Deny", "Warn", "Audit"]},
    "crds.install": _SWITCH,
    "crds.keep": _SWITCH,
    "defaultClass.create": _SWITCH,
    "defaultClass.name": {"type": "string", "pattern": "^[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?$"},
    "defaultClass.spec": _OBJECT,
    "redis.enabled": _SWITCH,
    "redis.user": {"type": "integer", "minimum": 0},
    "redis.relayNamespaces": _NAMES,
    "redis.maxmemory": {"type": "string", "pattern": "^[0-9]+(kb|mb|gb)$"},
    "redis.resources": _RESOURCES,
    "redis.storage.enabled": _SWITCH,
    "redis.storage.size": _QUANTITY,
    "redis.storage.className": _TEXT,
    **{
        f"monitoring.{monitor}.{field}": schema
        for monitor in ("podMonitor", "serviceMonitor")
        for field, schema in (("enabled", _SWITCH), ("labels", _TEXTS), ("interval", _DURATION))
    },
    "monitoring.prometheusRule.enabled": _SWITCH,
    "monitoring.prometheusRule.labels": _TEXTS,
    "monitoring.prometheusRule.runbookUrl": {"type": "string", "pattern": "^https?://\\S*[{]page[}]\\S*$"},
    "monitoring.dashboards.enabled": _SWITCH,
    "monitoring.dashboards.labels": _TEXTS,
    "monitoring.dashboards.annotations": _TEXTS,
    "extraObjects": _OBJECTS,
}
"""The types of all values but `operator`, which is OperatorConfig."""


_LEDGER_LASTS: Final = {
    "if": {"required": ["schedule"], "properties": {"schedule": {"type": "string"}}},
    "then": {
        "anyOf": [
            {"required": ["volume"], "properties": {"volume": {"type": "object"}}},
            {"required": ["ledger"], "properties": {"ledger": {"type": "string", "pattern": "://"}}},
        ]
    },
}
"""A rule that OperatorConfig checks with code: an audit's ledger is in a store or in a volume."""
_DRIVER_HAS_ACCOUNT: Final = {
    "if": {"required": ["mode"], "properties": {"mode": {"const": "Kubernetes"}}},
    "then": {"required": ["driverAccount"], "properties": {"driverAccount": {"type": "string"}}},
}
"""Another: drivers of executor pods have an account of their own."""
_TABLES_ARE_SAFE: Final = {
    "if": {"required": ["tables"], "properties": {"tables": {"const": "Delta"}}},
    "then": {
        "anyOf": [
            {"required": ["volume"], "properties": {"volume": {"type": "object"}}},
            {"required": ["ledger"], "properties": {"ledger": {"type": "string", "pattern": "^(s3a|file)://"}}},
        ]
    },
}
"""Another: Delta's tables are in a volume, in S3 or in a folder."""


def values_schema(values: list[Value], class_definition: Schema) -> str:
    """The schema as text; `class_definition` is the CustomResourceDefinition of DelayClass.

    Raises KeyError for a value without a type.
    """
    settings, definitions = _operator_settings()
    root: Schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Values of the delaytopic chart",
        **_closed(),
        "$defs": definitions,
    }
    for value in values:
        schema = settings if value.path == "operator" else TYPES[value.path]
        _put(root, value.path.split("."), {"description": value.description, **schema})
    root["properties"]["defaultClass"] |= {
        "if": {"properties": {"create": {"const": True}}},
        "then": {"properties": {"spec": _class_spec(class_definition)}},
    }
    # Parent charts put there what they like.
    root["properties"]["global"]["additionalProperties"] = True
    return json.dumps(root, indent=2) + "\n"


def _operator_settings() -> tuple[Schema, Schema]:
    schema = _without_titles(described(OperatorConfig).model_json_schema(by_alias=True))
    definitions = {name: each for name, each in schema["$defs"].items() if name != "Images"}
    definitions["AuditConfig"]["allOf"] = [_LEDGER_LASTS, _DRIVER_HAS_ACCOUNT, _TABLES_ARE_SAFE]
    fields = {name: each for name, each in schema["properties"].items() if name not in FROM_THE_RELEASE}
    return {**_closed(), "properties": fields}, definitions


def _class_spec(definition: Schema) -> Schema:
    """Return the schema of a class's spec as the API server takes it, without what it would drop."""
    (version,) = definition["spec"]["versions"]
    spec: Schema = _without_unknown(version["schema"]["openAPIV3Schema"]["properties"]["spec"])
    return spec


def _without_unknown(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_without_unknown(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    plain = {key: _without_unknown(each) for key, each in schema.items() if not key.startswith("x-kubernetes-")}
    closed = {"additionalProperties": False} if schema.get("type") == "object" and "properties" in schema else {}
    return {**closed, **plain}


def _without_titles(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_without_titles(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: _one_line(each) if key == "description" and isinstance(each, str) else _without_titles(each)
        for key, each in schema.items()
        if not (key == "title" and isinstance(each, str)) and key != "x-kubernetes-preserve-unknown-fields"
    }


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _closed() -> Schema:
    return {"type": "object", "additionalProperties": False, "properties": {}}


def _put(root: Schema, path: list[str], schema: Schema) -> None:
    for part in path[:-1]:
        root = root["properties"].setdefault(part, _closed())
    root["properties"][path[-1]] = schema
