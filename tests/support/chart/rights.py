"""The operator's rights as sets: those of the chart's table, and those that rendered roles grant."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import yaml
from charts.tools.kustomize import NAMESPACE
from charts.tools.places import CHART, text_of
from playground.kube.kube_client import Object
from tests.cluster.access import Access, of_rule
from tests.support.chart.helm import of_kind


def table() -> list[dict[str, Any]]:
    """The rows of files/access.yaml."""
    rows: list[dict[str, Any]] = yaml.safe_load(text_of(CHART / "files/access.yaml"))
    return rows


def documented(scopes: Iterable[str]) -> set[Access]:
    """Return the rights that the table gives where these scopes hold."""
    wanted = set(scopes)
    return {
        Access(verb, row["apiGroup"], resource, name)
        for row in table()
        if row["scope"] in wanted
        for resource in row["resources"]
        for verb in row["verbs"]
        for name in row.get("names", [""])
    }


def granted(documents: Sequence[Object], account: str, namespace: str) -> set[Access]:
    """Return the rights of a ServiceAccount of `NAMESPACE` in a namespace, cluster-wide ones included.

    Reads rendered bindings as the API server does; a nightly test compares both. A role that is not among the
    documents is a KeyError.
    """
    subject = {"kind": "ServiceAccount", "name": account, "namespace": NAMESPACE}
    rules = {(role["kind"], role["metadata"]["name"]): role["rules"] for role in of_kind(documents, "ClusterRole")}
    bindings = [
        *of_kind(documents, "ClusterRoleBinding"),
        *(each for each in of_kind(documents, "RoleBinding") if each["metadata"]["namespace"] == namespace),
    ]
    return {
        access
        for binding in bindings
        if subject in binding["subjects"]
        for rule in rules[binding["roleRef"]["kind"], binding["roleRef"]["name"]]
        for access in of_rule(rule)
    }
