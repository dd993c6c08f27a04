"""The index of what waits in a bucket."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from delaytopic_relay.backlog.kafka.bucket import MOST_SPANS, BucketSpans


def told(spans: BucketSpans) -> list[tuple[int, int, int]]:
    return [(span.first_ms, span.last_ms, span.records) for span in spans]


def test_each_segment_has_its_own_span_until_it_is_read() -> None:
    spans = BucketSpans(0, 0, 0, 0)
    spans.wrote(1, 100, 200, 3)
    spans.wrote(2, 150, 150, 1)

    before = told(spans)
    spans.visited(1, 3)

    assert before == [(100, 200, 3), (150, 150, 1)]
    assert told(spans) == [(150, 150, 1)]


def test_a_successor_knows_the_bounds_of_all_that_waits_until_the_last_of_it_is_read() -> None:
    spans = BucketSpans(7, 100, 900, 10)
    spans.wrote(8, 500, 600, 2)

    spans.visited(6, 9)
    between = told(spans)
    spans.visited(7, 1)

    assert between == [(100, 900, 1), (500, 600, 2)]
    assert told(spans) == [(500, 600, 2)]


def test_nothing_waits_nowhere() -> None:
    assert (BucketSpans(5, 0, 0, 0).first_ms, BucketSpans(5, 0, 0, 0).last_ms) == (0, 0)


@given(st.lists(st.tuples(st.integers(0, 1_000), st.integers(0, 50), st.integers(1, 9)), max_size=400), st.integers(0))
def test_however_many_segments_there_are_none_is_forgotten_and_memory_is_bounded(
    segments: list[tuple[int, int, int]], visits: int
) -> None:
    spans = BucketSpans(0, 0, 0, 0)
    for number, (first_ms, width_ms, records) in enumerate(segments, 1):
        spans.wrote(number, first_ms, first_ms + width_ms, records)
    visits = min(visits, len(segments))
    for number, (_, _, records) in enumerate(segments[:visits], 1):
        spans.visited(number, records)

    waiting = segments[visits:]
    assert len(told(spans)) <= MOST_SPANS
    assert sum(records for _, _, records in told(spans)) == sum(records for _, _, records in waiting)
    if waiting:
        assert spans.first_ms <= min(first_ms for first_ms, _, _ in waiting)
        assert spans.last_ms >= max(first_ms + width_ms for first_ms, width_ms, _ in waiting)


def test_a_span_that_a_committed_text_lets_end_before_it_begins_has_a_width() -> None:
    assert told(BucketSpans(1, 5_000, 4_999, 3)) == [(5_000, 5_000, 3)]
