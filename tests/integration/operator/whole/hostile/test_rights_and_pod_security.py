"""The whole way of a record with no more rights than the chart gives, in namespaces of Pod Security `restricted`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playground.kube.control_plane import ControlPlane
from playground.kube.kube_client import Object, RequestRefused
from playground.kube.request_log import Call
from tests.cluster.access import allowed
from tests.cluster.node.local_node import LocalNode
from tests.harness.shared_servers import KafkaAddress, RedisAddress
from tests.support.chart.helm import ChartHelm
from tests.support.chart.rights import documented
from tests.support.operator.app_team import AppTeam
from tests.support.operator.platform import Platform
from tests.support.operator.running_platform import running_platform

from delaytopic_local.verifier.verdict import Verdict

pytestmark = [pytest.mark.integration, pytest.mark.kubernetes]

RESTRICTED = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "warn", "audit")}
RIGHTS = ("ServiceAccount", "ClusterRole", "ClusterRoleBinding", "RoleBinding")


@pytest.fixture(scope="module")
def narrow(
    control_plane: ControlPlane,
    node: LocalNode,
    kafka: KafkaAddress,
    redis: RedisAddress,
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

    given: dict[str, Any] = {"labels": RESTRICTED, "log_in": log_in, "relayNamespaces": []}
    with running_platform(control_plane, node, kafka, redis, directory, **given) as platform:
        yield platform
    control_plane.kubectl("delete", *roles)


@dataclass(frozen=True)
class Life:
    """A DelayTopic from its making to its end: what was seen while it was ready, and what the operator asked."""

    verdict: Verdict
    policies: list[Object]
    calls: list[Call]


@pytest.fixture(scope="module")
def life(narrow: Platform, tmp_path_factory: pytest.TempPathFactory) -> Life:
    mark = narrow.plane.audit.mark()
    narrow.apply_topic("narrow")
    narrow.await_condition("narrow", "Ready", seconds=60)
    policies = narrow.objects("networkpolicies", "networking.k8s.io/v1", "narrow")
    team = AppTeam.of(narrow, "narrow", tmp_path_factory.mktemp("narrow"))
    team.send_due_in([0, 1_000])
    verdict = team.audited()
    narrow.delete_topic("narrow")
    narrow.await_gone("narrow", seconds=60)
    user = f"system:serviceaccount:{narrow.namespace}:{operators_account(narrow)}"
    return Life(verdict, policies, narrow.plane.audit.calls(mark, user=user))


def operators_account(platform: Platform) -> str:
    listed = platform.client.get(f"/api/v1/namespaces/{platform.namespace}/serviceaccounts")["items"]
    names = [str(each["metadata"]["name"]) for each in listed]
    return next(each for each in names if each != "default" and "relay" not in each)


def test_a_record_arrives(life: Life) -> None:
    assert (life.verdict.faults, life.verdict.delivered) == ({}, 2)


def test_nothing_that_the_operator_asks_for_is_denied(life: Life) -> None:
    assert "delaytopics/status" in {call.resource for call in life.calls}
    assert [call for call in life.calls if call.code in (401, 403)] == []


def test_relays_have_a_network_policy(life: Life) -> None:
    assert [sorted(policy["spec"]["policyTypes"]) for policy in life.policies] == [["Egress", "Ingress"]]


def test_what_the_account_may_do_is_what_the_table_says(narrow: Platform) -> None:
    client = narrow.plane.client_for_service_account(narrow.namespace, operators_account(narrow))

    of_own_namespace = allowed(client, narrow.namespace)
    of_the_teams = allowed(client, narrow.team)

    everything = documented(("Cluster", "DelayTopics", "Relays", "Secrets", "Strimzi", "Own"))
    assert of_own_namespace - everything == set()
    assert of_the_teams - documented(("Cluster", "DelayTopics", "Strimzi", "Secrets")) == set()
    assert {right.verb for right in of_own_namespace if right.resource == "secrets"} <= {"get"}


def test_a_pod_that_is_not_restricted_is_refused_where_relays_run(narrow: Platform) -> None:
    container = {"name": "shell", "image": "busybox", "securityContext": {"privileged": True}}

    with pytest.raises(RequestRefused, match="violates PodSecurity"):
        narrow.client.create(
            f"/api/v1/namespaces/{narrow.namespace}/pods",
            {"metadata": {"name": "shell"}, "spec": {"containers": [container]}},
        )
