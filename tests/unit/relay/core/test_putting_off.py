"""Commands that put off: what an id table makes of them, and of what a relay has written into the source again."""

from __future__ import annotations

import pytest
from tests.support.relay.schedules import cancel, key_of, schedule

from delaytopic_relay.core.commands import Cancel, Command, DueKey, Postpone, Rewritten, Schedule
from delaytopic_relay.core.done import Done
from delaytopic_relay.core.id_states import IdEntry, IdState, apply_postpone, from_entry
from delaytopic_relay.core.ids import IdTable

A = b"a"
PENDING = IdState(10, False, DueKey(500, 10), False)


def postpone(due_ms: int, offset: int) -> Postpone:
    """Put off what carries the id A."""
    return Postpone(offset, A, due_ms)


def again(due_ms: int, offset: int, rank: int) -> Schedule:
    """A schedule that a relay has written again."""
    return Schedule(due_ms, offset, b"k", b"v", None, id=A, rank=rank)


def put_off_at_50() -> IdTable:
    """A table in which the schedule at offset 0 was due at 50, and was put off to 90 by the command at offset 1."""
    table = IdTable()
    table.schedule(schedule(50, 0, A), far=False)
    table.postpone(postpone(90, 1))
    assert table.without_superseded([schedule(50, 0, A)], position=2) == []
    assert table.take_rewritten() == (Rewritten(schedule(50, 0, A), 1, 90),)
    return table


@pytest.mark.parametrize(
    ("commands", "postponed"),
    [
        ([(90, 11)], DueKey(90, 11)),
        ([(90, 11), (120, 12)], DueKey(120, 12)),
        ([(120, 11), (90, 12)], DueKey(120, 12)),
        ([(90, 11), (90, 11)], DueKey(90, 11)),
    ],
    ids=["once", "further", "to an earlier time", "read again"],
)
def test_the_latest_time_counts_and_the_last_command(commands: list[tuple[int, int]], postponed: DueKey) -> None:
    state: IdState | None = PENDING
    for due_ms, offset in commands:
        state = apply_postpone(state, postpone(due_ms, offset))

    assert state == PENDING._replace(postponed=postponed)


@pytest.mark.parametrize("known", [None, PENDING._replace(withdrawn=True), PENDING._replace(offset=11)])
def test_nothing_that_is_not_pending_is_put_off(known: IdState | None) -> None:
    assert apply_postpone(known, postpone(90, 11)) == known


def test_an_entry_of_what_is_put_off_comes_back_as_it_was() -> None:
    state = IdState(10, False, DueKey(500, 10), True, DueKey(900, 12))

    assert from_entry(IdEntry.decode(state.to_entry().encode())) == state


def test_what_is_put_off_does_not_leave_at_its_own_time_but_is_written_again() -> None:
    put_off_at_50()


def test_a_time_that_is_not_later_than_its_own_changes_nothing() -> None:
    table = IdTable()
    table.schedule(schedule(50, 0, A), far=False)
    table.postpone(postpone(50, 1))

    assert table.without_superseded([schedule(50, 0, A)], 2) == [schedule(50, 0, A)]
    assert (table.take_rewritten(), table.held_from) == ((), None)


def test_while_it_is_on_its_way_a_successor_has_to_begin_where_all_was_known() -> None:
    table = put_off_at_50()
    held = table.held_from
    table.arrive(again(90, 7, 1), 8, far=False)

    assert (held, table.held_from) == (2, None)


def test_what_comes_back_leaves_at_its_new_time() -> None:
    table = put_off_at_50()
    table.arrive(again(90, 7, 1), 8, far=False)

    assert table.without_superseded([again(90, 7, 1)], 8) == [again(90, 7, 1)]
    assert (table.take_rewritten(), len(table)) == ((), 0)


def test_what_follows_in_one_chunk_with_what_comes_back_replaces_what_still_waits_in_the_backlog() -> None:
    table, waits = IdTable(), DueKey(900, 0)
    table.learn({A: IdState(0, False, waits, True).to_entry()}, Done(DueKey(0, 0)), 0)
    table.schedule(schedule(50, 1, A), far=False)
    table.postpone(postpone(90, 2))
    table.without_superseded([schedule(50, 1, A)], position=3)
    table.put_done()
    chunk = [again(90, 7, 2), schedule(600, 8, A)]

    asked = table.unknown(chunk)
    table.learn({}, Done(DueKey(50, 1)), 2)
    table.leaves_at_once(again(90, 7, 2), 8)
    table.schedule(schedule(600, 8, A), far=True)

    assert asked == []
    later = IdEntry(16, *waits, key=DueKey(600, 8), position=100)
    assert table.to_put(100) == {A: later}


def test_a_cancel_in_front_of_what_comes_back_withdraws_it_and_is_said_behind_it_again() -> None:
    table = put_off_at_50()
    withdrew = table.cancel(cancel(3, A))
    table.arrive(again(90, 7, 1), 8, far=False)

    assert withdrew
    assert table.take_rewritten() == (Rewritten(again(90, 7, 1), 2),)
    assert table.without_superseded([again(90, 7, 1)], 8) == []


