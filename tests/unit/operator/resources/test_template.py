"""Tests of what class and DelayTopic may say about the pods of relays, and how it is merged."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.operator.routes import Route, route

from delaytopic_api.errors import Refused

NAMES = ("labels", "annotations", "nodeSelector", "tolerations", "priorityClassNames")
EVERYTHING = {**{field: ["*"] for field in NAMES}, "affinity": True}


def shaped(fields: dict[str, Any]) -> dict[str, Any]:
    """A template with these fields of metadata and spec."""
    metadata = {name: value for name, value in fields.items() if name in ("labels", "annotations")}
    return {"metadata": metadata, "spec": {name: value for name, value in fields.items() if name not in metadata}}


def merged(below: dict[str, Any], above: dict[str, Any]) -> Route:
    """A template of a class that allows everything, and a DelayTopic's."""
    return route(
        of_class={"relay": {"podTemplate": shaped(below)}, "limits": {"allowedPodTemplate": EVERYTHING}},
        backend={"type": "KafkaBuckets"},
        relay={"podTemplate": shaped(above)},
    )


def spread_over(given: Route) -> list[str]:
    return [constraint["topologyKey"] for constraint in given.pod()["spec"].get("topologySpreadConstraints", [])]


def test_labels_annotations_and_node_selectors_are_added_to_the_classs() -> None:
    below = {"labels": {"a": "1"}, "annotations": {"a": "1"}, "nodeSelector": {"pool": "1", "disk": "ssd"}}
    above = {"labels": {"b": "2"}, "annotations": {"b": "2"}, "nodeSelector": {"pool": "1", "zone": "a"}}

    pod = merged(below, above).pod()

    labels, annotations = pod["metadata"]["labels"], pod["metadata"]["annotations"]
    assert (labels["a"], labels["b"]) == ("1", "2")
    assert (annotations["a"], annotations["b"]) == ("1", "2")
    assert pod["spec"]["nodeSelector"] == {"pool": "1", "disk": "ssd", "zone": "a"}


def test_tolerations_are_added_to_the_classs() -> None:
    shared, own = {"key": "relays", "operator": "Exists"}, {"key": "spot", "operator": "Exists"}

    pod = merged({"tolerations": [shared]}, {"tolerations": [own, shared]}).pod()

    assert pod["spec"]["tolerations"] == [shared, own]


def test_affinity_and_priority_are_the_classs_or_the_delay_topics() -> None:
    given = {"affinity": {"nodeAffinity": {}}, "priorityClassName": "low"}

    of_class, of_topic = merged(given, {}).pod(), merged({}, given).pod()

    assert (of_class["spec"]["affinity"], of_class["spec"]["priorityClassName"]) == ({"nodeAffinity": {}}, "low")
    assert (of_topic["spec"]["affinity"], of_topic["spec"]["priorityClassName"]) == ({"nodeAffinity": {}}, "low")


def test_relays_spread_over_zones_and_hosts_unless_told_otherwise() -> None:
    rack = {"topologyKey": "rack", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}

    assert spread_over(route()) == ["topology.kubernetes.io/zone", "kubernetes.io/hostname"]
    assert spread_over(merged({"topologySpreadConstraints": [rack]}, {})) == ["rack"]
    assert spread_over(merged({"topologySpreadConstraints": [rack]}, {"topologySpreadConstraints": []})) == []


def test_a_constraint_without_selector_is_about_the_relays_of_the_delay_topic() -> None:
    rack = {"topologyKey": "rack", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
    others = rack | {"labelSelector": {"matchLabels": {"app": "x"}}}

    constraints = merged({}, {"topologySpreadConstraints": [rack, others | {"topologyKey": "row"}]})

    selectors = [each["labelSelector"] for each in constraints.pod()["spec"]["topologySpreadConstraints"]]
    assert selectors == [constraints.relay_object("Deployment")["spec"]["selector"], {"matchLabels": {"app": "x"}}]


NAME = "is not a name; use letters, digits, hyphens, dots, and a prefix such as example.com/"


@pytest.mark.parametrize(
    ("template", "line"),
    [
        ({"labels": {"delaytopic.dev/name": "x"}}, 'metadata.labels["delaytopic.dev/name"]: is the operator\'s own'),
        (
            {"labels": {"app.kubernetes.io/name": "x"}},
            'metadata.labels["app.kubernetes.io/name"]: is the operator\'s own',
        ),
        (
            {"annotations": {"delaytopic.dev/config-hash": "x"}},
            'metadata.annotations["delaytopic.dev/config-hash"]: is the operator\'s own',
        ),
        ({"labels": {"a b": "x"}}, f'metadata.labels["a b"]: {NAME}'),
        (
            {"nodeSelector": {"pool": "a b"}},
            'spec.nodeSelector["pool"]: "a b" is not a value; use up to 63 letters, digits, dots, underscores, hyphens',
        ),
    ],
)
def test_a_name_or_value_that_pods_cannot_have_is_refused_by_its_path(template: dict[str, Any], line: str) -> None:
    with pytest.raises(Refused) as refused:
        route(relay={"podTemplate": shaped(template)}).relay_objects()

    assert str(refused.value) == f"DelayTopic shop/order-reminders: spec.relay.podTemplate.{line}"


def test_what_is_wrong_in_a_class_is_said_of_the_class() -> None:
    with pytest.raises(Refused) as refused:
        merged({"labels": {"delaytopic.dev/name": "x"}}, {}).relay_objects()

    assert [problem.subject for problem in refused.value.problems] == ["DelayClass standard"]


def test_an_annotation_may_hold_any_text() -> None:
    assert merged({}, {"annotations": {"note": "Any text, and more."}}).pod()["metadata"]["annotations"]["note"]
