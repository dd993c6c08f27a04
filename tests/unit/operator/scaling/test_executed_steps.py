"""A step counts once it was executed: as an event and in the memory."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.support.operator.scenes import KEY, NOW_MS
from tests.unit.operator.scaling.steps import REMEMBERED, WITHHELD, Reconciliation, growing

from delaytopic_operator.decide.planner import DRY_RUN, plan
from delaytopic_operator.scaling.state import Step


def test_an_executed_step_is_told_and_remembered_and_then_written_down() -> None:
    reconciliation = Reconciliation(growing())

    failure = reconciliation.run()

    assert (failure, reconciliation.events, reconciliation.remembered()) == (None, ["RelayScaled"], (2, 2))
    assert reconciliation.kube.written == ["Deployment", "ConfigMap"]


@pytest.mark.parametrize("why", WITHHELD)
def test_a_withheld_deployment_is_not_told_or_remembered(why: str) -> None:
    reconciliation = Reconciliation(growing(**WITHHELD[why]))

    failure = reconciliation.run()

    assert (failure, reconciliation.events, reconciliation.remembered()) == (None, [], (1, None))
    assert reconciliation.kube.written == []


def test_a_refused_write_is_not_told_or_remembered() -> None:
    reconciliation = Reconciliation(growing())
    reconciliation.kube.refuses = True

    failure = reconciliation.run()

    assert str(failure) == "no more pods for this team"
    assert (reconciliation.events, reconciliation.remembered(), reconciliation.kube.written) == ([], (1, None), [])


def test_a_dry_run_is_not_told_or_remembered() -> None:
    reconciliation = Reconciliation(growing({DRY_RUN: "true"}))

    failure = reconciliation.run()

    assert (failure, reconciliation.events, reconciliation.remembered()) == (None, [], None)
    assert (reconciliation.kube.written, reconciliation.plans[0].step is not None) == ([], True)


def test_a_refused_step_is_executed_as_soon_as_it_may_be() -> None:
    reconciliation = Reconciliation(growing())
    reconciliation.kube.refuses = True
    reconciliation.run()
    reconciliation.kube.refuses = False

    failure = reconciliation.run(growing(now_ms=NOW_MS + 1_000))

    assert (failure, reconciliation.events, reconciliation.remembered()) == (None, ["RelayScaled"], (2, 2))


def test_the_memory_of_a_delaytopic_that_is_gone_is_dropped() -> None:
    reconciliation = Reconciliation(growing())
    reconciliation.run()

    reconciliation.run(growing(document=None, verdict=None, record=None, objects=[]))

    assert reconciliation.ledger.memory(KEY) is None


def test_what_was_written_down_is_remembered_after_a_restart() -> None:
    decided = plan(growing(saved_memory=replace(REMEMBERED, replicas=2)))

    assert decided.scaling is not None
    assert decided.scaling.held.step == Step(NOW_MS, 2, 1)
