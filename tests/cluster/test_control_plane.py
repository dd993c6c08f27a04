"""The control plane of the tests is a real one: it answers, cleans up after itself, and refuses."""

from __future__ import annotations

import pytest
from tests.cluster.access import Access, may
from tests.cluster.audit import by_verb
from tests.cluster.awaiting import await_object
from tests.cluster.control_plane import ControlPlane
from tests.cluster.fixtures import MakeNamespace
from tests.cluster.kube_client import RequestRefused
from tests.harness.names import unique

from delaytopic_process.waiting import wait_until

pytestmark = [pytest.mark.integration, pytest.mark.kubernetes]


def test_the_server_and_its_client_are_of_the_same_version(control_plane: ControlPlane) -> None:
    versions = control_plane.kubectl.json("version")

    assert versions["serverVersion"]["gitVersion"] == versions["clientVersion"]["gitVersion"]


@pytest.mark.nightly  # the controller of namespaces takes five seconds
def test_a_namespace_goes_with_everything_in_it(control_plane: ControlPlane, namespace: str) -> None:
    client, path = control_plane.client, f"/api/v1/namespaces/{namespace}"
    client.create(f"{path}/configmaps", {"metadata": {"name": "one"}, "data": {"a": "b"}})

    client.delete(path)

    assert wait_until(lambda: client.find(path) is None, timeout_seconds=30)


def test_what_has_an_owner_goes_with_it(control_plane: ControlPlane, namespace: str) -> None:
    client, path = control_plane.client, f"/api/v1/namespaces/{namespace}/configmaps"
    owner = client.create(path, {"metadata": {"name": "owner"}})
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}
    client.create(path, {"metadata": {"name": "child", "ownerReferences": [reference]}})

    client.delete(f"{path}/owner")

    assert wait_until(lambda: client.find(f"{path}/child") is None, timeout_seconds=30)


def test_a_user_may_do_what_a_role_says_and_no_more(control_plane: ControlPlane, namespace: str) -> None:
    control_plane.kubectl("create", "role", "reader", "--verb=get", "--resource=configmaps", "-n", namespace)
    team = unique("team")
    control_plane.kubectl("create", "rolebinding", "reader", "--role=reader", f"--group={team}", "-n", namespace)
    client = control_plane.client_for_user(unique("ann"), groups=[team])
    path = f"/api/v1/namespaces/{namespace}/configmaps/kube-root-ca.crt"
    await_object(control_plane.client, path, lambda found: found is not None)
    # The server's authorizer learns of a role a moment after everybody else.
    wait_until(lambda: may(client, Access("get", "", "configmaps"), namespace), timeout_seconds=30)

    found = client.get(path)
    with pytest.raises(RequestRefused) as refused:
        client.get(f"/api/v1/namespaces/{namespace}/configmaps")

    assert (found["kind"], refused.value.reason) == ("ConfigMap", "Forbidden")


def test_a_service_account_connects_by_its_own_kubeconfig(control_plane: ControlPlane, namespace: str) -> None:
    kubeconfig = control_plane.kubeconfig_for_service_account(namespace, "default")

    who = control_plane.kubectl_with(kubeconfig).json("auth", "whoami")

    assert who["status"]["userInfo"]["username"] == f"system:serviceaccount:{namespace}:default"


def test_pods_below_the_standard_that_a_namespace_enforces_are_refused(
    control_plane: ControlPlane, make_namespace: MakeNamespace
) -> None:
    namespace = make_namespace(labels={"pod-security.kubernetes.io/enforce": "restricted"})
    container = {"name": "c", "image": "i", "securityContext": {"privileged": True}}

    with pytest.raises(RequestRefused, match="violates PodSecurity"):
        control_plane.client.create(
            f"/api/v1/namespaces/{namespace}/pods", {"metadata": {"name": "p"}, "spec": {"containers": [container]}}
        )


def test_calls_are_counted_by_who_made_them(control_plane: ControlPlane, namespace: str) -> None:
    bob = unique("bob")
    client = control_plane.client_for_user(bob, groups=["system:masters"], agent=f"{bob}-program")
    mark, path = control_plane.audit.mark(), f"/api/v1/namespaces/{namespace}/configmaps"

    client.create(path, {"metadata": {"name": "one"}})
    version = client.get(path)["metadata"]["resourceVersion"]
    watch = client.watch(path, version, seconds=60)
    watch.close()
    control_plane.client.get(path)

    calls = control_plane.audit.calls(mark, agent=f"{bob}-")
    assert by_verb(calls) == {"create": 1, "list": 1, "watch": 1}
    assert calls == control_plane.audit.calls(mark, user=bob)
