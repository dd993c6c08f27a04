from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st
from tests.support.properties import QUICK
from tests.support.relay.schedules import key_of, offsets, schedule

from delaytopic_relay.core.calendar import SLOT_BITS, Calendar, bytes_of
from delaytopic_relay.core.commands import DueKey, Schedule

SLOT_MS = 1 << SLOT_BITS


def calendar_of(*schedules: Schedule, only_here: bool = True) -> Calendar:
    calendar = Calendar()
    calendar.add(schedules, only_here=only_here)
    return calendar


def test_schedules_leave_by_due_time_and_then_by_offset() -> None:
    calendar = calendar_of(schedule(20, 1), schedule(10, 3), schedule(500, 0), schedule(10, 2))

    taken = calendar.take(1_000, 10)

    assert taken == [schedule(10, 2), schedule(10, 3), schedule(20, 1), schedule(500, 0)]


def test_what_is_due_exactly_now_leaves_and_a_millisecond_later_stays() -> None:
    calendar = calendar_of(schedule(100, 0), schedule(101, 1))

    assert offsets(calendar.take(100, 10)) == [0]
    assert calendar.next_due_ms() == 101


def test_a_limit_leaves_the_rest_in_order_for_the_next_time() -> None:
    calendar = calendar_of(*(schedule(5 * number, number) for number in range(20)))

    portions = [offsets(calendar.take(1_000, 8)) for _ in range(4)]

    assert portions == [[*range(8)], [*range(8, 16)], [*range(16, 20)], []]


def test_a_schedule_that_arrives_in_a_half_emptied_slot_finds_its_place() -> None:
    calendar = calendar_of(schedule(1, 0), schedule(10, 1), schedule(20, 2))
    calendar.take(5, 10)

    calendar.add([schedule(15, 3), schedule(3, 4)], only_here=True)

    assert offsets(calendar.take(SLOT_MS, 10)) == [4, 1, 3, 2]


def test_copies_of_a_key_leave_once() -> None:
    calendar = calendar_of(schedule(10, 1), schedule(10, 2), schedule(10, 1))
    calendar.add([schedule(10, 2), schedule(11, 1)], only_here=False)

    taken = calendar.take(1_000, 10)

    assert (taken, calendar.count, calendar.size) == ([schedule(10, 1), schedule(10, 2), schedule(11, 1)], 0, 0)


def test_an_empty_calendar_has_no_next_due_time_and_holds_nothing_back() -> None:
    calendar = Calendar()

    assert (calendar.next_due_ms(), calendar.lowest_offset(), calendar.take(1_000, 10)) == (None, None, [])
    assert (calendar.count, calendar.size, [*calendar.counts()]) == (0, 0, [])


def test_only_what_no_backlog_has_holds_back_the_committed_offset() -> None:
    calendar = calendar_of(schedule(10, 1), only_here=False)
    assert calendar.lowest_offset() is None

    calendar.add([schedule(5_000, 7), schedule(10, 9)], only_here=True)
    assert calendar.lowest_offset() == 7

    calendar.take(5_000, 10)
    assert calendar.lowest_offset() is None


def test_the_size_is_that_of_all_schedules() -> None:
    bare = Schedule(1, 0, None, None, None)
    full = Schedule(40, 1, b"key", b"value", [("", b""), ("", None), ("name", b"12345")], id=b"a")

    assert calendar_of(bare, full).size == bytes_of(bare) + bytes_of(full)


def test_a_slot_gives_its_size_back_evenly_as_it_empties() -> None:
    calendar = calendar_of(*(schedule(1, offset) for offset in range(4)))
    full = calendar.size

    sizes = [(calendar.take(1, 1), calendar.size)[1] for _ in range(4)]

    assert sizes == [full * 3 // 4, full // 2, full // 4, 0]


def test_counts_give_the_schedules_of_each_slot() -> None:
    calendar = calendar_of(schedule(0, 0), schedule(SLOT_MS - 1, 1), schedule(SLOT_MS, 2))
    calendar.take(0, 10)

    assert sorted(calendar.counts()) == [(0, 1), (SLOT_MS, 1)]


# -- properties


class Add(NamedTuple):
    keys: list[DueKey]
    only_here: bool


class Take(NamedTuple):
    until_ms: int
    limit: int


KEYS = st.builds(DueKey, st.integers(-40, 150), st.integers(0, 20))
STEPS = st.lists(
    st.one_of(
        st.builds(Add, st.lists(KEYS, max_size=8), st.booleans()),
        st.builds(Take, st.integers(-50, 160), st.integers(1, 6)),
    ),
    max_size=25,
)


class Sorted:
    """The naive calendar: a set of keys, sorted each time; `only_here` are the keys that no backlog has."""

    def __init__(self) -> None:
        self.keys: set[DueKey] = set()
        self.only_here: set[DueKey] = set()

    def add(self, step: Add) -> None:
        self.keys.update(step.keys)
        if step.only_here:
            self.only_here.update(step.keys)

    def take(self, step: Take) -> list[DueKey]:
        taken = sorted(key for key in self.keys if key.due_ms <= step.until_ms)[: step.limit]
        self.keys.difference_update(taken)
        self.only_here.difference_update(taken)
        return taken


def apply(calendar: Calendar, expected: Sorted, step: Add | Take) -> tuple[list[DueKey], list[DueKey]]:
    """Return what both give out for a step."""
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
def test_nothing_holds_back_the_offset_when_a_backlog_has_everything(steps: list[Add | Take]) -> None:
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
