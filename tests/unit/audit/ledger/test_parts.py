"""Tests of which tables of verdicts a run writes again, and which it leaves as they are."""

from __future__ import annotations

import math
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from delaytopic_audit.ledger.parts import FAN, Rewrite, next_parts
from delaytopic_audit.model.manifest import Part

HOUR = 60


def part_of(start: int, end: int, runs: int = 1) -> Part:
    return Part(folder=f"runs/1/{start}-{end}", start=start, end=end, runs=runs)


def after_hours(hours: int, retention: int | None = None) -> tuple[list[Part], int]:
    """Return the parts after so many hourly runs, and the number of minutes that were written in all."""
    parts: list[Part] = []
    minutes = 0
    for hour in range(hours):
        closed = range(hour * HOUR, (hour + 1) * HOUR)
        floor = max(0, closed.stop - retention) if retention is not None else 0
        parts, _, new = next_parts(parts, floor, closed, [])
        assert new is not None
        parts.append(part_of(new.start, new.end, new.runs))
        minutes += new.end - new.start
    return parts, minutes


def test_a_run_writes_the_part_that_it_closed_and_leaves_the_others() -> None:
    parts = [part_of(0, 60), part_of(60, 120)]

    assert next_parts(parts, 0, [125, 130], []) == (parts, [], Rewrite(125, 131, 1, ()))


def test_each_part_with_a_minute_that_is_graded_again_is_written_again() -> None:
    parts = [part_of(0, 60), part_of(60, 120), part_of(30, 90), part_of(90, 150)]

    assert next_parts(parts, 0, [120], [59]) == (
        [parts[1], parts[3]],
        [Rewrite(0, 60, 1, (parts[0],)), Rewrite(30, 90, 1, (parts[2],))],
        Rewrite(120, 121, 1, ()),
    )


def test_a_minute_that_is_graded_again_and_that_no_part_has_is_of_the_new_one() -> None:
    parts = [part_of(60, 120)]

    assert next_parts(parts, 0, [120], [30]) == (parts, [], Rewrite(30, 121, 1, ()))
    assert next_parts(parts, 0, [], [30]) == (parts, [], Rewrite(30, 31, 1, ()))


def test_a_run_that_closes_nothing_adds_no_part() -> None:
    parts = [part_of(0, 60)]

    assert next_parts(parts, 0, [], []) == (parts, [], None)


def test_parts_of_forgotten_minutes_are_left_out() -> None:
    parts = [part_of(0, 60), part_of(60, 120)]

    assert next_parts(parts, 60, [], []) == ([parts[1]], [], None)


def test_eight_parts_of_a_size_become_one() -> None:
    eight, _ = after_hours(FAN)
    sixty_four, _ = after_hours(FAN * FAN)

    assert eight == [part_of(0, FAN * HOUR, FAN)]
    assert sixty_four == [part_of(0, FAN * FAN * HOUR, FAN * FAN)]


@settings(max_examples=30)
@given(hours=st.integers(1, 2_000), retention=st.one_of(st.none(), st.integers(HOUR, 744 * HOUR)))
def test_parts_cover_all_minutes_once_and_are_few_whatever_the_number_of_runs(
    hours: int, retention: int | None
) -> None:
    parts, minutes = after_hours(hours, retention)

    assert parts[-1].end == hours * HOUR
    assert all(earlier.end == later.start for earlier, later in pairwise(parts))
    assert parts[0].start <= max(0, hours * HOUR - (retention if retention is not None else hours * HOUR))
    sizes = 1 + int(math.log(hours, FAN) + 1e-9)
    assert len(parts) <= (FAN - 1) * sizes
    assert minutes <= hours * HOUR * sizes
