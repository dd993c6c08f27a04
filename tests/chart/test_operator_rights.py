"""The real operator with the rights that the chart gives it, on a real API server: they are enough, and needed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.chart.helm import ChartHelm
from tests.chart.rights import documented
from tests.chart.test_access import SCOPES
from tests.cluster.access import done
from tests.cluster.binaries import Programs
from tests.cluster.control_plane import ControlPlane
from tests.cluster.fixtures import custom_resource_definitions
from tests.support.operator_process import OperatorProcess
from tests.support.platform import QUICK
from tests.support.relay_process import wait_for

from delaytopic_cli.embedded.kafka_server import KafkaServer

RIGHTS = ("ServiceAccount", "ClusterRole", "ClusterRoleBinding", "RoleBinding")

pytestmark = [pytest.mark.integration, pytest.mark.kubernetes]


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaServer]:
    with KafkaServer(tmp_path_factory.mktemp("kafka")) as server:
        yield server


@pytest.fixture(scope="module")
def cluster(kubernetes_programs: Programs, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """One of its own: an operator that watches all namespaces would look after other tests' DelayTopics."""
    directory, definitions = tmp_path_factory.mktemp("cluster"), custom_resource_definitions()
    with ControlPlane(kubernetes_programs, directory, before_controllers=definitions) as plane:
        yield plane


def _namespace(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def _delay_class(name: str, kafka: KafkaServer) -> dict[str, Any]:
    return {
        "apiVersion": "delaytopic.dev/v1alpha1",
        "kind": "DelayClass",
        "metadata": {"name": name},
        "spec": {
            "connection": {"bootstrapServers": kafka.bootstrap_servers},
            "backend": {"type": "KafkaBuckets"},
            "defaults": {"partitions": 2, "replicationFactor": 1},
        },
    }


def _delay_topic(team: str, delay_class: str) -> dict[str, Any]:
    return {
        "apiVersion": "delaytopic.dev/v1alpha1",
        "kind": "DelayTopic",
        "metadata": {"name": "reminders", "namespace": team},
        "spec": {
            "delayClassName": delay_class,
            "source": {"topic": f"{team}.reminders.delayed"},
            "target": {"topic": f"{team}.reminders"},
            "deletionPolicy": "Retain",
        },
    }


@pytest.mark.parametrize("watch", ["one", "all"])
def test_the_operator_makes_and_removes_relays_with_the_rights_of_the_chart_and_is_never_denied_one(
    watch: str, cluster: ControlPlane, helm: ChartHelm, kafka: KafkaServer, tmp_path: Path
) -> None:
    # Given a release's roles, and a class
    own, team, kubectl = f"delays-{watch}", f"shop-{watch}", cluster.kubectl
    watched = [team] if watch == "one" else []
    values = [part for name in watched for part in ("--set", f"watchNamespaces={{{name}}}")]
    roles = [each for each in helm.template(*values, namespace=own) if each["kind"] in RIGHTS]
    kubectl.apply([_namespace(own), _namespace(team), *roles, _delay_class(own, kafka)])
    kubeconfig = cluster.kubeconfig_for_service_account(own, "delaytopic")
    audit = {"schedule": "H * * * *", "ledger": "s3a://audit/ledger"}
    settings: dict[str, object] = {**QUICK, "watchNamespaces": watched, "audit": audit}
    operator = OperatorProcess(tmp_path, "operator", kubeconfig, own, settings, "delaytopic_operator")
    deployment = ("get", "deployments", "-n", own, "-l", "app.kubernetes.io/managed-by=delaytopic-operator")

    # When a DelayTopic comes, and goes again
    try:
        operator.start().wait_until("leader")
        kubectl.apply([_delay_topic(team, own)])
        wait_for(lambda: kubectl.json(*deployment)["items"], operator.why)
        kubectl("delete", "delaytopic", "reminders", "-n", team)
        wait_for(lambda: not kubectl.json(*deployment)["items"], operator.why)
        operator.terminate()
    finally:
        operator.stop_whatever_happens()

    # Then nothing was denied, and everything that was done is in the table
    calls = cluster.audit.calls(user=f"system:serviceaccount:{own}:delaytopic")
    used = done(calls)
    assert [call for call in calls if call.code in (401, 403)] == []
    assert used - {right._replace(name="") for right in documented(SCOPES)} == set()
    assert {"deployments", "configmaps", "delaytopics/status", "leases", "cronjobs"} <= {each.resource for each in used}
