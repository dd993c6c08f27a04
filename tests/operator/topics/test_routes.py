"""DelayTopics that cannot go together: the younger gives way, and is told to which."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from delaytopic_operator.keys import Key
from delaytopic_operator.routes import Route, RouteConflict, conflicts, servers_of

SERVERS = frozenset({"kafka.shop:9092"})


def route(name: str, source: str, *leads_to: str, age: int = 0, servers: frozenset[str] = SERVERS) -> Route:
    return Route(Key("shop", name), 1_000 - age, servers, source, leads_to)


def test_routes_with_topics_of_their_own_go_together() -> None:
    assert conflicts([route("a", "a1", "t", "d"), route("b", "b1", "t", "d")]) == {}


def test_of_two_on_one_source_the_younger_is_refused() -> None:
    younger, older = route("a", "s", "t"), route("b", "s", "u", age=1)

    assert conflicts([younger, older]) == {
        younger.key: RouteConflict(
            "ResourceConflict",
            "the source topic s is that of shop/b already, which is older; use another",
            older.key,
        )
    }


def test_of_two_of_one_age_the_one_with_the_later_name_is_refused() -> None:
    assert conflicts([route("b", "s", "t"), route("a", "s", "u")]).keys() == {Key("shop", "b")}


def test_the_same_name_in_another_cluster_is_another_topic() -> None:
    elsewhere = route("b", "s", "t", servers=frozenset({"kafka.other:9092"}))

    assert conflicts([route("a", "s", "t"), elsewhere]) == {}


def test_clusters_that_share_a_server_are_one_even_by_way_of_a_third() -> None:
    first = route("a", "s", "t", servers=frozenset({"one:9092"}))
    last = route("b", "s", "t", servers=frozenset({"two:9092"}))
    between = route("c", "x", "t", servers=frozenset({"one:9092", "two:9092"}))

    assert conflicts([first, last, between]).keys() == {last.key}


def test_a_circle_is_refused_where_the_youngest_closes_it() -> None:
    first, second = route("a", "a", "b", age=3), route("b", "b", "c", age=2)
    youngest = route("c", "c", "x", "a")

    assert conflicts([youngest, first, second]) == {
        youngest.key: RouteConflict(
            "ResourceConflict",
            "its records would go round in a circle: by way of shop/a, shop/b (older) they come back to its source "
            "topic c; use another target or dead letter",
            first.key,
        )
    }


def test_a_dead_letter_topic_closes_a_circle_too() -> None:
    older, younger = route("a", "a", "t", "b", age=1), route("b", "b", "a", "d")

    assert conflicts([older, younger]).keys() == {younger.key}


def test_a_route_that_leads_to_itself_is_refused() -> None:
    alone = route("a", "s", "s", "d")

    assert conflicts([alone])[alone.key].sentence.startswith("its records come back to its own source topic s")


def test_a_refused_route_is_in_nobodys_way() -> None:
    older, refused, third = route("a", "s", "t", age=2), route("b", "s", "x", age=1), route("c", "x", "s")

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


names = st.sampled_from("abcdef")
networks = st.lists(st.tuples(names, names, names, st.integers(0, 3)), max_size=12).map(
    lambda rows: [route(str(number), *topics, age=age) for number, (*topics, age) in enumerate(rows)]
)


@given(networks)
def test_what_is_admitted_has_one_route_for_each_source_and_no_circle(routes: list[Route]) -> None:
    refused = conflicts(routes)

    admitted = {one.source: one for one in routes if one.key not in refused}
    assert len(admitted) == len(routes) - len(refused)
    assert not any(_comes_back(admitted, source) for source in admitted)


@given(networks, st.randoms())
def test_the_order_in_which_they_are_told_does_not_matter(routes: list[Route], random: object) -> None:
    shuffled = sorted(routes, key=lambda one: hash((one.key, id(random))))

    assert conflicts(shuffled) == conflicts(routes)


@given(networks)
def test_each_refused_route_gives_way_to_an_older_one_that_stays_or_to_itself(routes: list[Route]) -> None:
    ages = {one.key: (one.created_ms, one.key) for one in routes}

    refused = conflicts(routes)

    assert all(
        conflict.other == key or (conflict.other not in refused and ages[conflict.other] < ages[key])
        for key, conflict in refused.items()
    )


def test_a_thousand_routes_in_one_line_are_looked_at_within_a_second() -> None:
    line = [route(f"{number:04}", f"t{number}", f"t{number + 1}", age=number) for number in range(1_000)]
    started_s = time.process_time()

    refused = conflicts([*line, route("end", "t1000", "t0")])

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
