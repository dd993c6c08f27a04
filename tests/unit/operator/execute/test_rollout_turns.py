"""Turns to start relays anew: few at once, taken by what is written, given back by what is not."""

from __future__ import annotations

from tests.support.operator.scenes import CONFIG, NOW_MS
from tests.unit.operator.scaling.steps import OLD_CLASS, Reconciliation, growing

from delaytopic_operator.execute.ledgers import ROLLOUT_BEGINS_MS, RolloutLimiter
from delaytopic_operator.model.reconciliation import Key

A, B, C = (Key("shop", name) for name in "abc")
NOBODY: frozenset[Key] = frozenset()


def test_no_more_start_at_once_than_may() -> None:
    ledger = RolloutLimiter(2)

    answers = [ledger.reserve(key, NOBODY, NOW_MS) for key in (A, B, C)]

    assert answers == [None, None, {A, B}]


def test_those_that_are_seen_to_start_have_a_turn_too() -> None:
    ledger = RolloutLimiter(2)

    answers = [ledger.reserve(key, frozenset([B]), NOW_MS) for key in (A, B, C)]

    assert answers == [None, None, {A, B}]


def test_a_turn_that_was_given_back_is_anothers() -> None:
    ledger = RolloutLimiter(1)
    ledger.reserve(A, NOBODY, NOW_MS)

    ledger.release(A)

    assert ledger.reserve(B, NOBODY, NOW_MS) is None


def test_a_turn_that_never_shows_in_the_cluster_ends() -> None:
    ledger = RolloutLimiter(1)
    ledger.reserve(A, NOBODY, NOW_MS)

    answers = [ledger.reserve(B, NOBODY, NOW_MS + late_ms) for late_ms in (ROLLOUT_BEGINS_MS - 1, ROLLOUT_BEGINS_MS)]

    assert answers == [{A}, None]


def test_a_start_waits_while_others_have_all_turns_though_none_is_seen_yet() -> None:
    reconciliation = Reconciliation(growing(secrets_version="another", status=OLD_CLASS))
    for number in range(CONFIG.rollouts):
        reconciliation.rollouts.reserve(Key("others", f"{number}"), NOBODY, NOW_MS)

    failure = reconciliation.run()

    assert (failure, reconciliation.kube.written) == (None, [])
    assert reconciliation.plans[-1].parts["effective"]["delayClassGeneration"] == 0


def test_a_refused_write_gives_its_turn_back() -> None:
    reconciliation = Reconciliation(growing(secrets_version="another", status=OLD_CLASS))
    reconciliation.kube.refuses = True

    failure = reconciliation.run()

    others = [reconciliation.rollouts.reserve(Key("others", f"{n}"), NOBODY, NOW_MS) for n in range(CONFIG.rollouts)]
    assert str(failure) == "no more pods for this team"
    assert others == [None] * CONFIG.rollouts
