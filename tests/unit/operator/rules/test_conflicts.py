"""DelayTopics that cannot go together: one gives way, and is told no more than it may know."""

from __future__ import annotations

import time
from collections.abc import Hashable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from delaytopic_operator.model.reconciliation import Key
from delaytopic_operator.model.record import Role
from delaytopic_operator.rules.conflicts import (
    Connection,
    Route,
    RouteConflict,
    Use,
    clusters_of,
    conflicts,
    servers_of,
)

HERE: frozenset[Hashable] = frozenset({"here"})
ROLES = (Role.SOURCE, Role.TARGET, Role.DEAD_LETTER)


def route(
    name: str, *topics: str, age: int = 0, clusters: frozenset[Hashable] = HERE, by_class: bool = True, **flags: bool
) -> Route:
    """One of the namespace `shop`, unless its name has another; a topic that it only observes is in brackets."""
    namespace, _, plain = name.rpartition("/")
    uses = tuple(
        Use(role, topic.strip("[]"), manages=topic[0] != "[") for role, topic in zip(ROLES, topics, strict=False)
    )
    return Route(Key(namespace or "shop", plain), 1_000 - age, clusters, uses, by_class, **flags)


def refusals(*routes: Route, written: tuple[Route, ...] = ()) -> dict[str, str]:
    return {str(key): conflict.sentence for key, conflict in conflicts(routes, written).items()}


def test_routes_with_topics_of_their_own_go_together() -> None:
    assert conflicts([route("a", "a1", "t", "d"), route("b", "b1", "[t]", "[d]")]) == {}


def test_of_two_on_one_source_the_younger_is_refused() -> None:
    younger, older = route("a", "s", "t"), route("b", "[s]", "u", age=1)

    assert conflicts([younger, older]) == {
        younger.key: RouteConflict(
            "spec.source.topic: s is the source topic of shop/b already; use another", (older.key,)
        )
    }


@pytest.mark.parametrize("topics", [("b1", "a.t", "b3"), ("a.t", "b2", "b3"), ("b1", "b2", "[a.t]")])
def test_a_topic_that_kafka_takes_for_anothers_is_refused(topics: tuple[str, ...]) -> None:
    field = f"spec.{ROLES[[topic.strip('[]') for topic in topics].index('a.t')].value}.topic"

    assert refusals(route("a", "a1", "a_t", "a3", age=1), route("b", *topics)) == {
        "shop/b": f"{field}: a.t differs from a_t of shop/a in dots and underscores only, and Kafka takes one of the "
        "two; use another"
    }


def test_who_has_a_topic_that_kafka_takes_for_mine_is_not_told_across_namespaces() -> None:
    assert refusals(route("a", "s", "t"), route("bank/a", "b.s", "a_t", age=1), route("c", "b_s", "u")) == {
        "shop/c": "spec.source.topic: b_s differs from a topic of a DelayTopic of another namespace in dots and "
        "underscores only, and Kafka takes one of the two; use another"
    }


def test_topics_that_kafka_takes_for_one_are_two_in_two_clusters() -> None:
    assert refusals(route("a", "a.s", "t", clusters=frozenset({"there"})), route("b", "a_s", "u")) == {}


def test_of_two_of_one_age_the_one_with_the_later_name_is_refused() -> None:
    assert conflicts([route("b", "s", "t"), route("a", "s", "u")]).keys() == {Key("shop", "b")}


def test_who_gives_way_to_another_namespace_is_not_told_to_whom() -> None:
    mine, other = route("a", "s", "t"), route("bank/payments", "s", "u", age=1)

    assert conflicts([mine, other]) == {
        mine.key: RouteConflict(
            "spec.source.topic: s is the source topic of a DelayTopic of another namespace already; use another",
            (other.key,),
        )
    }


