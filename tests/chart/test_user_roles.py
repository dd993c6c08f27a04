"""What the chart lets people do, by the API server's own roles."""

from __future__ import annotations

from typing import Any

import pytest
from tests.chart.helm import ChartHelm, of_kind
from tests.cluster.access import Access, may
from tests.cluster.awaiting import await_object
from tests.cluster.control_plane import ControlPlane

pytestmark = [pytest.mark.integration, pytest.mark.kubernetes]

QUESTIONS = {
    f"{verb} {resource}": Access(verb, group, resource)
    for verb, group, resource in (
        ("get", "delaytopic.dev", "delaytopics"),
        ("create", "delaytopic.dev", "delaytopics"),
        ("delete", "delaytopic.dev", "delaytopics"),
        ("patch", "delaytopic.dev", "delaytopics/scale"),
        ("get", "delaytopic.dev", "delaytopics/status"),
        ("patch", "delaytopic.dev", "delaytopics/status"),
        ("get", "", "secrets"),
        ("create", "delaytopic.dev", "delayclasses"),
    )
}


def _binding(namespace: str, role: str) -> dict[str, Any]:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": role, "namespace": namespace},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": f"somebody-who-may-{role}"}],
    }


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
                "get delaytopics/status",
                "get secrets",
            ],
        ),
    ],
)
def test_the_clusters_own_roles_let_people_see_and_change_delay_topics_of_their_namespace_and_no_more(
    control_plane: ControlPlane, namespace: str, helm: ChartHelm, role: str, allowed: list[str]
) -> None:
    roles = [each for each in of_kind(helm.template(), "ClusterRole") if ":" not in each["metadata"]["name"]]
    control_plane.kubectl.apply([*roles, _binding(namespace, role)])
    user = control_plane.client_for_user(f"somebody-who-may-{role}")
    # The controller-manager aggregates roles some time after they came.
    aggregated = {"view": 1, "edit": 2}[role]
    path = f"/apis/rbac.authorization.k8s.io/v1/clusterroles/{role}"
    await_object(control_plane.client, path, lambda found: str(found).count("delaytopics'") >= aggregated)

    granted = [question for question, access in QUESTIONS.items() if may(user, access, namespace)]

    assert granted == allowed
