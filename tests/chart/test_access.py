"""The rights of the operator against what its code does."""

from __future__ import annotations

from charts.tools.places import CHART, text_of
from tests.cluster.access import Access
from tests.support.chart.calls import needed_rights
from tests.support.chart.rights import documented, table

from delaytopic_operator.model import kinds
from delaytopic_operator.runtime.manager import LEASE_NAME

SCOPES = ("Cluster", "DelayTopics", "Default", "Relays", "Secrets", "Strimzi", "Token", "Own")


def test_every_call_of_the_code_is_allowed_by_the_table_and_nothing_else_is() -> None:
    given = {right._replace(name="") for right in documented(SCOPES)}

    needed = needed_rights()

    assert given == needed


def test_the_code_is_really_read() -> None:
    needed = needed_rights()

    assert {
        Access("get", "", "secrets"),
        Access("get", "", "namespaces"),
        Access("watch", "delaytopic.dev", "delaytopics"),
        Access("create", "apps", "deployments"),
        Access("patch", "delaytopic.dev", "delaytopics/status"),
        Access("patch", "events.k8s.io", "events"),
        Access("update", "coordination.k8s.io", "leases"),
    } <= needed


def test_secrets_are_read_by_name_and_made_and_neither_listed_nor_changed() -> None:
    assert {right.verb for right in documented(SCOPES) if right.resource == "secrets"} == {"get", "create"}


def test_nothing_is_granted_by_wildcard_and_no_right_grants_others() -> None:
    rights = documented(SCOPES)

    assert not any("*" in "".join(right) for right in rights)
    assert not any(right.group == "rbac.authorization.k8s.io" for right in rights)
    assert not rights & {Access("create", "", "pods"), Access("create", "", "serviceaccounts/token")}


def test_the_lease_of_the_table_is_the_one_that_the_operator_holds() -> None:
    rows = [row for row in table() if row["resources"] == [kinds.LEASE.plural] and "names" in row]

    assert [row["names"] for row in rows] == [[LEASE_NAME]]


def test_every_row_has_a_scope_that_the_chart_binds_and_says_why() -> None:
    template = text_of(CHART / "templates/operator-access.yaml")

    assert {row["scope"] for row in table()} == set(SCOPES)
    assert all(f'"scope" "{scope}"' in template for scope in SCOPES)
    assert all(len(row["why"]) > 3 for row in table())
