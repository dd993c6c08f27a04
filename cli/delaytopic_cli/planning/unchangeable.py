"""Changes that the API server refuses, since records that are pending would suffer from them. Pure.

The rules are those of the custom resource definition that compare an object with what it was before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

_TOPICS = ("source", "target", "deadLetter")


def refused_change(live: Mapping[str, Any], after: Mapping[str, Any]) -> str | None:
    """Why the API server would not take the change; None if it would."""
    before, now = live.get("spec") or {}, after.get("spec") or {}
    return "; ".join(_refusals(before, now)) or None


def _refusals(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    if before.get("delayClassName") != now.get("delayClassName"):
        yield _fixed("spec.delayClassName", before.get("delayClassName"))
    for role in _TOPICS:
        old, new = before.get(role), now.get(role)
        if not isinstance(old, Mapping) or not isinstance(new, Mapping):
            continue
        if old.get("topic") != new.get("topic"):
            yield _fixed(f"spec.{role}.topic", old.get("topic"))
        partitions = new.get("partitions")
        if "partitions" in old and (not isinstance(partitions, int) or partitions < old["partitions"]):
            yield f"spec.{role}.partitions: is {old['partitions']} and can only grow: Kafka removes no partitions"


def _fixed(path: str, value: object) -> str:
    was = f"it is {value}" if value is not None else "it is not set"
    return f"{path}: cannot be changed ({was}): drain this DelayTopic and make another"
