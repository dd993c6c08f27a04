"""Pods and Deployments that a tenant labels as relays are not heard, where relays of a class run elsewhere."""

from __future__ import annotations

from typing import Any

import pytest
from tests.operator.core.going_scenes import delay_class, document
from tests.operator.shell.documents import delay_topic

from delaytopic_operator.desired.identity import NAME_LABEL, NAMESPACE_LABEL
from delaytopic_operator.keys import Key
from delaytopic_operator.kube import KubeApi
from delaytopic_operator.observing import ClusterObserver
from delaytopic_operator.operator_config import OperatorConfig
from delaytopic_operator.store import Store

pytestmark = [pytest.mark.integration, pytest.mark.kubernetes]

OPERATOR = "platform-of-the-operator"


def labelled(kind: str, namespace: str, key: Key, component: str) -> dict[str, Any]:
    """An object as a store has it, with all labels of a child."""
    labels = {
        "app.kubernetes.io/managed-by": "delaytopic-operator",
        "app.kubernetes.io/component": component,
        NAMESPACE_LABEL: key.namespace,
        NAME_LABEL: key.name,
    }
    name = f"{kind.lower()}-{component}"
    metadata = {"name": name, "namespace": namespace, "labels": labels, "resourceVersion": "7", "uid": name}
    return {"apiVersion": "v1" if kind == "Pod" else "apps/v1", "kind": kind, "metadata": metadata}


@pytest.mark.parametrize("owner", ["the tenant", "the operator"])
def test_relays_and_audits_are_heard_from_where_the_operator_runs_them_alone(
    kube: KubeApi, namespace: str, owner: str
) -> None:
    key, store = Key(namespace, "reminders"), Store(OPERATOR)
    topic = delay_topic(namespace)
    metadata = {**document(deleted_ms=None)["metadata"], **topic["metadata"], "resourceVersion": "5"}
    store.put({**topic, "metadata": metadata})
    store.put({**delay_class().to_document(), "metadata": {"name": "standard", "resourceVersion": "6"}})
    place = namespace if owner == "the tenant" else OPERATOR
    for kind, component in (("Pod", "relay"), ("Pod", "audit"), ("Deployment", "relay")):
        store.put(labelled(kind, place, key, component))

    seen = ClusterObserver(kube, store, None, OperatorConfig(namespace=OPERATOR)).look(key, 0)  # type: ignore[arg-type]

    heard = (len(seen.pods), len(seen.audit_pods), seen.deployment is not None)
    assert heard == ((0, 0, False) if owner == "the tenant" else (1, 1, True))
