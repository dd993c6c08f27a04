"""Tests that what a sender sends follows from its plan alone."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.e2e.traffic.plan import Plan, steps

PLANS = st.builds(
    Plan,
    run=st.just("run"),
    records=st.integers(0, 200),
    per_second=st.integers(0, 1_000),
    delays_ms=st.tuples(st.integers(0, 500), st.integers(500, 90_000)),
    cancel_every=st.integers(0, 20),
    cancel_after_ms=st.integers(0, 5_000),
    seed=st.integers(0, 9),
)


def test_records_are_spread_over_time_and_keys() -> None:
    plan = Plan("run", records=5, per_second=2, delays_ms=(1_000, 1_000), keys=2)

    sent = [(step.at_ms, step.number, step.key, step.delay_ms, step.id) for step in steps(plan)]

    assert sent == [
        (0, 0, b"key-0", 1_000, None),
        (500, 1, b"key-1", 1_000, None),
        (1_000, 2, b"key-0", 1_000, None),
        (1_500, 3, b"key-1", 1_000, None),
        (2_000, 4, b"key-0", 1_000, None),
    ]


def test_a_cancel_has_id_and_key_of_the_record_that_it_withdraws() -> None:
    plan = Plan("run", records=4, per_second=2, delays_ms=(1_000, 1_000), cancel_every=2, cancel_after_ms=700)

    named = [(step.at_ms, step.key, step.delay_ms, step.id) for step in steps(plan) if step.id]

    assert named == [
        (500, b"key-1", 1_000, b"run-1"),
        (1_200, b"key-1", None, b"run-1"),
        (1_500, b"key-3", 1_000, b"run-3"),
        (2_200, b"key-3", None, b"run-3"),
    ]


@given(PLANS)
def test_a_plan_survives_the_command_line_and_says_the_same_each_time(plan: Plan) -> None:
    decoded = Plan.decode(plan.encode())

    assert decoded == plan
    assert list(steps(decoded)) == list(steps(plan))


@given(PLANS)
def test_every_number_is_sent_once_in_the_order_of_time_and_withdrawn_at_most_once_later(plan: Plan) -> None:
    sent = list(steps(plan))

    schedules = {step.number: step for step in sent if step.delay_ms is not None}
    cancels = {step.number: step for step in sent if step.delay_ms is None}
    assert sorted(schedules) == list(range(plan.records))
    assert len(schedules) + len(cancels) == len(sent)
    assert [step.at_ms for step in sent] == sorted(step.at_ms for step in sent)
    assert all(schedules[number].at_ms + plan.cancel_after_ms == cancel.at_ms for number, cancel in cancels.items())
