"""A gateway between a client and real relays: what it writes is what relays deliver."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from tests.support.relay.process import RelayProcess, wait_for
from tests.support.relay.records import BUCKETS_NIGHTLY, MakeRoute, now_ms
from tests.support.relay.route import PARTITIONS, Route
from tests.support.relay.routes import STEADY

from delaytopic_api.values import Dialect, Ids
from delaytopic_gateway.access.rights import LoopbackAccess
from delaytopic_gateway.app import gateway_app
from delaytopic_gateway.client.relay_listing import ask_relays
from delaytopic_gateway.kafka.cluster import KafkaCluster
from delaytopic_gateway.server import serving
from delaytopic_gateway.service.gateway import Gateway
from delaytopic_gateway.service.served_topics import ServedTopic
from delaytopic_gateway.service.state import UNKNOWN, State

pytestmark = pytest.mark.integration

HOUR_MS = 3_600_000


@dataclass(frozen=True)
class OneTopic:
    """The only DelayTopic of a gateway."""

    route: ServedTopic
    relay: RelayProcess

    def all(self) -> Sequence[ServedTopic]:
        return [self.route]

    def relay_urls(self, route: ServedTopic) -> Sequence[str]:
        return [f"http://127.0.0.1:{self.relay.port()}"]

    def state(self, route: ServedTopic) -> State:
        return UNKNOWN


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


@contextmanager
def client_of(route: Route, relay: RelayProcess) -> Iterator[Client]:
    config = route.config()
    served = ServedTopic(
        config.namespace,
        config.name,
        route.source,
        route.target,
        route.dead_letter,
        None,
        Dialect.NATIVE,
        Ids.BY_HEADER,
        fixed_delay=False,
        max_delay_ms=config.schedule.max_delay.ms,
    )
    cluster = KafkaCluster({"bootstrap.servers": route.servers.bootstrap_servers})
    gateway = Gateway(OneTopic(served, relay), cluster, ask_relays, now_ms)
    with serving(gateway_app(gateway, LoopbackAccess(), lambda line: None)) as url:
        yield Client(f"{url}/v1/delaytopics/{config.namespace}/{config.name}")


@BUCKETS_NIGHTLY
def test_records_are_scheduled_moved_released_and_cancelled(make_route: MakeRoute) -> None:
    route = make_route(schedule={"maxDelay": "12h"}, limits=STEADY)
    relay = route.start_relay().wait_until_delivering(PARTITIONS)
    due_ms = now_ms() + HOUR_MS
    with client_of(route, relay) as client:
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
