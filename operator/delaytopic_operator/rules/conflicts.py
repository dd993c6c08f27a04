"""DelayTopics that cannot go together: topics that are another's, and topics that lead back to where they come from.

Pure. What is written down of a DelayTopic comes before what others ask for, and of two that ask the older comes first:

of another            as a source   as a target           as a dead letter
its source            refused       Observe               Observe; of another namespace refused
what it looks after   Observe       Observe               Observe
one that Kafka takes  refused       refused               refused
for either of these

`Observe`: one only, so that nobody changes or deletes what is another's. What has a connection of its own binds only
its own namespace: nobody but its author says that this Kafka is what it is taken for.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from delaytopic_api.values import unified
from delaytopic_operator.model.reconciliation import Key
from delaytopic_operator.model.record import Role

CLUSTER_SUFFIX: Final = ".cluster.local"
STRANGER: Final = "a DelayTopic of another namespace"


class Topic(NamedTuple):
    """A topic of one cluster."""

    cluster: Hashable
    name: str


class Use(NamedTuple):
    """The use of a topic by a DelayTopic."""

    role: Role
    name: str
    manages: bool = True
    """True if it is made, set right or deleted through this DelayTopic: with any management but Observe."""


class Connection(NamedTuple):
    """The address at which a Kafka is said to be."""

    servers: frozenset[str]
    """The servers, as `servers_of` returns them."""
    by_class: bool
    """True if a class says so, or the DelayTopic itself."""


@dataclass(frozen=True, slots=True)
class Route:
    """One DelayTopic as far as others are concerned: as it is asked for, or as it is written down."""

    key: Key
    created_ms: int
    """The time at which it was made: of two, the younger gives way."""
    clusters: frozenset[Hashable]
    """The names by which its Kafka cluster is known (`clusters_of`)."""
    uses: tuple[Use, ...]
    """Source, target and dead letter, the source first; of what is written down perhaps not all. Globs for deliver-to
    are no part of it."""
    by_class: bool = True
    """True if a class vouches for its connection: if not, it binds its own namespace only."""
    is_refused: bool = False
    """True of what is written down of a DelayTopic that may not be acted upon. It gives way to those that may."""
    is_gone: bool = False
    """True of what is written down of a DelayTopic that is gone."""
    is_empty: bool = False
    """True of what is gone and has nothing pending. Its own namespace may use its topics anew."""

    @property
    def source(self) -> str:
        """Return where its records come from."""
        return self.uses[0].name

    @property
    def leads_to(self) -> tuple[str, ...]:
        """Target and dead-letter topic."""
        return tuple(use.name for use in self.uses[1:])


class RouteConflict(NamedTuple):
    """The reason for which a route is refused; the sentence names no object of another namespace."""

    sentence: str
    others: tuple[Key, ...]
    """All that it gives way to, for those who may know."""


def servers_of(bootstrap_servers: str, namespace: str) -> frozenset[str]:
    """The servers as one can compare them: a short name is a Service of the namespace from which it is used."""
    return frozenset(_full_address(server.strip(), namespace) for server in bootstrap_servers.split(",") if server)


def clusters_of(
    connection: Connection, ids: Mapping[Connection, str], recorded_id: str | None = None
) -> frozenset[Hashable]:
    """Return what a cluster is known by: Kafka's id, or else its servers; two with anything in common are one.

    A connection without an id is that of each class with a server in common. It makes no two clusters one: whoever
    writes `a:9092,b:9092` says nothing of others' a and b.
    """
    own = ids.get(connection)
    known = {own, recorded_id} - {None}
    if own is not None and connection.by_class:
        return frozenset(known)
    shared = {each for one, each in ids.items() if one.by_class and one.servers & connection.servers}
    return frozenset({*known, *shared, *(connection.servers if own is None else ())})


def conflicts(routes: Iterable[Route], written: Iterable[Route] = ()) -> dict[Key, RouteConflict]:
    """The routes that are refused, each with what it has to give way to; `written`: what is written down."""
    return Network.of(routes, written).refused


class _Claim(NamedTuple):
    """A topic that others have to respect: somebody's source, or under somebody's care."""

    use: Use
    owner: Route


@dataclass
class Network:
    """The routes that were admitted, none of which is in another's way, and what is written down."""

    refused: dict[Key, RouteConflict] = field(default_factory=dict)
    """The routes that were not, each with what it has to give way to."""
    youngest: tuple[bool, int, Key] | None = None
    """The place in the order of the route that asked last."""
    claims: dict[Topic, list[_Claim]] = field(default_factory=dict)
    """The claims, by the names by which Kafka compares topics (`unified`)."""
    kept: set[tuple[Key, Use]] = field(default_factory=set)
    """The uses that were written down, and are in nobody's way: they stay so, whoever comes later."""
    by_source: dict[Topic, list[Route]] = field(default_factory=dict)
    """Several, where some have a connection of their own: those bind nobody in other namespaces."""
    led_to: set[Topic] = field(default_factory=set)

    @classmethod
    def of(cls, routes: Iterable[Route], written: Iterable[Route] = ()) -> Network:
        """Enter what is written down, and then each route in its turn."""
        network = cls()
        for one in sorted(written, key=lambda one: (one.is_refused, *_turn(one))):
            network.keep(one)
        for route in sorted(routes, key=_turn):
            network.admit(route)
        return network

    def comes_last(self, route: Route) -> bool:
        """Tell if a route gives way to all that have asked, so that it may be admitted after them."""
        return self.youngest is None or _turn(route) > self.youngest

    def keep(self, written: Route) -> None:
        """Enter what is written down, but for what was another's before."""
        for use in written.uses:
            if self._objection(written, use) is None:
                self.kept |= {(written.key, use), (written.key, use._replace(manages=False))}
                self._claim(written, use)

    def admit(self, route: Route) -> RouteConflict | None:
        """Enter a route, unless something is in its way; it asks after all that it gives way to."""
        self.youngest = _turn(route)
        asked = [use for use in route.uses if (route.key, use) not in self.kept]
        conflict = next(filter(None, (self._objection(route, use) for use in asked)), None) or self._circle(route)
        if conflict is None:
            for use in asked:
                self._claim(route, use)
            for cluster in route.clusters:
                self.by_source.setdefault(Topic(cluster, route.source), []).append(route)
                self.led_to.update(Topic(cluster, name) for name in route.leads_to)
        else:
            self.refused[route.key] = conflict
        return conflict

    def _claim(self, owner: Route, use: Use) -> None:
        if use.manages or use.role is Role.SOURCE:
            for cluster in owner.clusters:
                self.claims.setdefault(Topic(cluster, unified(use.name)), []).append(_Claim(use, owner))

    def _objection(self, asking: Route, use: Use) -> RouteConflict | None:
        for cluster in asking.clusters:
            for claim in self.claims.get(Topic(cluster, unified(use.name)), ()):
                if _binds(claim.owner, asking.key):
                    sentence = _clash(asking.key, use, claim)
                    if sentence is not None:
                        return RouteConflict(sentence, (claim.owner.key,))
        return None

    def _circle(self, route: Route) -> RouteConflict | None:
        for cluster in route.clusters:
            source = Topic(cluster, route.source)
            ends = [Topic(cluster, name) for name in route.leads_to]
            way = self._way_back(route.key, ends, source) if source in self.led_to or source in ends else None
            if way is not None:
                return _cycle(route, way)
        return None

    def _way_back(self, key: Key, starts: list[Topic], goal: Topic) -> list[Route] | None:
        """The routes that lead from one of the topics to the goal; none if it is one of them."""
        came_by: dict[Topic, tuple[Topic, Route] | None] = dict.fromkeys(starts)
        todo = list(starts)
        while todo:
            topic = todo.pop()
            if topic == goal:
                return list(_routes_to(topic, came_by))[::-1]
            binding = [route for route in self.by_source.get(topic, ()) if _binds(route, key)]
            for route in binding:
                new = {Topic(topic.cluster, name) for name in route.leads_to} - came_by.keys()
                came_by.update(dict.fromkeys(new, (topic, route)))
                todo += sorted(new)
        return None


