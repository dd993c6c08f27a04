"""The lines that `watch` shows of a delivered record. Pure."""

from __future__ import annotations

import json
from dataclasses import dataclass

from delaytopic_api import MalformedHeader, Receipt
from delaytopic_api.records import RECEIPT, Headers
from delaytopic_gateway.client.lateness import milliseconds_text
from delaytopic_gateway.client.time_text import clock_text

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
    """Return what is measured, and the columns' names."""
    return (
        "SENT and ARRIVED are after DUE: the relay's clock says when it was sent, this machine's when it arrived.\n"
        f"{'DUE':<12}  {'SENT':>9}  {'ARRIVED':>9}  {'KEY':<{_KEY_WIDTH}}  VALUE"
    )


def table_line(arrival: Arrival, *, now_ms: int, width: int) -> str:
    """Return one record in one line of at most `width` columns."""
    due = clock_text(arrival.receipt.due_ms if arrival.receipt else None, now_ms=now_ms)
    sent, arrived = (_after(span_ms) for span_ms in (_sent_after_ms(arrival), _arrived_after_ms(arrival)))
    key, value = preview(arrival.key, limit=_KEY_WIDTH), preview(arrival.value, limit=width)
    return f"{due:<12}  {sent:>9}  {arrived:>9}  {key:<{_KEY_WIDTH}}  {value}"[:width]


def _sent_after_ms(arrival: Arrival) -> int | None:
    return arrival.receipt.lateness_ms if arrival.receipt else None


def _arrived_after_ms(arrival: Arrival) -> int | None:
    """Return how long after its due time it arrived; negative where the clocks differ."""
    if arrival.receipt is None or arrival.arrived_ms is None:
        return None
    return arrival.arrived_ms - arrival.receipt.due_ms


def _after(span_ms: int | None) -> str:
    return "-" if span_ms is None else f"{'+' if span_ms >= 0 else ''}{milliseconds_text(span_ms)}"


def json_line(arrival: Arrival) -> str:
    """Return one record as one line of JSON. Bytes that are not UTF-8 become replacement characters."""
    receipt = arrival.receipt
    return json.dumps(
        {
            "partition": arrival.partition,
            "offset": arrival.offset,
            "timestampMs": receipt.timestamp_ms if receipt else None,
            "dueMs": receipt.due_ms if receipt else None,
            "sentMs": receipt.sent_ms if receipt else None,
            "arrivedMs": arrival.arrived_ms,
            "latenessMs": _sent_after_ms(arrival),
            "arrivedAfterDueMs": _arrived_after_ms(arrival),
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
