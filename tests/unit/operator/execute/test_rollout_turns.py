"""Turns to start relays anew: few at once, taken by what is written, given back by what is not."""

from __future__ import annotations

from tests.support.operator.scenes import CONFIG, KEY, NOW_MS, altered
from tests.unit.operator.fleet.test_steady import SEEN
from tests.unit.operator.scaling.steps import OLD_CLASS, Reconciliation, growing

from delaytopic_operator.execute.ledgers import CALLED_MS, RolloutLimiter
from delaytopic_operator.model.reconciliation import Key
from delaytopic_operator.model.rollouts import MOST_FAILED, NoTurn, Rollouts
from delaytopic_operator.observe.observation import Observation

A, B, C, D = (Key("shop", name) for name in "abcd")
NOW, NEXT = "relay:1", "relay:2"
NOBODY = Rollouts()
SOME = frozenset(Key("shop", f"failing-{number}") for number in range(MOST_FAILED))
STOPPED = Rollouts(stopped={NEXT: SOME})
OTHERS = frozenset(Key("others", f"rolling-{number}") for number in range(CONFIG.rollouts))
ALL_TAKEN = Rollouts(OTHERS)


def rotated() -> Observation:
    """Observe relays that start anew for a Secret, and all else as it shall be."""
    status = {**SEEN.route.status, "observedGeneration": SEEN.route.metadata["generation"]}
    document = {**(SEEN.route.document or {}), "status": status}
    return altered(SEEN, document=document, secrets_version="another", rollouts=ALL_TAKEN)


def test_no_more_start_at_once_than_may() -> None:
    limiter = RolloutLimiter(2)

    answers = [limiter.reserve(key, NOW, NOBODY, NOW_MS) for key in (A, B, C)]

    assert answers == [None, None, NoTurn(NOW)]


def test_those_that_are_seen_to_start_have_a_turn_too() -> None:
    limiter = RolloutLimiter(2)

    answers = [limiter.reserve(key, NOW, Rollouts(frozenset([B])), NOW_MS) for key in (A, B, C)]

    assert answers == [None, None, NoTurn(NOW)]


def test_relays_of_many_start_while_a_tenth_of_them_has_a_turn_left() -> None:
    rolling = frozenset(Key("others", f"{number}") for number in range(99))
    seen = growing(secrets_version="another", status=OLD_CLASS, rollouts=Rollouts(rolling, fleet=1_000))
    reconciliation = Reconciliation(seen)

    failure = reconciliation.run()

    assert (failure, "Deployment" in reconciliation.kube.written) == (None, True)


def test_a_turn_that_was_given_back_is_anothers() -> None:
    limiter = RolloutLimiter(1)
    limiter.reserve(A, NOW, NOBODY, NOW_MS)

    limiter.release(A)

    assert limiter.reserve(B, NOW, NOBODY, NOW_MS) is None


def test_a_tenth_of_many_start_at_once() -> None:
    limiter = RolloutLimiter(2)
    many = Rollouts(frozenset([B, C]), fleet=21)

    assert [limiter.reserve(key, NOW, many, NOW_MS) for key in (A, D)] == [None, NoTurn(NOW)]


def test_nobody_starts_anew_with_an_image_that_did_others_no_good() -> None:
    assert RolloutLimiter(CONFIG.rollouts).reserve(A, NEXT, STOPPED, NOW_MS) == NoTurn(NEXT, SOME)


def test_those_that_did_not_become_ready_may_try_what_was_set_right() -> None:
    limiter = RolloutLimiter(CONFIG.rollouts)

    assert [limiter.reserve(key, NEXT, STOPPED, NOW_MS) for key in sorted(SOME)] == [None] * MOST_FAILED


def test_another_image_starts_afresh() -> None:
    assert RolloutLimiter(CONFIG.rollouts).reserve(A, "relay:3", STOPPED, NOW_MS) is None


def test_a_start_waits_while_others_have_all_turns_though_none_is_seen_yet() -> None:
    reconciliation = Reconciliation(growing(secrets_version="another", status=OLD_CLASS))
    for number in range(CONFIG.rollouts):
        reconciliation.turns.reserve(Key("others", f"{number}"), NOW, NOBODY, NOW_MS)

    failure = reconciliation.run()

    assert (failure, reconciliation.kube.written) == (None, [])
    assert reconciliation.plans[-1].parts["effective"]["delayClassGeneration"] == 0


