from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.support.properties import QUICK

from delaytopic_operator.scaling.need import (
    MOST_SPANS,
    Crest,
    DueCurve,
    Piece,
    Span,
    merged,
    pieces,
)


def curve(*spans: Span) -> DueCurve:
    return DueCurve(spans, as_of_ms=0)


def test_histograms_counted_at_different_times_come_together_on_one_grid() -> None:
    counts = {(0, 10_000): 100.0, (5_000, 15_000): 200.0}

    together = merged(counts, edges_ms=[10_000, 20_000], now_ms=5_000, as_of_ms=0)

    assert together == DueCurve((Span(5_000, 10_000, 150.0), Span(10_000, 20_000, 100.0)), as_of_ms=0)


def test_what_fell_due_since_the_count_is_left_out() -> None:
    assert curve(Span(0, 10_000, 100)).crests(now_ms=7_500) == [Crest(7_500, 10_000, 25, 0)]


def test_a_grid_keeps_its_end_when_it_is_thinned() -> None:
    together = merged({}, edges_ms=range(1_000, 500_001, 1_000), now_ms=0, as_of_ms=0)

    assert len(together.spans) <= MOST_SPANS
    assert together.spans[-1].end_ms == 500_000


def test_an_even_load_has_nothing_sudden_in_it() -> None:
    even = curve(Span(0, 10_000, 100), Span(10_000, 50_000, 400), Span(50_000, 100_000, 500))

    assert [crest.sudden for crest in even.crests(0)] == [0, 0, 0]


def test_what_exceeds_the_load_on_both_sides_may_be_due_in_one_instant() -> None:
    bursting = curve(Span(0, 10_000, 100), Span(10_000, 50_000, 3_400), Span(50_000, 100_000, 500))

    assert bursting.crests(0)[1] == Crest(10_000, 50_000, 400, 3_000)
    assert pieces(bursting.crests(0)) == [
        Piece(0, 10_000, 100, 10_000),
        Piece(10_000, 15_000, 3_050, 50_000),
        Piece(15_000, 50_000, 350, 50_000),
        Piece(50_000, 100_000, 500, 100_000),
    ]


def test_a_load_that_goes_on_growing_at_the_end_of_the_look_ahead_is_no_burst() -> None:
    growing = curve(Span(0, 10_000, 100), Span(10_000, 20_000, 200), Span(20_000, 30_000, 300))

    assert growing.crests(0)[-1] == Crest(20_000, 30_000, 300, 0)


@given(st.lists(st.integers(0, 10_000), min_size=1, max_size=10), st.integers(0, 60_000))
@QUICK
def test_no_record_is_lost_or_invented_on_the_way_to_a_plan(records: list[int], now_ms: int) -> None:
    spans = tuple(Span(60_000 + 10_000 * n, 70_000 + 10_000 * n, each) for n, each in enumerate(records))

    planned = pieces(DueCurve(spans, as_of_ms=0).crests(now_ms))

    assert round(sum(piece.records for piece in planned)) == sum(records)
    assert all(piece.records >= -1e-9 for piece in planned)
