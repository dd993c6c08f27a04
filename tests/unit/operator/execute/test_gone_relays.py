"""Relays whose pods are gone: taken out of their group first, told, and never in the way of anything else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.support.operator.scenes import CONFIG, POD
from tests.unit.operator.decide.test_planner import look
from tests.unit.operator.scaling.steps import Reconciliation, growing

from delaytopic_operator.decide.plan import RemoveMembers
from delaytopic_operator.decide.planner import DRY_RUN, plan
from delaytopic_operator.errors import KafkaUnavailable
from delaytopic_operator.observe.observer import Observer

GONE = frozenset({"relay-0", "relay-2"})


def test_they_are_taken_out_of_their_group_before_anything_else_is_done() -> None:
    decided = plan(growing(gone=GONE))

    assert decided.actions[0] == RemoveMembers("delaytopic.shop.reminders", ["relay-0", "relay-2"])
    assert decided.actions[1:] == plan(growing()).actions


def test_those_that_were_still_in_the_group_are_told() -> None:
    reconciliation = Reconciliation(growing(gone=GONE))
    reconciliation.in_group = ["relay-1", "relay-2"]

    failure = reconciliation.run()

    assert failure is None
    assert reconciliation.in_group == ["relay-1"]
    assert reconciliation.events == ["RelayGone", "RelayScaled"]


def test_the_event_names_the_pod_and_not_the_member_of_the_group() -> None:
    reconciliation = Reconciliation(growing(gone=GONE, kube_cluster="0123abcd"))
    reconciliation.in_group = ["relay-2.k-0123abcd"]

    reconciliation.run()

    assert reconciliation.messages[0] == "relay-2 is gone, and its partitions were given to other relays"


def test_a_kafka_that_cannot_be_asked_keeps_nothing_else_from_being_done() -> None:
    reconciliation = Reconciliation(growing(gone=GONE))
    reconciliation.in_group = KafkaUnavailable("no broker answers")

    failure = reconciliation.run()

    assert failure is None
    assert reconciliation.events == ["RelayScaled"]


def test_the_relays_that_there_are_are_remembered_whatever_was_done() -> None:
    reconciliation = Reconciliation(growing(gone=GONE))

    reconciliation.run()

    assert reconciliation.noted == [frozenset({"relay-1"})]


def test_a_dry_run_takes_nobody_out_and_remembers_nothing() -> None:
    reconciliation = Reconciliation(growing(annotations={DRY_RUN: "true"}, gone=GONE))
    reconciliation.in_group = ["relay-2"]

    reconciliation.run()

    assert (reconciliation.in_group, reconciliation.noted) == (["relay-2"], [])


def test_a_restart_in_place_removes_no_member_and_a_pod_that_is_replaced_one() -> None:
    nothing: Any = None
    observer, removed = Observer(nothing, nothing, nothing, CONFIG, nothing), list[str]()
    replaced = [("relay-1", "relay-2")] * 3 + [("relay-1", "relay-3")] * 3
    for names in replaced:
        pods = [{**POD, "metadata": {**POD["metadata"], "name": name}} for name in names]
        seen = growing()
        seen = observer._with_gone_relays(replace(seen, fleet=replace(seen.fleet, pods=pods)))
        actions = plan(seen).actions
        removed += [name for action in actions if isinstance(action, RemoveMembers) for name in action.names]
        observer.note_relays(seen)

    assert removed == ["relay-2"]


@pytest.mark.parametrize(("phase", "living"), [("Running", True), ("Pending", True), ("Failed", False)])
def test_a_pod_that_was_evicted_is_gone_though_it_can_be_seen(phase: str, living: bool) -> None:
    seen = look()
    pod = {**POD, "status": {"phase": phase}}

    fleet = replace(seen.fleet, pods=[pod])

    assert fleet.living == (frozenset({"relay-1"}) if living else frozenset())
