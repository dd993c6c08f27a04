"""A DelayTopic that another Kubernetes cluster has, too: both deliver, and what both have is left alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.support.operator.scenes import NO_FLEET, document, seen
from tests.unit.operator.decide.test_planner import living, look, owned, said, topics

from delaytopic_operator.decide.plan import DoTopic, Purge, RemoveFinalizer, RemoveMembers
from delaytopic_operator.decide.planner import plan
from delaytopic_operator.observe.observation import Observation

HERE, THERE = "0a1b2c3d", "99999999"


def shared(found: Any = None, *missing: str, **changes: Any) -> Observation:
    """A look at one whose group has relays of another cluster."""
    both = replace(topics(*missing), other_clusters=frozenset([THERE]))
    return look(found or living(), **{"topics": both, "kube_cluster": HERE, **changes})


def test_both_are_told_apart_and_the_status_says_what_to_do() -> None:
    found = shared()

    (told,) = [each for each in plan(found).conditions if each.type == "OtherOwner"]

    assert said(found)["OtherOwner"] == ("True", "OtherOwner")
    assert said(found)["Stalled"] == ("True", "OtherOwner")
    assert said(found)["Ready"] == ("True", "Ready")
    assert f"(k-{THERE}; this one is k-{HERE}) are in the group delaytopic.shop.reminders" in told.message


def test_nobody_sees_an_owner_where_all_relays_are_of_this_cluster() -> None:
    assert "OtherOwner" not in said(look(kube_cluster=HERE))


def test_topics_are_left_alone_until_the_other_one_has_gone() -> None:
    actions = [plan(found).actions for found in (shared(living(), "shop.b"), look(topics=topics("shop.b")))]

    assert [any(isinstance(action, DoTopic) for action in each) for each in actions] == [False, True]


def test_relays_that_are_gone_are_taken_out_of_the_group_by_their_names_there() -> None:
    found = shared(gone=frozenset(["relay-1"]))

    assert RemoveMembers("delaytopic.shop.reminders", [f"relay-1.k-{HERE}"]) in plan(found).actions


def test_a_deletion_removes_nothing_that_the_other_one_uses_and_waits() -> None:
    annotations = {"delaytopic.dev/confirm-delete": "reminders"}
    going = document(annotations=annotations, deletionPolicy="Delete")
    both = replace(topics(), other_clusters=frozenset([THERE]))
    found = seen(going, record=owned(), topics=both, kube_cluster=HERE, fleet=NO_FLEET, objects=[])
    alone = replace(found, topics=topics())

    kinds = [{type(action) for action in plan(each).actions} for each in (found, alone)]

    assert kinds[0] == set()
    assert kinds[1] >= {Purge, RemoveFinalizer}
    assert said(found)["Stalled"] == ("True", "OtherOwner")
