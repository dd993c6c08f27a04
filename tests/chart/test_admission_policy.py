"""The API server refuses by the chart's policy what the operator would refuse, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playground.kube.control_plane import ControlPlane
from playground.kube.kube_client import Object, RequestRefused
from tests.harness.names import unique
from tests.support.chart.helm import ChartHelm
from tests.support.relay.process import wait_for

from delaytopic_api import DelayClass, DelayTopic, load_document
from delaytopic_api.policy import refusals

pytestmark = [pytest.mark.integration, pytest.mark.kubernetes]

OWN: dict[str, Any] = {"sourceTopics": ["{namespace}.*"], "targetTopics": ["{namespace}.*", "shared.reminders"]}
LABELS = {"delays": "yes"}
HOME = "{namespace}"
"""In topics: the namespace of the test."""
CASES = {
    "topics of the namespace": (OWN, {}),
    "a class without access": ({}, {"source": {"topic": "bank.a"}}),
    "another's source": (OWN, {"source": {"topic": "bank.a"}}),
    "a source that only begins alike": (OWN, {"source": {"topic": f"{HOME}x.a"}}),
    "a source that only ends alike": (OWN, {"source": {"topic": f"bank.{HOME}.a"}}),
    "a dot stands for itself": ({"sourceTopics": ["shop.*"], "targetTopics": ["*"]}, {"source": {"topic": "shopxa"}}),
    "another's target": (OWN, {"target": {"topic": "bank.b"}}),
    "a target that is shared": (OWN, {"target": {"topic": "shared.reminders"}}),
    "a longer name than the shared one": (OWN, {"target": {"topic": "shared.reminders.2"}}),
    "another's dead letters": (OWN, {"deadLetter": {"topic": "bank.dlq"}}),
    "dead letters of one's own": (OWN, {"deadLetter": {"topic": f"{HOME}.dlq"}}),
    "dead letters by name of the source": ({"sourceTopics": ["a"], "targetTopics": ["b"]}, {"source": {"topic": "a"}}),
    "deliver-to another": (OWN, {"target": {"topic": f"{HOME}.b", "allowedTopics": [f"{HOME}.*", "bank.*"]}}),
    "deliver-to one's own": (
        OWN,
        {"target": {"topic": f"{HOME}.b", "allowedTopics": [f"{HOME}.x.*", "shared.reminders"]}},
    ),
    "deliver-to everything": (OWN, {"target": {"topic": f"{HOME}.b", "allowedTopics": ["*"]}}),
    "nothing is allowed": ({"sourceTopics": [], "targetTopics": []}, {}),
    "a namespace with the label": ({"namespaceSelector": {"matchLabels": LABELS}}, {}),
    "a namespace without the label": ({"namespaceSelector": {"matchLabels": {"delays": "no"}}}, {}),
    "a namespace without one of two labels": ({"namespaceSelector": {"matchLabels": {**LABELS, "tier": "1"}}}, {}),
    "an adoption": (OWN, {"source": {"topic": f"{HOME}.a", "management": "Adopt"}}),
    "an adoption of dead letters": (OWN, {"deadLetter": {"topic": f"{HOME}.dlq", "management": "Adopt"}}),
    "an adoption that is allowed": (
        {"adoptTopics": [f"{HOME}.old.*"]},
        {"source": {"topic": f"{HOME}.old.a", "management": "Adopt"}},
    ),
    "an adoption of two, one of them allowed": (
        {"adoptTopics": [f"{HOME}.a"]},
        {
            "source": {"topic": f"{HOME}.a", "management": "Adopt"},
            "target": {"topic": f"{HOME}.b", "management": "Adopt"},
        },
    ),
    "another's history": (OWN, {"schedule": {"scheduler": {"history": {"topic": "bank.history"}}}}),
    "a history of one's own": (OWN, {"schedule": {"scheduler": {"history": {"topic": f"{HOME}.history"}}}}),
    "a history by name of the source": ({"targetTopics": [f"{HOME}.b", "*.dlq"]}, {"schedule": {"scheduler": {}}}),
    "an adoption of a history": (
        OWN,
        {"schedule": {"scheduler": {"history": {"topic": f"{HOME}.history", "management": "Adopt"}}}},
    ),
    "another's topic of outcomes": (OWN, {"outcomes": {"topic": "bank.outcomes"}}),
    "outcomes of one's own": (OWN, {"outcomes": {"topic": f"{HOME}.outcomes"}}),
    "an adoption of outcomes": (OWN, {"outcomes": {"topic": f"{HOME}.outcomes", "management": "Adopt"}}),
    "another's class": (OWN, {"delayClassName": "other"}),
}
"""Access of a class, and the spec of a DelayTopic."""


class Guarded:
    """A namespace whose DelayTopics the policy is for."""

    def __init__(self, plane: ControlPlane) -> None:
        self.client = plane.client
        self.namespace = unique("guarded")
        self.client.create("/api/v1/namespaces", {"metadata": {"name": self.namespace, "labels": LABELS}})

    def make_class(self, access: dict[str, Any]) -> DelayClass:
        """Make a class, and return it once the policy goes by it: the API server learns of both a moment later."""
        document = {
            "apiVersion": "delaytopic.dev/v1beta1",
            "kind": "DelayClass",
            "metadata": {"name": unique("class")},
            "spec": {"connection": {"bootstrapServers": "kafka:9092"}, "access": access},
        }
        self.client.create("/apis/delaytopic.dev/v1beta1/delayclasses", document)
        parsed = load_document(document)
        assert isinstance(parsed, DelayClass)
        forbidden = self.topic(parsed.metadata.name, source={"topic": "nobody.may.read.this"})
        wait_for(lambda: self.refusal(forbidden), lambda: "the policy does not go by the class")
        return parsed

    def topic(self, delay_class: str, **spec: Any) -> Object:
        usual = {"source": {"topic": f"{HOME}.a"}, "target": {"topic": f"{HOME}.b"}, "delayClassName": delay_class}
        return {
            "apiVersion": "delaytopic.dev/v1beta1",
            "kind": "DelayTopic",
            "metadata": {"name": unique("topic"), "namespace": self.namespace},
            "spec": _placed({**usual, **spec}, self.namespace),
        }

    def refusal(self, topic: Object) -> str:
        """Return what the API server says against it; empty: nothing."""
        path = f"/apis/delaytopic.dev/v1beta1/namespaces/{self.namespace}/delaytopics"
        try:
            self.client.create(path, topic, dryRun="All")
        except RequestRefused as refused:
            return str(refused)
        return ""


def _told(path: str) -> str:
    """Return how the policy calls a field; adoptions are refused together."""
    return "management: Adopt" if path.endswith(".management") else path.partition("[")[0]


def _placed(part: Any, namespace: str) -> Any:
    if isinstance(part, dict):
        return {name: _placed(each, namespace) for name, each in part.items()}
    if isinstance(part, list):
        return [_placed(each, namespace) for each in part]
    return part.replace(HOME, namespace) if isinstance(part, str) else part


@pytest.fixture(scope="module")
def guarded(control_plane: ControlPlane, helm: ChartHelm) -> Iterator[Guarded]:
    place = Guarded(control_plane)
    options = ("--set", f"admissionPolicy.enabled=true,watchNamespaces={{{place.namespace}}}")
    rendered = helm.template(*options, namespace=place.namespace)
    policy = [each for each in rendered if each["kind"].startswith("ValidatingAdmissionPolicy")]
    control_plane.kubectl.apply(policy)
    yield place
    control_plane.kubectl("delete", *(f"{each['kind']}/{each['metadata']['name']}" for each in policy))


@pytest.mark.parametrize(("access", "spec"), CASES.values(), ids=CASES)
def test_the_api_server_refuses_what_the_operator_refuses_for_the_same_field(
    guarded: Guarded, access: dict[str, Any], spec: dict[str, Any]
) -> None:
    delay_class = guarded.make_class(access)
    document = guarded.topic(delay_class.metadata.name, **spec)
    topic = load_document(document)
    assert isinstance(topic, DelayTopic)
    named = topic.spec.delay_class_name == delay_class.metadata.name
    expected = next((problem.path for problem in refusals(topic, delay_class, LABELS)), "") if named else ""

    said = guarded.refusal(document)

    assert _told(expected) in said if expected else said == ""


def test_the_refusal_names_the_field_and_what_the_class_allows(guarded: Guarded) -> None:
    delay_class = guarded.make_class(OWN)

    said = guarded.refusal(guarded.topic(delay_class.metadata.name, source={"topic": "bank.a"}))

    allowed = f"DelayClass {delay_class.metadata.name} allows {guarded.namespace}.*"
    assert f"spec.source.topic: bank.a is not allowed as a source: {allowed}" in said


def test_what_its_class_forbids_later_can_still_be_ended(guarded: Guarded) -> None:
    delay_class = guarded.make_class(OWN)
    client, document = guarded.client, guarded.topic(delay_class.metadata.name)
    path = f"/apis/delaytopic.dev/v1beta1/namespaces/{guarded.namespace}/delaytopics"
    client.create(path, document)
    of_class = f"/apis/delaytopic.dev/v1beta1/delayclasses/{delay_class.metadata.name}"
    client.merge(of_class, {"spec": {"access": {"sourceTopics": ["other.*"], "targetTopics": ["other.*"]}}})
    wait_for(lambda: guarded.refusal(guarded.topic(delay_class.metadata.name)), lambda: "the class is as it was")
    mine = f"{path}/{document['metadata']['name']}"

    changed = client.merge(mine, {"metadata": {"finalizers": []}, "spec": {"deletionPolicy": "Retain"}})

    assert changed["spec"]["deletionPolicy"] == "Retain"
    with pytest.raises(RequestRefused, match=r"spec\.source\.topic: .* is not allowed"):
        client.merge(mine, {"spec": {"target": {"allowedTopics": [f"{guarded.namespace}.c"]}}})
