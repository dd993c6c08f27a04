"""The words by which an object is found again. Pure.

A term is a tuple; its first part says what the others are. Objects with a common term concern each other.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from delaytopic_operator.model import kinds
from delaytopic_operator.model.kinds import Kind
from delaytopic_operator.model.reconciliation import Key, audit_key

Document = dict[str, Any]
Term = tuple[str, ...]

NAMESPACE_LABEL = "delaytopic.dev/namespace"
NAME_LABEL = "delaytopic.dev/name"
CLASS_ANNOTATION = "delaytopic.dev/delay-class"
NAMESPACE_ANNOTATION = "delaytopic.dev/audited-namespace"
MANAGED = {"app.kubernetes.io/managed-by": "delaytopic-operator"}
"""The label that everything made by the operator has."""

NO_CLASS = ""
"""The class of a DelayTopic that names none, and is the default class's, if there is one."""


def terms_of(kind: Kind, document: Document, operator_namespace: str) -> set[Term]:
    """All terms of an object."""
    match kind:
        case kinds.DELAY_TOPIC:
            return set(_delay_topic_terms(document))
        case kinds.DELAY_CLASS:
            # The Secrets of classes are the platform team's, beside the operator.
            return {secret_term(operator_namespace, name) for name in secret_names(document.get("spec"))}
        case kinds.RECURRING_RECORD:
            spec = document.get("spec") or {}
            return {recurring_term(Key(document["metadata"].get("namespace", ""), str(spec.get("delayTopic"))))}
    owner, audit = owner_of(document), audit_of(document)
    if owner is not None:
        return {made_for_term(owner)}
    return {made_for_audit_term(audit)} if audit is not None else set()


def owner_of(document: Document) -> Key | None:
    """The DelayTopic that an object or a relay's pod belongs to, by its labels."""
    labels = document["metadata"].get("labels") or {}
    if NAMESPACE_LABEL not in labels or NAME_LABEL not in labels:
        return None
    return Key(labels[NAMESPACE_LABEL], labels[NAME_LABEL])


def audit_of(document: Document) -> Key | None:
    """The audit that an object or a pod belongs to, by its annotation: that of a class, or of a namespace."""
    annotations = document["metadata"].get("annotations") or {}
    of_class, namespace = annotations.get(CLASS_ANNOTATION), annotations.get(NAMESPACE_ANNOTATION)
    return audit_key(namespace or "", of_class) if of_class or namespace else None


def secret_names(part: object) -> Iterator[str]:
    """The Secrets that are named anywhere below; in all of the API their names stand in fields called secretName."""
    if isinstance(part, dict):
        for name, value in part.items():
            if name == "secretName" and isinstance(value, str):
                yield value
            else:
                yield from secret_names(value)
    elif isinstance(part, list):
        for value in part:
            yield from secret_names(value)


def class_term(name: str) -> Term:
    """DelayTopics of a class."""
    return ("class", name)


def secret_term(namespace: str, name: str) -> Term:
    """DelayTopics and classes that use a Secret."""
    return ("secret", namespace, name)


def recurring_term(key: Key) -> Term:
    """RecurringRecords of a DelayTopic."""
    return ("recurring", *key)


def made_for_term(key: Key) -> Term:
    """Objects made for a DelayTopic."""
    return ("made-for", *key)


def made_for_audit_term(audit: Key) -> Term:
    """Objects made for an audit."""
    return ("made-for-audit", *audit)


def own_connection_term(namespace: str) -> Term:
    """DelayTopics of a namespace that have no class."""
    return ("own-connection", namespace)


def _delay_topic_terms(document: Document) -> Iterator[Term]:
    namespace, spec = document["metadata"].get("namespace", ""), document.get("spec") or {}
    if spec.get("delayClassName") or not spec.get("connection"):
        yield class_term(spec.get("delayClassName") or NO_CLASS)
    else:
        yield own_connection_term(namespace)
    for name in secret_names(spec):
        yield secret_term(namespace, name)
