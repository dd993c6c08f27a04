"""How `local` shows its overviews: a live table on a terminal, lines elsewhere."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rich.table import Table

from delaytopic_cli.client.lateness import milliseconds_text
from delaytopic_cli.client.time_text import clock_text
from delaytopic_cli.local.overview import Overview


def overview_table(overviews: Sequence[Overview], *, now_ms: int) -> Table:
    """A table with a row for each DelayTopic."""
    table = Table(title="delaytopic local", title_justify="left", caption="Ctrl-C ends", caption_justify="left")
    table.add_column("DelayTopic", no_wrap=True)
    for name in ("relays", "pending", "overdue", "next due", "delivered", "per s", "late p99", "dead letters"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("shards")
    for overview in overviews:
        table.add_row(
            overview.name,
            f"{overview.relays_running}/{overview.relays_wanted}",
            f"{overview.pending:,}",
            f"{overview.overdue:,}",
            clock_text(overview.next_due_ms, now_ms=now_ms),
            f"{overview.delivered:,}",
            _rate_text(overview.rate),
            _lateness_text(overview.late_p99_ms),
            f"{overview.dead_lettered:,}",
            overview.shards,
            style="red" if overview.relays_running < overview.relays_wanted else None,
        )
    return table


def overview_line(overview: Overview, *, now_ms: int) -> str:
    """The same in one line, for logs and pipes."""
    parts = [
        clock_text(now_ms, now_ms=now_ms)[:8],
        overview.name,
        f"relays={overview.relays_running}/{overview.relays_wanted}",
        f"pending={overview.pending}",
        f"overdue={overview.overdue}",
        f"next-due={clock_text(overview.next_due_ms, now_ms=now_ms)}",
        f"delivered={overview.delivered}",
        f"per-second={_rate_text(overview.rate).replace(',', '')}",
        f"late-p99={_lateness_text(overview.late_p99_ms).replace(' ', '')}",
        f"dead-letters={overview.dead_lettered}",
    ]
    return "  ".join(parts)


def _rate_text(rate: float | None) -> str:
    return "-" if rate is None else f"{rate:,.0f}"


def _lateness_text(edge_ms: float | None) -> str:
    if edge_ms is None:
        return "-"
    return "> 1 h" if math.isinf(edge_ms) else f"<= {milliseconds_text(round(edge_ms))}"
