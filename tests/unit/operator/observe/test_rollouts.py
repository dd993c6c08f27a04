"""Tests of which relays start anew, as Deployments come, change and go."""

from __future__ import annotations

from itertools import count
from typing import Any

from tests.support.operator.scenes import NOW_MS

from delaytopic_operator.kube.object_cache import ObjectCache
from delaytopic_operator.model.conditions import instant
from delaytopic_operator.model.reconciliation import Key
from delaytopic_operator.model.rollouts import MOST_FAILED, Rollouts
from delaytopic_operator.observe.rollouts import RolloutTracker
from delaytopic_operator.resources.identity import IN_TURN

VERSIONS = count(1)


MINUTE_MS = 60_000


def deployment(
    name: str,
    *,
    rolling: bool = False,
    progressing: str = "True",
    image: str = "relay:1",
    at_ms: int = NOW_MS,
    in_turn: bool = False,
) -> dict[str, Any]:
    labels = {"delaytopic.dev/namespace": "shop", "delaytopic.dev/name": name}
    metadata = {"namespace": "platform", "name": name, "labels": labels, "generation": 2}
    metadata["resourceVersion"] = str(next(VERSIONS))
    metadata["annotations"] = {IN_TURN: "true"} if in_turn else {}
    said = {"type": "Progressing", "status": progressing, "lastUpdateTime": instant(at_ms)}
    status = {
        "observedGeneration": 2,
        "replicas": 2 if rolling else 1,
        "updatedReplicas": 1,
        "conditions": [{"type": "Available", "status": "True"}, said],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata,
        "spec": {"replicas": 1, "template": {"spec": {"containers": [{"image": image}]}}},
        "status": status,
    }


def test_those_that_roll_are_known_until_they_are_through_or_gone() -> None:
    store = ObjectCache("platform")
    book = RolloutTracker(store)
    found = [book.rollouts().rolling]

    for name in ("a", "b", "c"):
        store.put(deployment(name, rolling=name != "c"))
    found.append(book.rollouts().rolling)
    store.put(deployment("a", rolling=False))
    found.append(book.rollouts().rolling)
    store.remove(deployment("b", rolling=True))
    found.append(book.rollouts().rolling)

    assert found == [frozenset(), {Key("shop", "a"), Key("shop", "b")}, {Key("shop", "b")}, frozenset()]


def test_one_whose_pods_do_not_start_is_counted_until_kubernetes_gives_up() -> None:
    store = ObjectCache("platform")
    book = RolloutTracker(store)

    store.put(deployment("a", rolling=True))
    before = book.rollouts().rolling
    store.put(deployment("a", rolling=True, progressing="False"))
    given_up = book.rollouts().rolling
    changed = deployment("a", rolling=True, progressing="False")
    changed["metadata"]["generation"] = 3
    store.put(changed)

    a = frozenset([Key("shop", "a")])
    assert [before, given_up, book.rollouts().rolling] == [a, frozenset(), a]


def failed(name: str, after: int, **changes: Any) -> dict[str, Any]:
    """One that had a turn and did not become ready, so many minutes later."""
    usual = {"rolling": True, "progressing": "False", "image": "relay:2", "in_turn": True}
    return deployment(name, at_ms=NOW_MS + after * MINUTE_MS, **{**usual, **changes})


def ready(name: str, after: int, **changes: Any) -> dict[str, Any]:
    """One that had a turn and became ready."""
    return failed(name, after, **{"rolling": False, "progressing": "True", **changes})


def told(*deployments: dict[str, Any]) -> Rollouts:
    """Return the answer of an operator that has just started: all that it knows is in the Deployments."""
    store = ObjectCache("platform")
    for each in deployments:
        store.put(each)
    return RolloutTracker(store).rollouts()


NAMES = [f"failing-{number}" for number in range(MOST_FAILED)]
FAILED = frozenset(Key("shop", name) for name in NAMES)


def test_an_image_has_no_more_turns_after_a_few_that_did_not_become_ready_in_a_row() -> None:
    found = told(ready("fine", 0), *(failed(name, 1) for name in NAMES))

    assert found == Rollouts(stopped={"relay:2": FAILED}, fleet=1 + MOST_FAILED)
    assert found.stopped_by("relay:2", Key("shop", "fine")) == FAILED


def test_another_image_has_its_turns_and_those_that_failed_may_try_again() -> None:
    found = told(*(failed(name, 1) for name in NAMES))

    assert found.stopped_by("relay:3", Key("shop", "a")) == frozenset()
    assert found.stopped_by("relay:2", Key("shop", NAMES[0])) == frozenset()


def test_one_that_has_become_ready_lets_all_others_go_on() -> None:
    assert told(*(failed(name, 1) for name in NAMES[1:]), ready(NAMES[0], 2)) == Rollouts(fleet=MOST_FAILED)


def test_those_that_fail_between_others_that_do_not_stop_nobody() -> None:
    turns = [one(f"{one.__name__}-{number}", 2 * number) for number in range(10) for one in (failed, ready)]

    assert told(*turns) == Rollouts(fleet=20)


def test_changes_that_authors_made_and_that_fail_stop_nobody() -> None:
    assert told(*(failed(name, 1, in_turn=False) for name in NAMES)) == Rollouts(fleet=MOST_FAILED)
