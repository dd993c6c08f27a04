from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.properties import QUICK
from tests.support.relay.schedules import cancel, key_of, reject, schedule

from delaytopic_api.relay import Ending
from delaytopic_relay.core.commands import NOTHING_DELIVERED, Cancel, DueKey, End, Schedule
from delaytopic_relay.core.done import Done
from delaytopic_relay.core.id_states import (
    Effect,
    IdEntry,
    IdState,
    apply_cancel,
    apply_done,
    apply_schedule,
    from_entry,
)
from delaytopic_relay.core.ids import IdTable

NAME = b"id"
PENDING = IdState(10, False, DueKey(500, 10), False)
WITHDRAWN = IdState(20, True, DueKey(500, 10), False)


def test_the_first_schedule_of_an_id_is_its_latest_command() -> None:
    effect = apply_schedule(None, schedule(500, 10, NAME), far=False)

    assert effect == Effect(IdState(10, False, DueKey(500, 10), False), withdrew=False)


def test_a_far_schedule_makes_the_id_known_to_the_backlog() -> None:
    effect = apply_schedule(None, schedule(500, 10, NAME), far=True)

    assert effect == Effect(IdState(10, False, DueKey(500, 10), True), withdrew=False)


@pytest.mark.parametrize(("due_ms", "until"), [(300, DueKey(500, 10)), (500, DueKey(500, 15)), (900, DueKey(900, 15))])
def test_a_later_schedule_withdraws_the_pending_one_and_the_id_lives_until_both_have_passed(
    due_ms: int, until: DueKey
) -> None:
    effect = apply_schedule(PENDING, schedule(due_ms, 15, NAME), far=False)

    key = DueKey(due_ms, 15)
    assert effect == Effect(IdState(15, False, until, False, key=key if key < until else None), withdrew=True)


def test_an_id_once_in_the_backlog_stays_known_there() -> None:
    effect = apply_schedule(PENDING._replace(stored=True), schedule(300, 15, NAME), far=False)

    assert effect == Effect(IdState(15, False, DueKey(500, 10), True, key=DueKey(300, 15)), withdrew=True)


def test_a_schedule_after_a_cancel_withdraws_nothing_and_is_pending_again() -> None:
    effect = apply_schedule(WITHDRAWN, schedule(600, 30, NAME), far=False)

    assert effect == Effect(IdState(30, False, DueKey(600, 30), False), withdrew=False)


def test_a_schedule_that_is_read_again_changes_nothing() -> None:
    effect = apply_schedule(PENDING, schedule(500, 10, NAME), far=False)

    assert effect == Effect(PENDING, withdrew=False)


def test_an_older_schedule_that_is_read_again_only_keeps_the_id_alive_for_as_long_as_it_waits() -> None:
    effect = apply_schedule(WITHDRAWN, schedule(900, 10, NAME), far=True)

    assert effect == Effect(IdState(20, True, DueKey(900, 10), True), withdrew=False)


def test_a_cancel_withdraws_what_is_pending() -> None:
    effect = apply_cancel(PENDING, cancel(20, NAME))

    assert effect == Effect(IdState(20, True, DueKey(500, 10), False), withdrew=True)


def test_a_cancel_with_nothing_pending_leaves_nothing() -> None:
    assert apply_cancel(None, cancel(20, NAME)) == Effect(None, withdrew=False)


def test_a_second_cancel_withdraws_nothing_more() -> None:
    effect = apply_cancel(WITHDRAWN, cancel(30, NAME))

    assert effect == Effect(IdState(30, True, DueKey(500, 10), False), withdrew=False)


@pytest.mark.parametrize("offset", [5, 10])
def test_a_cancel_that_is_read_again_does_not_reach_later_schedules(offset: int) -> None:
    assert apply_cancel(PENDING, cancel(offset, NAME)) == Effect(PENDING, withdrew=False)


def test_a_schedule_that_leaves_at_once_withdraws_the_pending_one_and_waits_no_more_itself() -> None:
    effect = apply_done(PENDING, schedule(300, 15, NAME))

    assert effect == Effect(IdState(15, True, DueKey(500, 10), False, key=DueKey(300, 15)), withdrew=True)


def test_a_schedule_that_leaves_at_once_after_a_cancel_withdraws_nothing() -> None:
    effect = apply_done(WITHDRAWN, schedule(300, 25, NAME))

    assert effect == Effect(IdState(25, True, DueKey(500, 10), False, key=DueKey(300, 25)), withdrew=False)


