"""DelayTopics that cannot go together: two on one source, and topics that lead back to where they come from. Pure."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from delaytopic_operator.keys import Key

CLUSTER_SUFFIX: Final = ".cluster.local"


class Topic(NamedTuple):
    """A topic of one cluster."""

    cluster: Hashable
    name: str


@dataclass(frozen=True, slots=True)
class Route:
    """One DelayTopic, as far as others are concerned. Globs for deliver-to are no part of it."""

    key: Key
    created_ms: int
    """Of two, the younger gives way."""
    servers: frozenset[str]
    """What reaches its Kafka cluster (`servers_of`): clusters that share a server are one."""
    source: str
    leads_to: tuple[str, ...]
    """Target and dead-letter topic."""


class RouteConflict(NamedTuple):
    """Why a route is refused."""

    reason: str
    sentence: str
    other: Key


def servers_of(bootstrap_servers: str, namespace: str) -> frozenset[str]:
    """The servers as one can compare them: a short name is a Service of the namespace from which it is used."""
    return frozenset(_full_address(server.strip(), namespace) for server in bootstrap_servers.split(",") if server)


def conflicts(routes: Iterable[Route]) -> dict[Key, RouteConflict]:
    """The routes that are refused, each with the older one that it has to give way to."""
    oldest_first = sorted(routes, key=lambda route: (route.created_ms, route.key))
    cluster_of = _clusters(oldest_first)
    network = _Network()
    refused = {}
    for route in oldest_first:
        conflict = network.admit(route, cluster_of[route.key])
        if conflict is not None:
            refused[route.key] = conflict
    return refused


@dataclass
class _Network:
    """The routes that were admitted, none of which is in another's way."""

    by_source: dict[Topic, Route] = field(default_factory=dict)
    led_to: set[Topic] = field(default_factory=set)

    def admit(self, route: Route, cluster: Hashable) -> RouteConflict | None:
        source = Topic(cluster, route.source)
        other = self.by_source.get(source)
        if other is not None:
            sentence = f"the source topic {route.source} is that of {other.key} already, which is older; use another"
            return RouteConflict("ResourceConflict", sentence, other.key)
        ends = [Topic(cluster, name) for name in route.leads_to]
        way = self._way_back(ends, source) if source in self.led_to or source in ends else None
        if way is not None:
            return _cycle(route, way)
        self.by_source[source] = route
        self.led_to.update(ends)
        return None

    def _way_back(self, starts: list[Topic], goal: Topic) -> list[Route] | None:
        """The routes that lead from one of the topics to the goal; none if it is one of them."""
        came_by: dict[Topic, Topic | None] = dict.fromkeys(starts)
        todo = list(starts)
        while todo:
            topic = todo.pop()
            if topic == goal:
                return self._routes_to(topic, came_by)
            route = self.by_source.get(topic)
            for name in route.leads_to if route else ():
                following = Topic(topic.cluster, name)
                if following not in came_by:
                    came_by[following] = topic
                    todo.append(following)
        return None

    def _routes_to(self, topic: Topic, came_by: Mapping[Topic, Topic | None]) -> list[Route]:
        routes = []
        before = came_by[topic]
        while before is not None:
            routes.append(self.by_source[before])
            before = came_by[before]
        return routes[::-1]


def _cycle(route: Route, way: list[Route]) -> RouteConflict:
    if not way:
        sentence = f"its records come back to its own source topic {route.source}; use another target or dead letter"
        return RouteConflict("ResourceConflict", sentence, route.key)
    others = ", ".join(str(other.key) for other in way)
    sentence = (
        f"its records would go round in a circle: by way of {others} (older) they come back to its source topic "
        f"{route.source}; use another target or dead letter"
    )
    return RouteConflict("ResourceConflict", sentence, way[0].key)


def _clusters(routes: Iterable[Route]) -> dict[Key, Hashable]:
    """For each route one of the servers of its cluster, the same for all routes of the cluster."""
    parent: dict[str, str] = {}

    def root(server: str) -> str:
        while parent.setdefault(server, server) != server:
            parent[server] = parent[parent[server]]
            server = parent[server]
        return server

    some_server: dict[Key, str] = {}
    for route in routes:
        first, *others = sorted(route.servers) or [""]
        for other in others:
            parent[root(other)] = root(first)
        some_server[route.key] = first
    return {key: root(server) for key, server in some_server.items()}


def _full_address(server: str, namespace: str) -> str:
    host, _, port = server.lower().rpartition(":")
    host = host.removesuffix(".").removesuffix(CLUSTER_SUFFIX).removesuffix(".svc")
    if "." not in host and not host.startswith("[") and host != "localhost":
        host = f"{host}.{namespace}"
    return f"{host}:{port}"
