"""The whole way of a record with no more rights than the chart gives, in namespaces of Pod Security `restricted`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.chart.helm import ChartHelm
from tests.chart.rights import documented
from tests.cluster.access import allowed
from tests.cluster.control_plane import ControlPlane
from tests.cluster.fixtures import helm_program
from tests.cluster.kube_client import RequestRefused
from tests.cluster.node import LocalNode
from tests.support.app_team import AppTeam
from tests.support.platform import Platform
from tests.support.running_platform import running_platform

from delaytopic_cli.embedded.kafka_server import KafkaServer
from delaytopic_cli.embedded.redis_server import RedisServer

__all__ = ["helm_program"]

pytestmark = [pytest.mark.integration, pytest.mark.kubernetes]

RESTRICTED = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "warn", "audit")}
RIGHTS = ("ServiceAccount", "ClusterRole", "ClusterRoleBinding", "RoleBinding")
ACCOUNT = "delaytopic"
RELAYS = "app.kubernetes.io/managed-by=delaytopic-operator"


@pytest.fixture(scope="module")
def narrow(
    control_plane: ControlPlane,
    node: LocalNode,
    kafka: KafkaServer,
    redis: RedisServer,
    helm_program: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Platform]:
    """A platform whose operator logs in as the chart's ServiceAccount."""
    directory = tmp_path_factory.mktemp("narrow")
    roles: list[str] = []

    def log_in(own: str, team: str) -> Path:
        chart = ChartHelm(helm_program, directory)
        rendered = chart.template("--set", f"watchNamespaces={{{team}}}", release=own, namespace=own)
        given = [each for each in rendered if each["kind"] in RIGHTS]
        control_plane.kubectl.apply(given)
        roles.extend(
            f"{each['kind']}/{each['metadata']['name']}" for each in given if each["kind"].startswith("Cluster")
        )
        account = next(each["metadata"]["name"] for each in given if each["kind"] == "ServiceAccount")
        return control_plane.kubeconfig_for_service_account(own, account)

    with running_platform(control_plane, node, kafka, redis, directory, labels=RESTRICTED, log_in=log_in) as platform:
        yield platform
    control_plane.kubectl("delete", *roles)


def test_a_record_arrives_and_nothing_was_denied(narrow: Platform, tmp_path: Path) -> None:
    mark = narrow.plane.audit.mark()
    narrow.apply_topic("narrow")
    narrow.await_condition("narrow", "Ready", seconds=60)
    team = AppTeam.of(narrow, "narrow", tmp_path)

    team.send_due_in([0, 1_000])
    verdict = team.audited()
    narrow.delete_topic("narrow")
    narrow.await_gone("narrow", seconds=60)

    assert (verdict.faults, verdict.delivered) == ({}, 2)
    calls = narrow.plane.audit.calls(mark, agent="delaytopic-operator")
    assert [call for call in calls if not call.user.startswith(f"system:serviceaccount:{narrow.namespace}:")] == []
    assert [call for call in calls if call.code in (401, 403)] == []


def test_what_the_account_may_do_is_what_the_table_says(narrow: Platform) -> None:
    account = narrow.plane.kubectl.json("get", "serviceaccounts", "-n", narrow.namespace)["items"]
    names = [each["metadata"]["name"] for each in account]
    name = next(each for each in names if each != "default" and "relay" not in each)
    client = narrow.plane.client_for_service_account(narrow.namespace, name)

    of_own_namespace = allowed(client, narrow.namespace)
    of_the_teams = allowed(client, narrow.team)

    everything = documented(("Cluster", "DelayTopics", "Watched", "Relays", "Secrets", "Strimzi", "Own"))
    assert of_own_namespace - everything == set()
    assert of_the_teams - documented(("Cluster", "DelayTopics", "Watched", "Strimzi", "Secrets")) == set()
    assert {right.verb for right in of_own_namespace if right.resource == "secrets"} <= {"get"}


def test_a_pod_that_is_not_restricted_is_refused_where_relays_run(narrow: Platform) -> None:
    container = {"name": "shell", "image": "busybox", "securityContext": {"privileged": True}}

    with pytest.raises(RequestRefused, match="violates PodSecurity"):
        narrow.client.create(
            f"/api/v1/namespaces/{narrow.namespace}/pods",
            {"metadata": {"name": "shell"}, "spec": {"containers": [container]}},
        )


def test_relays_have_a_network_policy(narrow: Platform) -> None:
    narrow.apply_topic("fenced")
    narrow.await_condition("fenced", "Ready", seconds=60)

    path = f"/apis/networking.k8s.io/v1/namespaces/{narrow.namespace}/networkpolicies"
    policies = narrow.client.get(path, labelSelector=f"{RELAYS},delaytopic.dev/name=fenced")["items"]

    assert [sorted(policy["spec"]["policyTypes"]) for policy in policies] == [["Egress", "Ingress"]]
