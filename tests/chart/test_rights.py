"""The rights that rendered roles grant to the operator, by namespace, against the chart's table."""

from __future__ import annotations

import pytest
from charts.tools.kustomize import NAMESPACE
from tests.support.chart.helm import EVERYTHING, NAMESPACES, ChartHelm, named, of_kind
from tests.support.chart.rights import documented, granted

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


def test_the_driver_of_audits_may_make_and_remove_pods_where_relays_run_and_nothing_else(helm: ChartHelm) -> None:
    documents = helm.template("--values", str(EVERYTHING))
    role = named(documents, "ClusterRole", f"{NAMESPACE}:delaytopic:audit-driver")

    bindings = [each for each in documents if each.get("roleRef", {}).get("name") == role["metadata"]["name"]]

    assert role["rules"] == [
        {
            "apiGroups": [""],
            "resources": ["pods"],
            "verbs": ["get", "list", "watch", "create", "delete", "deletecollection"],
        }
    ]
    where = [NAMESPACE, "delay-relays"]
    assert [(each["kind"], each["metadata"]["namespace"]) for each in bindings] == [("RoleBinding", at) for at in where]
    assert [each["subjects"] for each in bindings] == [
        [{"kind": "ServiceAccount", "name": "audit-driver", "namespace": namespace}] for namespace in where
    ]


@pytest.mark.parametrize(
    ("values", "accounts"),
    [
        (["driverAccount=driver"], ["driver"]),
        (["driverAccount=driver", "serviceAccount=audits"], ["driver"]),
        (["driverAccount=audits", "serviceAccount=audits"], []),
        ([], []),
    ],
    ids=["an account", "beside that of a cloud", "the same as that of a cloud", "none"],
)
def test_the_drivers_account_is_made_unless_it_is_there_for_the_clouds_sake(
    helm: ChartHelm, values: list[str], accounts: list[str]
) -> None:
    options = [word for value in values for word in ("--set", f"operator.audit.{value}")]

    found = of_kind(helm.template(*options), "ServiceAccount")

    assert [each["metadata"]["name"] for each in found if each["metadata"]["name"] != "delaytopic"] == accounts
    assert {each["automountServiceAccountToken"] for each in found if each["metadata"]["name"] in accounts} <= {False}


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
