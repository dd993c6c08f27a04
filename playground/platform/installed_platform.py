"""The platform team's half of a real cluster: Kafka, Redis, the operator from its chart, a class for everybody."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, Self

from charts.tools.places import CHART
from playground.kube.awaiting import await_object, condition_of
from playground.kube.helm import Helm
from playground.kube.kube_client import KubeClient, Object
from playground.kube.kubectl import Kubectl
from playground.kube.pods import await_rollout, pods_of
from playground.platform.installation import (
    BOOTSTRAP_SERVERS,
    CLASS,
    ENABLED,
    INFRASTRUCTURE,
    OPERATOR_NAMESPACE,
    RELAY_NAMESPACE,
    Images,
    chart_values,
    delay_class,
    executor_values,
    gateway_secret,
    gateway_values,
    namespace,
    shared_ledger,
    trial_values,
)
from playground.platform.node_data import delete_data
from playground.platform.pod_runs import await_job

from delaytopic_operator.model.reconciliation import Key, class_key
from delaytopic_operator.resources.identity import audit_name, relays_name

API = "/apis/delaytopic.dev/v1beta1"
RELEASE = "delaytopic"
LEASE = f"/apis/coordination.k8s.io/v1/namespaces/{OPERATOR_NAMESPACE}/leases/delaytopic-operator"
OPERATORS = {"app.kubernetes.io/component": "operator"}
DEFINITIONS = ("delaytopics.delaytopic.dev", "delayclasses.delaytopic.dev", "recurringrecords.delaytopic.dev")
NAMESPACES = (OPERATOR_NAMESPACE, RELAY_NAMESPACE, INFRASTRUCTURE)
MANIFESTS = Path(__file__).parents[1] / "manifests"


class CommandLines(NamedTuple):
    """Paths of the programs that people use."""

    kubectl: Path
    helm: Path


class InstalledPlatform:
    """Installed once for all tests, which have namespaces of their own."""

    def __init__(self, client: KubeClient, kubectl: Kubectl, helm: Helm, chart: Path, images: Images) -> None:
        self.client = client
        self.kubectl = kubectl
        self.images = images
        self._helm = helm
        self._chart = chart
        self.bootstrap_servers = BOOTSTRAP_SERVERS
        self._namespaces: list[str] = []

    @classmethod
    def of(cls, kubeconfig: Path, programs: CommandLines, images: Images, directory: Path) -> Self:
        """Return the platform in the cluster of a kubeconfig, with the chart of this checkout; `directory` is for what
        programs keep.
        """
        kubectl = Kubectl(programs.kubectl, kubeconfig, directory / "kubectl")
        helm = Helm(programs.helm, directory / "helm", kubeconfig)
        return cls(KubeClient(kubeconfig, agent="e2e"), kubectl, helm, CHART, images)

    def install_all(self) -> None:
        """Everything; it runs when this returns."""
        self.install_infrastructure()
        self.install()

    def install(self) -> None:
        """Install as docs/how-to/install.md says, in that order; what is installed already is brought up to date."""
        self.kubectl.apply([namespace(OPERATOR_NAMESPACE)])
        self.upgrade(self._chart, self.images)
        self.kubectl.apply([delay_class()])

    def install_gateway(self) -> None:
        """Add a gateway to the release as docs/reference/gateway.md says, and wait until it runs."""
        self.kubectl.apply([gateway_secret()])
        self.upgrade(self._chart, self.images, gateway_values(self.images))

    def run_helm_test(self, source: str, target: str) -> str:
        """Send a record through a DelayTopic as docs/how-to/install.md says; return what is printed, log included.

        Raises HelmError unless it arrives once and not early.
        """
        self.kubectl.apply([gateway_secret()])
        self.upgrade(self._chart, self.images, trial_values(self.images, source, target))
        return self._helm("test", RELEASE, f"--namespace={OPERATOR_NAMESPACE}", "--logs", "--timeout=3m")

    def install_executors(self, executors: int) -> None:
        """Have audits run in mode Kubernetes, as docs/how-to/audit-on-a-cluster.md says."""
        self.kubectl.apply(shared_ledger())
        self.upgrade(self._chart, self.images, executor_values(self.images, executors))

    def upgrade(self, chart: Path, images: Images, further: Mapping[str, Any] = MappingProxyType({})) -> None:
        """Bring the release to a chart, images and further values, and wait until all of it runs."""
        values = {**chart_values(images), **further}
        self._helm.install(RELEASE, chart, OPERATOR_NAMESPACE, values, "--wait", "--timeout=4m")
        await_rollout(self.client, OPERATOR_NAMESPACE, RELEASE, 2, seconds=180)

    def install_infrastructure(self) -> None:
        """Kafka and Redis, from plain YAML; they are ready when this returns."""
        self.kubectl.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": INFRASTRUCTURE}}])
        self.kubectl("apply", "--server-side", "-f", str(MANIFESTS))
        for name in ("kafka", "redis"):
            self.await_ready(name, seconds=240)

    def await_ready(self, name: str, seconds: float = 120.0) -> None:
        """Wait until all pods of Kafka, or of Redis, are ready."""
        path = f"/apis/apps/v1/namespaces/{INFRASTRUCTURE}/statefulsets/{name}"

        def holds(found: Object | None) -> bool:
            return found is not None and found["status"].get("readyReplicas") == found["spec"]["replicas"]

        await_object(self.client, path, holds, seconds=seconds)

    def make_namespace(self, stem: str, **labels: str) -> str:
        """One that may use the class; its name has an ending that no other has."""
        name = f"{stem}-{secrets.token_hex(3)}"
        self._namespaces.append(name)
        self.kubectl.apply([namespace(name, **{ENABLED: "true", **labels})])
        return name

    def leader(self) -> str:
        """The pod that leads."""
        holder: str = self.client.get(LEASE)["spec"].get("holderIdentity", "")
        return holder.rpartition("_")[0]

    def await_leader(self, besides: str = "", seconds: float = 60.0) -> str:
        """The pod that leads, as soon as one does, and it is another one than that."""

        def holds(found: Object | None) -> bool:
            pod = (found or {}).get("spec", {}).get("holderIdentity", "").rpartition("_")[0]
            return pod not in ("", besides)

        await_object(self.client, LEASE, holds, seconds=seconds)
        return self.leader()

    def relays(self, team: str, name: str) -> list[Object]:
        """The pods that run the relays of a DelayTopic."""
        labels = {"delaytopic.dev/namespace": team, "delaytopic.dev/name": name}
        return pods_of(self.client, RELAY_NAMESPACE, **labels, **{"app.kubernetes.io/component": "relay"})

    def relay_deployment(self, team: str, name: str) -> str:
        """The path of the Deployment of a DelayTopic's relays."""
        return f"/apis/apps/v1/namespaces/{RELAY_NAMESPACE}/deployments/{relays_name(Key(team, name))}"

    def await_relays(self, team: str, name: str, replicas: int, seconds: float = 120.0) -> None:
        """Wait until so many relays of the present configuration run, and no others."""
        await_rollout(self.client, RELAY_NAMESPACE, relays_name(Key(team, name)), replicas, seconds=seconds)

    def audit(self, team: str, name: str, run: str) -> Object:
        """Audit the class of a DelayTopic now: the condition that its status gets from the verdict."""
        return self.audited(team, name, self.start_audit(name, run))

    def start_audit(self, name: str, run: str, of_class: str = CLASS) -> str:
        """Return the Job that audits a class, which has begun."""
        job = f"{name}-{run}-{secrets.token_hex(3)}"
        cron_job = f"cronjob/{audit_name(class_key(of_class), OPERATOR_NAMESPACE)}"
        self.kubectl("create", "job", "-n", RELAY_NAMESPACE, job, f"--from={cron_job}")
        return job

    def audited(self, team: str, name: str, job: str) -> Object:
        """Return the condition that the status of a DelayTopic gets from the verdict of a Job."""
        began = await_job(self.client, RELAY_NAMESPACE, job, seconds=300)["metadata"]["creationTimestamp"]
        found = self.client.get(f"{API}/namespaces/{team}/delaytopics/{name}")
        # The Job ends well once the status has its verdict.
        assert found["status"]["slo"]["auditedAt"] >= began, f"{name} has no verdict of {job}"
        return condition_of(found, "SLOMet")

    def remove(self) -> None:
        """Remove it as docs/how-to/install.md says, with what tests made. Nothing where nothing is."""
        if self.client.find(API) is not None:
            self.kubectl("delete", "delaytopics", "--all", "--all-namespaces", "--wait=false")
            self.kubectl("wait", "delaytopics", "--all", "--all-namespaces", "--for=delete", "--timeout=100s")
        self._helm.uninstall(RELEASE, OPERATOR_NAMESPACE, "--ignore-not-found")
        self.kubectl("delete", "crd", *DEFINITIONS, "--ignore-not-found")
        delete_data(self.client, self.kubectl, self.images["kafka"])
        gone = ("delete", "namespace", "--ignore-not-found", "--timeout=100s")
        self.kubectl(*gone, *NAMESPACES, *self._namespaces)
