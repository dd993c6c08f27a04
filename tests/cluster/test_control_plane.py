"""The control plane refuses: where it did not, tests of rights and of pods would pass whatever the product does."""

from __future__ import annotations

import pytest
from playground.kube.control_plane import ControlPlane
from playground.kube.kube_client import RequestRefused
from tests.cluster.access import Access, allowed, done, may
from tests.cluster.fixtures import MakeNamespace

from delaytopic_process.waiting import wait_until

pytestmark = [pytest.mark.integration, pytest.mark.kubernetes]


def test_pods_below_the_standard_that_a_namespace_enforces_are_refused(
    control_plane: ControlPlane, make_namespace: MakeNamespace
) -> None:
    namespace = make_namespace(labels={"pod-security.kubernetes.io/enforce": "restricted"})
    container = {"name": "c", "image": "i", "securityContext": {"privileged": True}}

    with pytest.raises(RequestRefused, match="violates PodSecurity"):
        control_plane.client.create(
            f"/api/v1/namespaces/{namespace}/pods", {"metadata": {"name": "p"}, "spec": {"containers": [container]}}
        )


def test_rights_are_compared_with_what_was_done(control_plane: ControlPlane, namespace: str) -> None:
    control_plane.kubectl("create", "role", "r", "--verb=get,list", "--resource=configmaps", "-n", namespace)
    control_plane.kubectl(
        "create", "rolebinding", "r", "--role=r", f"--serviceaccount={namespace}:default", "-n", namespace
    )
    agent = f"program-of-{namespace}"
    client = control_plane.client_for_service_account(namespace, "default", agent=agent)
    # The server's authorizer learns of a role a moment after everybody else.
    wait_until(lambda: may(client, Access("list", "", "configmaps"), namespace), timeout_seconds=30)
    mark = control_plane.audit.mark()
    client.get(f"/api/v1/namespaces/{namespace}/configmaps")

    wanted = {Access("get", "", "configmaps"), Access("list", "", "configmaps")}
    assert allowed(client, namespace) == wanted
    assert done(control_plane.audit.calls(mark, agent=agent)) == {Access("list", "", "configmaps")}
    assert may(client, Access("list", "", "configmaps"), namespace)
    assert not may(client, Access("list", "", "configmaps"))
    assert not may(client, Access("update", "apps", "deployments/scale"), namespace)
