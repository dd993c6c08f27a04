"""The owner of a pod, as far as the pod itself says: anybody can write labels. Pure.

ReplicaSets and Jobs are not watched. An owner that is not there does not help a forger for long: Kubernetes' garbage
collector removes such pods.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from delaytopic_operator.model.keys import Key
from delaytopic_operator.resources import child_name, former_child_name

TEMPLATE_HASH: Final = "pod-template-hash"


def is_relay(pod: Mapping[str, Any], key: Key) -> bool:
    """Tell whether a ReplicaSet of the relays' Deployment made the pod."""
    template = (pod["metadata"].get("labels") or {}).get(TEMPLATE_HASH)
    replica_sets = {f"{name}-{template}" for name in (child_name(key), former_child_name(key))}
    return template is not None and _maker(pod, "apps/v1", "ReplicaSet") in replica_sets


def is_run_by_job(pod: Mapping[str, Any]) -> bool:
    """Tell whether a Job made the pod; those that a person starts from the CronJob have names of any kind."""
    return _maker(pod, "batch/v1", "Job") is not None


def _maker(pod: Mapping[str, Any], api_version: str, kind: str) -> str | None:
    for owner in pod["metadata"].get("ownerReferences") or ():
        if owner.get("controller") and (owner.get("apiVersion"), owner.get("kind")) == (api_version, kind):
            return str(owner.get("name"))
    return None
