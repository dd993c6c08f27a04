"""The pages of a relay that has not started yet, as its configuration lets clients see them."""

from __future__ import annotations

from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from structlog.testing import capture_logs
from tests.support.outer_address import outer_address
from tests.support.relay.backlog.shards import redis_shard
from tests.support.relay.route import Route, Servers
from tests.support.relay.schedules import schedule

from delaytopic_api.relay import RelayState
from delaytopic_relay.clock import SystemClock
from delaytopic_relay.core.commands import Schedule
from delaytopic_relay.engine.loop import DUE_LIMIT, Loop
from delaytopic_relay.engine.snapshot import LoopSnapshot
from delaytopic_relay.telemetry.telemetry import Telemetry


@pytest.mark.parametrize(
    ("http", "statuses"),
    [({}, [503, 403]), ({"pending": "Loopback"}, [503, 403]), ({"pending": "Anywhere"}, [503, 503])],
)
def test_the_configuration_says_whom_a_relay_tells_what_is_pending(
    http: dict[str, str], statuses: list[int], tmp_path: Path
) -> None:
    route = Route(
        Servers("127.0.0.1:1", "redis://127.0.0.1:1/0"), tmp_path, "route", {"http": {"host": "0.0.0.0", **http}}
    )
    telemetry = Telemetry(route.config(), "relay-0", SystemClock())
    with capture_logs() as lines:
        telemetry.start()
    try:
        asked = [status_of(host, int(lines[0]["port"])) for host in ("127.0.0.1", outer_address())]
    finally:
        telemetry.stop()

    assert asked == statuses


def status_of(host: str, port: int) -> int:
    """Return the status of `/pending`."""
    connection = HTTPConnection(host, port, timeout=10)
    try:
        connection.request("GET", "/pending")
        return connection.getresponse().status
    finally:
        connection.close()


def test_misspelt_headers_are_counted_and_the_last_one_is_named(tmp_path: Path) -> None:
    route = Route(Servers("127.0.0.1:1", "redis://127.0.0.1:1/0"), tmp_path, "route", {})
    telemetry = Telemetry(route.config(), "relay-0", SystemClock())

    with capture_logs() as lines:
        telemetry.misspelt("Deliver-At")
        telemetry.misspelt("deliver_after")
    status = telemetry.status()

    assert (status.misspelt_total, status.misspelt_header) == (2, "deliver_after")
    assert b"delaytopic_misspelt_header_records_total" in telemetry.metrics.render()
    assert [line["reason"] for line in lines] == [
        "the header 'Deliver-At' is no control header; did its producer mean deliver-at?"
    ]


def test_times_in_another_unit_are_counted_and_the_log_says_what_was_meant(tmp_path: Path) -> None:
    route = Route(Servers("127.0.0.1:1", "redis://127.0.0.1:1/0"), tmp_path, "route", {})
    telemetry = Telemetry(route.config(), "relay-0", SystemClock())

    with capture_logs() as lines:
        for due_ms in (1_795_269_686, 1_795_269_687):
            telemetry.sent([Schedule(due_ms, 0, b"k", b"v", None)], [], [], 1_795_269_700_000)
            telemetry.committed(1)

    assert telemetry.status().ancient_total == 2
    assert [(line["event"], line["reason"]) for line in lines] == [
        (
            "delivered at once: its time is in another unit",
            "1795269686 as epoch milliseconds is a time in 1973 or before; if it is in seconds, write 1795269686000 "
            "for it",
        )
    ]


def test_a_record_without_any_time_is_nobodys_slip(tmp_path: Path) -> None:
    route = Route(Servers("127.0.0.1:1", "redis://127.0.0.1:1/0"), tmp_path, "route", {})
    telemetry = Telemetry(route.config(), "relay-0", SystemClock())

    with capture_logs() as lines:
        telemetry.sent([Schedule(0, 0, b"k", b"v", None)], [], [], 1_795_269_700_000)
        telemetry.committed(1)

    assert (telemetry.status().ancient_total, lines) == (1, [])


@dataclass
class Clock:
    """One that shows the same moment until it is set."""

    at_ms: int = 1_795_269_600_000
    shift_ms: int = 0
    asked_ms: int = 0

    def now_ms(self) -> int:
        return self.at_ms

    def monotonic_ms(self) -> int:
        return self.at_ms

    def move(self, shift_ms: int) -> None:
        self.shift_ms = shift_ms

    def sleep(self, duration_ms: int) -> None:
        self.at_ms += duration_ms


@pytest.mark.parametrize(
    ("due", "spec", "rate"),
    [
        pytest.param((DUE_LIMIT, DUE_LIMIT), {}, 300.0, id="more due than one batch holds"),
        pytest.param((0, DUE_LIMIT), {}, None, id="some of the time without work"),
        pytest.param((DUE_LIMIT, 100), {}, None, id="small batches"),
        pytest.param((0, 0), {"schedule": {"fixedDelay": "5s"}}, 300.0, id="a fixed delay waits in the source"),
    ],
)
def test_a_relay_tells_what_it_can_do_once_it_has_had_enough_to_do(
    due: tuple[int, int], spec: dict[str, Any], rate: float | None, tmp_path: Path
) -> None:
    clock = Clock()
    route = Route(Servers("127.0.0.1:1", "redis://127.0.0.1:1/0"), tmp_path, "route", spec)
    telemetry = Telemetry(route.config(), "relay-0", clock)

    for records, delivered in zip(due, (0, 300), strict=True):
        clock.sleep(1_000)
        telemetry.sent([Schedule(clock.at_ms, n, b"k", b"v", None) for n in range(delivered)], [], [], clock.at_ms)
        telemetry.committed(1)
        telemetry.turn(loop_with(records, clock.at_ms))

    assert telemetry.status().busy_rate == rate


def loop_with(due: int, now_ms: int) -> Loop:
    """A loop that is never idle, and has one shard in which so many records are due."""
    shard = redis_shard()
    shard.calendar.add([schedule(now_ms - 1, n) for n in range(due)], only_here=True)
    snapshot = LoopSnapshot(RelayState.RUNNING, shards={0: shard})
    state = {"snapshot": lambda: snapshot, "joined": True, "idle_ms": 0, "shards": snapshot.shards, "waiting": {}}
    return cast("Loop", SimpleNamespace(**state))
