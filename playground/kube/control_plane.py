"""A real Kubernetes control plane as child processes: etcd, kube-apiserver and kube-controller-manager.

It needs neither root nor a network: everything is on 127.0.0.1. There is no kubelet, no scheduler, no DNS and no
network between pods; `tests.cluster.node.local_node` plays a node.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from types import TracebackType
from typing import Final, NamedTuple, Self

import yaml
from images.tools.binaries import Programs
from playground.kube.certificates import Authority
from playground.kube.kube_client import KubeClient, Object, RequestRefused
from playground.kube.kubeconfig import certificate_user, write_kubeconfig
from playground.kube.kubectl import Kubectl
from playground.kube.request_log import POLICY, AuditLog
from urllib3.exceptions import HTTPError

from delaytopic_local.errors import ServerStartError
from delaytopic_local.servers.process import ManagedProcess, free_port
from delaytopic_process.waiting import wait_until

CRDS: Final = Path(__file__).parents[2] / "crds"
PORTS_FILE: Final = "ports.json"
START_SECONDS = 60.0
# Clients that watch keep it from ending by itself for a minute.
STOP_SECONDS = 1.0
CONTROLLERS = (
    "clusterrole-aggregation-controller",
    "cronjob-controller",
    "deployment-controller",
    "disruption-controller",
    "endpointslice-controller",
    "garbage-collector-controller",
    "job-controller",
    "namespace-controller",
    "replicaset-controller",
    "resourcequota-controller",
    "root-ca-certificate-publisher-controller",
    "serviceaccount-controller",
    "serviceaccount-token-controller",
    "statefulset-controller",
)
ATTEMPTS = 20
SERVER_NAMES = ("DNS:localhost", "DNS:kubernetes.default.svc", "IP:127.0.0.1")


class Place(NamedTuple):
    """The ports of a control plane on 127.0.0.1, kept in a file beside its data."""

    api_server: int
    etcd: int
    etcd_peers: int
    manager: int

    @classmethod
    def chosen(cls, directory: Path) -> Place:
        """Choose free ports for a new control plane, and keep them in its directory."""
        ports = [free_port() for _ in cls._fields]
        directory.mkdir(parents=True, exist_ok=True)
        (directory / PORTS_FILE).write_text(json.dumps(ports), encoding="ascii")
        return cls(*ports)

    @classmethod
    def of(cls, directory: Path) -> Place:
        """Read the ports of a control plane from its directory."""
        return cls(*json.loads((directory / PORTS_FILE).read_text(encoding="ascii")))


class ControlPlane:
    """A control plane that somebody runs, as its users see it. Authorization is RBAC, the admin's group system:masters.

    Files for its users (certificates, kubeconfigs) lie in a folder of this process, so that many processes may use one.
    """

    def __init__(self, programs: Programs, directory: Path, own: Path) -> None:
        """Connect to the control plane whose files are in `directory`; `own` is a folder for those of its users."""
        self.programs = programs
        self.directory = own
        own.mkdir(parents=True, exist_ok=True)
        self._place = Place.of(directory)
        self._authority = Authority(directory / "certificates", own / "certificates")
        self.audit = AuditLog(directory / "audit.log")
        self.kubeconfig = self.kubeconfig_for_user("admin", groups=["system:masters"])
        self.client = KubeClient(self.kubeconfig)
        self.kubectl = self.kubectl_with(self.kubeconfig)

    @property
    def url(self) -> str:
        """The address of the API server."""
        return f"https://127.0.0.1:{self._place.api_server}"

    def kubectl_with(self, kubeconfig: Path) -> Kubectl:
        """Return kubectl as the user of a kubeconfig."""
        return Kubectl(self.programs.path("kubectl"), kubeconfig, self.directory / "kubectl-cache")

    def kubeconfig_for_user(self, name: str, groups: Sequence[str] = ()) -> Path:
        """Return the kubeconfig of a user with a certificate, who may do what RBAC says of the name and the groups."""
        user = certificate_user(self._authority.user(name, groups))
        return self._kubeconfig(name, user)

    def kubeconfig_for_service_account(self, namespace: str, name: str, *, file: Path | None = None) -> Path:
        """Return the kubeconfig of a ServiceAccount that exists, with a token for an hour."""
        token = {"token": self.service_account_token(namespace, name)}
        path = file or self.directory / f"{namespace}-{name}.kubeconfig"
        return write_kubeconfig(path, self.url, self._authority.certificate, token, namespace)

    def client_for_user(self, name: str, groups: Sequence[str] = (), *, agent: str = "tests") -> KubeClient:
        """REST as a user with a certificate."""
        return KubeClient(self.kubeconfig_for_user(name, groups), agent=agent)

    def client_for_service_account(self, namespace: str, name: str, *, agent: str = "tests") -> KubeClient:
        """REST as a ServiceAccount that exists."""
        return KubeClient(self.kubeconfig_for_service_account(namespace, name), agent=agent)

    def service_account_token(self, namespace: str, name: str) -> str:
        """A token for an hour, as a pod would get it; a new namespace's `default` account comes a moment after it."""
        account = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}"
        wait_until(lambda: self.client.find(account) is not None, timeout_seconds=30)
        path = f"{account}/token"
        return str(self.client.create(path, {"spec": {"expirationSeconds": 3600}})["status"]["token"])

    def metrics(self) -> str:
        """The API server's own, in Prometheus' text form; `apiserver_request_total` counts all requests by verb."""
        return self.client.text("/metrics")

    def _kubeconfig(self, name: str, user: dict[str, str]) -> Path:
        path = self.directory / f"{name.replace(':', '-')}.kubeconfig"
        return write_kubeconfig(path, self.url, self._authority.certificate, user)


