"""Which leader epoch is committed with a position, where more or less was read than lies below it."""

from __future__ import annotations

from delaytopic_relay.core.epochs import Epochs, EpochStart


def test_the_epoch_below_a_position_is_that_of_the_last_record_there() -> None:
    epochs = Epochs(-1, 0)
    epochs.note([EpochStart(0, 3), EpochStart(5, 4), EpochStart(9, 7)])

    assert [epochs.below(position, 12) for position in (0, 1, 5, 6, 9, 10, 12)] == [-1, 3, 3, 4, 4, 7, 7]


def test_the_epoch_stays_unknown_until_what_is_read_again_reaches_the_position() -> None:
    epochs = Epochs(-1, 9)
    epochs.note([EpochStart(0, 3)])
    again = epochs.below(9, 5)
    epochs.note([EpochStart(5, 4)])

    assert (again, epochs.below(9, 9)) == (-1, 4)


def test_the_committed_epoch_stays_where_the_last_record_below_the_position_is_gone() -> None:
    epochs = Epochs(5, 9)
    epochs.note([EpochStart(0, 3)])

    assert epochs.below(9, 9) == 5


def test_an_epoch_that_goes_back_is_told_behind_the_committed_position_alone() -> None:
    epochs = Epochs(5, 9)

    assert [epochs.note([start]) for start in (EpochStart(0, 3), EpochStart(9, 4), EpochStart(9, 6))] == [None, 5, None]


def test_an_epoch_that_goes_back_behind_what_was_read_is_told() -> None:
    epochs = Epochs(-1, 0)
    epochs.note([EpochStart(0, 3)])

    assert epochs.note([EpochStart(4, 2)]) == 3
