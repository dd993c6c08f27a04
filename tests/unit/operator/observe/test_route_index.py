"""DelayTopics in each other's way, as they come, change and go."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from delaytopic_operator.config import OperatorConfig
from delaytopic_operator.kube.object_cache import ObjectCache
from delaytopic_operator.model.conditions import instant
from delaytopic_operator.model.reconciliation import Key
from delaytopic_operator.model.record import RouteRecord, record_document
from delaytopic_operator.observe.route_index import RouteIndex

BORN_MS = 1_795_269_686_000
STANDARD = {
    "connection": {"bootstrapServers": "kafka:9092"},
    "backend": {"type": "KafkaBuckets"},
    "access": {"sourceTopics": ["*"], "targetTopics": ["*"], "adoptTopics": ["*"]},
}


class Cluster:
    """A store that is told what people do, and the book over it."""

    def __init__(self) -> None:
        self.store = ObjectCache("platform")
        self.labels: dict[str, str] = {}
        self.book = self.another_book()
        self._versions = count(1)
        self._documents: dict[tuple[str, str], dict[str, Any]] = {}

    def another_book(self) -> RouteIndex:
        return RouteIndex(self.store, OperatorConfig(namespace="platform"), lambda document: self.labels)

    def delay_class(self, name: str = "standard", *, default: bool = True, **spec: Any) -> None:
        annotations = {"delaytopic.dev/is-default-class": "true"} if default else {}
        self._put("DelayClass", {"name": name, "annotations": annotations}, {**STANDARD, **spec})

    def topic(self, name: str, source: str = "a", target: str = "", *, age: int = 0, **spec: Any) -> Key:
        """One of the namespace `shop`, unless its name has another; topics in brackets are only observed."""
        namespace, _, plain = name.rpartition("/")
        key = Key(namespace or "shop", plain)
        metadata = {**key._asdict(), "creationTimestamp": instant(BORN_MS - age * 1_000)}
        target = target or f"{name.replace('/', '.')}.due"
        self._put("DelayTopic", metadata, {"source": topic_spec(source), "target": topic_spec(target), **spec})
        return key

    def record(self, key: Key, *, namespace: str = "platform", **changes: Any) -> None:
        """Return what the operator writes down of a DelayTopic of the default class."""
        topics = {
            role: {"name": name, "ownership": "Created"}
            for role, name in {"source": "a", "target": "b", "deadLetter": "a.dlq"}.items()
        }
        usual = {"className": "standard", "groupId": "g", "backendType": "KafkaBuckets", "backendId": "g", **topics}
        content = {"version": 1, **key._asdict(), "namespaceUid": "1", **usual, **changes}
        document = record_document(RouteRecord.model_validate(content), namespace)
        metadata = {**document["metadata"], "creationTimestamp": instant(BORN_MS)}
        self._store_one({**document, "metadata": metadata})

    def remove(self, name: str) -> None:
        document = self._documents.pop(("DelayTopic", name))
        document["metadata"]["resourceVersion"] = str(next(self._versions))
        self.store.remove(document)

    def _put(self, kind: str, metadata: Mapping[str, Any], spec: Mapping[str, Any]) -> None:
        of_kind = {"apiVersion": "delaytopic.dev/v1beta1", "kind": kind}
        self._store_one({**of_kind, "metadata": metadata, "spec": dict(spec)})

    def _store_one(self, document: dict[str, Any]) -> None:
        kind, metadata = document["kind"], document["metadata"]
        document = {**document, "metadata": {**metadata, "resourceVersion": str(next(self._versions))}}
        self._documents[kind, metadata["name"]] = document
        self.store.put(document)


def topic_spec(name: str) -> dict[str, str]:
    observed = {"management": "Observe"} if name.startswith("[") else {}
    return {"topic": name.strip("[]"), **observed}


@pytest.fixture
def cluster() -> Cluster:
    made = Cluster()
    made.delay_class()
    return made


def test_of_two_on_one_source_the_younger_gives_way(cluster: Cluster) -> None:
    young, old = cluster.topic("young"), cluster.topic("old", age=5)

    assert cluster.book.conflict_sentence(old) is None
    assert (
        cluster.book.conflict_sentence(young)
        == "spec.source.topic: a is the source topic of shop/old already; use another"
    )


def test_born_in_one_second_the_first_by_name_stays(cluster: Cluster) -> None:
    one, two = cluster.topic("one"), cluster.topic("two")

    assert [cluster.book.conflict_sentence(key) is None for key in (one, two)] == [True, False]


def test_when_the_elder_goes_the_younger_may(cluster: Cluster) -> None:
    young, _ = cluster.topic("young"), cluster.topic("old", age=5)
    before = cluster.book.conflict_sentence(young)

    cluster.remove("old")

    assert (before is None, cluster.book.conflict_sentence(young)) == (False, None)


def test_a_circle_is_refused_until_it_is_opened(cluster: Cluster) -> None:
    cluster.topic("there", "a", "b", age=5)
    back = cluster.topic("back", "[b]", "[a]")
    round_in_a_circle = cluster.book.conflict_sentence(back)

    cluster.topic("there", "a", "c", age=5)

    assert round_in_a_circle is not None
    assert "by way of shop/there (older)" in round_in_a_circle
    assert cluster.book.conflict_sentence(back) is None


def test_the_same_topic_of_another_cluster_is_another_topic(cluster: Cluster) -> None:
    cluster.delay_class("far", default=False, connection={"bootstrapServers": "elsewhere:9092"})
    cluster.topic("old", age=5)
    young = cluster.topic("young", delayClassName="far")
    apart = cluster.book.conflict_sentence(young)

    cluster.delay_class("far", default=False)

    assert apart is None
    assert cluster.book.conflict_sentence(young) is not None


@pytest.mark.parametrize("spec", [{}, {"source": {}}, {"source": {"topic": ""}, "target": {"topic": "b"}}])
def test_what_is_not_valid_is_in_nobodys_way(cluster: Cluster, spec: dict[str, Any]) -> None:
    metadata = {"namespace": "shop", "name": "odd", "creationTimestamp": instant(BORN_MS - 9_000)}
    cluster._put("DelayTopic", metadata, spec)
    key = cluster.topic("sound")

    assert cluster.book.conflict_sentence(key) is None


def test_elders_are_counted_by_namespace_and_class(cluster: Cluster) -> None:
    cluster.delay_class("fast", default=False)
    keys = [cluster.topic(f"n{number}", f"s{number}", f"t{number}", age=9 - number) for number in range(3)]
    cluster.topic("other", "x", "y", age=99, delayClassName="fast")

    assert [cluster.book.quota_usage(key).topics for key in keys] == [0, 1, 2]
    assert cluster.book.quota_usage(Key("shop", "unknown")) == (0, 0)


def test_what_is_refused_is_in_nobodys_way(cluster: Cluster) -> None:
    cluster.delay_class("narrow", default=False, access={"sourceTopics": ["{namespace}.*"]})
    cluster.topic("bank/greedy", delayClassName="narrow", age=9)

    assert cluster.book.conflict_sentence(cluster.topic("mine")) is None


def test_what_names_a_class_that_there_is_not_is_in_nobodys_way(cluster: Cluster) -> None:
    cluster.topic("bank/early", delayClassName="later", age=9)

    assert cluster.book.conflict_sentence(cluster.topic("mine")) is None


def test_more_than_a_class_allows_in_a_namespace_are_in_nobodys_way(cluster: Cluster) -> None:
    cluster.delay_class("few", default=False, limits={"maxDelayTopicsPerNamespace": 1})
    cluster.topic("bank/first", "x", delayClassName="few", age=9)
    cluster.topic("bank/second", "a", delayClassName="few", age=8)

    assert cluster.book.conflict_sentence(cluster.topic("mine")) is None


def test_a_namespace_that_a_class_is_not_for_is_in_nobodys_way_until_it_has_the_label(cluster: Cluster) -> None:
    labelled = {"namespaceSelector": {"matchLabels": {"delays": "true"}}, "sourceTopics": ["*"], "targetTopics": ["*"]}
    cluster.delay_class("some", default=False, access=labelled)
    cluster.topic("bank/other", delayClassName="some", age=9)
    mine = cluster.topic("mine")
    before = cluster.book.conflict_sentence(mine)

    cluster.labels["delays"] = "true"
    cluster.book.forget_namespace("bank")

    assert (before is None, cluster.book.conflict_sentence(mine) is None) == (True, False)


def test_a_connection_of_its_own_to_the_same_servers_is_in_no_other_namespaces_way(cluster: Cluster) -> None:
    claims = cluster.topic(
        "bank/claims", connection={"bootstrapServers": "kafka.platform:9092"}, backend={"type": "KafkaBuckets"}, age=9
    )
    mine = cluster.topic("mine")

    assert cluster.book.conflict_sentence(mine) is None
    assert cluster.book.conflict_sentence(claims) == (
        "spec.source.topic: a is the source topic of a DelayTopic of another namespace already; use another"
    )


def test_a_cluster_by_another_address_is_one_once_it_said_so(cluster: Cluster) -> None:
    other_address: dict[str, Any] = {
        "connection": {"bootstrapServers": "10.0.0.7:9092"},
        "backend": {"type": "KafkaBuckets"},
    }
    mine, other = cluster.topic("mine"), cluster.topic("bank/other", **other_address)
    before = cluster.book.conflict_sentence(other)

    news = [cluster.book.learn(key, "id-1") for key in (mine, other, other)]

    assert (before, news) == (None, [True, True, False])
    assert cluster.book.conflict_sentence(other) is not None
    assert cluster.book.conflict_sentence(mine) is None


def test_a_retained_backlog_owns_its_topics_though_its_delay_topic_is_gone(cluster: Cluster) -> None:
    cluster.record(Key("shop", "gone"), state="Retained", pending=7)

    assert cluster.book.conflict_sentence(cluster.topic("heir")) == (
        "spec.source.topic: a is the source topic of shop/gone, which is gone, and whose backlog is retained already; "
        "use another"
    )
    assert cluster.book.conflict_sentence(Key("shop", "gone")) is None


def test_a_retained_backlog_without_records_is_in_no_way_of_its_namespace(cluster: Cluster) -> None:
    cluster.record(Key("shop", "gone"), state="Retained", pending=0)
    mine, others = cluster.topic("heir"), cluster.topic("bank/other", age=9)

    assert cluster.book.conflict_sentence(others) is not None
    assert cluster.book.conflict_sentence(mine) is None


def test_a_record_that_a_tenant_wrote_owns_nothing(cluster: Cluster) -> None:
    cluster.record(Key("bank", "ghost"), namespace="bank")

    assert cluster.book.conflict_sentence(cluster.topic("mine")) is None


def test_by_what_was_written_down_a_cluster_is_known_before_it_is_asked(cluster: Cluster) -> None:
    cluster.delay_class("far", default=False, connection={"bootstrapServers": "elsewhere:9092"})
    mine = cluster.topic("mine", delayClassName="far")
    cluster.record(mine, className="far", clusterId="id-1")
    other = cluster.topic("bank/other", age=9)
    cluster.book.learn(other, "id-1")

    assert cluster.book.conflict_sentence(other) is not None
    assert cluster.book.conflict_sentence(mine) is None


Change = tuple[int, str, str, str, bool]


@given(
    st.lists(
        st.tuples(
            st.integers(0, 7),
            st.sampled_from("abcd"),
            st.sampled_from("abcd"),
            st.sampled_from(["apply", "apply", "remove", "record", "retained record"]),
            st.booleans(),
        ),
        max_size=25,
    ),
    st.booleans(),
)
def test_what_was_kept_up_to_date_is_as_if_it_was_read_anew(changes: list[Change], youngest_first: bool) -> None:
    cluster = Cluster()
    cluster.delay_class()
    living: set[str] = set()

    for number, source, target, what, is_asked in changes:
        name = f"{'bank/' if number % 3 == 0 else ''}n{number}"
        key = Key("bank" if number % 3 == 0 else "shop", f"n{number}")
        if what == "remove" and name in living:
            living.discard(name)
            cluster.remove(key.name)
        elif what.endswith("record"):
            topics = {"source": source, "target": f"{target}-due", "deadLetter": f"{source}.dlq"}
            made: dict[str, Any] = {role: {"name": topic, "ownership": "Created"} for role, topic in topics.items()}
            if what.startswith("retained"):
                made |= {"state": "Retained", "pending": number % 2}
            cluster.record(key, **made)
        else:
            living.add(name)
            cluster.topic(name, source, f"{target}-due", age=number if youngest_first else 9 - number)
        if is_asked:
            cluster.book.conflict_sentence(key)

    anew = cluster.another_book()
    keys = [Key(f"{namespace or 'shop'}", plain) for namespace, _, plain in (name.rpartition("/") for name in living)]
    assert [cluster.book.conflict_sentence(key) for key in keys] == [anew.conflict_sentence(key) for key in keys]
    assert [cluster.book.quota_usage(key) for key in keys] == [anew.quota_usage(key) for key in keys]


def test_partitions_of_elders_count_with_their_buckets_but_for_those_that_have_no_room(cluster: Cluster) -> None:
    cluster.delay_class(limits={"maxPartitionsPerNamespace": 300}, defaults={"partitions": 10})
    # With 11 bucket topics; with the usual maxDelay there are 20.
    fixed = {"schedule": {"fixedDelay": "1h"}}
    keys = [
        cluster.topic("first", "a", "b", age=4, **fixed),
        cluster.topic("too-many", "c", "d", age=3),
        cluster.topic("seen-only", "e", "f", age=2, deadLetter={"topic": "g", "management": "Observe"}, **fixed),
        cluster.topic("last", "h", "i", age=1, **fixed),
    ]

    assert [cluster.book.quota_usage(key) for key in keys] == [(0, 0), (1, 140), (2, 140), (3, 270)]


def test_users_of_a_class_are_those_who_name_it_or_get_it_and_what_is_left_of_gone_ones(cluster: Cluster) -> None:
    cluster.delay_class("gold", default=False)
    by_default, named = cluster.topic("by-default"), cluster.topic("named", "c", delayClassName="gold")
    refused = cluster.topic("refused", "c", delayClassName="gold")
    cluster.topic("inline", "d", connection={"bootstrapServers": "kafka:9092"})
    draining = Key("shop", "gone")
    cluster.record(draining, state="Draining")

    assert cluster.book.users("standard") == {by_default, draining}
    assert cluster.book.users("gold") == {named, refused}


def test_a_retained_backlog_needs_no_class(cluster: Cluster) -> None:
    cluster.record(Key("shop", "gone"), state="Retained", pending=3)

    assert cluster.book.users("standard") == frozenset()
