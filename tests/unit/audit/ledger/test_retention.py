"""Tests of which tables of which runs a ledger still needs."""

from __future__ import annotations

from typing import Any

from delaytopic_audit.ledger.retention import forgotten_asks, remembered
from delaytopic_audit.model.manifest import Asked, Run

FLOOR = 100


def run_of(sequence: int, last_minute: int | None, **more: Any) -> Run:
    """A run of which only the minutes matter, unless more is said."""
    usual = {"commands": 0, "overdue": 0, "asks": {}, "rows": 0}
    given = {"first_minute": last_minute, "last_minute": last_minute, **usual, **more}
    return Run(sequence=sequence, folder=f"runs/{sequence}", **given)


def asks_of(start: int, end: int, partition: int = 0) -> Asked:
    return Asked(partition, start, end)


def test_a_run_is_remembered_up_to_the_last_minute_of_its_records() -> None:
    runs = [run_of(1, FLOOR - 1), run_of(2, FLOOR), run_of(3, None)]

    assert remembered(runs, FLOOR) == [run_of(2, FLOOR)]


def test_each_table_of_a_run_has_its_own_end() -> None:
    waiting = run_of(1, FLOOR, commands=1)
    old = run_of(2, FLOOR - 1, commands=1, overdue=1, asks={1: [asks_of(0, 9)]})

    assert remembered([waiting, old], FLOOR) == [waiting, run_of(2, None, commands=1)]
    assert old.tables == ["records", "commands", "overdue"]


def test_commands_are_remembered_while_a_schedule_with_an_id_from_before_them_waits() -> None:
    before, waiting, after = run_of(1, None, commands=2), run_of(2, FLOOR, commands=1), run_of(3, None, commands=1)

    assert remembered([before, waiting, after], FLOOR) == [waiting, after]
    assert remembered([before, waiting, after], FLOOR + 1) == []


def test_forgotten_asks_of_a_partition_grow_together() -> None:
    old = run_of(1, FLOOR - 1, asks={1: [asks_of(5, 9), asks_of(0, 4, 1)], 2: [asks_of(0, 7)]})
    runs = [old, run_of(2, FLOOR, asks={1: [asks_of(9, 12)]})]

    assert forgotten_asks(runs, FLOOR, 1, [asks_of(0, 5)]) == [asks_of(0, 9), asks_of(0, 4, 1)]
    assert forgotten_asks([run_of(3, None, asks={1: [asks_of(0, 9)]})], FLOOR, 1, []) == []
