"""Tests of which runs' records are put together, and of what they are then."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from delaytopic_audit.ledger.compaction import MOST_ROWS, last_to_compact, put_together
from delaytopic_audit.ledger.parts import FAN
from delaytopic_audit.model.manifest import Asked, Run

SMALL = 1_000
LARGE = MOST_ROWS // FAN + 1


def run_of(sequence: int, rows: int = SMALL, **more: Any) -> Run:
    asks = {1: [asks_of(sequence * 10, sequence * 10 + 10)]}
    usual = {"first_minute": sequence, "last_minute": sequence, "commands": 1, "overdue": 2, "asks": asks}
    return Run(sequence=sequence, folder=f"runs/{sequence}", rows=rows, **{**usual, **more})


def asks_of(start: int, end: int) -> Asked:
    return Asked(0, start, end)


def after(runs: int, rows: int = SMALL) -> tuple[list[Run], int]:
    """Return what so many runs have left, and how many runs' records were written again in all."""
    left: list[Run] = []
    written = 0
    for sequence in range(runs):
        if found := last_to_compact(left):
            left = [*left[:-found], put_together(left[-found:], "runs/x/earlier")]
            written += left[-1].runs
        left.append(run_of(sequence, rows))
    return left, written


def test_fewer_than_eight_runs_stay_as_they_are() -> None:
    assert last_to_compact([run_of(number) for number in range(FAN - 1)]) == 0
    assert last_to_compact([]) == 0


def test_eight_runs_become_one_with_all_that_they_have() -> None:
    runs = [run_of(number) for number in range(FAN)]

    assert last_to_compact(runs) == FAN
    assert put_together(runs, "runs/9/earlier") == Run(
        sequence=7,
        folder="runs/9/earlier",
        first_minute=0,
        last_minute=7,
        commands=8,
        overdue=16,
        asks={1: [asks_of(0, 80)]},
        rows=8 * SMALL,
        runs=8,
    )


def test_runs_that_have_forgotten_their_records_become_one_without_records() -> None:
    forgotten: dict[str, Any] = {"first_minute": None, "last_minute": None, "overdue": 0, "asks": {}}
    one = put_together([run_of(number, 0, **forgotten) for number in range(FAN)], "runs/9/earlier")

    assert (one.tables, one.first_minute, one.last_minute) == (["commands"], None, None)


def test_runs_that_are_too_large_together_stay_as_they_are() -> None:
    assert last_to_compact([run_of(number, LARGE) for number in range(FAN)]) == 0


def test_small_runs_behind_a_large_one_become_one() -> None:
    assert last_to_compact([run_of(0, MOST_ROWS), *(run_of(number) for number in range(1, FAN + 1))]) == FAN


def test_commands_count_as_rows() -> None:
    assert last_to_compact([run_of(number, 0, commands=LARGE) for number in range(FAN)]) == 0


@settings(max_examples=30)
@given(runs=st.integers(1, 2_000))
def test_runs_are_few_whatever_their_number_and_keep_all_that_was_asked(runs: int) -> None:
    left, written = after(runs)

    sizes = 1 + int(math.log(runs, FAN) + 1e-9)
    assert len(left) <= FAN * sizes
    assert written <= runs * sizes
    assert sum(run.runs for run in left) == runs
    assert left[0].asks[1][0].start == 0
    assert all(before.asks[1][0].end == behind.asks[1][0].start for before, behind in pairwise(left))
    assert left[-1].asks[1][0].end == runs * 10
