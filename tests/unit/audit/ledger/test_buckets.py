"""Buckets of commands: which folders a run reads for the records that it grades."""

from __future__ import annotations

from typing import Any

import pytest

from delaytopic_audit.ledger.buckets import (
    MOST_BUCKETS,
    MOST_FIRSTS,
    ROWS_OF_A_BUCKET,
    First,
    all_folders,
    bucket_count,
    folders_of,
    told_apart,
)
from delaytopic_audit.model.manifest import Asked, Buckets, Run

FOUR = Buckets(of=4, commands=[0, 1, 2, 3])


def run_of(sequence: int, end: int, **given: Any) -> Run:
    """A run that read the ten offsets of partition 0 of DelayTopic 1 up to one, with commands of four buckets."""
    usual: dict[str, Any] = {"commands": 9, "buckets": FOUR, "asks": {1: [Asked(0, end - 10, end)]}}
    return Run(sequence=sequence, folder=f"r{sequence}", overdue=0, rows=1, **{**usual, **given})


def first_of(bucket: int, place: int, *, recurs: bool = False, partition: int = 0) -> First:
    """Return the questions of a run about one bucket, for DelayTopic 1."""
    return First(1, partition, bucket, place, recurs)


def commands_of(runs: list[Run], *firsts: First, buckets: int = MOST_BUCKETS) -> list[tuple[int, int]]:
    """The runs and buckets of which commands are read."""
    return [_place(folder) for folder in folders_of(runs, firsts, buckets)[0]]


def chains_of(runs: list[Run], *firsts: First) -> list[tuple[int, int]]:
    """The runs and buckets of which chains are read."""
    return [_place(folder) for folder in folders_of(runs, firsts, MOST_BUCKETS)[1]]


def _place(folder: str) -> tuple[int, int]:
    run, _, _, bucket = folder.split("/")
    return int(run.removeprefix("r")), int(bucket.removeprefix("bucket="))


@pytest.mark.parametrize(
    ("commands", "buckets"),
    [
        *((0, 1), (1, 1), (ROWS_OF_A_BUCKET - 1, 1), (ROWS_OF_A_BUCKET, 2), (4 * ROWS_OF_A_BUCKET - 1, 4)),
        *((40_000_000, MOST_BUCKETS), (10**9, MOST_BUCKETS)),
    ],
)
def test_a_table_has_as_many_buckets_as_its_rows_need(commands: int, buckets: int) -> None:
    assert bucket_count(commands) == buckets


def test_runs_that_had_not_read_as_far_as_a_record_are_not_read_for_it() -> None:
    runs = [run_of(1, 10), run_of(2, 20), run_of(3, 30)]

    assert commands_of(runs, first_of(2, 9)) == [(1, 2), (2, 2), (3, 2)]
    assert commands_of(runs, first_of(2, 10)) == [(2, 2), (3, 2)]


def test_an_old_record_has_only_its_own_bucket_read_of_old_runs() -> None:
    assert commands_of([run_of(1, 10), run_of(2, 20)], first_of(1, 5), first_of(2, 15)) == [(1, 1), (2, 1), (2, 2)]


def test_the_earliest_place_of_any_partition_counts_for_a_bucket() -> None:
    asks = {1: [Asked(0, 10, 20), Asked(1, 0, 5)]}
    runs = [run_of(1, 10), run_of(2, 20, asks=asks), run_of(3, 30)]

    assert commands_of(runs, first_of(0, 25), first_of(0, 3, partition=1)) == [(2, 0), (3, 0)]
    assert commands_of(runs, first_of(0, 25), first_of(0, 9)) == [(1, 0), (2, 0), (3, 0)]


def test_a_bucket_of_many_is_in_one_of_few() -> None:
    small = run_of(2, 20, buckets=Buckets(of=1, commands=[0]))

    assert commands_of([run_of(1, 10), small], first_of(255, 0)) == [(1, 3), (2, 0)]


def test_all_buckets_that_may_have_an_id_are_read_where_fewer_are_told_apart() -> None:
    assert commands_of([run_of(1, 10)], first_of(1, 0), buckets=2) == [(1, 1), (1, 3)]


def test_buckets_without_rows_and_runs_without_commands_are_not_read() -> None:
    runs = [run_of(1, 10, buckets=Buckets(of=4, commands=[0, 3])), run_of(2, 20, buckets=None, commands=0)]

    assert commands_of(runs, first_of(2, 5), first_of(3, 5)) == [(1, 3)]


def test_a_run_that_read_nothing_of_a_partition_is_read_for_what_the_run_before_it_read() -> None:
    # What is told of a cancel is read after the cancel.
    told = run_of(2, 0, asks={})

    assert commands_of([run_of(1, 10), told, run_of(3, 20)], first_of(0, 9)) == [(1, 0), (2, 0), (3, 0)]
    assert commands_of([run_of(1, 10), told, run_of(3, 20)], first_of(0, 10)) == [(3, 0)]
    assert commands_of([run_of(1, 10), told], first_of(0, 9)) == [(1, 0), (2, 0)]


def test_a_run_that_has_forgotten_its_offsets_is_read_for_any_in_front_of_those_of_the_next() -> None:
    runs = [run_of(1, 10, asks={}), run_of(2, 20, asks={}), run_of(3, 30)]

    assert commands_of(runs, first_of(0, 19)) == [(1, 0), (2, 0), (3, 0)]
    assert commands_of(runs, first_of(0, 20)) == [(3, 0)]


def test_all_runs_are_read_for_what_none_is_known_to_have_read() -> None:
    runs = [run_of(1, 10), run_of(2, 20)]

    assert commands_of(runs, first_of(0, 99)) == [(1, 0), (2, 0)]
    assert commands_of(runs, first_of(0, 15, partition=7)) == [(1, 0), (2, 0)]


def test_runs_that_read_the_same_offsets_are_all_read() -> None:
    assert commands_of([run_of(1, 10), run_of(2, 10)], first_of(0, 5)) == [(1, 0), (2, 0)]


def test_chains_are_read_whole_for_what_recurs_and_from_its_place_on_for_others() -> None:
    runs = [run_of(number, 10 * number, buckets=Buckets(of=4, commands=[1], chains=[1, 2])) for number in (1, 2)]

    assert chains_of(runs, first_of(1, 15)) == [(2, 1)]
    assert chains_of(runs, first_of(1, 15, recurs=True)) == [(1, 1), (2, 1)]
    assert commands_of(runs, first_of(1, 15, recurs=True)) == [(2, 1)]


def test_runs_that_are_put_together_have_all_of_their_folders_read() -> None:
    runs = [run_of(1, 10, buckets=Buckets(of=2, commands=[1], chains=[0])), run_of(2, 20, buckets=None)]

    assert all_folders(runs) == ["r1/commands/recurs=false/bucket=1", "r1/commands/recurs=true/bucket=0"]


@pytest.mark.parametrize("partitions", [1, 12, 390, 391, 12_000])
def test_fewer_buckets_are_told_apart_the_more_partitions_there_are(partitions: int) -> None:
    buckets = told_apart([run_of(1, 10, asks={1: [Asked(partition, 0, 1) for partition in range(partitions)]})])

    assert buckets == 1 or buckets * partitions <= MOST_FIRSTS
    assert buckets == MOST_BUCKETS or 2 * buckets * partitions > MOST_FIRSTS
