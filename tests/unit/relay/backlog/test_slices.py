from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.properties import QUICK

from delaytopic_relay.backlog.slices import cascades_at_ms, is_narrow, slice_of, width_for
from delaytopic_relay.backlog.store import Slice

SECOND_MS, MINUTE_MS, HOUR_MS, DAY_MS = 1_000, 60_000, 3_600_000, 86_400_000
TIMES_MS = st.integers(0, 10**13)


@pytest.mark.parametrize(
    ("remaining_ms", "width_ms"),
    [
        (-5_000, SECOND_MS),
        (0, SECOND_MS),
        (30 * MINUTE_MS - 1, SECOND_MS),
        (30 * MINUTE_MS, MINUTE_MS),
        (DAY_MS - 1, MINUTE_MS),
        (DAY_MS, HOUR_MS),
        (365 * DAY_MS, HOUR_MS),
    ],
)
def test_slices_are_wider_the_further_away_they_are(remaining_ms: int, width_ms: int) -> None:
    assert width_for(remaining_ms) == width_ms


def test_a_slice_starts_at_a_multiple_of_its_width() -> None:
    due_ms = 1_795_269_686_270

    slices = [slice_of(due_ms, due_ms - remaining_ms) for remaining_ms in (0, HOUR_MS, 2 * DAY_MS)]

    assert slices == [
        Slice(1_795_269_686_000, SECOND_MS),
        Slice(1_795_269_660_000, MINUTE_MS),
        Slice(1_795_269_600_000, HOUR_MS),
    ]


@pytest.mark.parametrize(
    ("slice_", "at_ms"),
    [
        (Slice(7_200_000, SECOND_MS), 7_200_000),
        (Slice(7_200_000, MINUTE_MS), 7_200_000 - 2 * MINUTE_MS),
        (Slice(7_200_000, HOUR_MS), 7_200_000 - 90 * MINUTE_MS),
    ],
)
def test_the_wider_a_slice_the_earlier_it_is_split_and_a_narrow_one_is_loaded_at_its_start(
    slice_: Slice, at_ms: int
) -> None:
    assert cascades_at_ms(slice_) == at_ms


@QUICK
@given(TIMES_MS, TIMES_MS)
def test_every_due_time_lies_in_its_slice(due_ms: int, now_ms: int) -> None:
    slice_ = slice_of(due_ms, now_ms)

    assert slice_.start_ms <= due_ms < slice_.end_ms


@QUICK
@given(TIMES_MS, st.integers(0, 400 * DAY_MS), st.integers(0, HOUR_MS))
def test_whatever_the_delay_a_schedule_is_in_a_narrow_slice_after_two_moves(
    now_ms: int, delay_ms: int, late_ms: int
) -> None:
    # Given a schedule in the backlog
    due_ms = now_ms + delay_ms
    slice_ = slice_of(due_ms, now_ms)
    widths = [slice_.width_ms]

    # When each wide slice is split at its time or later
    while not is_narrow(slice_):
        slice_ = slice_of(due_ms, max(now_ms, cascades_at_ms(slice_)) + late_ms)
        widths.append(slice_.width_ms)

    # Then each move makes it narrower
    assert len(widths) <= 3
    assert widths == sorted(set(widths), reverse=True)
