"""Tests of which relays start anew, as Deployments come, change and go."""

from __future__ import annotations

from itertools import count
from typing import Any

from delaytopic_operator.kube.object_cache import ObjectCache
from delaytopic_operator.model.reconciliation import Key
from delaytopic_operator.observe.rollouts import RolloutTracker

VERSIONS = count(1)


def deployment(name: str, *, rolling: bool, progressing: str = "True") -> dict[str, Any]:
    labels = {"delaytopic.dev/namespace": "shop", "delaytopic.dev/name": name}
    metadata = {"namespace": "platform", "name": name, "labels": labels, "generation": 2}
    metadata["resourceVersion"] = str(next(VERSIONS))
    status = {
        "observedGeneration": 2,
        "replicas": 2 if rolling else 1,
        "updatedReplicas": 1,
        "conditions": [{"type": "Available", "status": "True"}, {"type": "Progressing", "status": progressing}],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata,
        "spec": {"replicas": 1},
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
