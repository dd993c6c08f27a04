"""Tests of which gauges a reconciliation leaves behind."""

from __future__ import annotations

import pytest
from tests.support.operator.scenes import KEY, NO_FLEET, document, record, seen

from delaytopic_operator.decide.planner import plan
from delaytopic_operator.errors import ApiServerUnavailable
from delaytopic_operator.execute.executor import Outcome
from delaytopic_operator.model.record import RecordState
from delaytopic_operator.observe.observation import Observation
from delaytopic_operator.report.metrics import OperatorMetrics
from delaytopic_operator.report.status import StatusMetrics

RETAINED = "delaytopic_operator_retained_backlog_messages"
CONDITION = "delaytopic_operator_condition"


def series(metrics: OperatorMetrics, name: str) -> dict[str, float]:
    """Values of a metric by what their last labels say."""
    lines = [line for line in metrics.render().decode().splitlines() if line.startswith(name)]
    return {line.rpartition(" ")[0].removeprefix(name): float(line.rpartition(" ")[2]) for line in lines}


def measured(*looks: Observation) -> OperatorMetrics:
    metrics = OperatorMetrics()
    for look in looks:
        StatusMetrics(metrics).update(look, plan(look), Outcome())
    return metrics


def left(pending: int | None) -> Observation:
    """One that is gone, and left so much behind."""
    return seen(None, record=record().in_state(RecordState.RETAINED, pending=pending), fleet=NO_FLEET, objects=[])


CASES = [
    ("so many", left(4), [4.0]),
    ("nobody knows how many", left(None), [1.0]),
    ("nothing", left(0), []),
    ("written down in this pass", seen(None, pending=7), [7.0]),
    ("nothing written down", seen(None, record=None), []),
    ("living", seen(document(deleted_ms=None), pending=7), []),
]


@pytest.mark.parametrize(("what", "look", "values"), CASES, ids=[case[0] for case in CASES])
def test_a_backlog_that_was_left_behind_is_counted(what: str, look: Observation, values: list[float]) -> None:
    assert list(series(measured(look), RETAINED).values()) == values


def test_what_could_not_be_written_down_is_not_counted() -> None:
    look, metrics = seen(None, pending=7), OperatorMetrics()
    decided = plan(look)
    failed = Outcome(failure=ApiServerUnavailable("away"), failed=decided.actions[0])

    StatusMetrics(metrics).update(look, decided, failed)

    assert series(metrics, RETAINED) == {}


def test_a_backlog_that_goes_on_is_not_counted_any_more() -> None:
    again = seen(document(deleted_ms=None), record=record().in_state(RecordState.RETAINED, pending=4), pending=4)

    assert series(measured(left(4), again), RETAINED) == {}


def test_conditions_are_those_of_the_status_until_the_object_is_gone() -> None:
    living, gone = seen(document(), pending=3), left(0)

    found = series(measured(living), CONDITION)

    said = {(label.split('"')[7], label.split('"')[5]) for label in found}
    assert said >= {("Ready", "False"), ("Draining", "True")}
    assert all(f'"{KEY.name}"' in label for label in found)
    assert series(measured(living, gone), CONDITION) == {}
