"""A step counts once it was executed: as an event, in the memory and in the budget of the fleet."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.support.operator.scenes import KEY, NOW_MS
from tests.unit.operator.scaling.steps import REMEMBERED, WITHHELD, Reconciliation, growing

from delaytopic_operator.decide.planner import DRY_RUN, plan
from delaytopic_operator.execute.ledgers import ScalingLedger
from delaytopic_operator.model.reconciliation import Key
from delaytopic_operator.scaling.decision import MINUTE_MS
from delaytopic_operator.scaling.rules import Reason

OTHER = Key("shop", "another")


def test_an_executed_step_is_told_remembered_and_spent_and_then_written_down() -> None:
    reconciliation = Reconciliation(growing())

    failure = reconciliation.run()

    assert (failure, reconciliation.events, reconciliation.remembered()) == (None, ["RelayScaled"], (2, 2))
    assert reconciliation.kube.written == ["Deployment", "ConfigMap"]
    assert not reconciliation.has_step_left()


@pytest.mark.parametrize("why", WITHHELD)
def test_a_withheld_deployment_is_not_told_remembered_or_spent(why: str) -> None:
    reconciliation = Reconciliation(growing(**WITHHELD[why]))

    failure = reconciliation.run()

    assert (failure, reconciliation.events, reconciliation.remembered()) == (None, [], (1, None))
    assert reconciliation.kube.written == []
    assert reconciliation.has_step_left()


def test_a_refused_write_is_not_told_remembered_or_spent() -> None:
    reconciliation = Reconciliation(growing())
    reconciliation.kube.refuses = True

    failure = reconciliation.run()

    assert str(failure) == "no more pods for this team"
    assert (reconciliation.events, reconciliation.remembered(), reconciliation.kube.written) == ([], (1, None), [])
    assert reconciliation.has_step_left()


def test_a_dry_run_is_not_told_remembered_or_spent() -> None:
    reconciliation = Reconciliation(growing({DRY_RUN: "true"}))

    failure = reconciliation.run()

    assert (failure, reconciliation.events, reconciliation.remembered()) == (None, [], None)
    assert (reconciliation.kube.written, reconciliation.plans[0].step is not None) == ([], True)
    assert reconciliation.has_step_left()


def test_a_refused_step_is_executed_as_soon_as_it_may_be() -> None:
    reconciliation = Reconciliation(growing())
    reconciliation.kube.refuses = True
    reconciliation.run()
    reconciliation.kube.refuses = False

    failure = reconciliation.run(growing(now_ms=NOW_MS + 1_000))

    assert (failure, reconciliation.events, reconciliation.remembered()) == (None, ["RelayScaled"], (2, 2))


def test_a_step_for_which_the_fleet_has_none_left_waits_and_says_when_to_ask_again() -> None:
    reconciliation = Reconciliation(growing())
    reconciliation.has_step_left()

    failure = reconciliation.run()

    said = reconciliation.plans[0]
    assert (failure, reconciliation.events, reconciliation.remembered()) == (None, [], (1, None))
    assert said.scaling is not None
    assert (said.scaling.reason, said.next_at_ms) == (Reason.OPERATOR_BUDGET, NOW_MS + 15_000)


def test_a_step_that_was_given_back_is_anothers() -> None:
    ledger, step = ScalingLedger(1), plan(growing()).step
    assert step is not None

    taken = ledger.reserve(KEY, step)
    ledger.settle(KEY, step, reserved=True, executed=False)

    assert (taken, ledger.reserve(OTHER, step)) == (None, None)


def test_what_others_take_is_not_given_back_with_a_step() -> None:
    ledger, step = ScalingLedger(2), plan(growing()).step
    assert step is not None
    late = replace(step, decided_at_ms=NOW_MS + MINUTE_MS)

    ledger.reserve(KEY, step)
    ledger.reserve(OTHER, late)
    ledger.settle(KEY, step, reserved=True, executed=False)

    answers = [ledger.reserve(Key("shop", name), late) is None for name in ("third", "fourth")]
    assert answers == [True, False]


def test_the_memory_of_a_delaytopic_that_is_gone_is_dropped() -> None:
    reconciliation = Reconciliation(growing())
    reconciliation.run()

    reconciliation.run(growing(document=None, verdict=None, record=None, objects=[]))

    assert reconciliation.ledger.memory(KEY) is None


def test_what_was_written_down_is_remembered_after_a_restart() -> None:
    decided = plan(growing(saved_memory=replace(REMEMBERED, throttled_since_ms=NOW_MS - 1_000)))

    assert decided.scaling is not None
    assert decided.scaling.held.throttled_since_ms == NOW_MS - 1_000
