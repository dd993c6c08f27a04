"""A name that another DelayTopic has already is told, and the object stays as it is."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from tests.support.operator.scenes import document, seen

from delaytopic_operator.decide.plan import Apply, Delete, Plan
from delaytopic_operator.errors import ObjectForeign, ObjectRejected
from delaytopic_operator.execute.executor import Executor
from delaytopic_operator.kube.client import KubeApi
from delaytopic_operator.kube.object_cache import ObjectCache
from delaytopic_operator.model import kinds
from delaytopic_operator.resources.identity import NAME_LABEL, NAMESPACE_LABEL

pytestmark = [pytest.mark.integration, pytest.mark.kubernetes]

OWN = {NAMESPACE_LABEL: "shop", NAME_LABEL: "reminders"}
VICTIMS = {NAMESPACE_LABEL: "bank", NAME_LABEL: "payments"}


def config_map(namespace: str, text: str, labels: dict[str, str]) -> dict[str, Any]:
    metadata = {"name": "meeting", "namespace": namespace, "labels": labels}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"relay.yaml": text}}


def applied(kube: KubeApi, namespace: str, there: dict[str, str]) -> tuple[object, str]:
    """Apply an object of shop/reminders where an object with such labels is; the failure, and the object's text."""
    store = ObjectCache(namespace)
    store.put(kube.apply(config_map(namespace, "before", there), "delaytopic-operator"))
    executor = Executor(kube, store.get, None, None, lambda: None, Counter().update)  # type: ignore[arg-type]

    outcome = executor.execute(seen(document(deleted_ms=None)), Plan([Apply(config_map(namespace, "after", OWN))]))

    live = kube.get(kinds.CONFIG_MAP, namespace, "meeting")
    assert live is not None
    return type(outcome.failure), str(live["data"]["relay.yaml"])


@pytest.mark.parametrize(
    ("there", "outcome"),
    [
        pytest.param(VICTIMS, (ObjectForeign, "before"), id="another's"),
        pytest.param(OWN, (type(None), "after"), id="its own"),
        pytest.param({}, (type(None), "after"), id="its own, without the labels it had"),
    ],
)
def test_an_object_of_another_delay_topic_is_never_overwritten(
    kube: KubeApi, namespace: str, there: dict[str, str], outcome: tuple[object, str]
) -> None:
    assert applied(kube, namespace, there) == outcome


def test_a_configuration_that_somebody_put_in_its_place_is_made_anew(kube: KubeApi, namespace: str) -> None:
    wanted = {**config_map(namespace, "before", OWN), "immutable": True}
    forged = kube.apply({**wanted, "data": {"relay.yaml": "mischief"}}, "somebody")
    executor = Executor(kube, lambda *_: None, None, None, lambda: None, lambda _: None)  # type: ignore[arg-type]

    refused = executor.execute(seen(document(deleted_ms=None)), Plan([Apply(wanted)])).failure
    outcome = executor.execute(seen(document(deleted_ms=None)), Plan([Delete(forged), Apply(wanted)]))

    live = kube.get(kinds.CONFIG_MAP, namespace, wanted["metadata"]["name"])
    assert live is not None
    assert (type(refused), outcome.failure, live["data"]) == (ObjectRejected, None, wanted["data"])
