"""The rules by which a relay reads, for whoever declares them: whether two differ. Pure.

Which of two came first is told with `RelaySchedule.declared_ms`.
"""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any, Final

from delaytopic_api.relay.config import RelaySchedule, RelayTarget

_MARK_LENGTH: Final = 32
_TOLD_APART: Final = "declaredMs"
"""Follows from the mark."""


def rules_mark(schedule: RelaySchedule, target: RelayTarget) -> str:
    """Return 128 bits of a digest of all that the verdict on a record and its due time, id and target follow from.

    A field that a relay applies only on the way out counts, too: relays start anew for it in any case.
    """
    fields: dict[str, Any] = {name: value for name, value in schedule.to_document().items() if name != _TOLD_APART}
    parts = {"schedule": fields, "topic": target.topic, "allowed": target.allowed_topics}
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"))
    return sha256(text.encode()).hexdigest()[:_MARK_LENGTH]
