"""Chains: the occurrences of a record that recurs, one behind the other, and what its rule has between two of them.

A link is read of one record alone. Rows carry it as text, as few records have one.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Final, NamedTuple

from delaytopic_api.records import DELIVER_AT, RECURRENCE_HEADERS, Headers
from delaytopic_api.recurrence import (
    Occurrence,
    Passed,
    Recurrence,
    RecurrenceError,
    left_out,
    passed_over,
    read_recurrence,
    upcoming,
)

BETWEEN: Final = ":"
"""The sign between the parts of a link's text; the last of them may have some more."""
_OF_RULE: Final = (*sorted(RECURRENCE_HEADERS), DELIVER_AT)
_UNKNOWN: Final = (LookupError, ValueError, OSError)
"""Errors of a zone that this machine does not have, or has damaged."""


class Link(NamedTuple):
    """The place of one record in its chain."""

    slot_ms: int | None
    """Its own slot; None of the record that the chain begins with."""
    next_ms: int | None = None
    """The slot that its rule has next; None where none is left."""
    rule: str = ""
    """Its headers that are about recurrence, as JSON; empty where this machine does not know what they say."""

    def text(self) -> str:
        """Return it as rows have it."""
        numbers = ("" if ms is None else str(ms) for ms in (self.slot_ms, self.next_ms))
        return BETWEEN.join((*numbers, self.rule))


def link_of(headers: Headers, identity: bytes, timestamp_ms: int, occurrence: Occurrence | None) -> Link:
    """Return the link of a record that recurs with a timestamp, or of an occurrence of it."""
    controls = {name: value for name, value in headers if name in _OF_RULE}
    slot_ms = None if occurrence is None else occurrence.nominal_ms
    # An interval that is counted from a slot of its own has the same slots.
    since_ms = timestamp_ms if slot_ms is None else slot_ms
    try:
        recurrence = read_recurrence(controls, since_ms)
        if recurrence is None:
            return Link(slot_ms)
        following = upcoming(recurrence, identity, occurrence, 1)
    except (RecurrenceError, *_UNKNOWN):
        return Link(slot_ms)
    texts = {name: value.decode("ascii") for name, value in controls.items() if value is not None}
    return Link(slot_ms, following[0].nominal_ms if following else None, json.dumps(texts, sort_keys=True))


def between(rule: str, next_ms: int, following: Occurrence, now_ms: int) -> Passed:
    """Return the slots of a rule, from one on, before the occurrence that follows, which was chosen at an instant."""
    return passed_over(_recurrence(rule, next_ms), next_ms - 1, following, now_ms)


def behind(rule: str, next_ms: int) -> tuple[int, int] | None:
    """Return how many slots a rule has, from one on, and from which instant on nothing need follow: all are missed."""
    return left_out(_recurrence(rule, next_ms), next_ms - 1)


@lru_cache(maxsize=1024)
def _recurrence(rule: str, next_ms: int) -> Recurrence:
    controls = {name: text.encode() for name, text in json.loads(rule).items()}
    recurrence = read_recurrence(controls, next_ms)
    assert recurrence is not None
    return recurrence