class OwnControlPlane(ControlPlane):
    """Starts on entry and is killed on exit, with all that it stored; the kernel kills it when this process dies.

    The API server's port survives stop, kill and restart. Admission has its defaults (NamespaceLifecycle, PodSecurity,
    ServiceAccount, ...).
    """

    def __init__(self, programs: Programs, directory: Path, *, before_controllers: Sequence[Object] = ()) -> None:
        """Make its certificates; nothing is started yet.

        `before_controllers` are applied first of all. CustomResourceDefinitions belong there: the garbage collector
        looks only every 30 s for kinds that came later.
        """
        Place.chosen(directory)
        super().__init__(programs, directory, directory)
        self._before_controllers = before_controllers
        self._etcd = self._process("etcd", self._etcd_arguments())
        self._api_server = self._process("kube-apiserver", self._api_server_arguments())
        self._manager = self._process("kube-controller-manager", self._manager_arguments())

    def start(self) -> None:
        """Start everything and wait until it answers; raises ServerStartError."""
        self._etcd.start()
        self.start_api_server()
        if self._before_controllers:
            self.kubectl.apply(self._before_controllers)
            self._await_definitions()
        self._manager.start()
        self._manager.await_ready(self._manager_works, timeout_seconds=START_SECONDS)

    def _await_definitions(self) -> None:
        """Wait for the CRDs: kubectl gives up on an object that has no conditions yet, instead of waiting for them."""
        for _ in range(ATTEMPTS):
            waited = self.kubectl.run("wait", "--for=condition=Established", "crd", "--all")
            if waited.returncode == 0:
                return
        raise ServerStartError(f"the CRDs were not established: {waited.stderr}")

    def start_api_server(self) -> None:
        """Start it and wait until it is ready, and lists what CRDs define; raises ServerStartError."""
        self._api_server.start()
        self._api_server.await_ready(self._is_ready, timeout_seconds=START_SECONDS)
        self._api_server.await_ready(self._lists_custom_resources, timeout_seconds=START_SECONDS)

    def stop_api_server(self) -> None:
        """End it gracefully; clients find nobody there."""
        self._api_server.stop(grace_seconds=STOP_SECONDS)

    def kill_api_server(self) -> None:
        """End it with SIGKILL."""
        self._api_server.kill()

    def restart_api_server(self) -> None:
        """Stop and start it, on the same port with the same data."""
        self.stop_api_server()
        self.start_api_server()

    @contextmanager
    def without_api_server(self) -> Iterator[None]:
        """The API server is killed, and back when the block ends, however it ends."""
        self.kill_api_server()
        try:
            yield
        finally:
            self.start_api_server()

    def stop(self) -> None:
        """Kill everything: what it stored is for the tests only."""
        for process in (self._manager, self._api_server, self._etcd):
            process.kill()

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _process(self, name: str, arguments: Sequence[str]) -> ManagedProcess:
        command = [str(self.programs.path(name)), *arguments]
        return ManagedProcess(name, command, log_file=self.directory / f"{name}.log")

    def _etcd_arguments(self) -> list[str]:
        clients, peers = (f"http://127.0.0.1:{port}" for port in (self._place.etcd, self._place.etcd_peers))
        return [
            f"--data-dir={self.directory / 'etcd'}",
            f"--listen-client-urls={clients}",
            f"--advertise-client-urls={clients}",
            f"--listen-peer-urls={peers}",
            f"--initial-advertise-peer-urls={peers}",
            f"--initial-cluster=default={peers}",
            "--unsafe-no-fsync",  # a crash of this machine loses the tests anyway
            "--log-level=warn",
        ]

    def _api_server_arguments(self) -> list[str]:
        server, signing_key = self._authority.server(SERVER_NAMES), self._authority.signing_key()
        policy = self.directory / "audit-policy.yaml"
        policy.write_text(POLICY, encoding="ascii")
        return [
            f"--etcd-servers=http://127.0.0.1:{self._place.etcd}",
            "--bind-address=127.0.0.1",
            f"--secure-port={self._place.api_server}",
            # Nobody is told where the API server is, so that its address may be that of the loopback.
            "--endpoint-reconciler-type=none",
            "--advertise-address=127.0.0.1",
            "--service-cluster-ip-range=10.96.0.0/16",
            f"--client-ca-file={self._authority.certificate}",
            f"--tls-cert-file={server.certificate}",
            f"--tls-private-key-file={server.key}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={signing_key}",
            f"--service-account-signing-key-file={signing_key}",
            "--authorization-mode=RBAC",
            "--allow-privileged=true",
            f"--audit-policy-file={policy}",
            f"--audit-log-path={self.directory / 'audit.log'}",
            "--audit-log-maxsize=10000",  # never turned over: marks are places in it
        ]

    def _manager_arguments(self) -> list[str]:
        user = certificate_user(self._authority.user("system:kube-controller-manager"))
        kubeconfig = self._kubeconfig("system:kube-controller-manager", user)
        return [
            f"--kubeconfig={kubeconfig}",
            f"--authentication-kubeconfig={kubeconfig}",
            f"--authorization-kubeconfig={kubeconfig}",
            "--bind-address=127.0.0.1",
            f"--secure-port={self._place.manager}",
            f"--cert-dir={self.directory / 'manager'}",
            f"--controllers={','.join(CONTROLLERS)}",
            f"--root-ca-file={self._authority.certificate}",
            f"--service-account-private-key-file={self._authority.signing_key()}",
            "--use-service-account-credentials=true",
            "--leader-elect=false",
            "--kube-api-qps=200",
            "--kube-api-burst=400",
        ]

    def _is_ready(self) -> bool:
        try:
            return self.client.text("/readyz") == "ok"
        except (HTTPError, RequestRefused):
            return False

    def _lists_custom_resources(self) -> bool:
        """Return whether its caches of custom resources are filled: a ready one refuses lists (429) until they are."""
        defined = self.client.get("/apis/apiextensions.k8s.io/v1/customresourcedefinitions")["items"]
        specs = [each["spec"] for each in defined]
        return all(
            self._lists(f"/apis/{spec['group']}/{version['name']}/{spec['names']['plural']}")
            for spec in specs
            for version in spec["versions"]
        )

    def _lists(self, path: str) -> bool:
        try:
            self.client.get(path)
        except RequestRefused as refused:
            return refused.status != HTTPStatus.TOO_MANY_REQUESTS
        return True

    def _manager_works(self) -> bool:
        """Return whether controllers run: the default namespace has been given its ServiceAccount."""
        return self.client.find("/api/v1/namespaces/default/serviceaccounts/default") is not None


def custom_resource_definitions() -> list[Object]:
    """Load the project's own, as they are in the checkout."""
    paths = sorted(CRDS.glob("delaytopic.dev_*.yaml"))
    return [document for path in paths for document in yaml.safe_load_all(path.read_text())]