def test_a_refused_write_gives_its_turn_back() -> None:
    reconciliation = Reconciliation(growing(secrets_version="another", status=OLD_CLASS))
    reconciliation.kube.refuses = True

    failure = reconciliation.run()

    limiter = reconciliation.turns
    others = [limiter.reserve(Key("others", f"{n}"), NOW, NOBODY, NOW_MS) for n in range(CONFIG.rollouts)]
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

    limiter = reconciliation.turns
    others = [limiter.reserve(Key("others", f"{n}"), NOW, NOBODY, NOW_MS) for n in range(CONFIG.rollouts)]
    assert (failure, "Deployment" in reconciliation.kube.written) == (None, True)
    assert others == [None] * CONFIG.rollouts


def test_turns_that_are_free_call_those_that_have_waited_longest() -> None:
    limiter = RolloutLimiter(2)
    for key in (C, A, D, B):
        limiter.reserve(key, NOW, ALL_TAKEN, NOW_MS)

    called = [[*limiter.call(rollouts, NOW_MS)] for rollouts in (ALL_TAKEN, NOBODY, NOBODY)]

    assert called == [[], [C, A], []]


def test_a_turn_is_kept_for_the_one_that_was_called_for_a_while() -> None:
    limiter = RolloutLimiter(1)
    limiter.reserve(A, NOW, ALL_TAKEN, NOW_MS)
    limiter.call(NOBODY, NOW_MS)

    answers = [limiter.reserve(B, NOW, NOBODY, at_ms) for at_ms in (NOW_MS + CALLED_MS, NOW_MS + CALLED_MS + 1)]

    assert answers == [NoTurn(NOW), None]


def test_one_that_was_called_takes_its_turn() -> None:
    limiter = RolloutLimiter(1)
    limiter.reserve(A, NOW, ALL_TAKEN, NOW_MS)
    limiter.call(NOBODY, NOW_MS)

    assert limiter.reserve(A, NOW, NOBODY, NOW_MS) is None


def test_one_that_needs_no_turn_leaves_the_line_to_others() -> None:
    limiter = RolloutLimiter(1)
    for key in (A, B):
        limiter.reserve(key, NOW, ALL_TAKEN, NOW_MS)

    limiter.forget(A)

    assert limiter.call(NOBODY, NOW_MS) == [B]


def test_one_that_waits_is_not_planned_again_until_it_is_called() -> None:
    reconciliation = Reconciliation(rotated())
    planned = []

    for _ in range(3):
        reconciliation.run()
        planned.append(len(reconciliation.plans))
    reconciliation.turns.call(NOBODY, NOW_MS)
    reconciliation.run()

    assert (planned, len(reconciliation.plans)) == ([1, 1, 1], 2)
    assert reconciliation.kube.written == ["Deployment"]


def test_one_that_waits_is_planned_again_once_its_author_has_edited_it() -> None:
    reconciliation = Reconciliation(rotated())
    reconciliation.run()

    reconciliation.run(altered(rotated(), document={**(SEEN.route.document or {}), "status": {}}))

    assert (len(reconciliation.plans), reconciliation.kube.written) == (2, ["Deployment"])


def test_one_that_waits_says_so_when_rollouts_are_stopped_and_waits_on() -> None:
    reconciliation = Reconciliation(rotated())
    reconciliation.run()
    stopped = Rollouts(OTHERS, stopped={CONFIG.images.relay: SOME})
    reconciliation.seen = altered(rotated(), rollouts=stopped)

    for _ in range(2):
        reconciliation.run()

    told = [each.reason for plan in reconciliation.plans for each in plan.conditions if each.type == "RelayAvailable"]
    assert told == ["RelaysReady", "RolloutStopped"]


def test_one_that_waits_is_planned_again_once_a_stop_is_over() -> None:
    stopped = Rollouts(stopped={CONFIG.images.relay: SOME})
    reconciliation = Reconciliation(altered(rotated(), rollouts=stopped))
    reconciliation.run()
    reconciliation.seen = altered(rotated(), rollouts=NOBODY)

    reconciliation.run()

    assert reconciliation.kube.written == ["Deployment"]


def test_whoever_reconciles_calls_those_for_whom_a_turn_is_free() -> None:
    reconciliation = Reconciliation(SEEN)
    for key in (A, B):
        reconciliation.turns.reserve(key, NOW, ALL_TAKEN, NOW_MS)

    reconciliation.run()

    assert (reconciliation.called, KEY in reconciliation.called) == ([A, B], False)
