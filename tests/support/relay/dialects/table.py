"""Conformance tables: records as another service's clients produce them, and what has to come of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from delaytopic_api.records import (
    DEAD_LETTER_REASON,
    DEAD_LETTER_SOURCE,
    ENDED,
    RECEIPT,
    RESTATED,
    Receipt,
    parse_dead_letter,
)

Headers = Sequence[tuple[str, bytes | None]]


FAR_MS = 1_800_000
"""The delay of what is withdrawn: however slow the machine, it waits when the other record is read."""


class Stage(NamedTuple):
    """The time at which records are produced, and the topics that they may name."""

    now_ms: int
    target: str
    other: str
    source: str = "source"
    history: str = "history"


class Origin(NamedTuple):
    """The place of a record, and the time at which it left."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    sent_ms: int


class Produced(NamedTuple):
    """A record on its way in."""

    key: bytes | None
    value: bytes | None
    headers: Headers = []  # noqa: RUF012  # a tuple's default, and never appended to


class Arrived(NamedTuple):
    """A record that is delivered; `headers` without the receipt."""

    topic: str
    due_ms: int
    key: bytes | None
    value: bytes | None
    headers: Headers = []  # noqa: RUF012  # a tuple's default, and never appended to


class Refused(NamedTuple):
    """A dead letter; `headers` without those that every relay appends."""

    reason: str
    key: bytes | None
    value: bytes | None
    headers: Headers = []  # noqa: RUF012  # a tuple's default, and never appended to


class Beside(NamedTuple):
    """A record that is written with a delivery; `partition` where that is the dialect's affair."""

    topic: str
    key: bytes | None
    value: bytes | None
    headers: Headers = []  # noqa: RUF012  # a tuple's default, and never appended to
    partition: int | None = None


Outcome = Arrived | Refused | None
"""None for a record that nothing follows from by itself: a cancel, or one that was withdrawn."""


class Case(NamedTuple):
    """A record and what has to come of it."""

    produced: Produced
    outcome: Callable[[Origin], Outcome]
    beside: Callable[[Origin], Sequence[Beside]] = lambda origin: ()


class Table(NamedTuple):
    """The cases of a dialect, in the order in which they are produced, by what they are."""

    schedule: Mapping[str, Any]
    """`schedule` of the relay's configuration."""
    cases: Callable[[Stage], Mapping[str, Case]]


def untouched(produced: Produced, reason: str, *appended: tuple[str, bytes]) -> Case:
    """A record that is refused and kept as it is, with the dialect's own headers behind it."""
    key, value, headers = produced
    return Case(produced, lambda origin: Refused(reason, key, value, [*headers, *appended]))


def nothing(produced: Produced) -> Case:
    """A record that nothing follows from."""
    return Case(produced, lambda origin: None)


class Seen(NamedTuple):
    """A record that a reader sees, and when it left."""

    partition: int
    offset: int
    sent_ms: int
    outcome: Outcome


def seen(topic: str, key: bytes | None, value: bytes | None, headers: Headers) -> Seen:
    """Read back what a relay wrote: a delivery by its receipt, a dead letter by its own headers."""
    letter = parse_dead_letter([*headers])
    if letter is not None:
        own = [*headers[: [name for name, _ in headers].index(DEAD_LETTER_REASON)]]
        return Seen(letter.partition, letter.offset, letter.at_ms, Refused(letter.reason, key, value, own))
    name, text = headers[-1]
    assert name == RECEIPT, headers
    receipt = Receipt.parse(text)
    outcome = Arrived(topic, receipt.due_ms, key, value, [*headers[:-1]])
    return Seen(receipt.partition, receipt.offset, receipt.sent_ms, outcome)


def beside_of(topic: str, partition: int, key: bytes | None, value: bytes | None, headers: Headers) -> Beside:
    """Read back what was written with a delivery, in a topic that has a place for it: the source, or a history.

    What says where it stands, or when it was written, is left out.
    """
    name, _ = headers[-1]
    assert name in (RECEIPT, RESTATED, DEAD_LETTER_SOURCE), headers
    in_source = value is None or name == RESTATED or any(other == ENDED for other, _ in headers)
    return Beside(topic, key, value, [*headers[:-1]], partition if in_source else None)
