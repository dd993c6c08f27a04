"""Records that go on: what is on its way counts, whatever comes in front of it, and ends by what came first."""

from __future__ import annotations

import pytest

from delaytopic_api.relay import Ending
from delaytopic_relay.core.commands import OCCURRENCE, TO_BE_RESOLVED, Cancel, DueKey, End, Rewritten, Schedule
from delaytopic_relay.core.ids import AtOnce, IdTable

A = b"a"


def unresolved(offset: int) -> Schedule:
    return Schedule(10, offset, None, None, None, TO_BE_RESOLVED, A)


def occurrence(due_ms: int, offset: int, rank: int) -> Schedule:
    return Schedule(due_ms, offset, None, None, None, OCCURRENCE, A, rank=rank)


def on_its_way() -> IdTable:
    """A table whose record at offset 1 has left: its first occurrence is on its way."""
    table = IdTable()
    table.tells = True
    table.schedule(unresolved(1), far=False)
    assert table.without_superseded([unresolved(1)], 2) == []
    assert table.take_rewritten() == (Rewritten(unresolved(1), 1, goes_on=True),)
    return table


def test_a_record_that_is_resolved_is_written_and_not_delivered() -> None:
    table = on_its_way()

    assert (table.held_from, table.on_their_way) == (2, 1)


def test_an_occurrence_is_delivered_and_the_next_one_is_written() -> None:
    table = on_its_way()
    table.arrive(occurrence(90, 5, 1), 5, far=False)

    assert table.without_superseded([occurrence(90, 5, 1)], 8) == [occurrence(90, 5, 1)]
    assert table.take_rewritten() == (Rewritten(occurrence(90, 5, 1), 5, goes_on=True),)


def test_an_occurrence_that_is_past_due_when_it_is_read_leaves_at_once_and_goes_on() -> None:
    table = on_its_way()

    assert table.leaves_at_once(occurrence(20, 5, 1), 5) == AtOnce(leaves=True)
    assert table.take_rewritten() == (Rewritten(occurrence(20, 5, 1), 5, goes_on=True),)


def test_what_was_cancelled_on_its_way_is_told_where_it_is_read_and_withdrawn_behind_itself() -> None:
    table = on_its_way()
    table.cancel(Cancel(3, A, requested_by=b"ann"))
    assert table.take_ends() == ()

    table.arrive(occurrence(90, 5, 1), 5, far=False)

    assert table.take_ends() == (End(Ending.CANCELLED, 5, 90, A, 3, b"ann"),)
    assert table.take_rewritten() == (Rewritten(occurrence(90, 5, 1), 2),)
    assert table.without_superseded([occurrence(90, 5, 1)], 8) == []


def test_a_withdrawal_is_on_its_way_until_it_is_read() -> None:
    table = on_its_way()
    table.cancel(Cancel(3, A))
    table.arrive(occurrence(90, 5, 1), 5, far=False)
    before = table.on_their_way

    table.cancel(Cancel(9, A, rank=2))

    assert (before, table.on_their_way) == (1, 0)


def test_a_successor_finds_the_first_command_that_came_behind_what_is_on_its_way() -> None:
    # Given that it looks ahead, and then reads again what is in front of it
    table = IdTable(5)
    table.tells = True
    table.announce(occurrence(90, 7, 1), 1)
    table.announce(occurrence(95, 8, 3), 1)

    table.schedule(unresolved(3), far=False)
    table.cancel(Cancel(4, A))
    for read in (occurrence(90, 7, 1), occurrence(95, 8, 3)):
        table.arrive(read, 5, far=False)

    assert table.take_ends() == (
        End(Ending.REPLACED, 7, 90, A, 3, None),
        End(Ending.CANCELLED, 8, 95, A, 4, None),
    )


def test_a_cancel_of_what_is_not_written_after_all_has_met_nothing() -> None:
    table = on_its_way()
    table.cancel(Cancel(3, A, requested_by=b"ann"))

    assert table.not_written([1]) == [End(Ending.NOT_PENDING, 3, None, A, None, b"ann")]
    assert (table.held_from, table.on_their_way) == (None, 0)


@pytest.mark.parametrize("known", [5, 4])
def test_a_record_is_outranked_by_later_commands_and_not_by_its_own_occurrence(known: int) -> None:
    # Without transactions the occurrence at rank 5 may be there before the one at offset 5 is delivered.
    table = IdTable()
    table.schedule(occurrence(90, 5, 1), far=False)
    table.announce(occurrence(150, 9, known), 1)

    assert table.in_effect(occurrence(90, 5, 1)) is (known == 5)


def test_an_older_one_that_came_meanwhile_is_kept_waiting_in_vain_when_nothing_is_written() -> None:
    table = on_its_way()
    table.arrive(occurrence(99_000, 5, 0), 5, far=True)

    table.not_written([1])

    assert table.to_put(9)[A].until_due_ms == 99_000
    assert table.to_put(9)[A].key == DueKey(10, 1)
