"""The overview of one DelayTopic from the status of its relays, as a row and as a line. Pure."""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from delaytopic_api import RelayStatus
from delaytopic_api.relay import RelayState
from delaytopic_gateway.client.lateness import milliseconds_text
from delaytopic_gateway.client.time_text import clock_text

WIDE = 120
"""The number of columns from which on a table of all DelayTopics has room for its headings."""
WINDOW = 30
"""Over how many readings the lateness is taken."""


@dataclass(frozen=True, slots=True)
class Overview:
    """One DelayTopic at one moment. Totals are since `local` started; None stands for not known.

    `late_p99_ms` is the upper edge of the histogram bin that the percentile is in, over the last half minute.
    """

    name: str
    relays_running: int
    relays_wanted: int
    pending: int
    overdue: int
    next_due_ms: int | None
    delivered: int
    dead_lettered: int
    rate: float | None
    late_p99_ms: float | None
    shards: str
    trouble: str | None = None
    """The relay's complaint now."""


class Counters:
    """Keeps what the single readings do not say: totals beyond the life of one relay process, rates, percentiles."""

    def __init__(self, name: str, relays_wanted: int) -> None:
        self._name = name
        self._relays_wanted = relays_wanted
        self._latest: dict[str, RelayStatus] = {}
        self._previous: tuple[int, int] | None = None
        self._lateness: deque[Mapping[float, int]] = deque([{}], maxlen=WINDOW)
        self.latest: Overview | None = None

    def take(
        self,
        statuses: Sequence[RelayStatus],
        lateness: Mapping[float, int],
        trouble: str | None = None,
        *,
        now_ms: int,
    ) -> Overview:
        """Return the overview of this moment. A relay that waits for Kafka or Redis at its start does not run yet.

        `statuses` of the relays that answered; `lateness`: the sum of their histograms, cumulative by upper edge in ms.
        """
        self._latest |= {status.relay: status for status in statuses}
        delivered = sum(status.delivered_total for status in self._latest.values())
        rate = self._rate(delivered, now_ms)
        self._remember(lateness)
        next_dues = [status.next_due_ms for status in statuses if status.next_due_ms is not None]
        self.latest = Overview(
            name=self._name,
            relays_running=sum(status.state is not RelayState.STARTING for status in statuses),
            relays_wanted=self._relays_wanted,
            pending=sum(status.pending - status.withdrawn for status in statuses),
            overdue=sum(status.overdue for status in statuses),
            next_due_ms=min(next_dues, default=None),
            delivered=delivered,
            dead_lettered=sum(status.dead_lettered_total for status in self._latest.values()),
            rate=rate,
            late_p99_ms=percentile_edge(self._lateness[0], self._lateness[-1], 0.99),
            shards=_shards(statuses),
            trouble=trouble,
        )
        return self.latest

    def _rate(self, delivered: int, now_ms: int) -> float | None:
        previous, self._previous = self._previous, (now_ms, delivered)
        if previous is None or now_ms <= previous[0]:
            return None
        return (delivered - previous[1]) * 1000 / (now_ms - previous[0])

    def _remember(self, lateness: Mapping[float, int]) -> None:
        """Add up counts over processes: lower ones than before are those of a new process, which began at zero."""
        if not lateness:
            return
        if any(lateness.get(edge, 0) < count for edge, count in self._lateness[-1].items()):
            self._lateness.clear()
            self._lateness.append({})
        self._lateness.append(dict(lateness))


def percentile_edge(before: Mapping[float, int], after: Mapping[float, int], share: float) -> float | None:
    """Return the upper edge of the bin in which a percentile lies, of what a cumulative histogram gained in between.

    None when it gained nothing; infinity is a valid edge.
    """
    gained = after.get(math.inf, 0) - before.get(math.inf, 0)
    if gained <= 0:
        return None
    edges = sorted(after)
    return next(edge for edge in edges if after[edge] - before.get(edge, 0) >= share * gained)


def _shards(statuses: Sequence[RelayStatus]) -> str:
    states = Counter(str(shard.state) for status in statuses for shard in status.shards)
    return ", ".join(f"{count} {state}" for state, count in sorted(states.items())) or "none"


def overview_table(overviews: Sequence[Overview], *, now_ms: int, width: int) -> RenderableType:
    """Return a table with a row for each DelayTopic; where the terminal is narrow, a table for each."""
    end = Text("Ctrl-C ends", style="italic")
    if width >= WIDE:
        return Group(_table(overviews, now_ms, wide=True), *_troubles(overviews), end)
    return Group(*(Group(_table([each], now_ms, wide=False), *_troubles([each])) for each in overviews), end)


def _table(overviews: Sequence[Overview], now_ms: int, *, wide: bool) -> Table:
    title = "delaytopic local" if wide else f"{overviews[0].name}: {overviews[0].shards}"
    padding = (0, 2 if wide else 1, 0, 0)
    table = Table(title=title, title_justify="left", box=None, padding=padding, header_style="underline")
    if wide:
        table.add_column("DelayTopic", no_wrap=True)
    for name in ("relays", "pending", "overdue", "next due", "delivered", "per s", "late\np99", "dead\nletters"):
        table.add_column(name, justify="right", no_wrap=True)
    if wide:
        table.add_column("shards")
    for overview in overviews:
        figures = (
            f"{overview.relays_running}/{overview.relays_wanted}",
            f"{overview.pending:,}",
            f"{overview.overdue:,}",
            clock_text(overview.next_due_ms, now_ms=now_ms).partition(".")[0],
            f"{overview.delivered:,}",
            _rate_text(overview.rate),
            _lateness_text(overview.late_p99_ms),
            f"{overview.dead_lettered:,}",
        )
        row = (overview.name, *figures, overview.shards) if wide else figures
        table.add_row(*row, style="red" if overview.relays_running < overview.relays_wanted else None)
    return table


def _troubles(overviews: Sequence[Overview]) -> list[Text]:
    return [Text(f"{each.name}: {each.trouble}", style="red") for each in overviews if each.trouble is not None]


def overview_line(overview: Overview, *, now_ms: int) -> str:
    """Return the same in one line, for logs and pipes."""
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
    return "  ".join([*parts, *([f"trouble={overview.trouble}"] if overview.trouble is not None else [])])


def _rate_text(rate: float | None) -> str:
    return "-" if rate is None else f"{rate:,.0f}"


def _lateness_text(edge_ms: float | None) -> str:
    if edge_ms is None:
        return "-"
    return "> 1 h" if math.isinf(edge_ms) else f"<= {milliseconds_text(round(edge_ms))}"
