"""Somebody changes a number of relays that somebody else decides."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.operator.scaling.scenes import NOW_MS, decided, memory, policy, signals, steady

from delaytopic_api.values import AutoscalingMode
from delaytopic_operator.scaling.by_hand import TOLD_MS, HandChange, change_by_hand
from delaytopic_operator.scaling.decision import Decision
from delaytopic_operator.scaling.state import ScalingMemory

OPERATOR, EXTERNAL, FIXED = AutoscalingMode.OPERATOR, AutoscalingMode.EXTERNAL, AutoscalingMode.FIXED
TAKE_OVER = (
    "the operator decides, as autoscaling.mode is Operator; to take over, set it to External and scale the "
    "DelayTopic, or to Fixed and set relay.replicas."
)
LOAD = signals(steady(1_000))


@pytest.mark.parametrize(
    ("mode", "left", "current", "asked_before", "asked", "expected"),
    [
        (OPERATOR, None, 3, None, 1, None),
        (OPERATOR, 1, 1, 1, 1, None),
        (OPERATOR, 1, 3, 1, 1, HandChange(NOW_MS, 1, 3, of_deployment=True)),
        (OPERATOR, 1, 1, 1, 4, HandChange(NOW_MS, 1, 4, of_deployment=False)),
        (OPERATOR, 1, 1, None, 4, None),
        (EXTERNAL, 2, 2, 2, 4, None),
        (EXTERNAL, 2, 3, 2, 2, HandChange(NOW_MS, 2, 3, of_deployment=True)),
        (FIXED, 2, 2, 2, 4, None),
        (FIXED, 2, 0, 2, 2, HandChange(NOW_MS, 2, 0, of_deployment=True)),
    ],
    ids=[
        "nothing is remembered",
        "nothing changed",
        "the Deployment",
        "the spec, which counts at the beginning only",
        "the spec before it was ever seen",
        "the spec, by an external scaler",
        "the Deployment beside an external scaler",
        "the spec, which is what counts",
        "the Deployment beside the spec",
    ],
)
def test_a_change_that_counts_for_nothing_is_noticed(
    mode: AutoscalingMode,
    left: int | None,
    current: int,
    asked_before: int | None,
    asked: int,
    expected: HandChange | None,
) -> None:
    assert change_by_hand(mode, left, current, asked_before, asked, NOW_MS) == expected


def after(left: int, asked: int = 1, by_hand: HandChange | None = None) -> ScalingMemory:
    """The memory of a fleet that was left with so many relays."""
    return replace(memory(left), replicas=left, asked=asked, by_hand=by_hand)


def test_it_is_told_once_and_then_stands_in_the_condition() -> None:
    said = f"Somebody changed the relays' Deployment from 1 to 2: {TAKE_OVER}"

    first = decided(2, LOAD, remembered=after(1))
    again = decided(2, LOAD, remembered=first.held, now_ms=NOW_MS + 1_000)

    assert [first.by_hand, again.by_hand] == [said, None]
    assert [each.active.message.endswith(said) for each in (first, again)] == [True, True]


def test_a_number_in_the_spec_that_does_not_count_is_told_with_who_decides() -> None:
    decision = decided(1, LOAD, policy(replicas=5), after(1))

    assert (decision.replicas, decision.by_hand) == (1, f"Somebody changed relay.replicas from 1 to 5: {TAKE_OVER}")


@pytest.mark.parametrize(
    ("mode", "end"),
    [
        (EXTERNAL, "it is set back, as autoscaling.mode is External; scale the DelayTopic instead."),
        (FIXED, "it is set back, as autoscaling.mode is Fixed; change relay.replicas instead."),
    ],
)
def test_a_deployment_that_is_set_back_is_told_with_what_to_change_instead(mode: AutoscalingMode, end: str) -> None:
    decision = decided(3, LOAD, policy(mode=mode, replicas=2), after(2, asked=2))

    assert (decision.replicas, decision.by_hand) == (
        2,
        f"Somebody changed the relays' Deployment from 2 to 3: {end}",
    )
    assert decision.memory.by_hand is None


def test_it_is_told_no_longer_after_a_while_or_once_the_operator_takes_a_step() -> None:
    change = HandChange(NOW_MS - TOLD_MS, 1, 2, of_deployment=True)

    old = decided(2, LOAD, remembered=after(2, by_hand=change))
    stepped = decided(0, LOAD, remembered=after(0, by_hand=change._replace(at_ms=NOW_MS - 1)))

    assert [_tells(old), stepped.changed, stepped.memory.by_hand] == [False, True, None]


def _tells(decision: Decision) -> bool:
    return "Somebody" in decision.active.message


def test_it_outlives_the_process() -> None:
    known = after(2, by_hand=HandChange(NOW_MS, 1, 2, of_deployment=True))

    assert ScalingMemory.from_document(known.to_document(NOW_MS)) == known
    assert known.worth_saving(replace(known, by_hand=None))
    assert known.worth_saving(replace(known, asked=3))
