from __future__ import annotations

from collections.abc import Sequence

import pytest

from delaytopic_relay.core.membership import HAND_OVER_MS, Answer, Step, Unowned, next_step


@pytest.mark.parametrize(
    ("heard", "step"),
    [
        ([], Step.GO_ON),
        ([Answer.PASSING], Step.GO_ON),
        ([Answer.OFFSET_GONE], Step.RECOVER),
        ([Answer.UNKNOWN_MEMBER], Step.JOIN_AGAIN),
        ([Answer.FENCED], Step.JOIN_WITHOUT_NAME),
        ([Answer.PASSING, Answer.OFFSET_GONE], Step.RECOVER),
        # Whoever has lost its place has nothing left to recover.
        ([Answer.UNKNOWN_MEMBER, Answer.OFFSET_GONE], Step.JOIN_AGAIN),
        ([Answer.FENCED, Answer.OFFSET_GONE, Answer.PASSING], Step.JOIN_WITHOUT_NAME),
        # Two relays that took one name from each other in turn would do so for ever.
        ([Answer.FENCED, Answer.UNKNOWN_MEMBER], Step.JOIN_WITHOUT_NAME),
    ],
)
def test_a_member_does_what_the_gravest_of_what_it_heard_asks_for(heard: Sequence[Answer], step: Step) -> None:
    assert next_step(heard) is step
    assert next_step([*reversed(heard)]) is step


def test_each_answer_has_its_step() -> None:
    assert {heard: next_step([heard]) for heard in Answer}.keys() == set(Answer)


@pytest.mark.parametrize(
    ("looks", "lasts"),
    [
        ([(0, {1}), (HAND_OVER_MS - 1, {1})], False),
        ([(0, {1}), (HAND_OVER_MS, {1})], True),
        ([(0, {1}), (HAND_OVER_MS, {2})], True),
        # Whoever has left and joined again looks at another distribution, which is handed over in its turn.
        ([(0, {1}), (HAND_OVER_MS, {1}), (HAND_OVER_MS + 1, {1})], False),
        ([(0, {1}), (HAND_OVER_MS, {1}), (HAND_OVER_MS + 1, {1}), (2 * HAND_OVER_MS + 1, {1})], True),
        # It was a hand-over, and so is what came after it.
        ([(0, {1}), (1, set()), (HAND_OVER_MS, {1})], False),
        ([(0, set()), (HAND_OVER_MS, set())], False),
    ],
)
def test_partitions_without_an_owner_are_waited_for_as_long_as_a_hand_over_may_take(
    looks: Sequence[tuple[int, set[int]]], lasts: bool
) -> None:
    unowned = Unowned()

    assert [unowned.lasts(partitions, now_ms) for now_ms, partitions in looks][-1] is lasts
