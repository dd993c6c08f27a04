from __future__ import annotations

import pytest
from bench.figures.statistics import Lateness, in_and_out_rate, lateness_of, median, percentile


@pytest.mark.parametrize(("of", "expected"), [([3.0], 3.0), ([5.0, 1.0, 3.0], 3.0), ([4.0, 1.0, 3.0, 2.0], 2.5)])
def test_the_median_is_the_middle_value_or_the_mean_of_the_two_in_the_middle(of: list[float], expected: float) -> None:
    found = median(of)

    assert found == expected


@pytest.mark.parametrize(("percent", "expected"), [(0, 1), (1, 1), (50, 50), (99, 99), (99.5, 100), (100, 100)])
def test_a_percentile_is_the_smallest_value_that_so_many_do_not_exceed(percent: float, expected: float) -> None:
    hundred = list(range(1, 101))

    found = percentile(hundred, percent)

    assert found == expected


def test_lateness_is_summed_up_in_five_figures() -> None:
    late_ms = [*range(1, 100), 1_000]

    found = lateness_of(reversed(late_ms))

    assert found == Lateness(records=100, p50_ms=50, p99_ms=99, p999_ms=1_000, max_ms=1_000)


def test_the_times_in_and_out_add_up() -> None:
    found = in_and_out_rate(150.0, 300.0)

    assert found == pytest.approx(100.0)
