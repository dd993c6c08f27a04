from __future__ import annotations

import pytest
from bench.cases.horizon import DUE_PER_MS, LATEST_MS, Agenda, plan
from bench.selection import Group, Scale, rounds_of
from hypothesis import given
from hypothesis import strategies as st


@pytest.mark.parametrize(
    ("null_rate", "expected"),
    [
        (10_000, Scale(150_000, 90_000, 150_000)),
        (250_000, Scale(250_000, 150_000, 250_000)),
        (9_000_000, Scale(500_000, 200_000, 250_000)),
    ],
)
def test_a_faster_machine_gets_more_records_within_limits(null_rate: float, expected: Scale) -> None:
    found = Scale.for_rate(null_rate)

    assert found == expected


@given(st.floats(1_000, 1_000_000), st.floats(1_000, 1_000_000))
def test_all_due_times_lie_inside_the_horizon(fill_rate: float, null_rate: float) -> None:
    records = Scale.for_rate(null_rate).within_horizon

    agenda = plan(records, fill_rate, null_rate)

    assert agenda.intake_ms + records / DUE_PER_MS <= LATEST_MS


@given(st.floats(30_000, 1_000_000))
def test_a_relay_at_half_of_the_null_relays_rate_has_time_to_take_all_in(null_rate: float) -> None:
    records = Scale.for_rate(null_rate).within_horizon

    agenda = plan(records, 100_000, null_rate)

    assert agenda.intake_ms >= records / (null_rate / 2) * 1_000


def test_a_second_attempt_gets_twice_the_time() -> None:
    found = Agenda(fill_ms=1_000, intake_ms=2_000).doubled()

    assert found == Agenda(fill_ms=2_000, intake_ms=4_000)


def test_everything_runs_twice_by_default() -> None:
    found = rounds_of([Group.FIXED, Group.DIALECTS], None)

    assert found == {Group.FIXED: 2, Group.DIALECTS: 2}


def test_everything_runs_as_often_as_is_asked_for() -> None:
    found = rounds_of([Group.FIXED, Group.DIALECTS], 5)

    assert found == {Group.FIXED: 5, Group.DIALECTS: 5}
