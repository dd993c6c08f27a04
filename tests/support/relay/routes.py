"""DelayTopics on real servers, with topics and relays of their own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.harness.names import unique
from tests.support.relay.records import MakeRoute
from tests.support.relay.route import PARTITIONS, Route, Servers

MAX_DELAY = "1h"
"""Each doubling of it is a further bucket topic to create."""
QUICK_SESSION = "2s"
"""The shards of a killed relay wait so long for another. The brokers of tests allow it; Kafka's default is 6 s."""
STEADY = {"sessionTimeout": "45s"}
"""`limits` for a test in which no relay dies: a machine that stands still for seconds moves no shard."""


@contextmanager
def making_routes(
    servers: Servers, directory: Path, backend: str, session_timeout: str = QUICK_SESSION
) -> Iterator[MakeRoute]:
    """Yield a function that makes them, each with a name of its own; stop their relays at the end."""
    routes: list[Route] = []

    def make(source_settings: dict[str, str] | None = None, partitions: int = PARTITIONS, **spec: Any) -> Route:
        spec["backend"] = {"type": backend, **spec.get("backend", {})}
        spec["limits"] = {"sessionTimeout": session_timeout, **spec.get("limits", {})}
        spec["schedule"] = {"maxDelay": MAX_DELAY, **spec.get("schedule", {})}
        routes.append(Route(servers, directory, unique("route"), spec, partitions))
        return routes[-1].create_topics(**(source_settings or {}))

    try:
        yield make
    finally:
        for route in routes:
            route.stop_relays()
            for relay in route.relays:
                print(relay.troubles())  # shown for a test that failed
