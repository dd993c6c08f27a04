from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.properties import QUICK
from tests.support.schedules import cancel, schedule

from delaytopic_relay.core.commands import Key
from delaytopic_relay.core.ids import Effect, IdEntry, IdState, apply_cancel, apply_done, apply_schedule, from_entry

NAME = b"id"
PENDING = IdState(10, False, Key(500, 10), False)
WITHDRAWN = IdState(20, True, Key(500, 10), False)


def test_the_first_schedule_of_an_id_is_its_latest_command() -> None:
    effect = apply_schedule(None, schedule(500, 10, NAME), far=False)

    assert effect == Effect(IdState(10, False, Key(500, 10), False), withdrew=False)


def test_a_far_schedule_makes_the_id_known_to_the_shelf() -> None:
    effect = apply_schedule(None, schedule(500, 10, NAME), far=True)

    assert effect == Effect(IdState(10, False, Key(500, 10), True), withdrew=False)


@pytest.mark.parametrize(("due_ms", "until"), [(300, Key(500, 10)), (500, Key(500, 15)), (900, Key(900, 15))])
def test_a_later_schedule_withdraws_the_pending_one_and_the_id_lives_until_both_have_passed(
    due_ms: int, until: Key
) -> None:
    effect = apply_schedule(PENDING, schedule(due_ms, 15, NAME), far=False)

    assert effect == Effect(IdState(15, False, until, False), withdrew=True)


def test_an_id_once_on_the_shelf_stays_known_there() -> None:
    effect = apply_schedule(PENDING._replace(on_shelf=True), schedule(300, 15, NAME), far=False)

    assert effect == Effect(IdState(15, False, Key(500, 10), True), withdrew=True)


def test_a_schedule_after_a_cancel_withdraws_nothing_and_is_pending_again() -> None:
    effect = apply_schedule(WITHDRAWN, schedule(600, 30, NAME), far=False)

    assert effect == Effect(IdState(30, False, Key(600, 30), False), withdrew=False)


def test_a_schedule_that_is_read_again_changes_nothing() -> None:
    effect = apply_schedule(PENDING, schedule(500, 10, NAME), far=False)

    assert effect == Effect(PENDING, withdrew=False)


def test_an_older_schedule_that_is_read_again_only_keeps_the_id_alive_for_as_long_as_it_waits() -> None:
    effect = apply_schedule(WITHDRAWN, schedule(900, 10, NAME), far=True)

    assert effect == Effect(IdState(20, True, Key(900, 10), True), withdrew=False)


def test_a_cancel_withdraws_what_is_pending() -> None:
    effect = apply_cancel(PENDING, cancel(20, NAME))

    assert effect == Effect(IdState(20, True, Key(500, 10), False), withdrew=True)


def test_a_cancel_with_nothing_pending_leaves_nothing() -> None:
    assert apply_cancel(None, cancel(20, NAME)) == Effect(None, withdrew=False)


def test_a_second_cancel_withdraws_nothing_more() -> None:
    effect = apply_cancel(WITHDRAWN, cancel(30, NAME))

    assert effect == Effect(IdState(30, True, Key(500, 10), False), withdrew=False)


@pytest.mark.parametrize("offset", [5, 10])
def test_a_cancel_that_is_read_again_does_not_reach_later_schedules(offset: int) -> None:
    assert apply_cancel(PENDING, cancel(offset, NAME)) == Effect(PENDING, withdrew=False)


def test_a_schedule_that_leaves_at_once_withdraws_the_pending_one_and_waits_no_more_itself() -> None:
    effect = apply_done(PENDING, schedule(300, 15, NAME))

    assert effect == Effect(IdState(15, True, Key(500, 10), False), withdrew=True)


def test_a_schedule_that_leaves_at_once_after_a_cancel_withdraws_nothing() -> None:
    effect = apply_done(WITHDRAWN, schedule(300, 25, NAME))

    assert effect == Effect(IdState(25, True, Key(500, 10), False), withdrew=False)


def test_a_delivered_schedule_that_is_read_again_waits_no_more() -> None:
    assert apply_done(PENDING, schedule(300, 10, NAME)) == Effect(PENDING._replace(withdrawn=True), withdrew=False)


def test_a_delivered_schedule_that_is_read_again_does_not_outrank_newer_commands() -> None:
    assert apply_done(PENDING, schedule(300, 5, NAME)) == Effect(PENDING, withdrew=False)


def test_a_delivered_schedule_with_nothing_pending_leaves_nothing() -> None:
    assert apply_done(None, schedule(300, 15, NAME)) == Effect(None, withdrew=False)


@QUICK
@given(st.integers(0, 2**50), st.booleans(), st.builds(Key, st.integers(0, 10**14), st.integers(0, 2**50)))
def test_a_state_comes_back_from_the_entry_that_the_shelf_stores(offset: int, withdrawn: bool, until: Key) -> None:
    state = IdState(offset, withdrawn, until, True)

    assert from_entry(state.to_entry()) == state


def test_the_lowest_bit_of_an_entry_tells_that_no_schedule_is_in_effect() -> None:
    assert (PENDING.to_entry(), WITHDRAWN.to_entry()) == (IdEntry(20, 500, 10), IdEntry(41, 500, 10))