def test_a_delivered_schedule_that_is_read_again_waits_no_more() -> None:
    left = PENDING._replace(withdrawn=True, key=DueKey(300, 10))
    assert apply_done(PENDING, schedule(300, 10, NAME)) == Effect(left, withdrew=False)


def test_a_delivered_schedule_that_is_read_again_does_not_outrank_newer_commands() -> None:
    assert apply_done(PENDING, schedule(300, 5, NAME)) == Effect(PENDING, withdrew=False)


def test_a_delivered_schedule_with_nothing_pending_leaves_nothing() -> None:
    assert apply_done(None, schedule(300, 15, NAME)) == Effect(None, withdrew=False)


@QUICK
@given(st.integers(0, 2**50), st.booleans(), st.builds(DueKey, st.integers(0, 10**14), st.integers(0, 2**50)))
def test_a_state_comes_back_from_the_entry_that_the_backlog_stores(offset: int, withdrawn: bool, until: DueKey) -> None:
    state = IdState(offset, withdrawn, until, True)

    assert from_entry(state.to_entry()) == state


def test_the_lowest_bit_of_an_entry_tells_that_no_schedule_is_in_effect() -> None:
    assert (PENDING.to_entry(), WITHDRAWN.to_entry()) == (IdEntry(20, 500, 10), IdEntry(41, 500, 10))


# -- the table of a shard


A, B = b"a", b"b"
COMMITTED = 1_000
"""An offset above all of these commands: they were taken in before."""


def table_with(*near: Schedule) -> IdTable:
    """A table after these schedules came into memory from the source."""
    table = IdTable(COMMITTED)
    for entry in near:
        table.schedule(entry, far=False)
    return table


def told(table: IdTable, states: dict[bytes, IdState], cursor: DueKey = NOTHING_DELIVERED) -> IdTable:
    table.learn({name: state.to_entry() for name, state in states.items()}, Done(cursor), COMMITTED)
    return table


def put(table: IdTable) -> dict[bytes, IdEntry]:
    """Write to the backlog what waits for it."""
    entries = table.to_put(COMMITTED)
    table.put_done()
    return entries


def stored(latest: Schedule | Cancel, until: Schedule) -> IdState:
    """Return what the backlog knows of an id whose last pending schedule is `until`."""
    key = key_of(latest) if isinstance(latest, Schedule) and latest != until else None
    return IdState(latest.offset, isinstance(latest, Cancel), key_of(until), True, key=key)


def test_the_backlog_is_asked_about_ids_that_neither_memory_nor_a_pending_write_knows() -> None:
    # Given one id in memory, one on its way to the backlog
    table = table_with(schedule(50, 0, A))
    table.schedule(schedule(99_000, 1, B), far=True)

    unknown = table.unknown([schedule(1, 2, A), cancel(3, B), cancel(4, b"c"), schedule(5, 5), reject(6)])

    assert unknown == [b"c"]


def test_of_several_schedules_with_an_id_only_the_last_leaves() -> None:
    first, second, third = (schedule(50 + offset, offset, A) for offset in range(3))
    table = table_with(first, second, third)

    assert table.without_superseded([first, second, third], 0) == [third]


def test_a_replacement_with_an_earlier_time_leaves_and_the_older_one_does_not() -> None:
    older, newer = schedule(90, 0, A), schedule(50, 1, A)
    table = table_with(older, newer)

    assert (table.without_superseded([newer], 0), table.without_superseded([older], 0)) == ([newer], [])


def test_schedules_without_an_id_or_with_another_id_are_not_touched() -> None:
    plain, other, withdrawn = schedule(50, 0), schedule(51, 1, B), schedule(52, 2, A)
    table = table_with(other, withdrawn)
    table.cancel(cancel(3, A))

    assert table.without_superseded([plain, other, withdrawn], 0) == [plain, other]


def test_a_cancelled_schedule_does_not_leave() -> None:
    entry = schedule(50, 0, A)
    table = table_with(entry)

    withdrew = table.cancel(cancel(1, A))

    assert (withdrew, table.without_superseded([entry], 0)) == (True, [])


def test_a_schedule_after_the_cancel_leaves() -> None:
    older, newer = schedule(50, 0, A), schedule(60, 2, A)
    table = table_with(older)
    table.cancel(cancel(1, A))
    table.schedule(newer, far=False)

    assert table.without_superseded([older, newer], 0) == [newer]


def test_a_cancel_before_any_schedule_is_too_late_and_keeps_nothing() -> None:
    table = IdTable(COMMITTED)

    withdrew = table.cancel(cancel(0, A))
    table.schedule(schedule(50, 1, A), far=False)

    assert (withdrew, table.without_superseded([schedule(50, 1, A)], 0)) == (False, [schedule(50, 1, A)])


