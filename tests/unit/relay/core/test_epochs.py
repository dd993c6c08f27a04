"""The record that is committed as the last one below a position, where more or less was read than lies below it."""

from __future__ import annotations

from delaytopic_relay.core.commands import NOTHING_DELIVERED
from delaytopic_relay.core.epochs import Epochs, EpochStart
from delaytopic_relay.core.progress import Identity, Progress


def epochs_of(epoch: int, gap: int, position: int, start: int) -> Epochs:
    """Those of a partition that is read from `start` on, with what is committed."""
    return Epochs(Progress(start, position, NOTHING_DELIVERED, identity=Identity("", "", epoch, gap)), start)


def last_below(epochs: Epochs, position: int, read_until: int) -> tuple[int, int]:
    """The epoch of the last record below a position, and the offsets from behind it to the position."""
    _, _, epoch, gap = epochs.identity(position, read_until)
    return epoch, gap


def test_the_epoch_below_a_position_is_that_of_the_last_record_there() -> None:
    epochs = epochs_of(-1, 0, 0, 0)
    epochs.note([EpochStart(0, 3), EpochStart(5, 4), EpochStart(9, 7)])

    below = []
    for position in (0, 1, 5, 6, 9, 10, 12):
        epochs.passed(position)
        below.append(last_below(epochs, position, 12))

    assert below == [(-1, 0), (3, 0), (3, 0), (4, 0), (4, 0), (7, 0), (7, 0)]


def test_what_follows_the_last_record_below_a_position_is_counted() -> None:
    epochs = epochs_of(-1, 0, 0, 0)
    epochs.note([EpochStart(0, 3)])
    epochs.passed(5)

    assert [last_below(epochs, 5, 5), last_below(epochs, 9, 9)] == [(3, 0), (3, 4)]


def test_where_nothing_was_found_all_is_counted_from_where_reading_began() -> None:
    epochs = epochs_of(-1, 0, 7, 7)

    assert last_below(epochs, 10, 10) == (-1, 3)


def test_what_was_counted_is_counted_on_by_the_next_relay() -> None:
    later = [epochs_of(epoch, 3, 10, 10) for epoch in (-1, 4)]

    assert [last_below(each, 12, 12) for each in later] == [(-1, 5), (4, 5)]


def test_the_last_record_stays_unknown_until_what_is_read_again_reaches_the_position() -> None:
    epochs = epochs_of(-1, 0, 9, 0)
    epochs.note([EpochStart(0, 3)])
    epochs.passed(5)
    again = last_below(epochs, 9, 5)
    epochs.note([EpochStart(5, 4)])
    epochs.passed(8)

    assert (again, last_below(epochs, 9, 9)) == ((-1, 0), (4, 1))


def test_the_committed_one_stays_where_the_last_record_below_the_position_is_gone() -> None:
    epochs = epochs_of(5, 2, 9, 0)
    epochs.note([EpochStart(0, 3)])
    epochs.passed(4)

    assert last_below(epochs, 9, 9) == (5, 2)


def test_an_epoch_that_goes_back_is_told_behind_the_committed_position_alone() -> None:
    epochs = epochs_of(5, 0, 9, 0)

    assert [epochs.note([start]) for start in (EpochStart(0, 3), EpochStart(9, 4), EpochStart(9, 6))] == [None, 5, None]


def test_an_epoch_that_goes_back_behind_what_was_read_is_told() -> None:
    epochs = epochs_of(-1, 0, 0, 0)
    epochs.note([EpochStart(0, 3)])

    assert epochs.note([EpochStart(4, 2)]) == 3
