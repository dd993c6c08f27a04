"""The chart on a real API server: accepted, installed, upgraded, removed; and the rights that it gives."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from charts.tools.kustomize import BASE, NAMESPACE
from charts.tools.places import CHART, GITOPS
from tests.chart.helm import VALUES, ChartHelm, named, of_kind
from tests.chart.prometheus_operator import monitoring_definitions
from tests.chart.rights import documented
from tests.cluster.access import allowed
from tests.cluster.binaries import Programs
from tests.cluster.control_plane import ControlPlane
from tests.cluster.fixtures import built
from tests.cluster.kubectl import Kubectl
from tests.support.relay_process import wait_for

pytestmark = [pytest.mark.integration, pytest.mark.kubernetes]

TRY = CHART / "ci/try-values.yaml"
EVERYTHING = CHART / "ci/everything-values.yaml"
RESTRICTED = {
    "pod-security.kubernetes.io/enforce": "restricted",
    "pod-security.kubernetes.io/warn": "restricted",
}
DEFINITIONS = ["delayclasses.delaytopic.dev", "delaytopics.delaytopic.dev"]
NAMESPACES = (NAMESPACE, "shop", "billing", "kafka", "delay-relays", "elsewhere")


@pytest.fixture(scope="module")
def empty_cluster(
    request: pytest.FixtureRequest, kubernetes_programs: Programs, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ControlPlane]:
    """Without the project's definitions: the chart brings them."""
    with ControlPlane(kubernetes_programs, tmp_path_factory.mktemp("empty-cluster")) as plane:
        plane.kubectl.apply(built(request, monitoring_definitions))
        plane.kubectl.apply(_namespace(name) for name in NAMESPACES)
        yield plane


def _namespace(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": RESTRICTED}}


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


@pytest.mark.parametrize("values", [None, *VALUES], ids=lambda path: path.stem if path else "own")
def test_the_api_server_accepts_every_object_without_a_warning(
    empty_cluster: ControlPlane, helm: ChartHelm, values: Path | None
) -> None:
    documents = helm.template(*(["--values", str(values)] if values else []))
    known = [document for document in documents if document["kind"] not in ("DelayClass", "Namespace")]

    result = empty_cluster.kubectl.run(
        "apply", "--server-side", "--force-conflicts", "--dry-run=server", "-f", "-", given=yaml.safe_dump_all(known)
    )

    assert (result.returncode, result.stderr) == (0, "")


def test_the_kustomize_base_is_accepted_and_applied_twice_changes_nothing(empty_cluster: ControlPlane) -> None:
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
    empty_cluster: ControlPlane, any_helm: ChartHelm
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
    kubectl("delete", "crd", *definitions)

    assert "kubectl explain delaytopic.spec" in notes
    assert "DelayTopics that name no class get DelayClass default." in notes
    assert len({each["uid"] for each in (installed, upgraded, remaining, again)}) == 1
    assert named([each for each in manifest if each], "DelayClass")["metadata"]["name"] == "default"
    assert after == before
    assert definitions == DEFINITIONS


def test_the_operator_has_the_rights_of_the_table_and_no_others_by_namespace(
    empty_cluster: ControlPlane, helm: ChartHelm
) -> None:
    documents = helm.template("--values", str(EVERYTHING))
    kinds = ("ClusterRole", "ClusterRoleBinding", "RoleBinding", "ServiceAccount", "Namespace")
    objects = [document for kind in kinds for document in of_kind(documents, kind)]
    empty_cluster.kubectl.apply(objects)
    client = empty_cluster.client_for_service_account(NAMESPACE, "operator-of-delays")
    everybody = allowed(empty_cluster.client_for_service_account("elsewhere", "default"), "elsewhere")

    found = {namespace: allowed(client, namespace) - everybody for namespace in NAMESPACES}

    empty_cluster.kubectl(
        "delete", "-f", "-", given=yaml.safe_dump_all(each for each in objects if each["kind"] != "Namespace")
    )
    assert found == {
        NAMESPACE: documented(["Cluster", "Watched", "Relays", "Secrets", "Own"]),
        "delay-relays": documented(["Cluster", "Watched", "Relays", "Secrets"]),
        "shop": documented(["Cluster", "DelayTopics", "Watched"]),
        "billing": documented(["Cluster", "DelayTopics", "Watched", "Secrets"]),
        "kafka": documented(["Cluster", "Strimzi"]),
        "elsewhere": documented(["Cluster"]),
    }


@pytest.mark.parametrize(
    ("values", "elsewhere"),
    [
        ([], ["Cluster", "DelayTopics", "Watched"]),
        (["--set", "relaysEverywhere=true"], ["Cluster", "DelayTopics", "Watched", "Relays"]),
        (["--set", "secretsEverywhere=true"], ["Cluster", "DelayTopics", "Watched", "Secrets"]),
        (["--set", "watchNamespaces={shop}"], ["Cluster"]),
        (["--set", "watchNamespaces={shop},relaysEverywhere=true"], ["Cluster", "Watched", "Relays"]),
    ],
    ids=[
        "own values",
        "relays everywhere",
        "secrets everywhere",
        "one namespace watched",
        "one watched, relays everywhere",
    ],
)
def test_a_namespace_that_is_not_named_gives_the_operator_only_what_is_meant_for_all(
    empty_cluster: ControlPlane, helm: ChartHelm, values: list[str], elsewhere: list[str]
) -> None:
    documents = helm.template(*values)
    objects = [each for each in documents if each["kind"].endswith(("Role", "RoleBinding", "ServiceAccount"))]
    empty_cluster.kubectl.apply(objects)
    client = empty_cluster.client_for_service_account(NAMESPACE, "delaytopic")
    everybody = allowed(empty_cluster.client_for_service_account("elsewhere", "default"), "elsewhere")

    found = allowed(client, "elsewhere") - everybody

    empty_cluster.kubectl("delete", "-f", "-", given=yaml.safe_dump_all(objects))
    assert found == documented(elsewhere)


def test_the_customizations_are_merged_into_the_configuration_of_argo_cd(empty_cluster: ControlPlane) -> None:
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
        "resource.customizations.ignoreDifferences.delaytopic.dev_DelayTopic",
        "url",
    ]
