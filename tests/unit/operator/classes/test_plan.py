"""Decisions about a DelayClass: its status, and its protection while it is used."""

from __future__ import annotations

from typing import Any

import pytest

from delaytopic_operator.classes.plan import ClassObservation, ClassPlan, class_finalizer, plan_class
from delaytopic_operator.config import OperatorConfig
from delaytopic_operator.model.conditions import instant
from delaytopic_operator.model.reconciliation import Key
from delaytopic_operator.model.transitions import Event
from delaytopic_operator.observe.observation import Problem

NOW_MS = 1_795_269_686_000
CONFIG = OperatorConfig(namespace="delays")
OF_SHOP = CONFIG.model_copy(update={"watch_namespaces": ["shop"]})
NEXT_MS = NOW_MS + CONFIG.poll.ms
MINE = "delays.delaytopic.dev/in-use"
FINE = "Secrets are there, and its servers answer"
ONE = frozenset({Key("shop", "reminders")})
MISSING = Problem("SecretMissing", "the Secret delays/kafka does not exist; create it with the key password")
AWAY = Problem("KafkaUnreachable", "Kafka at kafka:9092 did not answer, asked again in 7 s", passing=True)


def condition(type: str, status: str, reason: str, message: str = FINE, at_ms: int = NOW_MS) -> dict[str, Any]:
    return {
        "type": type,
        "status": status,
        "observedGeneration": 2,
        "lastTransitionTime": instant(at_ms),
        "reason": reason,
        "message": message,
    }


ACCEPTED = condition("Accepted", "True", "Accepted")


def status(*conditions: dict[str, Any], users: int = 0, operator: str = "delays") -> dict[str, Any]:
    return {"observedGeneration": 2, "conditions": [*conditions], "users": users, "operator": operator}


def seen(
    users: frozenset[Key] = frozenset(),
    problem: Problem | None = None,
    live: dict[str, Any] | None = None,
    *,
    finalizers: tuple[str, ...] = (),
    going: bool = False,
    config: OperatorConfig = CONFIG,
) -> ClassObservation:
    metadata: dict[str, Any] = {"name": "standard", "uid": "u1", "generation": 2, "finalizers": [*finalizers]}
    if going:
        metadata["deletionTimestamp"] = instant(NOW_MS)
    document = {"metadata": metadata, "spec": {}, **({"status": live} if live else {})}
    return ClassObservation("standard", NOW_MS, config, document, users, problem)


def written(plan: ClassPlan) -> Any:
    return plan.status["status"] if plan.status is not None else None


def test_a_class_that_is_gone_is_left_alone() -> None:
    assert plan_class(ClassObservation("standard", NOW_MS, CONFIG, None)) == ClassPlan()


@pytest.mark.parametrize(
    ("problem", "expected"),
    [
        (None, ACCEPTED),
        (MISSING, condition("Accepted", "False", "SecretMissing", MISSING.message)),
        (AWAY, condition("Accepted", "Unknown", "KafkaUnreachable", AWAY.message)),
    ],
    ids=["nothing is wrong", "a person has to act", "servers are away"],
)
def test_the_status_says_what_is_wrong_and_how_many_use_it(problem: Problem | None, expected: dict[str, Any]) -> None:
    plan = plan_class(seen(ONE, problem))

    assert plan.status == {
        "apiVersion": "delaytopic.dev/v1beta1",
        "kind": "DelayClass",
        "metadata": {"name": "standard", "uid": "u1"},
        "status": status(expected, users=1),
    }
    assert plan.next_at_ms == NEXT_MS


@pytest.mark.parametrize(
    ("live", "problem", "writes"),
    [
        (status(ACCEPTED), None, False),
        (status(ACCEPTED, users=1), None, True),
        (status(ACCEPTED), MISSING, True),
        (status(condition("Accepted", "Unknown", "KafkaUnreachable", "asked again in 3 s")), AWAY, False),
        (status(condition("Accepted", "False", "SecretMissing", "another Secret is missing")), MISSING, True),
        ({**status(ACCEPTED), "observedGeneration": 1}, None, True),
    ],
    ids=["nothing new", "a user less", "a Secret is gone", "words about silence", "other words", "another generation"],
)
def test_it_is_written_when_it_says_something_new(live: dict[str, Any], problem: Problem | None, writes: bool) -> None:
    assert (plan_class(seen(problem=problem, live=live)).status is not None) is writes


