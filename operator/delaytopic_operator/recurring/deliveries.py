"""Decides what a status says of deliveries: which time of the rule was the last, how many there were, and how many
times passed without one. Pure.

Relays tell the last delivery alone, its number and its time. The times of the rule between it and the one that the
status knows are counted, and those deliveries that are not there are missed: no relay has to remember any of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from delaytopic_api.documents import RecurringRecord, RecurringRecordStatus
from delaytopic_api.policy import recurring_slots
from delaytopic_api.relay import LastOccurrence
from delaytopic_operator.model.conditions import instant

WRITTEN: Final = ("Written", "Ended")
"""The reasons of Ready with which something may recur."""
MOST_COUNTED: Final = 10_000
"""Times of a rule between two deliveries; with more `missed` is too low. It takes half a second."""


def asked_after(record: RecurringRecord, now_ms: int) -> int | None:
    """Return the time up to which the status knows of all deliveries, if a time of the rule has passed since; else
    None: there is nothing to ask relays.
    """
    status = record.status
    if status is None or status.observed_generation != record.metadata.generation:
        return None
    if not any(each.type == "Ready" and each.reason in WRITTEN for each in status.conditions):
        return None
    known_ms = _known_ms(status)
    return known_ms if known_ms is not None and recurring_slots(record, known_ms, 1, now_ms) else None


def shown(status: RecurringRecordStatus | None, *, begins: bool = False) -> dict[str, Any]:
    """Return what the status says already; of a record that `begins` anew only the last time stays."""
    if status is None:
        return {}
    document = status.to_document()
    return {name: document[name] for name in (("last",) if begins else _FIELDS) if name in document}


def with_occurrence(record: RecurringRecord, told: LastOccurrence | None, now_ms: int) -> Mapping[str, Any]:
    """Return what the status says once relays have told a delivery.

    One of a record that was written before, or of a time that is none of the rule, says nothing.
    """
    status = record.status
    known_ms = _known_ms(status) if status is not None else None
    if status is None or told is None or known_ms is None or not known_ms < told.slot_ms <= now_ms:
        return shown(status)
    slots = recurring_slots(record, known_ms, MOST_COUNTED, told.slot_ms)
    is_of_rule = len(slots) == MOST_COUNTED or slots[-1:] == [told.slot_ms]
    deliveries = told.number - (status.delivered or 0)
    if not is_of_rule or deliveries < 1:
        return shown(status)
    missed = (status.missed or 0) + max(0, len(slots) - deliveries)
    return {"last": instant(told.slot_ms), "delivered": told.number, "missed": missed}


_FIELDS: Final = ("last", "delivered", "missed")


def _known_ms(status: RecurringRecordStatus) -> int | None:
    """Return the time up to which the status knows of all deliveries; None where nothing is written."""
    if status.written is None or status.written.at is None:
        return None
    last = status.last if status.delivered else None
    return max(_ms(each) for each in (status.written.at, last) if each is not None)


def _ms(time: datetime) -> int:
    return round(time.timestamp() * 1_000)