@pytest.mark.parametrize(
    ("asks", "sentence"),
    [
        (
            ("a", "[s]", "t", "x.dlq"),
            "spec.source.topic: s is the source topic of a DelayTopic of another namespace already; use another",
        ),
        (
            ("a", "x", "s"),
            "spec.target.management: must be Observe for s, which is looked after for a DelayTopic of another "
            "namespace already; or use another topic",
        ),
        (
            ("a", "x", "t", "[s]"),
            "spec.deadLetter.topic: s is the source topic of a DelayTopic of another namespace already; use another",
        ),
        (
            ("a", "x", "t", "d"),
            "spec.deadLetter.management: must be Observe for d, which is looked after for a DelayTopic of another "
            "namespace already; or use another topic",
        ),
        (
            ("a", "u", "t"),
            "spec.source.management: must be Observe for u, which is looked after for a DelayTopic of another "
            "namespace already; or use another topic",
        ),
        (("a", "x", "[s]"), None),
        (("a", "x", "[u]", "[d]"), None),
        (("a", "[u]", "t"), None),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_what_another_namespace_has_may_be_observed_and_no_source_taken(
    asks: tuple[str, ...], sentence: str | None
) -> None:
    owner = route("bank/payments", "s", "u", "d", age=1)

    assert refusals(route(*asks), owner) == ({"shop/a": sentence} if sentence else {})


def test_in_one_namespace_dead_letters_may_be_the_source_of_another_that_looks_after_it() -> None:
    retries = route("retries", "s", "u", age=1)

    assert refusals(retries, route("a", "x", "t", "[s]")) == {}


def test_what_was_written_down_comes_before_an_older_one_that_asks_for_it_now() -> None:
    written = route("a", "s", "t", "s.dlq")
    older = route("bank/older", "x", "s", age=9)

    assert refusals(route("a", "s", "t", "s.dlq"), older, written=(written,)).keys() == {"bank/older"}


def test_a_newcomer_that_reads_what_was_written_down_does_not_refuse_its_owner() -> None:
    owner, older = route("a", "s", "t"), route("bank/reader", "[t]", "u", age=9)
    written = (route("a", "s", "t", age=1), route("bank/reader", "[t]", "u"))

    assert refusals(owner, older, written=written) == {}


def test_a_backlog_that_is_retained_keeps_its_topics() -> None:
    gone = route("gone", "s", "t", is_gone=True)

    assert refusals(route("a", "s", "u"), route("bank/b", "s", "u", age=1), written=(gone,)) == {
        "shop/a": "spec.source.topic: s is the source topic of shop/gone, which is gone, and whose backlog is retained "
        "already; use another",
        "bank/b": "spec.source.topic: s is the source topic of a DelayTopic of another namespace, which is gone, and "
        "whose backlog is retained already; use another",
    }


def test_what_is_gone_and_empty_leaves_its_topics_to_its_namespace_only() -> None:
    gone = route("gone", "s", "t", is_gone=True, is_empty=True)

    assert refusals(route("a", "[s]", "u"), written=(gone,)) == {}
    assert refusals(route("bank/a", "[s]", "u"), written=(gone,)).keys() == {"bank/a"}


def test_of_two_that_are_written_down_the_one_that_is_refused_now_gives_way() -> None:
    refused, good = route("bank/old", "x", "s", age=9, is_refused=True), route("a", "s", "t")

    assert refusals(good, written=(refused, good)) == {}


def test_a_connection_of_its_own_binds_its_own_namespace_only() -> None:
    own = route("bank/own", "s", "t", age=9, by_class=False)

    assert refusals(own, route("a", "s", "u")).keys() == {"bank/own"}
    assert refusals(own, route("a", "s", "u", by_class=False)) == {}
    assert refusals(own, route("bank/b", "s", "u", by_class=False)).keys() == {"bank/b"}


def test_a_connection_of_its_own_closes_no_circle_of_another_namespace() -> None:
    back = route("bank/back", "b", "[a]", age=9, by_class=False)

    assert refusals(back, route("a", "a", "[b]")).keys() == {"bank/back"}


def test_a_connection_of_its_own_hides_no_circle_of_another_namespace() -> None:
    circle = [
        route("a", "a", "[b]", age=3, by_class=False),
        route("b", "b", "[c]", age=2, by_class=False),
        route("c", "c", "[a]", age=1, by_class=False),
    ]

    assert refusals(route("bank/b", "b", "[x]", age=9, by_class=False), *circle).keys() == {"shop/c"}


def test_the_same_name_in_another_cluster_is_another_topic() -> None:
    elsewhere = route("b", "s", "t", clusters=frozenset[Hashable]({"elsewhere"}))

    assert conflicts([route("a", "s", "t"), elsewhere]) == {}


ONE, TWO = (Connection(frozenset({f"{host}:9092"}), by_class=True) for host in ("one.kafka", "two.kafka"))
BOTH = frozenset({*ONE.servers, *TWO.servers})


@pytest.mark.parametrize(
    ("connection", "ids", "known_by"),
    [
        (ONE, {}, {"one.kafka:9092"}),
        (ONE, {ONE: "id-1", TWO: "id-2"}, {"id-1"}),
        (Connection(BOTH, by_class=True), {ONE: "id-1"}, {"id-1", "one.kafka:9092", "two.kafka:9092"}),
        (Connection(ONE.servers, by_class=False), {ONE: "id-1"}, {"id-1", "one.kafka:9092"}),
        (Connection(ONE.servers, by_class=False), {Connection(ONE.servers, by_class=False): "lie"}, {"lie"}),
        (
            Connection(ONE.servers, by_class=False),
            {ONE: "id-1", Connection(ONE.servers, by_class=False): "lie"},
            {"id-1", "lie"},
        ),
    ],
)
def test_a_cluster_is_known_by_what_it_calls_itself_or_else_by_its_servers(
    connection: Connection, ids: dict[Connection, str], known_by: set[str]
) -> None:
    assert clusters_of(connection, ids) == known_by


def test_by_two_addresses_one_cluster_is_one() -> None:
    ids = {ONE: "id-1", TWO: "id-1"}

    assert clusters_of(ONE, ids) == clusters_of(TWO, ids) == {"id-1"}


def test_who_names_the_servers_of_two_clusters_does_not_make_them_one() -> None:
    between = route("c", "x", "t", clusters=clusters_of(Connection(BOTH, by_class=True), {}), age=9)
    first = route("a", "s", "u", clusters=clusters_of(ONE, {}))
    last = route("b", "s", "v", clusters=clusters_of(TWO, {}))

    assert conflicts([first, last, between]) == {}


def test_a_circle_is_refused_where_the_youngest_closes_it() -> None:
    first, second = route("a", "a", "b", age=3), route("b", "[b]", "c", age=2)
    youngest = route("c", "[c]", "x", "[a]")

    assert conflicts([youngest, first, second]) == {
        youngest.key: RouteConflict(
            "its records would go round in a circle: by way of shop/a, shop/b (older) they come back to its source "
            "topic c; use another target or dead letter",
            (first.key, second.key),
        )
    }


def test_a_circle_through_another_namespace_is_told_without_its_names() -> None:
    first, back = route("a", "a", "b", age=3), route("bank/b", "[b]", "[a]")

    assert refusals(first, back) == {
        "bank/b": "its records would go round in a circle: by way of a DelayTopic of another namespace (older) they "
        "come back to its source topic b; use another target or dead letter"
    }


def test_a_dead_letter_topic_closes_a_circle_too() -> None:
    older, younger = route("a", "a", "t", "b", age=1), route("b", "[b]", "[a]", "d")

    assert conflicts([older, younger]).keys() == {younger.key}


def test_a_route_that_leads_to_itself_is_refused() -> None:
    alone = route("a", "s", "s", "d")

    assert conflicts([alone])[alone.key].sentence.startswith("its records come back to its own source topic s")


def test_a_refused_route_is_in_nobodys_way() -> None:
    older, refused, third = route("a", "s", "t", age=2), route("b", "s", "x", age=1), route("c", "x", "[s]")

    assert conflicts([older, refused, third]).keys() == {refused.key}


@pytest.mark.parametrize(
    ("text", "servers"),
    [
        ("kafka:9092", {"kafka.shop:9092"}),
        ("kafka.shop.svc:9092, KAFKA.shop.svc.cluster.local:9093", {"kafka.shop:9092", "kafka.shop:9093"}),
        ("127.0.0.1:9092", {"127.0.0.1:9092"}),
        ("[::1]:9092", {"[::1]:9092"}),
        ("", set()),
    ],
)
def test_a_short_name_is_a_service_of_the_namespace(text: str, servers: set[str]) -> None:
    assert servers_of(text, "shop") == servers


names = st.sampled_from(["a", "b", "c", "d", "[a]", "[b]", "[c]", "[d]"])
owners = st.sampled_from(["shop", "bank"])
networks = st.lists(st.tuples(names, names, names, st.integers(0, 3), owners, st.booleans()), max_size=12).map(
    lambda rows: [
        route(f"{owner}/{number}", *topics, age=age, by_class=by_class)
        for number, (*topics, age, owner, by_class) in enumerate(rows)
    ]
)


@given(networks)
def test_what_is_admitted_has_one_route_for_each_source_one_that_looks_after_each_topic_and_no_circle(
    routes: list[Route],
) -> None:
    refused = conflicts(routes)

    admitted = [one for one in routes if one.key not in refused and one.by_class]
    sources = [one.source for one in admitted]
    managed = [(use.name, one.key) for one in admitted for use in one.uses if use.manages]
    assert len(sources) == len(set(sources))
    assert len({name for name, _ in managed}) == len(set(managed))
    assert not any(_comes_back({one.source: one for one in admitted}, source) for source in sources)


@given(networks, st.randoms())
def test_the_order_in_which_they_are_told_does_not_matter(routes: list[Route], random: object) -> None:
    shuffled = sorted(routes, key=lambda one: hash((one.key, id(random))))

    assert conflicts(shuffled) == conflicts(routes)


@given(networks)
def test_nobody_is_told_of_an_object_of_another_namespace(routes: list[Route]) -> None:
    others = {"shop": "bank/", "bank": "shop/"}

    assert [
        conflict.sentence for key, conflict in conflicts(routes).items() if others[key.namespace] in conflict.sentence
    ] == []


@given(networks)
def test_what_has_a_connection_of_its_own_changes_nothing_for_other_namespaces(routes: list[Route]) -> None:
    without = [one for one in routes if one.by_class or one.key.namespace == "shop"]

    assert [key for key in conflicts(routes) if key.namespace == "shop"] == [
        key for key in conflicts(without) if key.namespace == "shop"
    ]


def test_a_thousand_routes_in_one_line_are_looked_at_within_a_second() -> None:
    line = [route(f"{number:04}", f"[t{number}]", f"t{number + 1}", age=number) for number in range(1_000)]
    started_s = time.process_time()

    refused = conflicts([*line, route("end", "[t1000]", "[t0]")])

    assert refused.keys() == {Key("shop", "end")}
    assert time.process_time() - started_s < 1


def _comes_back(admitted: dict[str, Route], start: str) -> bool:
    seen: set[str] = set()
    todo = list(admitted[start].leads_to)
    while todo:
        topic = todo.pop()
        if topic == start:
            return True
        if topic not in seen and topic in admitted:
            seen.add(topic)
            todo += admitted[topic].leads_to
    return False
