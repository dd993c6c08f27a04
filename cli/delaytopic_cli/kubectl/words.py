"""Numbers and times of a page, as people read them. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

_UNITS = ((86_400, "d"), (3_600, "h"), (60, "m"))


def number(value: object) -> str:
    """`12,345`; a dash for what is not known."""
    return f"{value:,}" if isinstance(value, int) else "-"


def count(value: object, noun: str) -> str:
    """`1 relay`, `2 relays`."""
    return f"{number(value)} {noun}" if value == 1 else f"{number(value)} {noun}s"


def ago(instant: object, now_ms: int) -> str:
    """`12s` or `3h5m`, of a time as Kubernetes writes it; a dash for none."""
    at_ms = instant_ms(instant)
    return "-" if at_ms is None else span(now_ms - at_ms)


def distance(instant: object, now_ms: int) -> str:
    """`in 12s`, or `3m ago`."""
    at_ms = instant_ms(instant)
    if at_ms is None:
        return "-"
    return f"in {span(at_ms - now_ms)}" if at_ms > now_ms else f"{span(now_ms - at_ms)} ago"


def span(span_ms: int) -> str:
    """The two largest units of a span."""
    seconds = max(0, span_ms) // 1_000
    for place, (size, unit) in enumerate(_UNITS):
        if seconds >= size:
            smaller, small = (*_UNITS, (1, "s"))[place + 1]
            rest = seconds % size // smaller
            return f"{seconds // size}{unit}" + (f"{rest}{small}" if rest else "")
    return f"{seconds}s"


def instant_ms(text: object) -> int | None:
    """Epoch milliseconds; None for something else than a time."""
    try:
        return round(datetime.fromisoformat(str(text)).timestamp() * 1_000)
    except ValueError:
        return None


def columns(rows: Sequence[tuple[str, ...]], gap: str = "   ") -> list[str]:
    """Lines whose cells begin below each other."""
    if not rows:
        return []
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    return [gap.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