def test_memory_forgets_an_id_with_its_last_schedule() -> None:
    older, newer = schedule(90, 0, A), schedule(50, 1, A)
    table = table_with(older, newer)
    sizes = [len(table)]

    for entry in (newer, older):
        table.without_superseded([entry], 0)
        sizes.append(len(table))

    assert sizes == [1, 1, 0]


def test_far_schedules_and_their_cancels_take_no_memory_once_they_are_in_the_backlog() -> None:
    table = IdTable(COMMITTED)
    for offset in range(100):
        table.schedule(schedule(99_000, offset, b"%d" % offset), far=True)
    put(table)
    told(table, {b"7": stored(schedule(99_000, 7), schedule(99_000, 7))})
    table.cancel(cancel(100, b"7"))
    put(table)

    assert (len(table), table.must_put) == (0, False)


def test_a_far_schedule_is_written_to_the_backlog_with_the_key_until_which_it_matters() -> None:
    table = IdTable(COMMITTED)
    table.schedule(schedule(99_000, 4, A), far=True)

    assert table.must_put
    assert put(table) == {A: IdEntry(4 * 2, 99_000, 4)}
    assert not table.must_put


def test_a_near_schedule_is_not_written() -> None:
    table = table_with(schedule(50, 0, A))

    assert (table.must_put, table.to_put(COMMITTED)) == (False, {})


def test_a_near_replacement_of_a_schedule_in_the_backlog_is_written_too() -> None:
    older, newer = schedule(99_000, 4, A), schedule(50, 7, A)
    table = told(IdTable(COMMITTED), {A: stored(older, older)})

    withdrew = table.schedule(newer, far=False)

    assert (withdrew, table.to_put(COMMITTED)) == (True, {A: IdEntry(7 * 2, 99_000, 4, key=DueKey(50, 7))})


def test_a_cancel_of_a_schedule_in_the_backlog_is_written_with_its_bit() -> None:
    older = schedule(99_000, 4, A)
    table = told(IdTable(COMMITTED), {A: stored(older, older)})

    withdrew = table.cancel(cancel(7, A))

    assert (withdrew, table.to_put(COMMITTED)) == (True, {A: IdEntry(7 * 2 + 1, 99_000, 4)})


def test_an_older_schedule_that_comes_from_the_backlog_after_its_replacement_left_does_not_leave() -> None:
    # Given a near replacement that was delivered and forgotten in memory
    older, newer = schedule(99_000, 4, A), schedule(50, 7, A)
    table = told(IdTable(COMMITTED), {A: stored(older, older)})
    table.schedule(newer, far=False)
    table.without_superseded([newer], 0)
    put(table)

    # When the older one is loaded, and the backlog says what it knows
    told(table, {A: stored(newer, older)}, key_of(newer)).loaded([older])

    assert table.without_superseded([older], 0) == []


def test_a_schedule_loaded_from_the_backlog_leaves_when_it_is_the_latest() -> None:
    entry = schedule(99_000, 4, A)
    table = told(IdTable(COMMITTED), {A: stored(entry, entry)})
    table.loaded([entry, schedule(99_001, 5)])

    assert table.without_superseded([entry], 0) == [entry]


def test_an_older_schedule_loaded_beside_its_replacement_does_not_leave_and_the_replacement_does() -> None:
    # Given a replacement in memory, due after the older one that comes from the backlog
    older, newer = schedule(99_000, 4, A), schedule(99_500, 7, A)
    table = told(IdTable(COMMITTED), {A: stored(older, older)})
    table.schedule(newer, far=False)
    table.loaded([older])

    assert table.without_superseded([older, newer], 0) == [newer]
    assert len(table) == 0


def test_a_replacement_in_memory_is_still_cancelled_after_the_older_one_was_loaded_and_left() -> None:
    older, newer = schedule(99_000, 4, A), schedule(99_500, 7, A)
    table = told(IdTable(COMMITTED), {A: stored(older, older)})
    table.schedule(newer, far=False)
    table.loaded([older])
    table.without_superseded([older], 0)

    table.cancel(cancel(9, A))

    assert table.without_superseded([newer], 0) == []


def test_an_entry_is_to_be_forgotten_when_the_last_schedule_of_its_id_left() -> None:
    first, last = schedule(99_000, 4, A), schedule(99_500, 6, A)
    table = told(IdTable(COMMITTED), {A: stored(last, last)})
    table.loaded([first, last])

    table.without_superseded([first], 0)
    after_first = table.to_forget()
    table.without_superseded([last], 0)

    assert (after_first, table.to_forget()) == ([], [A])


