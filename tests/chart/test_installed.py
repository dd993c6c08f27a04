"""The chart installed, upgraded and removed on an API server of its own; the rights that the server grants by it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from charts.tools.kustomize import BASE, NAMESPACE
from charts.tools.places import CHART, GITOPS
from images.tools.binaries import Programs
from playground.kube.control_plane import OwnControlPlane
from playground.kube.kubectl import Kubectl
from tests.cluster.access import Access, allowed
from tests.harness.fixtures import prepared
from tests.support.chart.foreign_definitions import foreign_definitions
from tests.support.chart.helm import BARE, EVERYTHING, NAMESPACES, RESTRICTED, TRY, ChartHelm, named
from tests.support.chart.keda_page import SCALED
from tests.support.chart.rights import granted
from tests.support.relay.process import wait_for

from delaytopic_process.waiting import wait_until

pytestmark = [pytest.mark.integration, pytest.mark.kubernetes, pytest.mark.nightly]

DEFINITIONS = ["delayclasses.delaytopic.dev", "delaytopics.delaytopic.dev", "recurringrecords.delaytopic.dev"]
DRAIN_SECONDS = 300.0
MONITORS = ("PodMonitor", "ServiceMonitor", "PrometheusRule")


@pytest.fixture(scope="module")
def empty_cluster(kubernetes_programs: Programs, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnControlPlane]:
    """Without the project's definitions: the chart brings them."""
    with OwnControlPlane(kubernetes_programs, tmp_path_factory.mktemp("empty-cluster")) as plane:
        plane.kubectl.apply(prepared(foreign_definitions))
        plane.kubectl.apply(_namespace(name) for name in NAMESPACES)
        yield plane


