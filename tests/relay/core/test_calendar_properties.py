"""The calendar against a sorted list, under any sequence of additions and takings."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st
from tests.support.properties import QUICK
from tests.support.schedules import key_of, schedule

from delaytopic_relay.core.calendar import Calendar
from delaytopic_relay.core.commands import Key


class Add(NamedTuple):
    keys: list[Key]
    only_here: bool


class Take(NamedTuple):
    until_ms: int
    limit: int


KEYS = st.builds(Key, st.integers(-40, 150), st.integers(0, 20))
STEPS = st.lists(
    st.one_of(
        st.builds(Add, st.lists(KEYS, max_size=8), st.booleans()),
        st.builds(Take, st.integers(-50, 160), st.integers(1, 6)),
    ),
    max_size=25,
)


class Sorted:
    """The naive calendar: a set of keys, sorted each time; `only_here` are the keys that no shelf has."""

    def __init__(self) -> None:
        self.keys: set[Key] = set()
        self.only_here: set[Key] = set()

    def add(self, step: Add) -> None:
        self.keys.update(step.keys)
        if step.only_here:
            self.only_here.update(step.keys)

    def take(self, step: Take) -> list[Key]:
        taken = sorted(key for key in self.keys if key.due_ms <= step.until_ms)[: step.limit]
        self.keys.difference_update(taken)
        self.only_here.difference_update(taken)
        return taken


def apply(calendar: Calendar, expected: Sorted, step: Add | Take) -> tuple[list[Key], list[Key]]:
    """What both give out for a step."""
    if isinstance(step, Take):
        return [key_of(entry) for entry in calendar.take(step.until_ms, step.limit)], expected.take(step)
    calendar.add([schedule(*key) for key in step.keys], only_here=step.only_here)
    expected.add(step)
    return [], []


def played(steps: Iterable[Add | Take]) -> tuple[Calendar, Sorted]:
    calendar, expected = Calendar(), Sorted()
    for step in steps:
        apply(calendar, expected, step)
    return calendar, expected


@QUICK
@given(STEPS)
def test_it_gives_out_what_a_sorted_list_without_copies_gives_out(steps: list[Add | Take]) -> None:
    calendar, expected = Calendar(), Sorted()

    for step in [*steps, Take(1_000, 1_000)]:
        ours, theirs = apply(calendar, expected, step)

        assert ours == theirs


@QUICK
@given(STEPS)
def test_the_next_due_time_is_that_of_the_first_schedule(steps: list[Add | Take]) -> None:
    calendar, expected = played(steps)

    assert calendar.next_due_ms() == min((key.due_ms for key in expected.keys), default=None)


@QUICK
@given(STEPS)
def test_the_lowest_offset_is_a_lower_bound_of_what_only_it_holds(steps: list[Add | Take]) -> None:
    calendar, expected = played(steps)

    bound = calendar.lowest_offset()

    assert all(bound is not None and bound <= key.offset for key in expected.only_here)


@QUICK
@given(STEPS)
def test_nothing_holds_back_the_offset_when_a_shelf_has_everything(steps: list[Add | Take]) -> None:
    calendar, _ = played(step._replace(only_here=False) if isinstance(step, Add) else step for step in steps)

    assert calendar.lowest_offset() is None


@QUICK
@given(STEPS)
def test_counts_and_sizes_agree_with_what_is_inside(steps: list[Add | Take]) -> None:
    calendar, expected = played(steps)

    assert calendar.count == sum(count for _, count in calendar.counts()) >= len(expected.keys)
    assert (calendar.size > 0) == (calendar.count > 0) == bool(expected.keys)


@QUICK
@given(STEPS)
def test_an_emptied_calendar_is_as_good_as_a_new_one(steps: list[Add | Take]) -> None:
    calendar, _ = played(steps)

    calendar.take(1_000, 1_000)

    assert (calendar.count, calendar.size, calendar.lowest_offset(), calendar.next_due_ms()) == (0, 0, None, None)
