from __future__ import annotations

import pytest
from bench.errors import Stalled
from bench.watch import Sample, seen_at_ms


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
