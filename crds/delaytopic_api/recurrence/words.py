"""Recurrence in words, for people."""

from __future__ import annotations

from delaytopic_api.records import rfc_3339
from delaytopic_api.recurrence.rules import Missed, Recurrence, duration_text


def in_words(recurrence: Recurrence) -> str:
    """Return rule, zone and bounds, such as `At 09:00, Monday through Friday; Europe/Berlin; 10 times`."""
    parts = [recurrence.rule.in_words(), recurrence.zone]
    if recurrence.count is not None:
        parts.append("once" if recurrence.count == 1 else f"{recurrence.count} times")
    if recurrence.until_ms is not None:
        parts.append(f"until {rfc_3339(recurrence.until_ms)}")
    if recurrence.jitter_ms:
        parts.append(f"put off by less than {duration_text(recurrence.jitter_ms)}")
    if recurrence.missed is Missed.NONE:
        parts.append("missed ones are left out")
    if recurrence.missed is Missed.ALL and recurrence.catch_up_ms is not None:
        parts.append(f"missed ones of the last {duration_text(recurrence.catch_up_ms)} are made up for")
    return "; ".join(parts)
