"""The bundle for OLM gives the operator what the chart gives it, and no more."""

from __future__ import annotations

import json
from typing import Any

import yaml
from charts.tools.olm_bundle import ACCOUNT, BUNDLE
from charts.tools.places import CHART, CRDS, text_of
from tests.cluster.access import of_rule
from tests.support.chart.rights import documented, granted

from delaytopic_api import load_document

MANIFESTS = [yaml.load(text_of(path), yaml.CSafeLoader) for path in sorted((BUNDLE / "manifests").iterdir())]


def _service_version() -> dict[str, Any]:
    (found,) = (each for each in MANIFESTS if each["kind"] == "ClusterServiceVersion")
    return dict(found)


def _install() -> dict[str, Any]:
    spec: dict[str, Any] = _service_version()["spec"]["install"]["spec"]
    return spec


def test_the_rights_in_all_namespaces_are_those_of_the_chart() -> None:
    (permission,) = _install()["clusterPermissions"]

    rights = {access for rule in permission["rules"] for access in of_rule(rule)}

    assert (permission["serviceAccountName"], rights) == (ACCOUNT, documented(["Cluster", "DelayTopics"]))


def test_the_rights_in_its_own_namespace_are_bound_there_alone() -> None:
    bindings = [{**each, "metadata": {**each["metadata"], "namespace": "own"}} for each in MANIFESTS]

    assert granted(bindings, ACCOUNT, "own") == documented(["Relays", "Secrets", "Own"])
    assert granted(bindings, ACCOUNT, "other") == set()
    assert "permissions" not in _install()


def test_its_deployment_runs_as_the_account_that_has_the_rights_with_the_configuration_that_is_there() -> None:
    (deployment,) = _install()["deployments"]
    pod = deployment["spec"]["template"]["spec"]
    config = next(volume["configMap"]["name"] for volume in pod["volumes"] if volume["name"] == "config")

    assert pod["serviceAccountName"] == ACCOUNT
    assert config in {each["metadata"]["name"] for each in MANIFESTS if each["kind"] == "ConfigMap"}


def test_its_definitions_are_the_generated_ones_and_all_are_owned() -> None:
    definitions = [each for each in MANIFESTS if each["kind"] == "CustomResourceDefinition"]

    assert definitions == [yaml.safe_load(text_of(path)) for path in sorted(CRDS.glob("delaytopic.dev_*.yaml"))]
    assert {each["name"] for each in _service_version()["spec"]["customresourcedefinitions"]["owned"]} == {
        each["metadata"]["name"] for each in definitions
    }


def test_its_version_is_that_of_the_chart_and_its_examples_are_ones_that_delaytopic_takes() -> None:
    version = yaml.safe_load(text_of(CHART / "Chart.yaml"))["version"]
    metadata = _service_version()["metadata"]
    examples = json.loads(metadata["annotations"]["alm-examples"])

    assert metadata["name"] == f"delaytopic.v{version}"
    assert [load_document(each).metadata.name for each in examples] == ["standard", "order-reminders"]
