from __future__ import annotations

from delaytopic_relay.core.commands import DueKey
from delaytopic_relay.core.done import AHEAD_MS, Ahead, Done

NOW_MS = 1_000_000
LATER = DueKey(NOW_MS + 3_600_000, 4)


def test_up_to_the_cursor_everything_is_done() -> None:
    done = Done(DueKey(100, 5))

    assert [done.has(*key) for key in ((99, 9), (100, 5), (100, 6), (101, 0))] == [True, True, False, False]


def test_a_cursor_that_is_far_ahead_of_the_clock_goes_back_to_it() -> None:
    assert Done(LATER).back_at(NOW_MS, 10) == Done(DueKey(NOW_MS, -1), Ahead(10, LATER))


def test_a_cursor_that_is_little_ahead_of_the_clock_stays() -> None:
    done = Done(DueKey(NOW_MS + AHEAD_MS, 4))

    assert done.back_at(NOW_MS, 10) == done


def test_what_a_clock_that_was_ahead_has_delivered_stays_done_and_what_came_after_it_is_not() -> None:
    done = Done(LATER).back_at(NOW_MS, 10)

    of_before = [(NOW_MS + 1, 9), LATER, (LATER.due_ms, 5)]
    of_after = [(NOW_MS - 1, 10), (NOW_MS, 10), (NOW_MS + 1, 10), (LATER.due_ms, 10)]
    assert [done.has(*key) for key in of_before] == [True, True, False]
    assert [done.has(*key) for key in of_after] == [True, False, False, False]


def test_a_cursor_that_has_passed_what_was_delivered_early_says_it_all_again() -> None:
    done = Done(DueKey(NOW_MS, -1), Ahead(10, LATER))

    assert done.moved(DueKey(LATER.due_ms, 3)) == Done(DueKey(LATER.due_ms, 3), Ahead(10, LATER))
    assert done.moved(LATER) == Done(LATER)


def test_a_cursor_goes_back_once_until_it_has_passed_what_was_delivered_early() -> None:
    done = Done(DueKey(NOW_MS + 60_000, 1), Ahead(10, LATER))

    assert done.back_at(NOW_MS, 20) == done


def test_nothing_that_is_due_after_the_last_of_what_was_delivered_early_is_done() -> None:
    assert (Done(DueKey(5, 1)).last_ms, Done(DueKey(5, 1), Ahead(10, LATER)).last_ms) == (5, LATER.due_ms)