def _namespace(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": RESTRICTED}}


def _remove_definitions(kubectl: Kubectl) -> None:
    """Leave the cluster empty to the next test.

    A definition that changed just before is removed once the API server has let go of its former storage, for whose
    watchers it waits up to two minutes.
    """
    kubectl("delete", "crd", *DEFINITIONS, "--wait=false")
    wait_for(lambda: not _definitions(kubectl), lambda: kubectl("get", "crd", "-o", "yaml"), DRAIN_SECONDS)


def _definitions(kubectl: Kubectl) -> list[str]:
    return sorted(
        each["metadata"]["name"]
        for each in kubectl.json("get", "crd")["items"]
        if each["spec"]["group"] == "delaytopic.dev"
    )


def _versions(kubectl: Kubectl) -> dict[str, str]:
    """Every object of the release, with the version that the API server gave it, whatever controllers say of it."""
    kinds = "deployment,configmap,serviceaccount,poddisruptionbudget,networkpolicy,service,statefulset"
    objects = [
        *kubectl.json("get", kinds, "-n", NAMESPACE, "-l", "app.kubernetes.io/part-of=delaytopic")["items"],
        *kubectl.json("get", "clusterrole,clusterrolebinding,crd", "-l", "app.kubernetes.io/part-of=delaytopic")[
            "items"
        ],
    ]
    return {f"{each['kind']}/{each['metadata']['name']}": _version(each["metadata"]) for each in objects}


def _version(metadata: dict[str, Any]) -> str:
    """Of the specification, where there is a status, too: pods that start change the latter at any time."""
    return str(metadata.get("generation", metadata["resourceVersion"]))


def test_the_api_server_accepts_monitors_and_rules_without_a_warning(
    empty_cluster: OwnControlPlane, helm: ChartHelm
) -> None:
    documents = [*helm.template("--values", str(EVERYTHING)), *helm.template("--values", str(BARE))]
    read_by_prometheus = [each for each in documents if each["kind"] in MONITORS]

    result = empty_cluster.kubectl.run(
        "apply", "--server-side", "--dry-run=server", "-f", "-", given=yaml.safe_dump_all(read_by_prometheus)
    )

    assert {each["kind"] for each in read_by_prometheus} == set(MONITORS)
    assert (result.returncode, result.stderr) == (0, "")


def test_the_api_server_accepts_the_scaled_objects_of_the_page_with_the_definition_of_keda(
    empty_cluster: OwnControlPlane,
) -> None:
    result = empty_cluster.kubectl.run(
        "apply", "--server-side", "--dry-run=server", "-f", "-", given=yaml.safe_dump_all(SCALED)
    )

    assert (result.returncode, result.stderr) == (0, "")


def test_the_kustomize_base_is_accepted_and_applied_twice_changes_nothing(empty_cluster: OwnControlPlane) -> None:
    kubectl = empty_cluster.kubectl

    first = kubectl("apply", "--server-side", "-k", str(BASE))
    before = _versions(kubectl)
    kubectl("apply", "--server-side", "-k", str(BASE))

    after = _versions(kubectl)
    kubectl("delete", "-k", str(BASE), "--wait=false")
    kubectl("wait", "--for=delete", f"namespace/{NAMESPACE}", *map("crd/{}".format, DEFINITIONS), "--timeout=60s")
    kubectl.apply([_namespace(NAMESPACE)])
    assert "deployment.apps/delaytopic serverside-applied" in first
    assert after == before


def test_install_makes_pods_that_are_restricted_and_removal_keeps_definitions_and_class(
    empty_cluster: OwnControlPlane, any_helm: ChartHelm
) -> None:
    helm, kubectl = any_helm.on(empty_cluster.kubeconfig), empty_cluster.kubectl
    release = ("delaytopic", str(CHART), "--namespace", NAMESPACE, "--values", str(TRY))

    notes = helm("install", *release)
    pods = (
        "get",
        "pods",
        "-n",
        NAMESPACE,
        "-o",
        "jsonpath={.items[*].metadata.labels.app\\.kubernetes\\.io/component}",
    )
    wait_for(lambda: set(kubectl(*pods).split()) == {"operator", "redis"}, lambda: kubectl("get", "events", "-A"))
    installed = kubectl.json("get", "delayclass", "default")["metadata"]
    helm("upgrade", *release)
    upgraded = kubectl.json("get", "delayclass", "default")["metadata"]
    before = _versions(kubectl)
    helm("upgrade", *release)
    after = _versions(kubectl)
    manifest = list(yaml.safe_load_all(helm("get", "manifest", "delaytopic", "--namespace", NAMESPACE)))
    helm("uninstall", "delaytopic", "--namespace", NAMESPACE)
    remaining = kubectl.json("get", "delayclass", "default")["metadata"]
    definitions = _definitions(kubectl)
    helm("install", *release)
    again = kubectl.json("get", "delayclass", "default")["metadata"]
    helm("uninstall", "delaytopic", "--namespace", NAMESPACE)
    kubectl("delete", "delayclass", "default")
    _remove_definitions(kubectl)

    assert "kubectl explain delaytopic.spec" in notes
    assert "DelayTopics that name no class get DelayClass default." in notes
    assert len({each["uid"] for each in (installed, upgraded, remaining, again)}) == 1
    assert named([each for each in manifest if each], "DelayClass")["metadata"]["name"] == "default"
    assert after == before
    assert definitions == DEFINITIONS


@pytest.mark.parametrize(
    ("values", "account"),
    [
        (["--values", str(EVERYTHING)], "operator-of-delays"),
        ([], "delaytopic"),
        (["--set", "watchNamespaces={shop},relaysEverywhere=true"], "delaytopic"),
    ],
    ids=["everything", "own values", "one watched, relays everywhere"],
)
def test_the_api_server_grants_the_rights_that_are_read_from_rendered_roles(
    empty_cluster: OwnControlPlane, helm: ChartHelm, values: list[str], account: str
) -> None:
    documents = helm.template(*values)
    objects = [each for each in documents if each["kind"].endswith(("Role", "RoleBinding", "ServiceAccount"))]
    empty_cluster.kubectl.apply(objects)
    client = empty_cluster.client_for_service_account(NAMESPACE, account)
    everybody = allowed(empty_cluster.client_for_service_account("elsewhere", "default"), "elsewhere")

    wanted = {namespace: granted(documents, account, namespace) for namespace in NAMESPACES}

    def found() -> dict[str, set[Access]]:
        return {namespace: allowed(client, namespace) - everybody for namespace in NAMESPACES}

    # The server's authorizer learns of a role a moment after everybody else.
    wait_until(lambda: found() == wanted, timeout_seconds=30)

    assert found() == wanted
    empty_cluster.kubectl("delete", "-f", "-", given=yaml.safe_dump_all(objects))


def test_the_customizations_are_merged_into_the_configuration_of_argo_cd(empty_cluster: OwnControlPlane) -> None:
    kubectl = empty_cluster.kubectl
    labels = {"app.kubernetes.io/part-of": "argocd"}
    metadata = {"name": "argocd-cm", "namespace": "argocd", "labels": labels}
    mine = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"url": "https://argocd.example"}}
    kubectl.apply([_namespace("argocd"), mine])

    kubectl("patch", "configmap", "argocd-cm", "-n", "argocd", "--patch-file", str(GITOPS / "argocd/argocd-cm.yaml"))

    data = kubectl.json("get", "configmap", "argocd-cm", "-n", "argocd")["data"]
    assert sorted(data) == [
        "resource.customizations.actions.delaytopic.dev_DelayTopic",
        "resource.customizations.health.delaytopic.dev_DelayTopic",
        "resource.customizations.health.delaytopic.dev_RecurringRecord",
        "resource.customizations.ignoreDifferences.delaytopic.dev_DelayTopic",
        "url",
    ]
