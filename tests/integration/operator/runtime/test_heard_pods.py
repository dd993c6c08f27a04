"""Pods and Deployments that a tenant labels as relays are not heard, where relays of a class run elsewhere."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.operator.documents import delay_topic
from tests.support.operator.scenes import delay_class, document

from delaytopic_operator.config import OperatorConfig
from delaytopic_operator.kube.client import KubeApi
from delaytopic_operator.kube.object_cache import ObjectCache
from delaytopic_operator.model.reconciliation import Key
from delaytopic_operator.observe.cluster import ClusterObserver
from delaytopic_operator.resources.identity import (
    NAME_LABEL,
    NAMESPACE_LABEL,
    is_relay,
    is_run_by_job,
    relays_name,
)

pytestmark = [pytest.mark.integration, pytest.mark.kubernetes]

OPERATOR = "platform-of-the-operator"


def labelled(kind: str, namespace: str, key: Key, component: str) -> dict[str, Any]:
    """An object as a store has it, with all labels of what the operator makes."""
    labels = {
        "app.kubernetes.io/managed-by": "delaytopic-operator",
        "app.kubernetes.io/component": component,
        NAMESPACE_LABEL: key.namespace,
        NAME_LABEL: key.name,
    }
    name = relays_name(key) if kind == "Deployment" else f"{kind.lower()}-{component}"
    made_by = {"relay": ("apps/v1", "ReplicaSet", f"{relays_name(key)}-5d4f"), "audit": ("batch/v1", "Job", "a-run")}
    api_version, maker, owner = made_by[component]
    labels["pod-template-hash"] = "5d4f"
    owners = [{"apiVersion": api_version, "kind": maker, "name": owner, "uid": "u", "controller": True}]
    metadata = {
        "ownerReferences": owners,
        "name": name,
        "namespace": namespace,
        "labels": labels,
        "resourceVersion": "7",
        "uid": name,
    }
    return {"apiVersion": "v1" if kind == "Pod" else "apps/v1", "kind": kind, "metadata": metadata}


@pytest.mark.parametrize("owner", ["the tenant", "the operator"])
def test_relays_are_heard_from_where_the_operator_runs_them_alone(kube: KubeApi, namespace: str, owner: str) -> None:
    key, store = Key(namespace, "reminders"), ObjectCache(OPERATOR)
    topic = delay_topic(namespace)
    metadata = {**document(deleted_ms=None)["metadata"], **topic["metadata"], "resourceVersion": "5"}
    store.put({**topic, "metadata": metadata})
    store.put({**delay_class().to_document(), "metadata": {"name": "standard", "resourceVersion": "6"}})
    place = namespace if owner == "the tenant" else OPERATOR
    for kind, component in (("Pod", "relay"), ("Deployment", "relay")):
        store.put(labelled(kind, place, key, component))

    observer = ClusterObserver(kube, store, None, OperatorConfig(namespace=OPERATOR))  # type: ignore[arg-type]
    _, fleet = observer.observe(key, 0)

    heard = (len(fleet.pods), fleet.deployment is not None)
    assert heard == ((0, False) if owner == "the tenant" else (1, True))


def test_pods_that_nothing_of_the_operators_made_are_not_heard() -> None:
    key = Key("shop", "reminders")
    relay, audit = labelled("Pod", OPERATOR, key, "relay"), labelled("Pod", OPERATOR, key, "audit")
    bare = {**relay, "metadata": {**relay["metadata"], "ownerReferences": []}}
    other = labelled("Pod", OPERATOR, Key("shop", "invoices"), "relay")
    of_cron_job = {**relay, "metadata": {**relay["metadata"], "ownerReferences": audit["metadata"]["ownerReferences"]}}

    assert [is_relay(each, key) for each in (relay, bare, other, of_cron_job, audit)] == [True, *[False] * 4]
    assert [is_run_by_job(each) for each in (audit, bare, relay)] == [True, False, False]
