"""Names and labels of the objects: valid whatever the DelayTopic is called, and different for different ones."""

from __future__ import annotations

import re
from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st
from tests.support.operator.routes import UID, route

from delaytopic_operator.model.reconciliation import Key, audit_key, class_key
from delaytopic_operator.resources import RelayIdentity, audit_name, relays_name, selector
from delaytopic_operator.resources.identity import inherited, is_of_audit, labels, pod_labels

NAMES = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?", fullmatch=True)
NAMESPACES = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", fullmatch=True)
KEYS = st.builds(Key, NAMESPACES, NAMES)
LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
LABEL_NAME = re.compile(r"([a-z0-9.-]{1,253}/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


def identity(key: Key, **inherits: Any) -> RelayIdentity:
    return RelayIdentity(key, UID, key.namespace, True, **inherits)


@given(KEYS)
def test_every_name_is_one_that_kubernetes_takes(key: Key) -> None:
    assert DNS_LABEL.fullmatch(relays_name(key))
    assert len(relays_name(key)) <= 55
    for audit in (class_key(key.name), audit_key(key.namespace, None)):
        name = audit_name(audit, "delaytopic-system", "0123456789")
        assert DNS_LABEL.fullmatch(name)
        assert len(name) <= 52


@given(KEYS, KEYS)
def test_two_delay_topics_share_no_name_and_no_pods(one: Key, other: Key) -> None:
    assume(one != other)

    assert relays_name(one) != relays_name(other)
    assert selector(one) != selector(other)


@given(KEYS)
def test_every_label_is_one_that_kubernetes_takes(key: Key) -> None:
    for name, value in labels(identity(key)).items():
        assert LABEL_NAME.fullmatch(name)
        assert LABEL_VALUE.fullmatch(value)


@given(KEYS, st.dictionaries(st.sampled_from(["team", "app.kubernetes.io/name", "delaytopic.dev/name"]), NAMES))
def test_relays_are_selected_whatever_they_inherit(key: Key, given_labels: dict[str, str]) -> None:
    inherits = identity(key, labels=given_labels)

    assert selector(key).items() <= pod_labels(inherits).items()


def test_only_labels_on_the_allow_list_are_inherited_and_never_the_operators_own() -> None:
    of_topic = {
        "team": "checkout",
        "cost.example.com/center": "7",
        "app.kubernetes.io/instance": "argo",
        "app.kubernetes.io/name": "mine",
        "delaytopic.dev/name": "mine",
    }

    assert inherited(of_topic, ["team", "cost.example.com/*", "app.kubernetes.io/name", "delaytopic.dev/*"]) == {
        "team": "checkout",
        "cost.example.com/center": "7",
    }
    assert inherited(of_topic, []) == {}


def test_what_is_inherited_is_on_every_object_and_on_the_pods() -> None:
    given_route = route(
        metadata={"labels": {"team": "checkout", "other": "x"}, "annotations": {"contact": "Any text.", "other": "x"}},
        config={"inheritedLabels": ["team"], "inheritedAnnotations": ["contact"]},
    )

    for document in [*given_route.relay_objects(), given_route.pod()]:
        metadata = document["metadata"]
        assert (metadata["labels"]["team"], metadata["annotations"]["contact"]) == ("checkout", "Any text.")
        assert "other" not in metadata["labels"] | metadata["annotations"]


def test_a_delay_topic_that_is_made_anew_does_not_start_its_pods_anew() -> None:
    first = route(metadata={"uid": "11111111-1111-4111-8111-111111111111"})
    again = route(metadata={"uid": "22222222-2222-4222-8222-222222222222"})

    assert first.pod() == again.pod()
    assert first.relay_object("Deployment") != again.relay_object("Deployment")


def test_names_have_128_bits_of_the_digest_and_as_much_of_the_name_as_there_is_room_for() -> None:
    key = Key("shop", "a" * 40)

    names = (relays_name(key), audit_name(class_key(key.name), "delaytopic-system"))

    assert [len(name) for name in names] == [55, 52]
    assert all(len(name.rpartition("-")[2]) == 26 for name in names)


def test_audits_of_two_operators_of_a_class_and_a_namespace_and_of_two_connections_have_names_of_their_own() -> None:
    names = {
        audit_name(audit, operator, connection)
        for audit in (class_key("shop"), audit_key("shop", None))
        for operator in ("one", "two")
        for connection in ("abc", "def")
    }

    assert len(names) == 2 + 4


def test_a_pod_is_of_an_audit_by_the_name_that_the_operator_gave_it() -> None:
    of_class, of_namespace = class_key("standard"), audit_key("shop", None)

    def labelled(instance: str) -> dict[str, Any]:
        return {"metadata": {"labels": {"app.kubernetes.io/instance": instance}}}

    pods = [labelled(audit_name(of_class, "one")), labelled(audit_name(of_namespace, "one", "abc")), {"metadata": {}}]

    assert [is_of_audit(each, of_class, "one") for each in pods] == [True, False, False]
    assert [is_of_audit(each, of_namespace, "one") for each in pods] == [False, True, False]
    assert not any(is_of_audit(each, audit, "two") for each in pods for audit in (of_class, of_namespace))
