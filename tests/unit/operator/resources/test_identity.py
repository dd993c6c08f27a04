"""Names and labels of the objects: valid whatever the DelayTopic is called, and different for different ones."""

from __future__ import annotations

import re
from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st
from tests.support.operator.routes import UID, route

from delaytopic_operator.model.reconciliation import Key
from delaytopic_operator.resources import RelayIdentity, audit_name, relays_name, selector
from delaytopic_operator.resources.identity import AUDIT, inherited, labels, pod_labels

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
    assert DNS_LABEL.fullmatch(audit_name(key))
    assert len(relays_name(key)) <= 55
    assert len(audit_name(key)) <= 52


@given(KEYS, KEYS)
def test_two_delay_topics_share_no_name_and_no_pods(one: Key, other: Key) -> None:
    assume(one != other)

    assert relays_name(one) != relays_name(other)
    assert audit_name(one) != audit_name(other)
    assert selector(one) != selector(other)


@given(KEYS)
def test_every_label_is_one_that_kubernetes_takes(key: Key) -> None:
    for name, value in labels(identity(key)).items():
        assert LABEL_NAME.fullmatch(name)
        assert LABEL_VALUE.fullmatch(value)


@given(KEYS, st.dictionaries(st.sampled_from(["team", "app.kubernetes.io/name", "delaytopic.dev/name"]), NAMES))
def test_relays_are_selected_whatever_they_inherit_and_audits_are_not(key: Key, given_labels: dict[str, str]) -> None:
    inherits = identity(key, labels=given_labels)

    assert selector(key).items() <= pod_labels(inherits).items()
    assert not selector(key).items() <= pod_labels(inherits, AUDIT).items()


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

    for document in [*given_route.documents(), given_route.pod()]:
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

    assert [len(name) for name in (relays_name(key), audit_name(key))] == [55, 52]
    assert all(len(name.rpartition("-")[2]) == 26 for name in (relays_name(key), audit_name(key)))
