"""DelayTopics in each other's way, as they come, change and go."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from delaytopic_operator.conditions import instant
from delaytopic_operator.keys import Key
from delaytopic_operator.route_book import RouteBook
from delaytopic_operator.store import Store

BORN_MS = 1_795_269_686_000
STANDARD = {"connection": {"bootstrapServers": "kafka:9092"}}


class Cluster:
    """A store that is told what people do, and the book over it."""

    def __init__(self) -> None:
        self.store = Store("platform")
        self.book = RouteBook(self.store, "platform")
        self._versions = count(1)
        self._documents: dict[tuple[str, str], dict[str, Any]] = {}

    def delay_class(self, name: str = "standard", *, default: bool = True, **spec: Any) -> None:
        annotations = {"delaytopic.dev/is-default-class": "true"} if default else {}
        self._put("DelayClass", {"name": name, "annotations": annotations}, {**STANDARD, **spec})

    def topic(self, name: str, source: str = "a", target: str = "b", *, age: int = 0, **spec: Any) -> Key:
        created = instant(BORN_MS - age * 1_000)
        metadata = {"namespace": "shop", "name": name, "creationTimestamp": created}
        self._put("DelayTopic", metadata, {"source": {"topic": source}, "target": {"topic": target}, **spec})
        return Key("shop", name)

    def remove(self, name: str) -> None:
        document = self._documents.pop(("DelayTopic", name))
        document["metadata"]["resourceVersion"] = str(next(self._versions))
        self.store.remove(document)

    def _put(self, kind: str, metadata: Mapping[str, Any], spec: Mapping[str, Any]) -> None:
        version = {"resourceVersion": str(next(self._versions))}
        of_kind = {"apiVersion": "delaytopic.dev/v1alpha1", "kind": kind}
        document = {**of_kind, "metadata": {**metadata, **version}, "spec": dict(spec)}
        self._documents[kind, metadata["name"]] = document
        self.store.put(document)


@pytest.fixture
def cluster() -> Cluster:
    made = Cluster()
    made.delay_class()
    return made


def test_of_two_on_one_source_the_younger_gives_way(cluster: Cluster) -> None:
    young, old = cluster.topic("young"), cluster.topic("old", target="c", age=5)

    assert cluster.book.rival(old) is None
    assert cluster.book.rival(young) == "the source topic a is that of shop/old already, which is older; use another"


def test_born_in_one_second_the_first_by_name_stays(cluster: Cluster) -> None:
    one, two = cluster.topic("one"), cluster.topic("two")

    assert [cluster.book.rival(key) is None for key in (one, two)] == [True, False]


def test_when_the_elder_goes_the_younger_may(cluster: Cluster) -> None:
    young, _ = cluster.topic("young"), cluster.topic("old", age=5)
    before = cluster.book.rival(young)

    cluster.remove("old")

    assert (before is None, cluster.book.rival(young)) == (False, None)


def test_a_circle_is_refused_until_it_is_opened(cluster: Cluster) -> None:
    cluster.topic("there", "a", "b", age=5)
    back = cluster.topic("back", "b", "a")
    round_in_a_circle = cluster.book.rival(back)

    cluster.topic("there", "a", "c", age=5)

    assert round_in_a_circle is not None
    assert "by way of shop/there (older)" in round_in_a_circle
    assert cluster.book.rival(back) is None


def test_the_same_topic_of_another_cluster_is_another_topic(cluster: Cluster) -> None:
    cluster.delay_class("far", default=False, connection={"bootstrapServers": "elsewhere:9092"})
    cluster.topic("old", age=5)
    young = cluster.topic("young", delayClassName="far")
    apart = cluster.book.rival(young)

    cluster.delay_class("far", default=False)

    assert apart is None
    assert cluster.book.rival(young) is not None


def test_the_dead_letters_of_one_must_not_be_the_source_of_their_origin(cluster: Cluster) -> None:
    key = cluster.topic("loop", "a", "b", deadLetter={"topic": "a"})

    assert cluster.book.rival(key) == (
        "its records come back to its own source topic a; use another target or dead letter"
    )


@pytest.mark.parametrize("spec", [{}, {"source": {}}, {"source": {"topic": ""}, "target": {"topic": "b"}}])
def test_what_is_not_valid_is_in_nobodys_way(cluster: Cluster, spec: dict[str, Any]) -> None:
    metadata = {"namespace": "shop", "name": "odd", "creationTimestamp": instant(BORN_MS - 9_000)}
    cluster._put("DelayTopic", metadata, spec)
    key = cluster.topic("sound")

    assert cluster.book.rival(key) is None


def test_elders_are_counted_by_namespace_and_class(cluster: Cluster) -> None:
    cluster.delay_class("fast", default=False)
    keys = [cluster.topic(f"n{number}", f"s{number}", f"t{number}", age=9 - number) for number in range(3)]
    cluster.topic("other", "x", "y", age=99, delayClassName="fast")

    assert [cluster.book.elder_siblings(key) for key in keys] == [0, 1, 2]
    assert cluster.book.elder_siblings(Key("shop", "unknown")) == 0


@given(
    st.lists(st.tuples(st.integers(0, 5), st.sampled_from("abcd"), st.sampled_from("abcd"), st.booleans()), max_size=25)
)
def test_what_was_kept_up_to_date_is_as_if_it_was_read_anew(changes: list[tuple[int, str, str, bool]]) -> None:
    cluster = Cluster()
    cluster.delay_class()
    living: set[str] = set()

    for number, source, target, goes in changes:
        name = f"n{number}"
        if goes and name in living:
            living.discard(name)
            cluster.remove(name)
        else:
            living.add(name)
            cluster.topic(name, source, target, age=number)
        cluster.book.rival(Key("shop", name))

    anew = RouteBook(cluster.store, "platform")
    keys = [Key("shop", name) for name in sorted(living)]
    assert [cluster.book.rival(key) for key in keys] == [anew.rival(key) for key in keys]
    assert [cluster.book.elder_siblings(key) for key in keys] == [anew.elder_siblings(key) for key in keys]
