"""The kinds as users meet them: kubectl explain, get, scale, field selectors, and a status that is written to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playground.kube.control_plane import ControlPlane
from playground.kube.kube_client import RequestRefused
from tests.support.crd_cases import SMALLEST, merged
from tests.support.paths import ROOT

from delaytopic_api.crd import KINDS, custom_resource_definition
from delaytopic_api.crd.explain import explained, explained_in
from delaytopic_api.crd.kinds import Kind

pytestmark = [pytest.mark.integration, pytest.mark.kubernetes]

READY = {
    "type": "Ready",
    "status": "True",
    "reason": "Delivering",
    "message": "1 of 1 relays delivers",
    "lastTransitionTime": "2026-11-21T12:00:00Z",
}
STATUS = {
    "observedGeneration": 1,
    "conditions": [READY],
    "relay": {"replicas": 1, "selector": "app.kubernetes.io/name=delaytopic-relay", "summary": "1/1"},
    "backlog": {"pending": 1200, "overdue": 0, "nextDue": "2026-11-21T12:00:05Z"},
    "slo": {"latenessP99": "12ms"},
}


def collection(namespace: str) -> str:
    return f"/apis/delaytopic.dev/v1beta1/namespaces/{namespace}/delaytopics"


def created(control_plane: ControlPlane, namespace: str, name: str = "reminders", **spec: Any) -> str:
    """The path of a new DelayTopic."""
    document = merged(SMALLEST["DelayTopic"], {"metadata": {"name": name}, "spec": spec})
    control_plane.client.create(collection(namespace), document)
    return f"{collection(namespace)}/{name}"


def field_names(schema: dict[str, Any]) -> Iterator[str]:
    for name, field in schema.get("properties", {}).items():
        yield name
        yield from field_names(field.get("items", field))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_the_kind_is_established_without_a_warning(control_plane: ControlPlane, kind: Kind) -> None:
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

    conditions = control_plane.client.get(f"{path}/{kind.plural}.delaytopic.dev")["status"]["conditions"]

    statuses = {condition["type"]: condition["status"] for condition in conditions}
    assert statuses == {"NamesAccepted": "True", "Established": "True"}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_explain_shows_every_field(control_plane: ControlPlane, kind: Kind) -> None:
    [version] = custom_resource_definition(kind)["spec"]["versions"]
    fields = version["schema"]["openAPIV3Schema"]["properties"]

    for part in ("spec", "status"):
        if part in fields:
            shown = control_plane.kubectl("explain", f"{kind.singular}.{part}", "--recursive").splitlines()
            explained = [line.strip().partition("\t")[0] for line in shown if "\t<" in line]
            assert sorted(explained) == sorted(field_names(fields[part]))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_explain_answers_what_the_documentation_shows(control_plane: ControlPlane, kind: Kind) -> None:
    page = ROOT / f"docs/reference/explain-{kind.singular}.md"

    for path in explained_in(page.read_text(encoding="utf-8")):
        assert control_plane.kubectl("explain", path) == explained(path)


def test_explain_says_what_a_field_is_for_and_what_may_be_in_it(control_plane: ControlPlane) -> None:
    shown = control_plane.kubectl("explain", "dtopic.spec.deletionPolicy")

    assert "Drain: pending records leave at their own time" in shown
    assert "ENUM: Drain Retain Delete" in " ".join(shown.split())


def test_three_lines_of_spec_are_enough(control_plane: ControlPlane, namespace: str) -> None:
    path = created(control_plane, namespace)

    assert control_plane.client.get(path)["spec"] == SMALLEST["DelayTopic"]["spec"] | {"relay": {"replicas": 1}}


def test_get_shows_how_it_stands(control_plane: ControlPlane, namespace: str) -> None:
    path = created(control_plane, namespace)
    control_plane.client.merge(f"{path}/status", {"status": STATUS})

    [head, row] = control_plane.kubectl("get", "dtopic", "-n", namespace).splitlines()

    assert head.split() == ["NAME", "READY", "REASON", "PENDING", "OVERDUE", "NEXT", "DUE", "P99", "AGE"]
    seen = row.split()[:-1]
    assert seen == ["reminders", "True", "Delivering", "1200", "0", "2026-11-21T12:00:05Z", "12ms"]


def test_everything_that_delays_is_listed_by_one_word(control_plane: ControlPlane, namespace: str) -> None:
    created(control_plane, namespace)

    assert "delaytopic.delaytopic.dev/reminders" in control_plane.kubectl("get", "delay", "-n", namespace)


def test_get_wide_shows_the_topics(control_plane: ControlPlane, namespace: str) -> None:
    created(control_plane, namespace)

    shown = control_plane.kubectl("get", "dtopic", "-n", namespace, "-o", "wide")

    assert "reminders.delayed" in shown


def test_it_is_scaled_by_kubectl(control_plane: ControlPlane, namespace: str) -> None:
    path = created(control_plane, namespace)
    control_plane.client.merge(f"{path}/status", {"status": STATUS})

    control_plane.kubectl("scale", "dtopic/reminders", "--replicas=4", "-n", namespace)

    scale = control_plane.client.get(f"{path}/scale")
    assert control_plane.client.get(path)["spec"]["relay"] == {"replicas": 4}
    assert scale["spec"] == {"replicas": 4}
    assert scale["status"] == {"replicas": 1, "selector": "app.kubernetes.io/name=delaytopic-relay"}


@pytest.mark.parametrize(
    ("field", "value"),
    [("spec.source.topic", "a.delayed"), ("spec.target.topic", "a"), ("spec.delayClassName", "fast")],
)
def test_objects_are_found_by_their_topics_and_their_class(
    control_plane: ControlPlane, namespace: str, field: str, value: str
) -> None:
    created(control_plane, namespace, "other")
    wanted = {"source": {"topic": "a.delayed"}, "target": {"topic": "a"}, "delayClassName": "fast"}
    created(control_plane, namespace, "wanted", **wanted)

    found = control_plane.client.get(collection(namespace), fieldSelector=f"{field}={value}")["items"]

    assert [item["metadata"]["name"] for item in found] == ["wanted"]


def test_what_a_newer_operator_writes_into_the_status_is_left_out(control_plane: ControlPlane, namespace: str) -> None:
    path = created(control_plane, namespace)

    control_plane.client.merge(f"{path}/status", {"status": STATUS | {"tomorrow": {"more": 1}}})

    assert control_plane.client.get(path)["status"] == STATUS


def test_a_condition_is_there_once(control_plane: ControlPlane, namespace: str) -> None:
    path = created(control_plane, namespace)

    with pytest.raises(RequestRefused, match="Duplicate value"):
        control_plane.client.merge(f"{path}/status", {"status": {"conditions": [READY, READY]}})


def test_two_managers_each_keep_their_own_entries_of_a_list(control_plane: ControlPlane, namespace: str) -> None:
    smallest = merged(SMALLEST["DelayTopic"], {"metadata": {"namespace": namespace}})
    path = f"{collection(namespace)}/{smallest['metadata']['name']}"
    night = {"from": "2026-11-21T02:00:00Z", "until": "2026-11-21T03:00:00Z", "reason": "an upgrade"}
    day = night | {"from": "2026-11-22T12:00:00Z", "until": "2026-11-22T13:00:00Z"}
    of_git = {"target": {"allowedTopics": ["shop.*"]}, "slo": {"exclusions": [night]}}
    of_a_person = {"target": {"topic": "reminders", "allowedTopics": ["mails"]}, "slo": {"exclusions": [day]}}
    control_plane.client.apply(path, merged(smallest, {"spec": of_git}), manager="git")

    added = control_plane.client.apply(path, merged(smallest, {"spec": of_a_person}), manager="person")
    kept = control_plane.client.apply(path, smallest, manager="git")

    assert added["spec"]["target"]["allowedTopics"] == ["shop.*", "mails"]
    assert added["spec"]["slo"]["exclusions"] == [night, day]
    assert (kept["spec"]["target"]["allowedTopics"], kept["spec"]["slo"]["exclusions"]) == (["mails"], [day])


def test_writing_the_status_leaves_the_spec_alone(control_plane: ControlPlane, namespace: str) -> None:
    path = created(control_plane, namespace)

    both = {"spec": {"precision": "1m"}, "status": STATUS}
    control_plane.client.merge(f"{path}/status", both)

    assert "precision" not in control_plane.client.get(path)["spec"]
