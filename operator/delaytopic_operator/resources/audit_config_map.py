"""The ConfigMap with the documents that an audit is about."""

from __future__ import annotations

from typing import Any, Final

import yaml

from delaytopic_api.documents import DEFAULT_CLASS_ANNOTATION, DelayClass, DelayTopic, Model
from delaytopic_operator.resources.identity import AUDIT, Document, RelayIdentity, metadata

DOCUMENTS_KEY: Final = "documents.yaml"

_NOT_AUDITED = ("relay", "relayNamespace", "autoscaling")
"""The fields about relays: an audit does not read them, and they change often."""


def audit_documents_name(identity: RelayIdentity) -> str:
    """Return what the ConfigMap is called."""
    return f"{identity.child}-audit"


def audit_config_map(identity: RelayIdentity, topic: DelayTopic, delay_class: DelayClass | None) -> Document:
    """One key, `documents.yaml`: the DelayTopic, and the DelayClass if it has one."""
    documents: list[Document] = [_document(topic, {"name": topic.metadata.name, "namespace": topic.metadata.namespace})]
    if delay_class is not None:
        of_class: Document = {"name": delay_class.metadata.name}
        if delay_class.is_default:
            of_class["annotations"] = {DEFAULT_CLASS_ANNOTATION: "true"}
        documents.append(_document(delay_class, of_class))
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata(identity, audit_documents_name(identity), AUDIT),
        "data": {DOCUMENTS_KEY: yaml.safe_dump_all(documents, sort_keys=False, allow_unicode=True, width=120)},
    }


def _document(document: DelayTopic | DelayClass, named: Document) -> Document:
    """Return it as its author wrote it: an audit of another release has other defaults, and knows fewer fields."""
    spec = {field: value for field, value in _written(document.spec).items() if field not in _NOT_AUDITED}
    return {"apiVersion": document.api_version, "kind": document.kind, "metadata": named, "spec": spec}


def _written(model: Model) -> dict[str, Any]:
    return model.model_dump(mode="json", by_alias=True, exclude_none=True, exclude_unset=True)
