from __future__ import annotations

import io
import math
from dataclasses import replace

import pytest
from rich.console import Console

from delaytopic_api import RelayStatus
from delaytopic_api.relay import RelayState
from delaytopic_local.session.overview import Counters, Overview, overview_line, overview_table, percentile_edge


def status(relay: str, *, delivered: int = 0, pending: int = 0, next_due_ms: int | None = None) -> RelayStatus:
    shard = {
        "partition": 0,
        "state": "Delivering",
        "committedOffset": 0,
        "position": 0,
        "pending": pending,
        "overdue": 0,
        "ingestLag": 0,
    }
    return RelayStatus.model_validate(
        {
            "relay": relay,
            "delayTopic": "shop/reminders",
            "startedAtMs": 0,
            "asOfMs": 0,
            "state": "Running",
            "guarantee": "ExactlyOnce",
            "backend": "RedisZset",
            "speedups": True,
            "deliveredTotal": delivered,
            "deadLetteredTotal": 1,
            "supersededTotal": 0,
            "cancelledTotal": 0,
            "pending": pending,
            "overdue": 2,
            "nextDueMs": next_due_ms,
            "ingestLag": 0,
            "memoryBytes": 0,
            "shards": [shard],
        }
    )


def test_the_relays_of_a_delay_topic_add_up() -> None:
    counters = Counters("shop/reminders", 2)

    overview = counters.take(
        [status("a", delivered=10, pending=5, next_due_ms=900), status("b", delivered=20, pending=6, next_due_ms=800)],
        {10.0: 29, math.inf: 30},
        now_ms=1_000,
    )

    assert overview == Overview(
        name="shop/reminders",
        relays_running=2,
        relays_wanted=2,
        pending=11,
        overdue=4,
        next_due_ms=800,
        delivered=30,
        dead_lettered=2,
        rate=None,
        late_p99_ms=math.inf,
        shards="2 Delivering",
    )


def test_what_relays_know_to_be_withdrawn_does_not_count_as_pending() -> None:
    told = [status("a", pending=5).model_copy(update={"withdrawn": 2}), status("b", pending=6)]

    assert Counters("shop/reminders", 2).take(told, {}, now_ms=1_000).pending == 9


def test_totals_outlive_the_relay_that_counted_them() -> None:
    counters = Counters("shop/reminders", 1)
    counters.take([status("first", delivered=10)], {}, now_ms=0)
    counters.take([], {}, now_ms=1_000)

    overview = counters.take([status("second", delivered=5)], {}, now_ms=2_000)

    assert (overview.delivered, overview.dead_lettered, overview.rate) == (15, 2, 5.0)


def test_no_relay_is_shown_as_it_is() -> None:
    overview = Counters("shop/reminders", 1).take([], {}, now_ms=0)

    assert (overview.relays_running, overview.next_due_ms, overview.late_p99_ms, overview.shards) == (
        0,
        None,
        None,
        "none",
    )


def test_lateness_is_of_the_last_half_minute() -> None:
    counters = Counters("shop/reminders", 1)
    counters.take([], {10.0: 0, 5_000.0: 900, math.inf: 900}, now_ms=0)

    edges = [
        counters.take(
            [], {10.0: second, 5_000.0: 900 + second, math.inf: 900 + second}, now_ms=second * 1000
        ).late_p99_ms
        for second in range(1, 60)
    ]

    assert (edges[0], edges[-1]) == (5_000.0, 10.0)


def test_a_relays_restart_begins_its_lateness_anew() -> None:
    counters = Counters("shop/reminders", 1)
    counters.take([], {10.0: 0, math.inf: 100}, now_ms=0)

    overview = counters.take([], {10.0: 50, math.inf: 50}, now_ms=1_000)

    assert overview.late_p99_ms == 10.0


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({}, {}, None),
        ({}, {1.0: 99, 10.0: 100, math.inf: 100}, 1.0),
        ({}, {1.0: 98, 10.0: 100, math.inf: 100}, 10.0),
        ({1.0: 50, math.inf: 50}, {1.0: 50, math.inf: 60}, math.inf),
        ({1.0: 50, math.inf: 50}, {1.0: 50, math.inf: 50}, None),
    ],
)
def test_the_percentile_is_the_edge_of_its_bin(
    before: dict[float, int], after: dict[float, int], expected: float | None
) -> None:
    assert percentile_edge(before, after, 0.99) == expected


OVERVIEW = Overview("shop/reminders", 1, 2, 12_000, 3, None, 5_000, 4, 512.4, 20.0, "4 Delivering")


def test_an_overview_in_one_line() -> None:
    assert overview_line(OVERVIEW, now_ms=0).split()[1:] == [
        *("shop/reminders", "relays=1/2", "pending=12000", "overdue=3", "next-due=-", "delivered=5000"),
        *("per-second=512", "late-p99=<=20ms", "dead-letters=4"),
    ]


def test_a_trouble_is_at_the_end_of_the_line() -> None:
    line = overview_line(replace(OVERVIEW, trouble="Redis is not available"), now_ms=0)

    assert line.endswith("  dead-letters=4  trouble=Redis is not available")


def shown(overviews: list[Overview], width: int) -> list[str]:
    console = Console(width=width, file=io.StringIO())
    with console.capture() as capture:
        console.print(overview_table(overviews, now_ms=0, width=width))
    return capture.get().splitlines()


def test_an_overview_as_a_table() -> None:
    row = next(line for line in shown([OVERVIEW], 140) if "shop/reminders" in line)

    assert row.split() == [
        *("shop/reminders", "1/2", "12,000", "3", "-", "5,000", "512", "<=", "20", "ms", "4", "4", "Delivering")
    ]


@pytest.mark.parametrize("width", [80, 140])
def test_no_heading_is_cut(width: int) -> None:
    busy = replace(OVERVIEW, pending=12_345_678, overdue=123_456, delivered=12_345_678, next_due_ms=1_000)
    lines = shown([busy], width)

    headings = " ".join(line for line in lines[1:4])
    assert "…" not in "".join(lines)
    assert max(map(len, lines)) <= width
    for word in ("relays", "pending", "overdue", "next due", "delivered", "per s", "late", "p99", "dead", "letters"):
        assert word in headings


@pytest.mark.parametrize("width", [80, 140])
def test_troubles_stand_below_their_table(width: int) -> None:
    assert "shop/reminders: Redis is not available" in shown(
        [replace(OVERVIEW, trouble="Redis is not available")], width
    )


def test_a_relay_that_still_waits_at_its_start_does_not_run() -> None:
    waiting = status("a").model_copy(update={"state": RelayState.STARTING})

    assert Counters("shop/reminders", 1).take([waiting], {}, now_ms=0).relays_running == 0