def test_an_entry_stays_while_a_schedule_of_its_id_is_still_in_the_backlog() -> None:
    loaded, waiting = schedule(99_000, 4, A), schedule(500_000, 6, A)
    table = told(IdTable(COMMITTED), {A: stored(waiting, waiting)})
    table.loaded([loaded])

    table.without_superseded([loaded], 0)

    assert (table.to_forget(), len(table)) == ([], 0)


def test_an_entry_whose_last_schedule_has_passed_is_not_believed_and_is_to_be_forgotten() -> None:
    past = schedule(50, 4, A)
    table = told(IdTable(COMMITTED), {A: stored(cancel(6, A), past)}, key_of(past))

    withdrew = table.cancel(cancel(8, A))

    assert (withdrew, table.must_put, table.to_forget()) == (False, False, [A])


def test_an_id_that_is_used_again_before_it_was_forgotten_is_kept() -> None:
    past = schedule(50, 4, A)
    table = told(IdTable(COMMITTED), {A: stored(past, past)}, key_of(past))

    table.schedule(schedule(99_000, 8, A), far=True)
    put(table)

    assert table.to_forget() == []


def test_forgotten_ids_are_not_asked_to_be_forgotten_again() -> None:
    past = schedule(50, 4, A)
    table = told(IdTable(COMMITTED), {A: stored(past, past)}, key_of(past))

    table.forgotten()

    assert table.to_forget() == []


def test_a_delivered_schedule_that_is_read_again_keeps_withdrawing_the_older_one() -> None:
    # Given a successor that reads again: the older one still waits, the newer one was delivered before it
    older, newer = schedule(90, 0, A), schedule(50, 1, A)
    table = table_with(older)

    table.done(newer)

    assert table.without_superseded([older], 0) == []


def test_a_delivered_schedule_that_is_read_again_is_written_when_the_older_one_is_in_the_backlog() -> None:
    older, newer = schedule(99_000, 4, A), schedule(50, 7, A)
    table = told(IdTable(COMMITTED), {A: stored(older, older)})

    table.done(newer)

    assert (table.to_put(COMMITTED), len(table)) == ({A: IdEntry(7 * 2, 99_000, 4, key=DueKey(50, 7))}, 0)


def test_when_the_latest_has_left_the_backlog_is_told_that_the_older_one_waits_in_vain() -> None:
    # Given a near replacement of a schedule in the backlog
    older, newer = schedule(99_000, 4, A), schedule(50, 7, A)
    table = told(IdTable(COMMITTED), {A: stored(older, older)})
    table.schedule(newer, far=False)
    put(table)

    assert table.without_superseded([newer], 0) == [newer]
    assert put(table) == {A: IdEntry(7 * 2, 99_000, 4, key=DueKey(50, 7))}


def test_what_is_read_again_in_the_same_order_ends_in_the_same_state() -> None:
    # Given a schedule, its cancel, and a schedule after that
    first, last = schedule(90, 0, A), schedule(80, 2, A)
    table = table_with(first)

    # When the shard is recovered and reads all three a second time
    for _ in range(2):
        table.schedule(first, far=False)
        table.cancel(cancel(1, A))
        table.schedule(last, far=False)

    assert (table.without_superseded([last], 0), table.without_superseded([first], 0)) == ([last], [])


# -- what is not committed yet


WAITS = IdEntry(4 * 2, 99_000, 4)
"""The schedule at offset 4, as of a commit up to offset 5."""


def telling(position: int) -> IdTable:
    """A table that is asked for what commands have ended."""
    table = IdTable(position)
    table.tells = True
    return table


def fresh_table() -> IdTable:
    """A table whose owner has committed up to offset 5, and knows of the schedule at offset 4."""
    table = telling(5)
    table.learn({A: WAITS}, Done(), 5)
    return table


def test_an_entry_has_the_former_one_beside_it_until_its_commands_are_committed() -> None:
    table = fresh_table()
    table.cancel(cancel(7, A))

    assert table.to_put(8) == {A: IdEntry(7 * 2 + 1, 99_000, 4, position=8, before=WAITS)}


def test_the_first_entry_of_an_id_says_that_nothing_was_before() -> None:
    table = telling(5)
    table.schedule(schedule(99_000, 7, A), far=True)
    table.cancel(cancel(8, A))

    assert table.to_put(9) == {A: IdEntry(8 * 2 + 1, 99_000, 7, position=9)}


def test_an_entry_of_what_is_committed_has_nothing_beside_it() -> None:
    table = fresh_table()
    table.cancel(cancel(7, A))
    table.settled(8)

    assert table.to_put(10) == {A: IdEntry(7 * 2 + 1, 99_000, 4)}


