"""Finalizers on a real API server: an object is let go whoever else wrote its finalizer, and others' stay."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from tests.support.operator.scenes import seen

from delaytopic_api.documents import API_VERSION
from delaytopic_operator.decide.plan import FINALIZER, AddFinalizer, Plan, RemoveFinalizer
from delaytopic_operator.errors import Conflict
from delaytopic_operator.execute.executor import Executor, Outcome
from delaytopic_operator.kube.client import KubeApi
from delaytopic_operator.kube.object_cache import ObjectCache
from delaytopic_operator.model import kinds
from delaytopic_operator.model.reconciliation import Key

pytestmark = [pytest.mark.integration, pytest.mark.kubernetes]

BACKUP = "example.com/backup"


def applied(kube: KubeApi, namespace: str, *finalizers: str, manager: str = "somebody") -> dict[str, Any]:
    """Apply a DelayTopic as a manifest has it; return it."""
    spec = {"delayClassName": "standard", "source": {"topic": "a.delayed"}, "target": {"topic": "a"}}
    metadata = {"name": "reminders", "namespace": namespace, "finalizers": list(finalizers)}
    return kube.apply({"apiVersion": API_VERSION, "kind": "DelayTopic", "metadata": metadata, "spec": spec}, manager)


def done(kube: KubeApi, live: dict[str, Any], action: AddFinalizer | RemoveFinalizer) -> Outcome:
    """Execute one action upon an observation of this object."""
    key = Key(live["metadata"]["namespace"], "reminders")
    look = seen(live, key=key, verdict=None)
    executor = Executor(kube, ObjectCache("x").get, None, None, lambda: None, Counter().update)  # type: ignore[arg-type]
    return executor.execute(look, Plan([action]))


def finalizers(kube: KubeApi, namespace: str) -> list[str]:
    found = kube.get(kinds.DELAY_TOPIC, namespace, "reminders")
    assert found is not None
    return list(found["metadata"].get("finalizers") or [])


@pytest.mark.parametrize("others", [pytest.param((), id="alone"), pytest.param((BACKUP,), id="beside another one")])
def test_a_finalizer_that_a_manifest_has_as_well_is_removed(
    kube: KubeApi, namespace: str, others: tuple[str, ...]
) -> None:
    live = applied(kube, namespace, *others, FINALIZER)

    outcome = done(kube, live, RemoveFinalizer())

    assert (outcome.failure, finalizers(kube, namespace)) == (None, list(others))


def test_a_finalizer_is_added_to_those_of_others(kube: KubeApi, namespace: str) -> None:
    live = applied(kube, namespace, BACKUP)

    outcome = done(kube, live, AddFinalizer())

    assert (outcome.failure, finalizers(kube, namespace)) == (None, [BACKUP, FINALIZER])


def test_a_list_that_somebody_changed_meanwhile_is_left_to_the_next_look(kube: KubeApi, namespace: str) -> None:
    before = applied(kube, namespace, FINALIZER)
    now = applied(kube, namespace, BACKUP, FINALIZER)

    outcomes = []
    for live in (before, now):
        outcomes.append((type(done(kube, live, RemoveFinalizer()).failure), finalizers(kube, namespace)))

    assert outcomes == [(Conflict, [BACKUP, FINALIZER]), (type(None), [BACKUP])]


def test_an_object_of_the_same_name_that_was_made_anew_keeps_its_finalizer(kube: KubeApi, namespace: str) -> None:
    live = applied(kube, namespace, FINALIZER)
    live["metadata"]["uid"] = "another"

    outcome = done(kube, live, RemoveFinalizer())

    assert (outcome.failure, outcome.was_gone, finalizers(kube, namespace)) == (None, True, [FINALIZER])


def test_a_finalizer_is_added_where_there_is_none(kube: KubeApi, namespace: str) -> None:
    live = applied(kube, namespace)

    outcome = done(kube, live, AddFinalizer())

    assert (outcome.failure, finalizers(kube, namespace)) == (None, [FINALIZER])