def test_the_time_of_the_last_transition_stays_while_the_condition_does() -> None:
    since = condition("Accepted", "True", "Accepted", at_ms=NOW_MS - 60_000)

    assert written(plan_class(seen(ONE, live=status(since)))) == status(since, users=1)


@pytest.mark.parametrize(
    ("users", "finalizers", "going", "held"),
    [
        (ONE, (), False, True),
        (ONE, (MINE,), False, None),
        (ONE, ("other.delaytopic.dev/in-use",), False, True),
        (frozenset(), (MINE,), False, False),
        (frozenset(), (), False, None),
        (frozenset(), ("other.delaytopic.dev/in-use",), False, None),
        (ONE, (MINE,), True, None),
        (ONE, (), True, None),
        (frozenset(), (MINE,), True, False),
    ],
    ids=[
        "first user",
        "used and held",
        "held by another operator",
        "last user gone",
        "unused",
        "used by others",
        "deleted while used",
        "deleted with others' finalizers only",
        "deleted, last user gone",
    ],
)
def test_a_class_is_held_while_it_is_used(
    users: frozenset[Key], finalizers: tuple[str, ...], going: bool, held: bool | None
) -> None:
    assert plan_class(seen(users, finalizers=finalizers, going=going)).held is held


def test_a_class_that_may_go_gets_no_status_any_more() -> None:
    assert plan_class(seen(finalizers=(MINE,), going=True)) == ClassPlan(held=False)


@pytest.mark.parametrize(
    ("users", "who"),
    [
        (ONE, "1 DelayTopic uses it: shop/reminders"),
        (
            frozenset(Key("shop", f"topic-{number}") for number in range(7)),
            "7 DelayTopics use it: shop/topic-0, shop/topic-1, shop/topic-2, shop/topic-3, shop/topic-4 and 2 more",
        ),
    ],
    ids=["one", "many"],
)
def test_a_deletion_that_waits_is_told_with_its_reason_once(users: frozenset[Key], who: str) -> None:
    said = f"{who}. They go on as before; the class goes once they are deleted and their relays are stopped"
    blocked = condition("DeletionBlocked", "True", "InUse", said)
    before = status(ACCEPTED, users=len(users))

    first = plan_class(seen(users, live=before, finalizers=(MINE,), going=True))
    again = plan_class(seen(users, live=written(first), finalizers=(MINE,), going=True))

    assert written(first) == status(ACCEPTED, blocked, users=len(users))
    assert first.events == [Event("Warning", "DeletionBlocked", said)]
    assert again == ClassPlan(next_at_ms=NEXT_MS)


@pytest.mark.parametrize(
    ("live", "problem", "events"),
    [
        (None, None, []),
        (None, MISSING, [Event("Warning", "SecretMissing", MISSING.message)]),
        (status(ACCEPTED), MISSING, [Event("Warning", "SecretMissing", MISSING.message)]),
        (status(ACCEPTED), AWAY, [Event("Warning", "KafkaUnreachable", AWAY.message)]),
        (status(condition("Accepted", "False", "SecretMissing")), None, [Event("Normal", "Accepted", FINE)]),
    ],
    ids=["fine at first", "wrong at first", "wrong", "away", "fine again"],
)
def test_changes_of_the_condition_are_events(
    live: dict[str, Any] | None, problem: Problem | None, events: list[Event]
) -> None:
    assert [*plan_class(seen(problem=problem, live=live)).events] == events


@pytest.mark.parametrize(
    ("config", "live", "users", "writes"),
    [
        (CONFIG, None, frozenset(), True),
        (OF_SHOP, None, frozenset(), False),
        (OF_SHOP, None, ONE, True),
        (OF_SHOP, status(ACCEPTED, users=1), frozenset(), True),
        (CONFIG, status(ACCEPTED, users=3, operator="other"), ONE, False),
        (CONFIG, status(ACCEPTED, users=0, operator="other"), ONE, True),
        (CONFIG, status(ACCEPTED, users=0, operator="other"), frozenset(), False),
    ],
    ids=[
        "nobody's, all namespaces",
        "nobody's, some namespaces",
        "nobody's, used here",
        "its own, used no more",
        "another's",
        "another's that uses it no more",
        "another's, used by nobody",
    ],
)
def test_of_operators_that_share_a_class_one_writes_the_status(
    config: OperatorConfig, live: dict[str, Any] | None, users: frozenset[Key], writes: bool
) -> None:
    assert (plan_class(seen(users, live=live, config=config)).status is not None) is writes


def test_the_finalizer_names_the_operator_that_holds_the_class() -> None:
    assert class_finalizer("delays") == MINE