def test_an_entry_that_a_cursor_has_passed_which_is_not_committed_stays_beside_the_new_one() -> None:
    # Given an id of which all has left in a tick that is not committed yet
    table = telling(5)
    left = WAITS._replace(key=DueKey(99_000, 4))
    table.learn({A: WAITS}, Done(DueKey(99_000, 4)), 5)

    table.schedule(schedule(200_000, 7, A), far=True)

    assert table.to_put(8) == {A: IdEntry(7 * 2, 200_000, 7, position=8, before=left)}


def test_an_entry_of_a_tick_that_was_never_committed_is_not_believed() -> None:
    # Given a successor that finds the entry of a cancel which it reads anew itself
    table = telling(5)
    table.learn({A: IdEntry(7 * 2 + 1, 99_000, 4, position=8, before=WAITS)}, Done(), 5)

    assert table.cancel(cancel(7, A))
    assert table.take_ends() == (End(Ending.CANCELLED, 4, 99_000, A, 7),)


def test_an_entry_of_a_tick_that_was_never_committed_is_written_as_it_was() -> None:
    table = telling(5)
    table.learn({A: IdEntry(7 * 2 + 1, 99_000, 4, position=8, before=WAITS)}, Done(), 5)

    assert table.to_put(5) == {A: WAITS}


def test_an_id_whose_first_entry_was_never_committed_is_known_by_nobody() -> None:
    table = telling(5)
    table.learn({A: IdEntry(7 * 2, 99_000, 7, position=8)}, Done(), 5)

    assert not table.cancel(cancel(9, A))
    assert table.take_ends() == (End(Ending.NOT_PENDING, 9, None, A),)


def test_an_entry_whose_commands_are_committed_is_believed() -> None:
    table = telling(8)
    table.learn({A: IdEntry(7 * 2 + 1, 99_000, 4, position=8, before=WAITS)}, Done(), 8)

    assert not table.cancel(cancel(9, A))


def test_a_schedule_that_has_left_by_the_cursor_is_pending_no_more_whatever_its_entry_says() -> None:
    # Given a schedule that has left, and an older one with its id that waits in vain
    table = telling(8)
    table.learn({A: IdEntry(7 * 2, 99_000, 4, key=DueKey(50, 7))}, Done(DueKey(60, 0)), 8)

    assert not table.cancel(cancel(9, A))


def test_a_command_that_is_read_again_ends_nothing() -> None:
    table = telling(8)
    table.learn({A: WAITS}, Done(), 8)

    table.schedule(schedule(50, 6, A), far=False)
    table.cancel(cancel(7, A))

    assert table.take_ends() == ()


def test_a_schedule_ends_the_one_that_it_replaces() -> None:
    table = fresh_table()
    newer = Schedule(50, 7, None, None, [("deliver-requested-by", b"ann")], id=A)

    table.schedule(newer, far=False)

    assert table.take_ends() == (End(Ending.REPLACED, 4, 99_000, A, 7, b"ann"),)


def test_a_schedule_that_leaves_and_comes_again_is_not_taken_for_pending_before_the_next_put() -> None:
    table = fresh_table()
    near = schedule(99_500, 7, A)
    table.schedule(near, far=False)
    table.take_ends()

    table.without_superseded([near], 8)
    table.learn({A: WAITS}, Done(key_of(near)), 8)
    table.cancel(cancel(9, A))

    assert table.take_ends() == (End(Ending.NOT_PENDING, 9, None, A),)


@QUICK
@given(
    st.integers(-1, 2**50),
    st.one_of(st.none(), st.builds(DueKey, st.integers(0, 10**14), st.integers(0, 2**50))),
    st.one_of(st.none(), st.builds(DueKey, st.integers(-1, 10**14), st.integers(-1, 2**50))),
    st.one_of(st.none(), st.integers(1, 2**50)),
)
def test_an_entry_comes_back_from_its_text(
    offset: int, postponed: DueKey | None, key: DueKey | None, position: int | None
) -> None:
    former = IdEntry(offset, 7, 8, postponed, key)
    entry = former if position is None else former._replace(position=position, before=former)

    assert IdEntry.decode(entry.encode()) == entry


@pytest.mark.parametrize("text", [b"", b"1:2", b"1:2:3:4", b"1:2:3;;;4", b"1:2:3|1:2:3", b"1:2:3;;;4||", b"1:2:3;4"])
def test_an_entry_of_another_text_is_none(text: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        IdEntry.decode(text)
