"""The rules by which a relay reads, for whoever declares them: whether two differ, and go with each other. Pure.

Which of two came first is told with `RelaySchedule.declared_ms`.
"""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any, Final

from delaytopic_api.relay.config import RelaySchedule, RelayTarget
from delaytopic_api.values.choices import CAPABILITIES, Dialect, Ids

_MARK_LENGTH: Final = 32
_TOLD_APART: Final = "declaredMs"
"""Follows from the mark."""


def rules_mark(schedule: RelaySchedule, target: RelayTarget) -> str:
    """Return 128 bits of a digest of all that the verdict on a record and its due time, id and target follow from.

    A field that a relay applies only on the way out counts, too: relays start anew for it in any case.
    """
    fields: dict[str, Any] = {name: value for name, value in schedule.to_document().items() if name != _TOLD_APART}
    parts = {"schedule": fields, "topic": target.topic, "allowed": target.allowed}
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"))
    return sha256(text.encode()).hexdigest()[:_MARK_LENGTH]


def may_wait_together(former: Dialect, former_ids: Ids, dialect: Dialect, ids: Ids) -> bool:
    """Return whether records of both rules may wait at the same time: their ids must not be equal by chance.

    If not, an edit takes effect when nothing waits any more.
    """
    if CAPABILITIES[former].postpones and former is not dialect:
        return False
    before, now = _id_space(former, former_ids), _id_space(dialect, ids)
    return before is None or now is None or before == now


def _id_space(dialect: Dialect, ids: Ids) -> tuple[Dialect, Ids] | None:
    used = ids if dialect is Dialect.NATIVE else CAPABILITIES[dialect].ids
    return None if used is Ids.DISABLED else (dialect, used)
