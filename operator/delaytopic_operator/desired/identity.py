"""Names, labels and owners of everything that is made for a DelayTopic."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from hashlib import sha256
from typing import Any, Final

from delaytopic_api.metadata import API_VERSION, GROUP
from delaytopic_operator.keys import Key

Document = dict[str, Any]

MANAGER: Final = "delaytopic-operator"
RELAY: Final = "delaytopic-relay"
AUDIT: Final = "delaytopic-audit"
NAMESPACE_LABEL: Final = f"{GROUP}/namespace"
NAME_LABEL: Final = f"{GROUP}/name"
OWNER_LABEL: Final = f"{GROUP}/owner-uid"
LONGEST_CRON_JOB: Final = 52
"""Kubernetes adds eleven characters to the name of each Job that a CronJob makes."""

_RESERVED_LABELS = ("app.kubernetes.io/name", "app.kubernetes.io/managed-by", "app.kubernetes.io/component")


@dataclass(frozen=True, slots=True)
class RelayIdentity:
    """Whose relays these are, and where they run."""

    key: Key
    """The DelayTopic."""
    uid: str
    """Its uid."""
    namespace: str
    """Where the relays run."""
    owned: bool
    """Whether Kubernetes removes the children with the DelayTopic; not possible across namespaces."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """What the children inherit from the DelayTopic; `children` sets it from the allow list."""
    annotations: Mapping[str, str] = field(default_factory=dict)
    """What the children inherit from the DelayTopic; `children` sets it from the allow list."""


def child_name(key: Key) -> str:
    """What every child is called: different for different DelayTopics, up to 55 characters."""
    return f"{key.name}-relay-{_hash8(key)}"


def audit_name(key: Key) -> str:
    """What the CronJob of the audit is called: up to 52 characters, so that long names are cut."""
    ending = f"-audit-{_hash8(key)}"
    return key.name[: LONGEST_CRON_JOB - len(ending)].rstrip("-") + ending


def selector(key: Key, program: str = RELAY) -> dict[str, str]:
    """The labels by which the pods of a DelayTopic are found; they never change."""
    return {"app.kubernetes.io/name": program, NAMESPACE_LABEL: key.namespace, NAME_LABEL: key.name}


def labels(identity: RelayIdentity, program: str = RELAY) -> dict[str, str]:
    """The labels of every child."""
    return {
        **identity.labels,
        **selector(identity.key, program),
        "app.kubernetes.io/managed-by": MANAGER,
        "app.kubernetes.io/component": program.removeprefix("delaytopic-"),
        OWNER_LABEL: identity.uid,
    }


def pod_labels(identity: RelayIdentity, program: str = RELAY) -> dict[str, str]:
    """The labels of pods: without the owner's uid, so that applying a deleted DelayTopic again starts no pod anew."""
    return {name: value for name, value in labels(identity, program).items() if name != OWNER_LABEL}


def is_reserved(name: str) -> bool:
    """Whether a label or an annotation is the operator's own."""
    return name in _RESERVED_LABELS or name.partition("/")[0] == GROUP


def inherited(values: Mapping[str, str], allowed: Iterable[str]) -> dict[str, str]:
    """Of the DelayTopic's labels or annotations those that its children get: on the list, which may hold globs."""
    globs = tuple(allowed)
    return {
        name: value
        for name, value in sorted(values.items())
        if not is_reserved(name) and any(fnmatchcase(name, glob) for glob in globs)
    }


def metadata(identity: RelayIdentity, name: str, program: str = RELAY) -> Document:
    """The metadata of a child; the owner's deletion is not held up by it (`blockOwnerDeletion` needs a right)."""
    document: Document = {"name": name, "namespace": identity.namespace, "labels": labels(identity, program)}
    if identity.annotations:
        document["annotations"] = dict(identity.annotations)
    if identity.owned:
        owner = {"apiVersion": API_VERSION, "kind": "DelayTopic", "name": identity.key.name, "uid": identity.uid}
        document["ownerReferences"] = [{**owner, "controller": True}]
    return document


def is_own(document: Mapping[str, Any], key: Key) -> bool:
    """Tell whether an object is this DelayTopic's by its labels, or by none: labels that were lost are restored."""
    labels = document["metadata"].get("labels") or {}
    return (labels.get(NAMESPACE_LABEL, key.namespace), labels.get(NAME_LABEL, key.name)) == key


def _hash8(key: Key) -> str:
    return sha256(str(key).encode()).hexdigest()[:8]
