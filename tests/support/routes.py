"""DelayTopics on real servers, with topics and relays of their own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

from tests.support.records import MakeRoute
from tests.support.route import Route, Servers

_numbers = count(1)


@contextmanager
def making_routes(servers: Servers, directory: Path, backend: str) -> Iterator[MakeRoute]:
    """What makes them, each with a name that no other has; their relays are stopped at the end."""
    routes: list[Route] = []

    def make(source_settings: dict[str, str] | None = None, **spec: Any) -> Route:
        spec["backend"] = {"type": backend, **spec.get("backend", {})}
        routes.append(Route(servers, directory, f"route-{next(_numbers)}", spec))
        return routes[-1].create_topics(**(source_settings or {}))

    yield make
    for route in routes:
        route.stop_relays()
