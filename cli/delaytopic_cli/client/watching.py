"""The lines that `watch` shows of a delivered record. Pure."""

from __future__ import annotations

import json
from dataclasses import dataclass

from delaytopic_api import MalformedHeader, Receipt
from delaytopic_api.records import RECEIPT, Headers
from delaytopic_cli.client.lateness import milliseconds_text
from delaytopic_cli.client.time_text import clock_text

_PRINTABLE_SHARE = 0.9
_KEY_WIDTH = 20


@dataclass(frozen=True, slots=True)
class Arrival:
    """A delivered record as it was read. `arrived_ms` is None when it had been there before reading began.

    `receipt` is None for records that no relay has delivered.
    """

    partition: int
    offset: int
    arrived_ms: int | None
    key: bytes | None
    value: bytes | None
    receipt: Receipt | None


def receipt_of(headers: Headers | None) -> Receipt | None:
    """Return the last receipt among the headers; None when there is none that can be read."""
    values = [value for name, value in headers or () if name == RECEIPT]
    try:
        return Receipt.parse(values[-1]) if values else None
    except MalformedHeader:
        return None


def table_head() -> str:
    """Return the columns' names."""
    return f"{'DUE':<12}  {'ARRIVED':<12}  {'LATE':>9}  {'KEY':<{_KEY_WIDTH}}  VALUE"


def table_line(arrival: Arrival, *, now_ms: int, width: int) -> str:
    """Return one record in one line of at most `width` columns. LATE is sent minus due, as the relay's receipt says."""
    receipt = arrival.receipt
    due = clock_text(receipt.due_ms if receipt else None, now_ms=now_ms)
    late = milliseconds_text(receipt.lateness_ms if receipt else None)
    arrived = clock_text(arrival.arrived_ms, now_ms=now_ms)
    key, value = preview(arrival.key, limit=_KEY_WIDTH), preview(arrival.value, limit=width)
    return f"{due:<12}  {arrived:<12}  {late:>9}  {key:<{_KEY_WIDTH}}  {value}"[:width]


def json_line(arrival: Arrival) -> str:
    """Return one record as one line of JSON. Bytes that are not UTF-8 become replacement characters."""
    receipt = arrival.receipt
    return json.dumps(
        {
            "partition": arrival.partition,
            "offset": arrival.offset,
            "dueMs": receipt.due_ms if receipt else None,
            "sentMs": receipt.sent_ms if receipt else None,
            "arrivedMs": arrival.arrived_ms,
            "latenessMs": receipt.lateness_ms if receipt else None,
            "source": f"{receipt.topic}:{receipt.partition}:{receipt.offset}" if receipt else None,
            "key": _text(arrival.key),
            "value": _text(arrival.value),
        },
        ensure_ascii=False,
    )


def preview(content: bytes | None, *, limit: int) -> str:
    """Return the start of a key or value in one line: text, or hexadecimal digits when it is not text."""
    if content is None:
        return "-"
    text = content[: limit * 4].decode("utf-8", "replace")
    readable = sum(character.isprintable() or character.isspace() for character in text.replace("\ufffd", "\0"))
    if readable < _PRINTABLE_SHARE * len(text):
        return _cut(content[:limit].hex(), limit)
    return _cut("".join(character if character.isprintable() else " " for character in text), limit)


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _text(content: bytes | None) -> str | None:
    return None if content is None else content.decode("utf-8", "replace")