def test_a_schedule_in_front_of_what_comes_back_takes_its_place() -> None:
    table, newer = put_off_at_50(), schedule(80, 3, A)
    table.schedule(newer, far=False)
    table.arrive(again(90, 7, 1), 8, far=False)

    assert table.take_rewritten() == (Rewritten(again(90, 7, 1), 2),)
    assert table.without_superseded([newer, again(90, 7, 1)], 8) == [newer]


def test_a_schedule_that_has_left_in_front_of_what_comes_back_withdraws_it() -> None:
    table, newer = put_off_at_50(), schedule(80, 3, A)
    table.schedule(newer, far=False)
    left = table.without_superseded([newer], 4)
    table.arrive(again(90, 7, 1), 8, far=False)

    assert (left, table.take_rewritten()) == ([newer], (Rewritten(again(90, 7, 1), 2),))


def test_what_is_put_off_further_in_front_of_what_comes_back_is_written_once_more() -> None:
    table = put_off_at_50()
    table.postpone(postpone(130, 3))
    table.arrive(again(90, 7, 1), 8, far=False)

    assert table.take_rewritten() == (Rewritten(again(90, 7, 1), 3, 130),)
    assert table.without_superseded([again(90, 7, 1)], 8) == []
    assert table.held_from == 8


@pytest.mark.parametrize(
    ("between", "delivered", "rewritten"),
    [
        (None, True, ()),
        (cancel(3, A), False, ()),
        (postpone(130, 3), False, (Rewritten(again(90, 7, 1), 3, 130),)),
    ],
    ids=["nothing", "a cancel", "another time"],
)
def test_what_comes_back_past_due_leaves_at_once_unless_something_came_between(
    between: Cancel | Postpone | None, delivered: bool, rewritten: tuple[Rewritten, ...]
) -> None:
    table = put_off_at_50()
    if isinstance(between, Cancel):
        table.cancel(between)
    elif between is not None:
        table.postpone(between)

    assert (table.leaves_at_once(again(90, 7, 1), 8).leaves, table.take_rewritten()) == (delivered, rewritten)


def test_the_backlog_is_told_nothing_of_what_is_on_its_way() -> None:
    # Given an older schedule of the id in the backlog, so that there is an entry
    older, newer = schedule(99_000, 0, A), schedule(50, 1, A)
    table = IdTable()
    table.schedule(older, far=True)
    table.schedule(newer, far=False)
    table.postpone(postpone(90, 2))
    table.put_done()

    table.without_superseded([newer], 3)

    assert table.to_put(100) == {}


def test_a_successor_that_is_told_what_comes_knows_what_came_between() -> None:
    # Given what was looked ahead at: a schedule written again, whose cancel is in front of it
    table = IdTable()
    table.announce(again(90, 7, 1), position=2)
    table.cancel(cancel(3, A))

    table.arrive(again(90, 7, 1), 3, far=False)

    assert table.take_rewritten() == (Rewritten(again(90, 7, 1), 2),)


def test_a_successor_that_is_told_of_a_withdrawal_does_not_deliver_what_it_reads_again() -> None:
    table, withdrawal = IdTable(), Cancel(9, A, rank=2)
    table.announce(withdrawal, position=2)
    table.schedule(again(90, 7, 1), far=False)

    left = table.without_superseded([again(90, 7, 1)], 8)
    table.cancel(withdrawal)

    assert (left, len(table), table.held_from) == ([], 0, None)


def test_a_withdrawal_that_is_read_reaches_no_schedule_that_has_come_since() -> None:
    table = IdTable()
    table.schedule(schedule(90, 5, A), far=False)
    table.cancel(Cancel(9, A, rank=2))

    assert table.without_superseded([schedule(90, 5, A)], 9) == [schedule(90, 5, A)]


def test_a_dead_letter_in_its_place_ends_the_wait_for_what_was_to_come_back() -> None:
    table = put_off_at_50()
    table.not_written([0])

    assert (table.held_from, len(table)) == (None, 0)


def test_a_dead_letter_in_its_place_leaves_others_of_its_id_on_their_way() -> None:
    # Given one that was written before, and another schedule of the id that was to follow it
    table, newer = put_off_at_50(), schedule(80, 3, A)
    table.schedule(newer, far=False)
    table.postpone(postpone(130, 4))
    table.without_superseded([newer], 5)
    table.not_written([3])

    table.arrive(again(90, 7, 1), 8, far=False)

    assert table.take_rewritten()[1:] == (Rewritten(again(90, 7, 1), 2),)
    assert table.held_from is None


def test_while_nothing_may_be_written_reading_stops_in_front_of_what_would_need_it() -> None:
    commands: list[Command] = [cancel(3, A), schedule(70, 4), again(90, 7, 1)]
    table = IdTable()
    table.announce(again(90, 7, 1), position=2)

    assert table.until_rewritten(commands, position=2) == commands[:2]
    assert table.until_rewritten(commands[1:], position=2) == commands[1:]


def test_a_list_knows_the_time_that_something_is_put_off_to() -> None:
    table, plain = IdTable(), schedule(60, 2, b"b")
    table.schedule(schedule(50, 0, A), far=False)
    table.schedule(plain, far=False)
    table.postpone(postpone(90, 1))

    assert (table.put_off_to(schedule(50, 0, A)), table.put_off_to(plain)) == (90, None)
    assert key_of(plain) == DueKey(60, 2)
