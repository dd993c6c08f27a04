from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from delaytopic_gateway.client.lateness import LatenessSummary, histogram, milliseconds_text, summarize


def test_percentiles_are_values_that_occurred() -> None:
    assert summarize(list(range(1, 101))) == LatenessSummary(count=100, p50_ms=50, p99_ms=99, max_ms=100)


def test_nothing_delivered_has_no_percentiles() -> None:
    assert summarize([]) == LatenessSummary(count=0, p50_ms=None, p99_ms=None, max_ms=None)


def test_the_histogram_runs_from_the_first_to_the_last_bin_in_use() -> None:
    lines = histogram([0, 3, 3, 12, 70_000], width=4)

    assert [line.split() for line in lines][:5] == [
        ["<", "1", "ms", "██", "1"],
        ["<", "2", "ms", "0"],
        ["<", "5", "ms", "████", "2"],
        ["<", "10", "ms", "0"],
        ["<", "20", "ms", "██", "1"],
    ]
    assert lines[-1].split() == [">=", "50", "s", "██", "1"]


@given(st.lists(st.integers(0, 10**8)))
def test_the_histogram_counts_every_value_once(values: list[int]) -> None:
    assert sum(int(line.split()[-1].replace(",", "")) for line in histogram(values)) == len(values)


@pytest.mark.parametrize(
    ("value_ms", "text"),
    [(None, "-"), (7, "7 ms"), (1_250, "1.25 s"), (200_000, "3 min 20 s"), (7_380_000, "2 h 3 min")],
)
def test_spans_read_naturally(value_ms: int | None, text: str) -> None:
    assert milliseconds_text(value_ms) == text
