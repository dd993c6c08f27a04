"""Drift as it comes about on a real API server: what an apply can mend is seen, and what it cannot is left alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playground.kube.awaiting import await_object
from playground.kube.control_plane import ControlPlane
from playground.kube.kube_client import KubeClient
from playground.kube.pods import pods_of
from tests.support.operator.routes import Route, route

from delaytopic_operator.decide.drift import drift
from delaytopic_operator.model.kinds import DEPLOYMENT
from delaytopic_operator.resources.identity import APPLIED_HASH, Document

pytestmark = [pytest.mark.integration, pytest.mark.kubernetes]

STAMP = f'metadata.annotations["{APPLIED_HASH}"]'
TOLERATION = {"key": "pool", "operator": "Exists"}
SIDECAR = {"name": "sidecar", "image": "sidecar:1"}


class Applied:
    """The Deployment of a DelayTopic on the API server, as the operator and as others change it."""

    def __init__(self, client: KubeClient, namespace: str, given: Route) -> None:
        self._client = client
        self._namespace = namespace
        self.wanted = self._wanted(given)
        self.apply()

    def want(self, given: Route) -> None:
        """The DelayTopic is another one now."""
        self.wanted = self._wanted(given)

    def apply(self) -> None:
        """As the operator does."""
        self._client.apply(self._path, self.wanted, manager="delaytopic-operator")

    def drift(self) -> list[str]:
        """Between what is wanted and what is stored."""
        return drift(self.wanted, self._client.get(self._path))

    def merge(self, spec: dict[str, Any]) -> None:
        """Somebody changes fields of its spec."""
        self._client.merge(self._path, {"spec": spec})

    def edit(self, change: Callable[[dict[str, Any]], None]) -> None:
        """Somebody edits the pods' spec, as kubectl edit does."""
        live = self._client.get(self._path)
        del live["metadata"]["resourceVersion"]
        change(live["spec"]["template"]["spec"])
        self._client.request("PUT", self._path, live)

    @property
    def _path(self) -> str:
        return DEPLOYMENT.path(self._namespace, self.wanted["metadata"]["name"])

    def _wanted(self, given: Route) -> Document:
        deployment = given.relay_object("Deployment")
        metadata = {**deployment["metadata"], "namespace": self._namespace}
        del metadata["ownerReferences"]
        return {**deployment, "metadata": metadata}


@pytest.fixture
def applied(control_plane: ControlPlane, namespace: str) -> Applied:
    return Applied(control_plane.client, namespace, route())


def test_what_was_applied_has_no_drift(applied: Applied) -> None:
    assert applied.drift() == []


def test_a_field_that_somebody_changed_is_seen_and_mended(applied: Applied) -> None:
    applied.merge({"replicas": 7, "minReadySeconds": 1})

    assert applied.drift() == ["spec.replicas", "spec.minReadySeconds"]
    applied.apply()
    assert applied.drift() == []


def test_an_image_that_somebody_changed_is_seen_and_mended(applied: Applied) -> None:
    applied.edit(lambda pod: pod["containers"][0].update(image="mine:1"))

    assert applied.drift() == ["spec.template.spec.containers[0].image"]
    applied.apply()
    assert applied.drift() == []


def test_a_field_that_is_wanted_no_longer_is_seen_and_taken_away(control_plane: ControlPlane, namespace: str) -> None:
    tainted = route(relay={"podTemplate": {"spec": {"tolerations": [TOLERATION], "nodeSelector": {"pool": "relays"}}}})
    applied = Applied(control_plane.client, namespace, tainted)

    applied.want(route())

    assert applied.drift() == [STAMP]
    applied.apply()
    assert applied.drift() == []
    live = control_plane.client.get(applied._path)["spec"]["template"]["spec"]
    assert not {"tolerations", "nodeSelector"} & live.keys()


def test_mounts_that_somebody_put_into_another_order_are_no_reason_to_write_for_ever(applied: Applied) -> None:
    applied.edit(lambda pod: pod["containers"][0]["volumeMounts"].reverse())

    applied.apply()

    assert applied.drift() == []


def test_what_others_add_beside_is_theirs_to_keep(applied: Applied) -> None:
    def add(pod: dict[str, Any]) -> None:
        pod["containers"].append(SIDECAR)
        pod["containers"][0]["env"].append({"name": "DEBUG", "value": "1"})
        pod["volumes"].append({"name": "more", "emptyDir": {}})
        pod["dnsPolicy"] = "Default"

    applied.edit(add)

    assert applied.drift() == []


def test_a_toleration_that_somebody_adds_stays_as_long_as_none_is_wanted(applied: Applied) -> None:
    applied.edit(lambda pod: pod.update(tolerations=[TOLERATION]))

    assert applied.drift() == []


def test_the_pods_of_the_longest_name_come_to_be(control_plane: ControlPlane, namespace: str) -> None:
    given, client = route(metadata={"name": "a" * 40}), control_plane.client
    account = given.relay_object("ServiceAccount")["metadata"]["name"]
    client.create(f"/api/v1/namespaces/{namespace}/serviceaccounts", {"metadata": {"name": account}})

    Applied(client, namespace, given)

    path = DEPLOYMENT.path(namespace, given.relay_object("Deployment")["metadata"]["name"])
    await_object(client, path, lambda found: found is not None and found.get("status", {}).get("replicas") == 2)
    pods = pods_of(client, namespace, **given.relay_object("Deployment")["spec"]["selector"]["matchLabels"])
    assert len({pod["metadata"]["name"] for pod in pods if len(pod["metadata"]["name"]) <= 63}) == 2
