"""Lateness, and the gap that a kill leaves, from the times of a flow."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from bench.cases.flow import Flow
from bench.cases.lateness import LatenessRun, lateness_in
from bench.cases.restart import Gap, gap_in
from bench.errors import Unmeasurable
from bench.figures.statistics import Lateness
from bench.processes.plan import Phase, Plan


def flow(due_ms: Mapping[int, int], late_ms: Mapping[int, int], twice: int = 0) -> Flow:
    arrived_ms = {sequence: due + late_ms.get(sequence, 1) for sequence, due in due_ms.items()}
    return Flow(due_ms, {sequence: due + 1 for sequence, due in due_ms.items()}, arrived_ms, twice)


def test_each_phase_has_its_lateness_and_the_burst_its_last_record() -> None:
    plan = Plan((Phase(2, 1), Phase(1, 1)), burst=2)
    due_ms = dict.fromkeys(range(5), 1_000)

    found = lateness_in(plan, flow(due_ms, {0: 10, 1: 20, 2: 5, 3: 7, 4: 9}))

    phases = plan.phases
    assert found == LatenessRun(
        ((phases[0], Lateness(2, 10, 20, 20, 20)), (phases[1], Lateness(1, 5, 5, 5, 5))),
        ((phases[0], Lateness(2, 1, 1, 1, 1)), (phases[1], Lateness(1, 1, 1, 1, 1))),
        9,
    )


def killed(at_ms: int, back_ms: int, caught_up_ms: int) -> Flow:
    """A record every 10 ms for ten seconds; those due in the gap come when it is over, the rest on time."""
    due_ms = {number: number * 10 for number in range(1_000)}
    late_ms = {}
    for number, due in due_ms.items():
        if at_ms <= due < caught_up_ms:
            late_ms[number] = max(back_ms, min(caught_up_ms, due + 200)) - due
    return flow(due_ms, late_ms, twice=3)


def test_a_gap_ends_with_the_first_record_and_is_caught_up_with_the_last_late_one() -> None:
    found = gap_in("relay", killed(5_000, 5_700, 6_200), 5_000)

    assert found == Gap(700, 1_200, 3)


def test_records_that_are_seen_just_after_the_kill_do_not_end_the_gap() -> None:
    found = gap_in("relay", killed(5_000, 5_700, 5_700), 4_900)

    assert found.first_ms == 800


def test_a_later_pause_is_not_taken_for_the_restart() -> None:
    both = killed(5_000, 5_700, 5_700)
    arrived_ms = {number: at + 2_000 if at > 8_000 else at for number, at in both.arrived_ms.items()}

    found = gap_in("relay", Flow(both.due_ms, both.appended_ms, arrived_ms, 0), 5_000)

    assert found == Gap(700, 700, 0)


def test_a_relay_that_delivered_nothing_before_its_kill_is_not_measured() -> None:
    with pytest.raises(Unmeasurable, match="nothing arrived"):
        gap_in("relay", killed(5_000, 5_700, 5_700), 5_400)