def _turn(route: Route) -> tuple[bool, int, Key]:
    """Return the place of a route in the order in which they ask."""
    return not route.by_class, route.created_ms, route.key


def _routes_to(topic: Topic, came_by: Mapping[Topic, tuple[Topic, Route] | None]) -> Iterator[Route]:
    step = came_by[topic]
    while step is not None:
        before, route = step
        yield route
        step = came_by[before]


def _binds(owner: Route, key: Key) -> bool:
    if owner.key.namespace != key.namespace:
        return owner.by_class
    return owner.key != key and not owner.is_empty


def _clash(key: Key, use: Use, claim: _Claim) -> str | None:
    """Say why a topic must not be used so beside a claim; None: it may."""
    at_home, of_source = claim.owner.key.namespace == key.namespace, claim.use.role is Role.SOURCE
    field = f"spec.{use.role.value}"
    who = _named(claim.owner.key, key)
    if claim.owner.is_gone:
        who += ", which is gone, and whose backlog is retained"
    beside = use.role in (Role.DEAD_LETTER, Role.HISTORY, Role.OUTCOMES)
    if claim.use.name != use.name:
        other = f"{claim.use.name} of {who}" if at_home else f"a topic of {who}"
        return (
            f"{field}.topic: {use.name} differs from {other} in dots and underscores only, and Kafka takes one of the "
            "two; use another"
        )
    if of_source and (use.role is Role.SOURCE or (beside and not at_home)):
        return f"{field}.topic: {use.name} is the source topic of {who} already; use another"
    if use.manages and (claim.use.manages or not at_home):
        return (
            f"{field}.management: must be Observe for {use.name}, which is looked after for {who} already; or use "
            "another topic"
        )
    return None


def _cycle(route: Route, way: list[Route]) -> RouteConflict:
    if not way:
        sentence = f"its records come back to its own source topic {route.source}; use another target or dead letter"
        return RouteConflict(sentence, ())
    others = ", ".join(dict.fromkeys(_named(other.key, route.key) for other in way))
    sentence = (
        f"its records would go round in a circle: by way of {others} (older) they come back to its source topic "
        f"{route.source}; use another target or dead letter"
    )
    return RouteConflict(sentence, tuple(other.key for other in way))


def _named(key: Key, asking: Key) -> str:
    """Name an object; who writes in one namespace is told nothing of another's."""
    return str(key) if key.namespace == asking.namespace else STRANGER


def _full_address(server: str, namespace: str) -> str:
    host, _, port = server.lower().rpartition(":")
    host = host.removesuffix(".").removesuffix(CLUSTER_SUFFIX).removesuffix(".svc")
    if "." not in host and not host.startswith("[") and host != "localhost":
        host = f"{host}.{namespace}"
    return f"{host}:{port}"
