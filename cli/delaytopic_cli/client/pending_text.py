"""What `pending` shows on a terminal. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate

from delaytopic_api.relay import PendingRecord
from delaytopic_cli.client.pending_report import PendingReport
from delaytopic_cli.client.time_text import clock_text

_NAME_WIDTH = 24
_UNITS = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "m"), (1_000, "s"))


def table_lines(report: PendingReport, *, now_ms: int, width: int) -> Iterator[str]:
    """A summary, a table with a line for each record, and the notes."""
    yield from _summary(report, now_ms)
    if report.records:
        yield ""
        yield from (line.rstrip()[:width] for line in _table(report.records, now_ms))
    if report.notes:
        yield ""
        yield from (f"not complete: {note}" for note in report.notes)


def _summary(report: PendingReport, now_ms: int) -> Iterator[str]:
    yield f"{report.delay_topic} (source {report.source})"
    facts = [f"{report.pending:,} pending", f"{report.overdue:,} overdue"]
    if report.next_due_ms is not None:
        facts.append(f"next due {clock_text(report.next_due_ms, now_ms=now_ms)}")
    if report.ingest_lag:
        facts.append(f"{report.ingest_lag:,} not yet taken in")
    yield ", ".join(facts)
    sums = accumulate(records for _, records in report.histogram)
    due = [(edge_ms, sum_) for (edge_ms, records), sum_ in zip(report.histogram, sums, strict=True) if records]
    if due:
        yield "due within " + ", ".join(f"{span_text(edge_ms)}: {sum_:,}" for edge_ms, sum_ in due)


def _table(records: Sequence[PendingRecord], now_ms: int) -> Iterator[str]:
    dues = [clock_text(record.due_ms, now_ms=now_ms) for record in records]
    targets = [record.target for record in records]
    due_width = max(map(len, [*dues, "DUE"]))
    target_width = max(map(len, [*targets, "TARGET"]))
    form = (
        f"{{:<{due_width}}}  {{:>8}}  {{:>14}}  {{:<{target_width}}}  {{:<{_NAME_WIDTH}}}  {{:<{_NAME_WIDTH}}}  {{:>8}}"
    )
    yield form.format("DUE", "IN", "SOURCE", "TARGET", "ID", "KEY", "BYTES")
    for record, due in zip(records, dues, strict=True):
        yield form.format(
            due,
            span_text(record.due_ms - now_ms),
            f"{record.partition}:{record.offset}",
            record.target,
            _name(record.id, record.id_base64),
            _name(record.key, record.key_base64),
            "-" if record.value_bytes is None else f"{record.value_bytes:,}",
        )


def span_text(span_ms: int) -> str:
    """The two largest units of a span: `90m` is `1h30m`; `late` for one that has passed."""
    if span_ms < 0:
        return "late"
    for place, (unit_ms, unit) in enumerate(_UNITS):
        if span_ms >= unit_ms:
            rest = span_ms % unit_ms
            smaller_ms, smaller = _UNITS[place + 1] if place + 1 < len(_UNITS) else (1, "ms")
            more = rest // smaller_ms if smaller != "ms" else 0
            return f"{span_ms // unit_ms}{unit}" + (f"{more}{smaller}" if more else "")
    return f"{span_ms}ms"


def _name(text: str | None, base64: str | None) -> str:
    """A key or id in one line of bounded width; base64 is marked as such."""
    if text is None:
        return "-" if base64 is None else _cut(f"base64:{base64}")
    return _cut("".join(character if character.isprintable() else " " for character in text))


def _cut(text: str) -> str:
    return text if len(text) <= _NAME_WIDTH else text[: _NAME_WIDTH - 1] + "…"
