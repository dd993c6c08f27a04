from __future__ import annotations

import pytest
from bench.cases.throughput import all_there, source_ends
from bench.errors import Stalled
from bench.watch import Sample, seen_at_ms


def test_a_source_ends_where_the_records_do() -> None:
    assert source_ends(10) == [3, 3, 2, 2]


@pytest.mark.parametrize(
    ("sample", "expected"),
    [
        (Sample(0, (3, 3, 3, 1), (0, 0, 0, 0)), True),
        (Sample(0, (3, 3, 3, 0), (9, 9, 9, 9)), False),
    ],
)
def test_a_plain_target_is_complete_when_it_holds_so_many(sample: Sample, expected: bool) -> None:
    done = all_there(10, source_ends(10), transactional=False)

    assert done(sample) is expected


@pytest.mark.parametrize(
    ("sample", "expected"),
    [
        (Sample(0, (0, 0, 0, 0), (3, 3, 2, 2)), True),
        (Sample(0, (99, 99, 99, 99), (3, 3, 1, 2)), False),
    ],
)
def test_a_transactional_target_is_complete_when_all_of_the_source_is_committed(sample: Sample, expected: bool) -> None:
    done = all_there(10, source_ends(10), transactional=True)

    assert done(sample) is expected


def test_records_are_seen_with_the_first_sample_that_ends_behind_all_of_them() -> None:
    samples = [
        Sample(10, (5, 0, 0, 0), (0, 0, 0, 0)),
        Sample(20, (6, 2, 0, 0), (0, 0, 0, 0)),
        Sample(30, (6, 3, 0, 0), (0, 0, 0, 0)),
        Sample(40, (9, 9, 0, 0), (0, 0, 0, 0)),
    ]

    found = seen_at_ms(samples, {0: 5, 1: 2})

    assert found == 30


def test_records_that_no_sample_shows_were_not_seen() -> None:
    samples = [Sample(10, (5, 0, 0, 0), (0, 0, 0, 0))]

    with pytest.raises(Stalled, match="were never seen"):
        seen_at_ms(samples, {0: 5})
