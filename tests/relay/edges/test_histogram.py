from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from delaytopic_relay.telemetry.metrics import MillisecondHistogram

EDGES_MS = (1, 10, 1_000)
SENT_MS = 1_795_269_600_000


def test_an_edge_belongs_to_its_bucket() -> None:
    histogram = MillisecondHistogram(EDGES_MS)

    for value_ms in (0, 1, 2, 10, 11, 1_000, 1_001):
        histogram.add(value_ms)

    assert histogram.buckets() == [("0.001", 2), ("0.01", 4), ("1.0", 6), ("+Inf", 7)]
    assert (histogram.count, histogram.sum_ms) == (7, 2_025)


@given(st.lists(st.integers(-5, 5_000)))
def test_a_batch_counts_what_its_records_count_one_by_one(lateness_ms: list[int]) -> None:
    by_batch, one_by_one = MillisecondHistogram(EDGES_MS), MillisecondHistogram(EDGES_MS)

    by_batch.add_lateness([SENT_MS - late_ms for late_ms in lateness_ms], SENT_MS)
    for late_ms in lateness_ms:
        one_by_one.add(late_ms)

    assert by_batch.buckets() == one_by_one.buckets()
    assert (by_batch.count, by_batch.sum_ms) == (one_by_one.count, one_by_one.sum_ms)


def test_batches_add_up() -> None:
    histogram = MillisecondHistogram(EDGES_MS)

    histogram.add_lateness([SENT_MS], SENT_MS)
    histogram.add_lateness([SENT_MS - 5, SENT_MS - 5_000], SENT_MS)

    assert histogram.buckets() == [("0.001", 1), ("0.01", 2), ("1.0", 2), ("+Inf", 3)]
    assert (histogram.count, histogram.sum_ms) == (3, 5_005)
