"""Turns of jobs: by namespaces, one after the other, however many jobs one of them asks for."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from delaytopic_gateway.jobs.turns import MOST_AT_A_TIME, OF_ONE_NAMESPACE, SLICE_S, Turns


def waiting(*keys: str) -> Turns:
    """Return turns for which these wait; the first letter of a key is its namespace."""
    turns = Turns()
    for number, key in enumerate(keys):
        turns.wait(key, key[0], number / 1_000)
    return turns


def given_at(turns: Turns, now_s: float) -> list[str]:
    found = []
    while (key := turns.next(now_s)) is not None:
        found.append(key)
    return found


def test_namespaces_have_turns_one_after_the_other_and_none_has_all() -> None:
    assert given_at(waiting("a1", "a2", "a3", "a4", "b1", "c1"), 1) == ["a1", "b1", "c1", "a2"]
    assert given_at(waiting("a1", "a2", "a3", "a4"), 1) == ["a1", "a2"]


def test_who_leaves_makes_room_for_another_namespace_first() -> None:
    turns = waiting("a1", "a2", "a3", "b1", "b2", "b3", "c1")
    first = given_at(turns, 1)
    turns.leave("a1")

    assert (first, given_at(turns, 1)) == (["a1", "b1", "c1", "a2"], ["b2"])


def test_one_that_is_put_off_has_no_turn_before_its_time_and_holds_none() -> None:
    turns = waiting("a1", "b1")
    given_at(turns, 1)
    turns.wait("a1", "a", 5)

    assert (given_at(turns, 4.9), given_at(turns, 5)) == ([], ["a1"])


def test_a_job_that_had_its_turn_yields_to_another_namespace_and_to_no_other() -> None:
    turns = waiting("a1", "a2", "b1", "b2")
    given_at(turns, 1)
    alone = turns.should_yield("a1", 1 + SLICE_S)
    turns.wait("a3", "a", 1)
    among_its_own = turns.should_yield("a1", 1 + SLICE_S)
    turns.wait("c1", "c", 2)

    told = [turns.should_yield("a1", now_s) for now_s in (1.9, SLICE_S, 1 + SLICE_S)]
    assert (alone, among_its_own, told) == (False, False, [False, False, True])


@given(st.lists(st.tuples(st.integers(0, 5), st.sampled_from(["wait", "leave", "next", "put off"])), max_size=80))
def test_never_more_work_than_there_are_turns(steps: list[tuple[int, str]]) -> None:
    turns, working, now_s = Turns(), dict[str, str](), 0.0
    for number, (drawn, step) in enumerate(steps):
        now_s += 1
        if step == "wait":
            turns.wait(f"{drawn}-{number}", str(drawn), now_s)
        elif step == "next" and (key := turns.next(now_s)) is not None:
            working[key] = key[0]
        elif working and step in ("leave", "put off"):
            key = sorted(working)[drawn % len(working)]
            namespace = working.pop(key)
            if step == "leave":
                turns.leave(key)
            else:
                turns.wait(key, namespace, now_s + drawn)
        assert len(working) <= MOST_AT_A_TIME
        assert all(each <= OF_ONE_NAMESPACE for each in Counter(working.values()).values())
