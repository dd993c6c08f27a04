"""The rights of people, through the API server's own roles view and edit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playground.kube.awaiting import await_object
from playground.kube.control_plane import ControlPlane
from playground.kube.kube_client import Object
from tests.cluster.access import Access, may
from tests.harness.names import unique
from tests.support.chart.helm import ChartHelm, of_kind

from delaytopic_process.waiting import wait_until

pytestmark = [pytest.mark.integration, pytest.mark.kubernetes]

ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
QUESTIONS = {
    f"{verb} {resource}": Access(verb, group, resource)
    for verb, group, resource in (
        ("get", "delaytopic.dev", "delaytopics"),
        ("create", "delaytopic.dev", "delaytopics"),
        ("delete", "delaytopic.dev", "delaytopics"),
        ("patch", "delaytopic.dev", "delaytopics/scale"),
        ("update", "delaytopic.dev", "delaytopics/records"),
        ("get", "delaytopic.dev", "delaytopics/status"),
        ("patch", "delaytopic.dev", "delaytopics/status"),
        ("get", "", "secrets"),
        ("create", "delaytopic.dev", "delayclasses"),
    )
}


@pytest.fixture(scope="module")
def roles(control_plane: ControlPlane, helm: ChartHelm) -> Iterator[list[Object]]:
    """The chart's roles for people, applied."""
    rendered = of_kind(helm.template(release=unique("people")), "ClusterRole")
    found = [each for each in rendered if ":" not in each["metadata"]["name"]]
    control_plane.kubectl.apply(found)
    yield found
    control_plane.kubectl("delete", "clusterrole", *(each["metadata"]["name"] for each in found))


def _binding(namespace: str, role: str, user: str) -> dict[str, Any]:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": role, "namespace": namespace},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
    }


def _await_aggregation(control_plane: ControlPlane, roles: list[Object], into: str) -> None:
    """Wait until one of the API server's own roles has all the rules that are meant for it."""
    label = f"rbac.authorization.k8s.io/aggregate-to-{into}"
    rules = [rule for role in roles if label in role["metadata"]["labels"] for rule in role["rules"]]
    assert rules

    def has_all(found: Object | None) -> bool:
        return all(rule in (found or {})["rules"] for rule in rules)

    await_object(control_plane.client, f"{ROLES}/{into}", has_all)


@pytest.mark.parametrize(
    ("role", "allowed"),
    [
        ("view", ["get delaytopics", "get delaytopics/status"]),
        (
            "edit",
            [
                "get delaytopics",
                "create delaytopics",
                "delete delaytopics",
                "patch delaytopics/scale",
                "update delaytopics/records",
                "get delaytopics/status",
                "get secrets",
            ],
        ),
    ],
)
def test_the_clusters_own_roles_let_people_see_and_change_delay_topics_of_their_namespace_and_no_more(
    control_plane: ControlPlane, namespace: str, roles: list[Object], role: str, allowed: list[str]
) -> None:
    user = unique("somebody")
    control_plane.kubectl.apply([_binding(namespace, role, user)])
    client = control_plane.client_for_user(user)
    _await_aggregation(control_plane, roles, into=role)

    def granted() -> list[str]:
        return [question for question, access in QUESTIONS.items() if may(client, access, namespace)]

    # The server's authorizer learns of a role a moment after everybody else.
    wait_until(lambda: granted() == allowed, timeout_seconds=30)

    assert granted() == allowed
