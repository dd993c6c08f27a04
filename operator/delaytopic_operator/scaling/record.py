"""What scaling remembers, beside the record of the route in the same ConfigMap. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from delaytopic_operator.model.record import RouteRecord, record_document
from delaytopic_operator.scaling.memory import ScalingMemory

DATA_KEY: Final = "scaling.json"


def with_memory(
    record: RouteRecord, memory: ScalingMemory | None, operator_namespace: str, now_ms: int
) -> dict[str, Any]:
    """The ConfigMap to apply."""
    document = record_document(record, operator_namespace)
    if memory is not None:
        document["data"][DATA_KEY] = json.dumps(memory.to_document(now_ms), sort_keys=True)
    return document


def memory_of(document: Mapping[str, Any] | None) -> ScalingMemory | None:
    """What the ConfigMap holds; None when nothing was written down, or nothing that this release understands."""
    text = ((document or {}).get("data") or {}).get(DATA_KEY)
    if text is None:
        return None
    try:
        return ScalingMemory.from_document(json.loads(text))
    except ValueError:
        # A memory only saves learning again: nothing depends on it being there.
        return None
