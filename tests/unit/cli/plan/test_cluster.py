"""Tests of what a plan reads of a cluster."""

from __future__ import annotations

import json
from typing import Any, ClassVar

import pytest

from delaytopic_cli.kubectl.client import Kubectl, KubectlFailed
from delaytopic_cli.plan.cluster import read_cluster
from delaytopic_operator.config import OperatorConfig
from delaytopic_operator.offline.documents import Documents


class ClusterWith(Kubectl):
    """A cluster that has nothing but operators' settings: the namespaces that each looks after, by its own."""

    operators: ClassVar[dict[str, list[str]]] = {}

    def items(self, *arguments: str) -> list[dict[str, Any]]:
        if arguments[0] != "configmaps":
            return []
        # In the usual namespace of an operator lives the first of them.
        seen = None if "--all-namespaces" in arguments else 1
        return [{"data": {"operator.yaml": _settings(*each)}} for each in [*self.operators.items()][:seen]]

    def find(self, kind: str, name: str) -> dict[str, Any] | None:
        return None


def _settings(namespace: str, watched: list[str]) -> str:
    head = {"apiVersion": "delaytopic.dev/v1beta1", "kind": "OperatorConfig"}
    return json.dumps({**head, "namespace": namespace, "watchNamespaces": watched})


SEVERAL = "settings of several operators are to be seen: the defaults are taken, or name some: --operator-config"


@pytest.mark.parametrize(
    ("operators", "namespace", "notes"),
    [
        ({"platform": []}, "platform", []),
        ({"platform": ["billing"]}, "platform", []),
        ({"platform": ["billing"], "second": ["shop", "tea"]}, "second", []),
        (
            {},
            OperatorConfig().namespace,
            ["the operator's settings are not to be seen: the defaults are taken, or name some: --operator-config"],
        ),
        ({"platform": [], "second": ["shop"]}, OperatorConfig().namespace, [SEVERAL]),
        ({"platform": ["billing"], "second": ["tea"]}, OperatorConfig().namespace, [SEVERAL]),
    ],
    ids=["the only one", "the only one, for others", "who looks after it", "none", "two look after it", "nobody does"],
)
def test_the_settings_of_the_operator_that_looks_after_the_documents_are_taken(
    monkeypatch: pytest.MonkeyPatch, operators: dict[str, list[str]], namespace: str, notes: list[str]
) -> None:
    monkeypatch.setattr(ClusterWith, "operators", operators)

    state = read_cluster(ClusterWith(), Documents([_named("DelayTopic")], [], []), None)

    assert (state.config.namespace, [each for each in state.notes if "settings" in each]) == (namespace, notes)


class ClusterOfNamespaces(Kubectl):
    """A cluster with namespaces that may be read one by one, and perhaps listed."""

    may_list = True

    def items(self, *arguments: str) -> list[dict[str, Any]]:
        if arguments != ("namespaces",):
            return []
        if not self.may_list:
            raise KubectlFailed("namespaces is forbidden", "Forbidden")
        return [_namespace("shop"), _namespace("billing")]

    def find(self, kind: str, name: str) -> dict[str, Any] | None:
        return _namespace(name) if name in ("shop", "billing") else None


def _namespace(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name}}


def _named(kind: str) -> dict[str, Any]:
    return {"kind": kind, "metadata": {"name": "named", "namespace": "shop"}}


@pytest.mark.parametrize(
    ("documents", "may_list", "read"),
    [
        (Documents([_named("DelayTopic")], [], [_namespace("new")]), True, {"shop": True, "new": False}),
        (
            Documents([], [_named("DelayClass")], [_namespace("new")]),
            True,
            {"shop": True, "billing": True, "new": False},
        ),
        (Documents([_named("DelayTopic")], [_named("DelayClass")], []), False, {"shop": True}),
    ],
)
def test_namespaces_are_read_that_the_documents_may_take_rights_from(
    monkeypatch: pytest.MonkeyPatch, documents: Documents, may_list: bool, read: dict[str, bool]
) -> None:
    monkeypatch.setattr(ClusterOfNamespaces, "may_list", may_list)

    state = read_cluster(ClusterOfNamespaces(), documents, OperatorConfig())

    assert {name: each is not None for name, each in state.namespaces.items()} == read


class ClusterOfRecurringRecords(Kubectl):
    """A cluster with a RecurringRecord in each namespace, which may be listed in one of them alone, or in all."""

    may_list = False

    def items(self, *arguments: str) -> list[dict[str, Any]]:
        if arguments[:1] != ("recurringrecords",):
            return []
        if self.may_list:
            return [_named("RecurringRecord")] * 2
        if self.namespace != "shop":
            raise KubectlFailed("recurringrecords is forbidden", "Forbidden")
        return [_named("RecurringRecord")]

    def within(self, namespace: str | None) -> Kubectl:
        return ClusterOfRecurringRecords(namespace=namespace)

    def find(self, kind: str, name: str) -> dict[str, Any] | None:
        return _namespace(name)


def test_recurring_records_are_read_where_the_documents_have_some() -> None:
    elsewhere = {"kind": "RecurringRecord", "metadata": {"name": "named", "namespace": "billing"}}

    state = read_cluster(
        ClusterOfRecurringRecords(), Documents([], [], [], [_named("RecurringRecord"), elsewhere]), OperatorConfig()
    )

    assert (state.recurring, [*state.namespaces]) == ([_named("RecurringRecord")], ["billing", "shop"])
    assert state.notes == [
        "RecurringRecords of billing may not be listed: those of the files are taken to be new, and what becomes of "
        "others is not told",
    ]


@pytest.mark.parametrize(
    ("may_list", "records", "notes"),
    [
        (True, 2, []),
        (False, 1, ["RecurringRecords of other namespaces may not be listed: what becomes of them is not told"]),
    ],
)
def test_with_a_class_the_recurring_records_of_all_namespaces_are_read(
    monkeypatch: pytest.MonkeyPatch, may_list: bool, records: int, notes: list[str]
) -> None:
    monkeypatch.setattr(ClusterOfRecurringRecords, "may_list", may_list)

    documents = Documents([_named("DelayTopic")], [_named("DelayClass")], [])
    state = read_cluster(ClusterOfRecurringRecords(), documents, OperatorConfig())

    assert (len(state.recurring), state.notes) == (records, notes)
