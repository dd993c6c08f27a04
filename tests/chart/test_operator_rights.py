"""The operator with the rights that the chart gives it, on an API server: they are enough, and needed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playground.kube.control_plane import OwnControlPlane
from tests.chart.test_access import SCOPES
from tests.cluster.access import done
from tests.harness.names import unique
from tests.harness.shared_servers import KafkaAddress
from tests.support.chart.helm import ChartHelm
from tests.support.chart.rights import documented
from tests.support.operator.platform import QUICK
from tests.support.operator.process import OperatorProcess
from tests.support.relay.process import wait_for

RIGHTS = ("ServiceAccount", "ClusterRole", "ClusterRoleBinding", "RoleBinding")

# Every day test_access holds that the table has the rights that the code needs, and test_rights that the chart grants
# those of the table.
pytestmark = [pytest.mark.integration, pytest.mark.kubernetes, pytest.mark.nightly]


def _namespace(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def _delay_class(name: str, kafka: KafkaAddress) -> dict[str, Any]:
    return {
        "apiVersion": "delaytopic.dev/v1beta1",
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
        "apiVersion": "delaytopic.dev/v1beta1",
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
    watch: str, own_control_plane: OwnControlPlane, helm: ChartHelm, kafka: KafkaAddress, tmp_path: Path
) -> None:
    # Given a release's roles, and a class; on a cluster where an operator of all namespaces finds no DelayTopics of
    # other tests
    cluster = own_control_plane
    own, team, kubectl = unique(f"delays-{watch}"), unique(f"shop-{watch}"), cluster.kubectl
    watched = [team] if watch == "one" else []
    values = [part for name in watched for part in ("--set", f"watchNamespaces={{{name}}}")]
    roles = [each for each in helm.template(*values, namespace=own) if each["kind"] in RIGHTS]
    kubectl.apply([_namespace(own), _namespace(team), *roles, _delay_class(own, kafka)])
    kubeconfig = cluster.kubeconfig_for_service_account(own, "delaytopic")
    audit = {"schedule": "H * * * *", "ledger": "s3a://audit/ledger"}
    settings: dict[str, object] = {**QUICK, "watchNamespaces": watched, "relayNamespaces": [], "audit": audit}
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
