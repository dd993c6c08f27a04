"""Tests of what the store keeps, finds and forgets, whatever order its news come in."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from delaytopic_operator.kube.object_cache import REMEMBERED_NEWS, News, ObjectCache, Ref
from delaytopic_operator.model import kinds
from delaytopic_operator.model.kinds import Kind
from delaytopic_operator.model.reconciliation import Key, audit_key, class_key

Document = dict[str, Any]
OPERATOR = "delaytopic-system"
SHOP = Key("shop", "reminders")
STANDARD, IN_SHOP = class_key("standard"), audit_key("shop", None)


def made(kind: Kind, name: str, version: int = 1, namespace: str | None = "shop", **parts: Any) -> Document:
    metadata = {"name": name, "resourceVersion": str(version), **parts.pop("metadata", {})}
    if kind.namespaced:
        metadata["namespace"] = namespace
    return {"apiVersion": kind.api_version, "kind": kind.name, "metadata": metadata, **parts}


def delay_topic(name: str = "reminders", version: int = 1, namespace: str = "shop", **spec: Any) -> Document:
    topics = {"source": {"topic": f"{name}.delayed"}, "target": {"topic": name}}
    return made(kinds.DELAY_TOPIC, name, version, namespace, spec=topics | spec)


def made_for(kind: Kind, name: str, owner: Key, version: int = 1, namespace: str = "shop") -> Document:
    labels = {"delaytopic.dev/namespace": owner.namespace, "delaytopic.dev/name": owner.name}
    return made(kind, name, version, namespace, metadata={"labels": labels})


def store(*documents: Document, watched: tuple[str, ...] = ()) -> ObjectCache:
    filled = ObjectCache(OPERATOR, watched)
    for document in documents:
        filled.put(document)
    return filled


def names(documents: list[Document]) -> list[str]:
    return [document["metadata"]["name"] for document in documents]


def test_what_was_put_is_read_as_a_copy_of_the_readers_own() -> None:
    known = store(delay_topic())

    first = known.get(kinds.DELAY_TOPIC, "shop", "reminders")
    assert first == delay_topic()
    first["spec"].clear()

    assert known.get(kinds.DELAY_TOPIC, "shop", "reminders") == delay_topic()


def test_what_nobody_reads_is_not_kept() -> None:
    annotations = {"kubectl.kubernetes.io/last-applied-configuration": "{}", "team": "checkout"}
    document = delay_topic()
    document["metadata"] |= {"managedFields": [{"manager": "people"}], "annotations": annotations}

    kept = store(document).get(kinds.DELAY_TOPIC, "shop", "reminders")

    assert kept is not None
    assert kept["metadata"] == delay_topic()["metadata"] | {"annotations": {"team": "checkout"}}
    assert document["metadata"]["managedFields"] == [{"manager": "people"}]


@pytest.mark.parametrize("part", ["labels", "annotations"])
@pytest.mark.parametrize("kind", kinds.DECLARED, ids=[kind.name for kind in kinds.DECLARED])
def test_of_labels_and_annotations_that_people_write_the_longest_are_not_kept_where_there_are_too_many(
    kind: Kind, part: str
) -> None:
    many = {f"{number:05}": "x" * 59 for number in range(1_100)}
    document = made(kind, "one")
    document["metadata"][part] = {"long": "x" * 1_000, **many, "delaytopic.dev/pause": "true"}

    kept = store(document).list(kind)[0]["metadata"][part]

    room = (64 << 10) - len("delaytopic.dev/pausetrue")
    assert kept == {"delaytopic.dev/pause": "true", **dict(list(many.items())[: room // 64])}


@given(st.permutations([("put", 1), ("put", 5), ("put", 9), ("remove", 5)]))
def test_an_older_state_never_replaces_a_newer_one(steps: list[tuple[str, int]]) -> None:
    known = store()

    for step, version in steps:
        document = delay_topic(version=version)
        known.put(document) if step == "put" else known.remove(document)

    assert known.get(kinds.DELAY_TOPIC, "shop", "reminders") == delay_topic(version=9)


@given(st.permutations([("put", 1), ("put", 5), ("remove", 6)]))
def test_what_was_removed_does_not_come_back_by_older_news(steps: list[tuple[str, int]]) -> None:
    known = store()

    for step, version in steps:
        document = delay_topic(version=version)
        known.put(document) if step == "put" else known.remove(document)

    assert known.get(kinds.DELAY_TOPIC, "shop", "reminders") is None
    assert known.keys() == set()


def test_it_says_what_was_news() -> None:
    known = store()

    assert [known.put(delay_topic(version=version)) for version in (2, 2, 1, 3)] == [True, False, False, True]
    assert [known.remove(delay_topic(version=4)) for _ in range(2)] == [True, False]


def test_own_writes_are_told_from_those_of_others() -> None:
    known = store()
    known.written(delay_topic(version=2))

    assert known.put(delay_topic(version=2)) is False
    assert known.is_own(delay_topic(version=2))
    assert not known.is_own(delay_topic(version=3))


def test_a_list_removes_what_it_did_not_have_unless_that_is_newer() -> None:
    known = store(delay_topic("old", 3), delay_topic("new", 12), delay_topic("listed", 4), delay_topic("x", 3, "other"))

    gone = known.keep_only(kinds.DELAY_TOPIC, "shop", {Ref("delaytopics", "shop", "listed")}, "10")

    assert names(gone) == ["old"]
    assert known.keys() == {Key("shop", "new"), Key("shop", "listed"), Key("other", "x")}


def test_objects_are_found_by_their_labels_wherever_they_are() -> None:
    known = store(
        made_for(kinds.DEPLOYMENT, "relay", SHOP, namespace="relays"),
        made_for(kinds.POD, "relay-1", SHOP, namespace="relays"),
        made_for(kinds.POD, "other-1", Key("shop", "other"), namespace="relays"),
        made(kinds.CONFIG_MAP, "of-nobody"),
    )

    assert names(known.objects_of(SHOP)) == ["relay", "relay-1"]
    assert names(known.objects_of(SHOP, kinds.POD)) == ["relay-1"]


def test_there_is_something_to_look_at_while_objects_are_left() -> None:
    deployment = made_for(kinds.DEPLOYMENT, "relay", SHOP, 2)
    known = store(delay_topic("alive"), deployment)

    assert known.keys() == {Key("shop", "alive"), SHOP}
    known.remove(deployment)
    assert known.keys() == {Key("shop", "alive")}


PASSWORD = {"authentication": {"passwordSecret": {"secretName": "kafka"}}}


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (delay_topic("of-class"), {"of-class"}),
        (made(kinds.DELAY_CLASS, "standard"), {"of-class", "by-default"}),
        (made(kinds.DELAY_CLASS, "unused"), {"by-default"}),
        (made(kinds.SECRET, "kafka"), {"inline"}),
        (made(kinds.SECRET, "redis", namespace=OPERATOR), {"of-class", "by-default"}),
        (made(kinds.SECRET, "redis"), set()),
        (made(kinds.NAMESPACE, "shop"), {"of-class", "by-default", "inline"}),
        (made_for(kinds.POD, "relay-1", Key("shop", "inline"), namespace="relays"), {"inline"}),
        (made_for(kinds.CONFIG_MAP, "relay", Key("shop", "gone")), {"gone"}),
        (made(kinds.CONFIG_MAP, "of-nobody"), set()),
    ],
    ids=lambda value: value["kind"] if isinstance(value, dict) else None,
)
def test_an_event_concerns_those_who_have_to_do_with_the_object(document: Document, expected: set[str]) -> None:
    known = store(
        delay_topic("of-class", delayClassName="standard"),
        delay_topic("by-default"),
        delay_topic("inline", connection=PASSWORD),
        delay_topic("elsewhere", namespace="other", connection=PASSWORD),
        made(kinds.DELAY_CLASS, "standard", spec={"backend": {"redis": {"urlSecret": {"secretName": "redis"}}}}),
    )

    assert known.requests_for(kinds.kind_of(document), document) == {Key("shop", name) for name in expected}


def test_other_namespaces_than_those_named_are_ignored() -> None:
    theirs = delay_topic("theirs", namespace="other")
    known = store(delay_topic(), theirs, made_for(kinds.POD, "p", Key("other", "theirs")), watched=("shop",))

    assert known.keys() == {SHOP}
    assert known.list(kinds.DELAY_TOPIC, "other") == []
    assert known.requests_for(kinds.POD, made_for(kinds.POD, "p", Key("other", "theirs"))) == set()


def test_it_counts_what_it_knows() -> None:
    assert store(delay_topic("a"), delay_topic("b"), made(kinds.DELAY_CLASS, "c")).counts() == {
        "delaytopics": 2,
        "delayclasses": 1,
    }


def test_of_a_config_map_that_a_tenant_may_have_written_no_more_is_kept_than_ours_ever_hold() -> None:
    of_us, store = {"relay.yaml": "x" * 10_000}, ObjectCache("platform")
    labels = {"app.kubernetes.io/managed-by": "delaytopic-operator"}

    def put(namespace: str, data: dict[str, str]) -> object:
        metadata = {"namespace": namespace, "name": "a", "resourceVersion": "1", "labels": labels}
        store.put({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})
        found = store.get(kinds.CONFIG_MAP, namespace, "a")
        assert found is not None
        return found.get("data")

    assert put("shop", of_us) == of_us
    assert put("bank", {"relay.yaml": "x" * 1_000_000}) is None
    assert put("platform", {"record": "x" * 1_000_000}) == {"record": "x" * 1_000_000}


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (delay_topic("of-class", delayClassName="gold"), {"gold"}),
        (delay_topic("by-default"), {"standard", "gold"}),
        (made(kinds.DELAY_CLASS, "new"), {"standard", "gold", "new"}),
        (made_for(kinds.POD, "relay-1", SHOP), set()),
    ],
    ids=["a DelayTopic of it", "a DelayTopic without", "a class", "a pod"],
)
def test_a_class_is_looked_at_when_its_users_or_the_default_may_be_others(
    document: Document, expected: set[str]
) -> None:
    known = store(made(kinds.DELAY_CLASS, "standard"), made(kinds.DELAY_CLASS, "gold"))

    assert known.class_requests_for(kinds.kind_of(document), document) == {Key("", name) for name in expected}


def test_what_is_made_for_an_audit_concerns_the_audit_and_nothing_else() -> None:
    of_class = made(kinds.CRON_JOB, "one", metadata={"annotations": {"delaytopic.dev/delay-class": "standard"}})
    of_shop = made(kinds.CRON_JOB, "two", metadata={"annotations": {"delaytopic.dev/audited-namespace": "shop"}})
    known = store(of_class, of_shop, made_for(kinds.DEPLOYMENT, "relays", SHOP))

    audits = {each: names(known.objects_of_audit(each)) for each in (STANDARD, IN_SHOP, class_key("shop"))}
    assert audits == {STANDARD: ["one"], IN_SHOP: ["two"], class_key("shop"): []}
    assert known.requests_for(kinds.CRON_JOB, of_class) == known.class_requests_for(kinds.CRON_JOB, of_class) == set()
    assert [known.audit_requests_for(kinds.CRON_JOB, each) for each in (of_class, of_shop)] == [{STANDARD}, {IN_SHOP}]
    assert known.audit_keys() >= {STANDARD, IN_SHOP}


def test_an_audit_is_looked_at_when_a_delay_topic_of_it_comes_or_goes_and_when_its_class_changes() -> None:
    known = store(made(kinds.DELAY_CLASS, "standard"))
    of_class, own = (
        delay_topic("a", delayClassName="standard"),
        delay_topic("b", connection={"bootstrapServers": "k:1"}),
    )
    (namespace,) = {each["metadata"]["namespace"] for each in (of_class, own)}
    known.put(own)

    assert known.audit_requests_for(kinds.DELAY_CLASS, made(kinds.DELAY_CLASS, "standard")) == {STANDARD}
    assert known.audit_requests_for(kinds.DELAY_TOPIC, of_class) == {STANDARD, audit_key(namespace, None)}
    assert audit_key(namespace, None) in known.audit_requests_for(kinds.DELAY_TOPIC, own)
    assert names(known.with_own_connection(namespace)) == ["b"]
    assert known.audit_keys() == {STANDARD, audit_key(namespace, None)}


def test_the_news_since_a_revision_are_what_came_changed_and_went() -> None:
    known = store(delay_topic("a"), delay_topic("b"), delay_topic("c"))
    revision = known.revision(kinds.DELAY_TOPIC)

    known.put(delay_topic("a", version=2))
    known.put(delay_topic("new"))
    known.remove(delay_topic("b", version=3))
    news = known.news(kinds.DELAY_TOPIC, revision)

    assert {ref.name: version for ref, version in news.versions.items()} == {"a": 2, "new": 1, "b": None}
    assert (news.is_all, news.revision) == (False, known.revision(kinds.DELAY_TOPIC))
    assert known.news(kinds.DELAY_TOPIC, news.revision) == News(news.revision, {}, is_all=False)


def test_the_news_since_long_ago_are_all_that_there_is() -> None:
    known = store(*(delay_topic("a", version=version) for version in range(1, REMEMBERED_NEWS + 2)))

    news = known.news(kinds.DELAY_TOPIC, 1)

    assert ({ref.name: version for ref, version in news.versions.items()}, news.is_all) == (
        {"a": REMEMBERED_NEWS + 1},
        True,
    )


def with_status(document: Document, ready: str) -> Document:
    return document | {"status": {"ready": ready}}


@pytest.mark.parametrize("first", ["the answer", "the watch"])
def test_a_status_of_the_operators_own_is_no_change_whether_its_answer_or_its_watch_comes_first(first: str) -> None:
    known = store(delay_topic())
    before, own = known.changes_of(SHOP), with_status(delay_topic(version=2), "1/1")

    for bring in (known.written, known.put) if first == "the answer" else (known.put, known.written):
        bring(own)

    assert (known.changes_of(SHOP), known.is_own(own)) == (before, True)
    assert known.get(kinds.DELAY_TOPIC, *SHOP) == own


@pytest.mark.parametrize("kind", kinds.DECLARED, ids=lambda kind: kind.name)
def test_an_edit_that_the_answer_to_a_status_shows_first_is_told_by_its_watch(kind: Kind) -> None:
    known = store(made(kind, "reminders", spec={"precision": "1s"}))
    edited = made(kind, "reminders", version=2, spec={"precision": "5s"})
    own = with_status(made(kind, "reminders", version=3, spec={"precision": "5s"}), "1/1")

    known.written(own)
    was_told = known.put(edited), known.is_own(edited)
    known.put(own)

    assert (was_told, known.list(kind)) == ((True, False), [own])


def test_an_edit_that_the_answer_to_a_status_shows_first_is_a_change_of_the_delay_topic() -> None:
    known = store(delay_topic())
    before = known.changes_of(SHOP)

    known.written(with_status(delay_topic(version=3, precision="5s"), "1/1"))
    known.put(delay_topic(version=2, precision="5s"))

    assert (before, known.changes_of(SHOP)) == (
        frozenset({(Ref("delaytopics", *SHOP), 1)}),
        frozenset({(Ref("delaytopics", *SHOP), 2)}),
    )


def test_what_the_operator_itself_writes_is_no_change_of_a_delay_topic_and_what_others_write_is_one() -> None:
    known = store(delay_topic(), made_for(kinds.POD, "relay-1", SHOP))
    before = known.changes_of(SHOP)

    known.written(delay_topic(version=2))
    after_own = known.changes_of(SHOP)
    known.put(delay_topic(version=3))
    after_another = known.changes_of(SHOP)
    known.remove(made_for(kinds.POD, "relay-1", SHOP, version=4))

    assert {(ref.kind, version) for ref, version in before} == {("delaytopics", 1), ("pods", 1)}
    assert after_own == before
    assert {(ref.kind, version) for ref, version in after_another} == {("delaytopics", 3), ("pods", 1)}
    assert {(ref.kind, version) for ref, version in known.changes_of(SHOP)} == {("delaytopics", 3)}
