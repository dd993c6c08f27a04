"""The rules by which relays read: when they were declared, and whether all that is read now is read by them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from delaytopic_operator.model.declared_rules import DeclaredRules, declared, taken_over
from delaytopic_operator.model.record import RouteRecord
from delaytopic_operator.observe.observation import Observation
from delaytopic_operator.resources.identity import CONFIG_HASH
from delaytopic_operator.rules.validate import Accepted


def rules_of(seen: Observation, accepted: Accepted) -> DeclaredRules:
    """Return the declared rules, as they are to be written down."""
    return declared(seen.record.rules if seen.record is not None else None, accepted.settings, seen.now_ms)


def rules_taken_over(record: RouteRecord, seen: Observation, wanted: Iterable[Mapping[str, Any]]) -> RouteRecord:
    """Return the record, its rules taken over if relays of the `wanted` Deployment read all partitions by them."""
    if record.rules is None or record.rules.taken_over or not _read_by_all(seen, wanted):
        return record
    return record.model_copy(update={"rules": taken_over(record.rules, seen.now_ms)})


def _read_by_all(seen: Observation, wanted: Iterable[Mapping[str, Any]]) -> bool:
    deployment = next((each for each in wanted if each["kind"] == "Deployment"), None)
    live = seen.fleet.deployment
    if deployment is None or live is None or _pod_hash(deployment) != _pod_hash(live):
        return False
    current = seen.fleet.of_template
    return current.complete and all(shard.rules_wait is None for shard in current.shards.values())


def _pod_hash(deployment: Mapping[str, Any]) -> str | None:
    template: Mapping[str, Any] = deployment["spec"].get("template") or {}
    found: Mapping[str, str] = (template.get("metadata") or {}).get("annotations") or {}
    return found.get(CONFIG_HASH)
