"""The pages of a relay that has not started yet, as its configuration lets clients see them."""

from __future__ import annotations

from http.client import HTTPConnection
from pathlib import Path

import pytest
from structlog.testing import capture_logs
from tests.support.outer_address import outer_address
from tests.support.relay.route import Route, Servers

from delaytopic_relay.clock import SystemClock
from delaytopic_relay.core.commands import Schedule
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
