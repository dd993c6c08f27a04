from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.support.properties import QUICK

from delaytopic_relay.core.commands import DueKey
from delaytopic_relay.core.id_states import IdEntry
from delaytopic_relay.core.withdrawn import MOST_SPANS, Withdrawn


def counted(withdrawn: Withdrawn, from_ms: int = 0) -> int:
    return sum(records for _, _, records in withdrawn.spans(from_ms))


def test_what_is_withdrawn_counts_by_its_due_time_until_it_has_left() -> None:
    withdrawn = Withdrawn()
    for due_ms in (500, 500, 700):
        withdrawn.add(due_ms)
    withdrawn.left(500)

    assert sorted(withdrawn.spans(0)) == [(500, 1, 1), (700, 1, 1)]


def test_what_leaves_and_was_never_counted_changes_nothing() -> None:
    withdrawn = Withdrawn()
    withdrawn.add(500)
    withdrawn.left(700)

    assert [*withdrawn.spans(0)] == [(500, 1, 1)]


def test_what_was_due_before_is_forgotten() -> None:
    withdrawn = Withdrawn()
    withdrawn.add(500)

    assert (counted(withdrawn, 501), counted(withdrawn, 0)) == (0, 0)


def test_many_due_times_are_kept_in_wider_spans() -> None:
    withdrawn = Withdrawn()
    for due_ms in range(0, 30 * 86_400_000, 60_000):
        withdrawn.add(due_ms)

    spans = [*withdrawn.spans(0)]
    assert len(spans) <= MOST_SPANS
    assert sum(records for _, _, records in spans) == 30 * 24 * 60


@QUICK
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 50)), max_size=50))
def test_the_count_is_never_above_what_waits(events: list[tuple[bool, int]]) -> None:
    """An event withdraws a schedule that waits, or one leaves, which a former relay may have known of alone."""
    withdrawn, waiting = Withdrawn(), dict.fromkeys(range(0, 51, 3), 1)
    for withdraws, due_ms in events:
        if withdraws:
            withdrawn.add(due_ms)
            waiting[due_ms] = waiting.get(due_ms, 0) + 1
        elif waiting.get(due_ms):
            withdrawn.left(due_ms)
            waiting[due_ms] -= 1

    assert all(records <= waiting[due_ms] for due_ms, _, records in withdrawn.spans(0))


def test_an_entry_tells_whether_the_last_schedule_of_its_id_is_in_effect() -> None:
    pending, cancelled = IdEntry(10, 500, 5), IdEntry(13, 500, 5)
    replaced_by_an_earlier_one = IdEntry(14, 500, 5, key=DueKey(300, 7))

    assert [each.outlives_effect for each in (pending, cancelled, replaced_by_an_earlier_one)] == [False, True, True]
