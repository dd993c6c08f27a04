"""Turns to start relays anew: few at once, taken by what is written, given back by what is not."""

from __future__ import annotations

from tests.support.operator.scenes import CONFIG
from tests.unit.operator.scaling.steps import OLD_CLASS, Reconciliation, growing

from delaytopic_operator.execute.ledgers import NoTurn, RolloutLimiter
from delaytopic_operator.model.reconciliation import Key
from delaytopic_operator.model.rollouts import MOST_FAILED, Rollouts

A, B, C, D = (Key("shop", name) for name in "abcd")
NOW, NEXT = "relay:1", "relay:2"
NOBODY = Rollouts()
SOME = frozenset(Key("shop", f"failing-{number}") for number in range(MOST_FAILED))
STOPPED = Rollouts(stopped={NEXT: SOME})


def test_no_more_start_at_once_than_may() -> None:
    limiter = RolloutLimiter(2)

    answers = [limiter.reserve(key, NOW, NOBODY) for key in (A, B, C)]

    assert answers == [None, None, NoTurn(frozenset({A, B}))]


def test_those_that_are_seen_to_start_have_a_turn_too() -> None:
    limiter = RolloutLimiter(2)

    answers = [limiter.reserve(key, NOW, Rollouts(frozenset([B]))) for key in (A, B, C)]

    assert answers == [None, None, NoTurn(frozenset({A, B}))]


def test_relays_of_many_start_while_a_tenth_of_them_has_a_turn_left() -> None:
    rolling = frozenset(Key("others", f"{number}") for number in range(99))
    seen = growing(
        secrets_version="another", status=OLD_CLASS, rolling=rolling, rollouts=Rollouts(rolling, fleet=1_000)
    )
    reconciliation = Reconciliation(seen)

    failure = reconciliation.run()

    assert (failure, "Deployment" in reconciliation.kube.written) == (None, True)


def test_a_turn_that_was_given_back_is_anothers() -> None:
    limiter = RolloutLimiter(1)
    limiter.reserve(A, NOW, NOBODY)

    limiter.release(A)

    assert limiter.reserve(B, NOW, NOBODY) is None


def test_a_tenth_of_many_start_at_once() -> None:
    limiter = RolloutLimiter(2)
    many = Rollouts(frozenset([B, C]), fleet=21)

    assert [limiter.reserve(key, NOW, many) for key in (A, D)] == [None, NoTurn(frozenset({A, B, C}))]


def test_nobody_starts_anew_with_an_image_that_did_others_no_good() -> None:
    assert RolloutLimiter(CONFIG.rollouts).reserve(A, NEXT, STOPPED) == NoTurn(frozenset(), SOME)


def test_those_that_did_not_become_ready_may_try_what_was_set_right() -> None:
    limiter = RolloutLimiter(CONFIG.rollouts)

    assert [limiter.reserve(key, NEXT, STOPPED) for key in sorted(SOME)] == [None] * MOST_FAILED


def test_another_image_starts_afresh() -> None:
    assert RolloutLimiter(CONFIG.rollouts).reserve(A, "relay:3", STOPPED) is None


def test_a_start_waits_while_others_have_all_turns_though_none_is_seen_yet() -> None:
    reconciliation = Reconciliation(growing(secrets_version="another", status=OLD_CLASS))
    for number in range(CONFIG.rollouts):
        reconciliation.rollouts.reserve(Key("others", f"{number}"), NOW, NOBODY)

    failure = reconciliation.run()

    assert (failure, reconciliation.kube.written) == (None, [])
    assert reconciliation.plans[-1].parts["effective"]["delayClassGeneration"] == 0


def test_a_refused_write_gives_its_turn_back() -> None:
    reconciliation = Reconciliation(growing(secrets_version="another", status=OLD_CLASS))
    reconciliation.kube.refuses = True

    failure = reconciliation.run()

    limiter = reconciliation.rollouts
    others = [limiter.reserve(Key("others", f"{n}"), NOW, NOBODY) for n in range(CONFIG.rollouts)]
    assert str(failure) == "no more pods for this team"
    assert others == [None] * CONFIG.rollouts


def test_a_delay_topic_whose_rollout_is_stopped_says_so_and_what_to_do() -> None:
    rollouts = Rollouts(stopped={CONFIG.images.relay: SOME})
    reconciliation = Reconciliation(growing(secrets_version="another", status=OLD_CLASS, rollouts=rollouts))

    failure = reconciliation.run()

    (told,) = [each for each in reconciliation.plans[-1].conditions if each.type == "RelayAvailable"]
    assert (failure, reconciliation.kube.written, told.status, told.reason) == (None, [], "True", "RolloutStopped")
    assert "3 other DelayTopics" in told.message
    assert "failing" not in told.message, "names of others' DelayTopics are none of its author's business"


def test_a_turn_is_over_for_the_limiter_once_its_deployment_is_written() -> None:
    reconciliation = Reconciliation(growing(secrets_version="another", status=OLD_CLASS))

    failure = reconciliation.run()

    limiter = reconciliation.rollouts
    others = [limiter.reserve(Key("others", f"{n}"), NOW, NOBODY) for n in range(CONFIG.rollouts)]
    assert (failure, "Deployment" in reconciliation.kube.written) == (None, True)
    assert others == [None] * CONFIG.rollouts
