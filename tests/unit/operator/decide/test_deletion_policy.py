"""Tests of what happens next to a DelayTopic that is being deleted, from the policy and from what is so."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from delaytopic_api.values import DeletionPolicy
from delaytopic_operator.decide.deletion_policy import GRACE_MS, NOTICE_MS, Going, Step, deadline_ms, next_step

DRAIN, RETAIN, DELETE = DeletionPolicy.DRAIN, DeletionPolicy.RETAIN, DeletionPolicy.DELETE
NOW_MS = 1_000_000_000
TIMEOUT_MS = 900_000
USUAL = Going(
    policy=DRAIN,
    deleted_ms=NOW_MS,
    drain_timeout_ms=TIMEOUT_MS,
    namespace_terminates=False,
    with_namespace=False,
    confirmed=False,
    has_relays=True,
    stoppable=True,
    pending=5,
    at_first=None,
    retained=False,
    unreachable_since_ms=None,
)
OVER = {"deleted_ms": NOW_MS - TIMEOUT_MS}
LONG_AGO = NOW_MS - GRACE_MS
LATEST = "1970-01-12T14:01:40Z at the latest"

CASES: list[tuple[str, DeletionPolicy, dict[str, Any], Step, str, str]] = [
    (
        "something is pending",
        DRAIN,
        {},
        Step.DRAIN,
        "Draining",
        f"5 pending records leave at their own time, until {LATEST}",
    ),
    ("it is not known what is", DRAIN, {"pending": None}, Step.DRAIN, "Draining", "unknown how many"),
    ("near the deadline", DRAIN, {"deleted_ms": NOW_MS - TIMEOUT_MS + NOTICE_MS}, Step.DRAIN, "DrainTimeoutNear", ""),
    ("nothing is pending", DRAIN, {"pending": 0}, Step.FINISH, "DrainCompleted", "delivered at its own time"),
    ("nothing, too late", DRAIN, {"pending": 0, **OVER}, Step.FINISH, "DrainCompleted", ""),
    ("too late", DRAIN, OVER, Step.RETAIN, "BacklogRetained", "drainTimeout is over: 5 pending records stay"),
    (
        "too late, at first",
        DRAIN,
        {**OVER, "pending": None, "at_first": 7},
        Step.RETAIN,
        "BacklogRetained",
        "at most 7",
    ),
    ("no time at all", DRAIN, {"drain_timeout_ms": 0}, Step.RETAIN, "BacklogRetained", "drainTimeout is over"),
    ("no relays", DRAIN, {"has_relays": False}, Step.RETAIN, "BacklogRetained", "there are no relays"),
    ("written down", DRAIN, {"retained": True}, Step.RETAIN, "BacklogRetained", "until the same object is applied"),
    ("cut off for a moment", DRAIN, {"unreachable_since_ms": LONG_AGO + 1}, Step.DRAIN, "Draining", ""),
    ("cut off for long", DRAIN, {"unreachable_since_ms": LONG_AGO}, Step.RETAIN, "BacklogRetained", "cut off"),
    ("with its namespace", DRAIN, {"namespace_terminates": True}, Step.HAND_OVER, "Draining", "deliver 5 pending"),
    (
        "with namespace and relays",
        DRAIN,
        {"namespace_terminates": True, "with_namespace": True},
        Step.RETAIN,
        "BacklogRetained",
        "and the relays with it",
    ),
    ("retain", RETAIN, {}, Step.RETAIN, "BacklogRetained", "5 pending records stay"),
    ("not confirmed", DELETE, {}, Step.CONFIRM, "ConfirmationMissing", "delaytopic.dev/confirm-delete"),
    ("nothing pending, not confirmed", DELETE, {"pending": 0}, Step.CONFIRM, "ConfirmationMissing", ""),
    ("not confirmed, the namespace goes", DELETE, {"namespace_terminates": True}, Step.RETAIN, "BacklogRetained", ""),
    (
        "confirmed, the namespace goes",
        DELETE,
        {"namespace_terminates": True, "confirmed": True},
        Step.RETAIN,
        "BacklogRetained",
        "the namespace goes",
    ),
    ("confirmed, relays run", DELETE, {"confirmed": True}, Step.STOP, "Stopping", "before 5 pending records"),
    ("confirmed", DELETE, {"confirmed": True, "stoppable": False}, Step.PURGE, "BacklogRemoved", "5 pending"),
    (
        "confirmed, cut off for long",
        DELETE,
        {"confirmed": True, "stoppable": False, "unreachable_since_ms": LONG_AGO},
        Step.RETAIN,
        "BacklogRetained",
        "cut off",
    ),
]


@pytest.mark.parametrize(("what", "policy", "changes", "step", "reason", "words"), CASES, ids=[c[0] for c in CASES])
def test_the_step_follows_from_the_policy_and_what_is_so(
    what: str, policy: DeletionPolicy, changes: dict[str, Any], step: Step, reason: str, words: str
) -> None:
    decided = next_step(replace(USUAL, policy=policy, **changes), NOW_MS)

    assert (decided.step, decided.reason) == (step, reason)
    assert words in decided.message


GOING = st.builds(
    Going,
    policy=st.sampled_from(DeletionPolicy),
    deleted_ms=st.integers(NOW_MS - 2 * TIMEOUT_MS, NOW_MS),
    drain_timeout_ms=st.integers(0, TIMEOUT_MS),
    namespace_terminates=st.booleans(),
    with_namespace=st.booleans(),
    confirmed=st.booleans(),
    has_relays=st.booleans(),
    stoppable=st.booleans(),
    pending=st.none() | st.integers(0, 9),
    at_first=st.none() | st.integers(0, 9),
    retained=st.booleans(),
    unreachable_since_ms=st.none() | st.integers(NOW_MS - 2 * GRACE_MS, NOW_MS),
)


@given(GOING)
def test_nothing_is_removed_but_with_the_policy_delete_and_a_confirmation(going: Going) -> None:
    decided = next_step(going, NOW_MS)

    if decided.step in (Step.PURGE, Step.STOP):
        assert going.policy is DELETE
        assert going.confirmed
        assert not going.namespace_terminates


@given(GOING)
def test_a_namespace_that_goes_is_never_held(going: Going) -> None:
    assert next_step(replace(going, namespace_terminates=True), NOW_MS).ends


@given(GOING)
def test_a_drain_ends_by_its_deadline(going: Going) -> None:
    drain = replace(going, policy=DRAIN)

    assert next_step(drain, deadline_ms(drain)).ends


@given(GOING, st.integers(0, 2 * GRACE_MS))
def test_what_may_go_now_may_go_later(going: Going, later_ms: int) -> None:
    if next_step(going, NOW_MS).ends:
        assert next_step(going, NOW_MS + later_ms).ends
