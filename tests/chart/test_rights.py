"""The rights that rendered roles grant to the operator, by namespace, against the chart's table."""

from __future__ import annotations

import pytest
from charts.tools.kustomize import NAMESPACE
from tests.chart.helm import EVERYTHING, NAMESPACES, ChartHelm
from tests.chart.rights import documented, granted

pytestmark = pytest.mark.integration


def test_the_operator_has_the_rights_of_the_table_and_no_others_by_namespace(helm: ChartHelm) -> None:
    documents = helm.template("--values", str(EVERYTHING))

    found = {namespace: granted(documents, "operator-of-delays", namespace) for namespace in (*NAMESPACES, "default")}

    assert found == {
        NAMESPACE: documented(["Cluster", "Relays", "Secrets", "Own"]),
        "delay-relays": documented(["Cluster", "Relays", "Secrets"]),
        "shop": documented(["Cluster", "DelayTopics"]),
        "billing": documented(["Cluster", "DelayTopics", "Secrets"]),
        "kafka": documented(["Cluster", "Strimzi"]),
        "elsewhere": documented(["Cluster"]),
        "default": documented(["Cluster", "Default"]),
    }


@pytest.mark.parametrize(
    ("values", "elsewhere"),
    [
        ([], ["Cluster", "DelayTopics"]),
        (["--set", "relaysEverywhere=true"], ["Cluster", "DelayTopics", "Relays"]),
        (["--set", "secretsEverywhere=true"], ["Cluster", "DelayTopics", "Secrets"]),
        (["--set", "watchNamespaces={shop}"], ["Cluster"]),
        (["--set", "watchNamespaces={shop},relaysEverywhere=true"], ["Cluster", "Relays"]),
        (["--set", "rbac.create=false"], []),
    ],
    ids=[
        "own values",
        "relays everywhere",
        "secrets everywhere",
        "one namespace watched",
        "one watched, relays everywhere",
        "no roles",
    ],
)
def test_a_namespace_that_is_not_named_gives_the_operator_only_what_is_meant_for_all(
    helm: ChartHelm, values: list[str], elsewhere: list[str]
) -> None:
    documents = helm.template(*values)

    found = granted(documents, "delaytopic", "elsewhere")

    assert found == documented(elsewhere)
