"""The identity, pause and deletion policy that follow from an observation alone. Pure."""

from __future__ import annotations

from typing import Any

from delaytopic_api.values import DeletionPolicy
from delaytopic_operator.observe.observation import Observation
from delaytopic_operator.resources import RelayIdentity, former_child_name
from delaytopic_operator.rules.validate import Accepted, relay_namespace

PAUSE = "delaytopic.dev/pause-reconciliation"
Document = dict[str, Any]


def identity_of(seen: Observation, accepted: Accepted) -> RelayIdentity:
    """Name the relays' place: beside an object with a connection of its own, else where the class says."""
    namespace = relay_namespace(seen.key, accepted.delay_class, seen.config)
    uid = str(seen.metadata.get("uid", ""))
    return RelayIdentity(
        seen.key, uid, namespace, owned=accepted.delay_class is None, former=_has_former(seen, namespace)
    )


def _has_former(seen: Observation, namespace: str) -> bool:
    wanted = ("Deployment", namespace, former_child_name(seen.key))
    return any(address_of(each) == wanted and "deletionTimestamp" not in each["metadata"] for each in seen.children)


def is_paused(seen: Observation) -> bool:
    """Tell if nothing is to be changed; a namespace that is being deleted waits for nobody."""
    return seen.annotations.get(PAUSE) == "true" and not seen.goes_with_namespace


def policy_of(seen: Observation) -> DeletionPolicy:
    """Return what the object says; nothing is removed by a record that cannot be read or may be somebody else's."""
    spec = (seen.document or {}).get("spec") or {}
    policy = DeletionPolicy(spec.get("deletionPolicy", DeletionPolicy.DRAIN))
    unsafe = seen.record_trouble is not None or _is_of_former_namespace(seen)
    return DeletionPolicy.RETAIN if policy is DeletionPolicy.DELETE and unsafe else policy


def _is_of_former_namespace(seen: Observation) -> bool:
    """Tell whether the record is that of a namespace of the same name that somebody else may have had."""
    record, namespace = seen.record, seen.namespace
    return record is not None and namespace is not None and record.namespace_uid != namespace.uid


def address_of(document: Document) -> tuple[str, str, str]:
    """Return kind, namespace and name."""
    metadata = document["metadata"]
    return document["kind"], metadata.get("namespace", ""), metadata["name"]
