"""A gateway between a client and real relays: what it writes is what relays deliver."""

from __future__ import annotations

import json
import urllib.request
from typing import Any

import pytest
from tests.support.gateway.of_route import gateway_of, rest_of
from tests.support.relay.process import wait_for
from tests.support.relay.records import BUCKETS_NIGHTLY, MakeRoute, now_ms
from tests.support.relay.route import PARTITIONS
from tests.support.relay.routes import STEADY

pytestmark = pytest.mark.integration

HOUR_MS = 3_600_000


class Client:
    """Asks a gateway about its DelayTopic."""

    def __init__(self, base: str) -> None:
        self._base = base

    def __call__(self, method: str, path: str = "", document: Any = None) -> Any:
        body = None if document is None else json.dumps(document).encode()
        request = urllib.request.Request(
            f"{self._base}/records{path}", body, {"Content-Type": "application/json"}, method=method
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)

    def due(self) -> dict[str, int]:
        """Return when each record is due, by id."""
        return {each["id"]: each["dueMs"] for each in self("GET")["records"]}


@BUCKETS_NIGHTLY
def test_records_are_scheduled_moved_released_and_cancelled(make_route: MakeRoute) -> None:
    route = make_route(schedule={"maxDelay": "12h"}, limits=STEADY)
    relay = route.start_relay().wait_until_delivering(PARTITIONS)
    due_ms = now_ms() + HOUR_MS
    with gateway_of(route, relay) as url:
        client = Client(f"{url}{rest_of(route)}")
        for name in ("stays", "later", "now", "never"):
            headers = [{"name": "own", "value": name}]
            client("POST", "", {"id": name, "key": "customer", "value": "tea", "headers": headers, "deliverAt": due_ms})
        wait_for(lambda: len(client.due()) == 4, relay.why)

        client("PATCH", "/later", {"deliverAt": due_ms + HOUR_MS})
        client("PATCH", "/now", {})
        client("DELETE", "/never")

        wait_for(lambda: client.due() == {"stays": due_ms, "later": due_ms + HOUR_MS}, relay.why)
        wait_for(lambda: len(route.read(route.target)) == 1, relay.why)
        moved = client("GET", "/later")
    (delivered,) = route.read(route.target)
    assert (delivered.key, delivered.value) == (b"customer", b"tea")
    assert delivered.headers[0] == ("own", b"now")
    assert [(each["name"], each["value"]) for each in moved["content"]["headers"]] == [
        ("own", "later"),
        ("deliver-id", "later"),
        ("deliver-at", str(due_ms + HOUR_MS)),
    ]
