"""Names of members tell the cluster that they run in, and Kafka takes them."""

from __future__ import annotations

from delaytopic_operator.model.kube_cluster import mark_of, marks_in, member_name
from delaytopic_operator.resources.identity import LONGEST_RELAYS_NAME
from delaytopic_relay.kafka.member_name import member_name as taken_by_kafka

MARK = mark_of("a5e1f0d6-0000-4000-8000-000000000000")
LONGEST_SUFFIX = "-5d9c7f8b6d-x7k2p"
"""Kubernetes adds it to the name of a Deployment."""


def test_a_mark_is_of_the_cluster_alone() -> None:
    assert mark_of("a5e1f0d6-0000-4000-8000-000000000000") == MARK
    assert mark_of("a5e1f0d6-0000-4000-8000-000000000001") != MARK


def test_the_mark_is_read_from_the_end_of_names_and_other_members_tell_of_none() -> None:
    names = [
        member_name("relay-1", MARK),
        "relay-2.k-0a1b2c3d",
        "relay-3",
        "host-0",
        "x.k-0a1b2c3",
        "a.k-0a1b2c3d-0",
        "",
    ]

    assert marks_in(names) == {MARK, "0a1b2c3d"}


def test_without_a_mark_a_member_is_called_as_its_pod() -> None:
    assert member_name("relay-1", None) == "relay-1"


def test_a_relay_takes_the_longest_name_that_there_is() -> None:
    name = member_name("r" * LONGEST_RELAYS_NAME + LONGEST_SUFFIX, MARK)

    assert taken_by_kafka(name) == name
