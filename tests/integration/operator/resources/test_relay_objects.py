"""All objects on a real API server: none is refused, and a second look finds nothing to write."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import yaml
from playground.kube.control_plane import ControlPlane
from playground.kube.kube_client import KubeClient
from tests.cluster.fixtures import MakeNamespace
from tests.support.operator.routes import Route
from tests.unit.operator.resources.golden import EXAMPLES, example

from delaytopic_operator.decide.drift import drift
from delaytopic_operator.model.kinds import kind_of
from delaytopic_operator.resources.identity import Document

pytestmark = [pytest.mark.integration, pytest.mark.kubernetes]

ROUTES = {name: example(name) for name in EXAMPLES}


def in_namespace(document: Document, namespace: str) -> Document:
    # No class is there: Kubernetes removes what names one as its owner.
    metadata = {name: value for name, value in document["metadata"].items() if name != "ownerReferences"}
    return {**document, "metadata": {**metadata, "namespace": namespace}}


def apply(client: KubeClient, document: Document, **query: str) -> Document:
    metadata = document["metadata"]
    path = kind_of(document).path(metadata["namespace"], metadata["name"])
    manager = {"fieldManager": "delaytopic-operator", "force": "true"}
    return client.request(
        "PATCH", path, document, content_type="application/apply-patch+yaml", query={**manager, **query}
    )


def audit_pod(route_: Route) -> Document:
    job = route_.audit_object("CronJob")["spec"]["jobTemplate"]["spec"]
    return dict(job["template"])


def executor_pod(route_: Route) -> Document:
    return dict(yaml.safe_load(route_.audit_object("ConfigMap")["data"]["executor.yaml"]))


def written_version(document: Document) -> tuple[Any, ...]:
    """Return what changes with each write of the operator, and not with those that a controller makes to a status."""
    metadata = document["metadata"]
    if document["kind"] in ("Deployment", "CronJob", "PodDisruptionBudget"):
        return metadata["generation"], metadata["annotations"], metadata["labels"]
    return (metadata["resourceVersion"],)


def stored(client: KubeClient, document: Document) -> Document:
    metadata = document["metadata"]
    return client.get(kind_of(document).path(metadata["namespace"], metadata["name"]))


@pytest.fixture
def restricted(make_namespace: MakeNamespace, control_plane: ControlPlane) -> str:
    """A namespace that takes only pods that pass the strictest of the Pod Security Standards."""
    for name in ("relays", "business-critical"):
        document = {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": 1,
        }
        control_plane.client.apply(f"/apis/scheduling.k8s.io/v1/priorityclasses/{name}", document)
    return make_namespace("restricted", labels={"pod-security.kubernetes.io/enforce": "restricted"})


@pytest.mark.parametrize("name", ROUTES)
def test_what_the_api_server_stores_of_every_object_is_no_drift(
    control_plane: ControlPlane, restricted: str, name: str
) -> None:
    documents = [in_namespace(document, restricted) for document in ROUTES[name].documents()]

    answers = [apply(control_plane.client, document) for document in documents]

    assert [drift(document, answer) for document, answer in zip(documents, answers, strict=True)] == [
        [] for _ in answers
    ]


def test_applying_once_more_writes_nothing(control_plane: ControlPlane, restricted: str) -> None:
    documents = [in_namespace(document, restricted) for document in ROUTES["class"].documents()]
    for document in documents:
        apply(control_plane.client, document)
    versions = [written_version(stored(control_plane.client, document)) for document in documents]

    again = [written_version(apply(control_plane.client, document)) for document in documents]

    assert again == versions


@pytest.mark.parametrize(
    ("name", "template_of"),
    [
        ("class", Route.pod),
        ("class", audit_pod),
        ("inline", Route.pod),
        ("everything", Route.pod),
        ("everything", audit_pod),
        ("everything", executor_pod),
    ],
    ids=["class relay", "class audit", "inline relay", "everything relay", "everything driver", "everything executor"],
)
def test_the_pods_are_taken_where_pod_security_is_restricted(
    control_plane: ControlPlane, restricted: str, name: str, template_of: Callable[[Route], Document]
) -> None:
    template = template_of(ROUTES[name])
    account = {"metadata": {"name": template["spec"]["serviceAccountName"]}}
    control_plane.client.create(f"/api/v1/namespaces/{restricted}/serviceaccounts", account)
    pod = {"metadata": {**template["metadata"], "name": "pod"}, "spec": template["spec"]}

    answer = control_plane.client.request("POST", f"/api/v1/namespaces/{restricted}/pods", pod, query={"dryRun": "All"})

    assert answer["spec"]["securityContext"]["runAsNonRoot"] is True
