"""Turns to start relays anew: few at once, taken by what is written, given back by what is not."""

from __future__ import annotations

from tests.support.operator.scenes import CONFIG, NOW_MS
from tests.unit.operator.scaling.steps import OLD_CLASS, Reconciliation, growing

from delaytopic_operator.execute.ledgers import MOST_FAILED, ROLLOUT_BEGINS_MS, NoTurn, RolloutLimiter
from delaytopic_operator.model.reconciliation import Key

A, B, C = (Key("shop", name) for name in "abc")
NOBODY: frozenset[Key] = frozenset()


def test_no_more_start_at_once_than_may() -> None:
    ledger = RolloutLimiter(2)

    answers = [ledger.reserve(key, NOBODY, NOW_MS) for key in (A, B, C)]

    assert answers == [None, None, NoTurn(frozenset({A, B}))]


def test_those_that_are_seen_to_start_have_a_turn_too() -> None:
    ledger = RolloutLimiter(2)

    answers = [ledger.reserve(key, frozenset([B]), NOW_MS) for key in (A, B, C)]

    assert answers == [None, None, NoTurn(frozenset({A, B}))]


def test_a_turn_that_was_given_back_is_anothers() -> None:
    ledger = RolloutLimiter(1)
    ledger.reserve(A, NOBODY, NOW_MS)

    ledger.release(A)

    assert ledger.reserve(B, NOBODY, NOW_MS) is None


def test_a_turn_that_never_shows_in_the_cluster_ends() -> None:
    ledger = RolloutLimiter(1)
    ledger.reserve(A, NOBODY, NOW_MS)

    answers = [ledger.reserve(B, NOBODY, NOW_MS + late_ms) for late_ms in (ROLLOUT_BEGINS_MS - 1, ROLLOUT_BEGINS_MS)]

    assert answers == [NoTurn(frozenset({A})), None]


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


SOME = frozenset(Key("shop", f"failing-{number}") for number in range(MOST_FAILED))
LATER_MS = NOW_MS + 600_000


def after_failures() -> RolloutLimiter:
    """Some had a turn, and Kubernetes gave up on them."""
    limiter = RolloutLimiter(CONFIG.rollouts)
    for key in SOME:
        assert limiter.reserve(key, NOBODY, NOW_MS) is None
    return limiter


def test_nobody_starts_anew_after_a_few_that_did_not_become_ready() -> None:
    limiter = after_failures()

    assert limiter.reserve(A, NOBODY, LATER_MS, stuck=SOME) == NoTurn(NOBODY, SOME)


def test_one_that_did_not_become_ready_may_try_what_was_set_right() -> None:
    limiter = after_failures()
    again = next(iter(SOME))

    assert [limiter.reserve(key, NOBODY, LATER_MS, stuck=SOME) for key in (A, again)] == [NoTurn(NOBODY, SOME), None]


def test_all_go_on_when_one_of_them_has_become_ready() -> None:
    limiter = after_failures()
    first = next(iter(SOME))
    answers = [limiter.reserve(A, NOBODY, LATER_MS, stuck=SOME)]
    answers.append(limiter.reserve(first, NOBODY, LATER_MS, stuck=SOME))

    answers.append(limiter.reserve(A, frozenset([first]), LATER_MS + 1, stuck=SOME - {first}))
    answers.append(limiter.reserve(A, NOBODY, LATER_MS + ROLLOUT_BEGINS_MS, stuck=SOME - {first}))

    stopped = NoTurn(NOBODY, SOME)
    assert answers == [stopped, None, NoTurn(frozenset([first]), SOME), None]


def test_those_that_fail_between_others_that_do_not_stop_nobody() -> None:
    limiter = RolloutLimiter(CONFIG.rollouts)
    stuck: frozenset[Key] = NOBODY
    answers = []
    for number in range(10):
        fine, failing = Key("shop", f"fine-{number}"), Key("shop", f"failing-{number}")
        answers += [limiter.reserve(key, NOBODY, NOW_MS + number * 600_000, stuck) for key in (fine, failing)]
        stuck |= {failing}

    assert answers == [None] * 20


def test_changes_that_authors_made_and_that_fail_stop_nobody() -> None:
    limiter = RolloutLimiter(CONFIG.rollouts)

    assert limiter.reserve(A, NOBODY, NOW_MS, stuck=SOME) is None


def test_a_delay_topic_whose_rollout_is_stopped_says_so_and_what_to_do() -> None:
    reconciliation = Reconciliation(growing(secrets_version="another", status=OLD_CLASS, stuck=SOME))
    for key in SOME:
        reconciliation.rollouts.reserve(key, NOBODY, NOW_MS - 600_000)

    failure = reconciliation.run()

    (told,) = [each for each in reconciliation.plans[-1].conditions if each.type == "RelayAvailable"]
    assert (failure, reconciliation.kube.written, told.status, told.reason) == (None, [], "True", "RolloutStopped")
    assert "3 other DelayTopics" in told.message
    assert "failing" not in told.message, "names of others' DelayTopics are none of its author's business"
