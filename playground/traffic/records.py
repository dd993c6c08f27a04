"""Contents of a run's records; knows nothing of the project's own code. Pure."""

from __future__ import annotations

import re
from typing import NamedTuple

_VALUE = re.compile(rb"([A-Za-z0-9.-]+) ([0-9]+) ([0-9]+|cancel)")
_RECEIPT = re.compile(rb"([0-9]+):([0-9]+):([0-9]+)(?:@[0-9]+)?:([0-9]+):(.+)")

Headers = list[tuple[str, bytes]]


class Content(NamedTuple):
    """The content of a record's value: its run and number, and when it is due; None: it withdraws the record of that
    number.
    """

    run: str
    number: int
    due_ms: int | None


class Receipt(NamedTuple):
    """The header `delay-receipt`: what the relay says of a record that it delivered."""

    due_ms: int
    partition: int
    offset: int
    sent_ms: int
    topic: str


def value_of(content: Content) -> bytes:
    """Short, and readable on a topic."""
    due = b"cancel" if content.due_ms is None else b"%d" % content.due_ms
    return b"%s %d %s" % (content.run.encode(), content.number, due)


def content_of(value: bytes | None) -> Content | None:
    """The inverse of `value_of`; None for a record that no sender of this folder wrote."""
    match = _VALUE.fullmatch(value or b"")
    if match is None:
        return None
    run, number, due = match.groups()
    return Content(run.decode(), int(number), None if due == b"cancel" else int(due))


def headers_of(content: Content, id: bytes | None) -> Headers:
    """Return what asks for the delivery, or withdraws it."""
    named = [("deliver-id", id)] if id is not None else []
    if content.due_ms is None:
        return [*named, ("deliver-action", b"cancel")]
    return [*named, ("deliver-at", b"%d" % content.due_ms)]


def receipt_of(headers: list[tuple[str, bytes | None]]) -> Receipt | None:
    """The last of that name; None when there is none, or one that says nothing."""
    for name, value in reversed(headers):
        if name == "delay-receipt" and (match := _RECEIPT.fullmatch(value or b"")):
            due, partition, offset, sent, topic = match.groups()
            return Receipt(int(due), int(partition), int(offset), int(sent), topic.decode())
    return None
