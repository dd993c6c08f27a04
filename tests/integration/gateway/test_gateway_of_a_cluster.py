"""A gateway whose callers and DelayTopics are those of a real API server; relays and Kafka are a test's."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from playground.kube.control_plane import ControlPlane, OwnControlPlane
from playground.kube.kube_client import KubeClient
from tests.cluster.fixtures import MakeNamespace
from tests.harness.names import unique
from tests.support.gateway.gateway import NOW_MS, Answer, Scene, gateway_over

from delaytopic_gateway.access.guard import AuditLine
from delaytopic_gateway.cluster.access import ClusterAccess
from delaytopic_gateway.cluster.api_server import ApiServer
from delaytopic_gateway.cluster.reviews import TrustedProxy
from delaytopic_gateway.cluster.served_topics import ClusterTopics
from delaytopic_gateway.errors import ApiServerUnreachableError
from delaytopic_gateway.service.served_topics import ServedTopic
from delaytopic_gateway.service.state import State
from delaytopic_process.waiting import wait_until
from delaytopic_relay.core.commands import Schedule

pytestmark = [pytest.mark.integration, pytest.mark.kubernetes]

API = "/apis/delaytopic.dev/v1beta1"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
KAFKA = "kafka.gateway.test:9092"
SINCE = "2026-11-24T00:00:00Z"
HOUR_MS = 3_600_000
TEA = Schedule(NOW_MS + HOUR_MS, 7, b"secret-key", b"secret-value", [("own", b"secret-header")], id=b"tea")
TIMER = Schedule(NOW_MS + 1_000, 5, b"timer", b"secret-value", [("scheduler-target-key", b"secret-key")], id=b"timer")


class Cluster(Scene):
    """A scene whose DelayTopics are those of an API server."""

    routes: ClusterTopics
    tokens: dict[str, str]
    shop: str
    bank: str

    def all(self) -> Sequence[ServedTopic]:
        """The DelayTopics of the API server, each with one record that waits."""
        found = self.routes.all()
        self.waiting = {served: [(2, TIMER if served.name == "timers" else TEA)] for served in found}
        return found

    def state(self, served: ServedTopic) -> State:
        return self.routes.state(served)

    def as_caller(self, caller: str, method: str, path: str, document: Any = None) -> Answer:
        token = self.tokens.get(caller)
        headers = {"Authorization": f"Bearer {token}"} if token is not None else {}
        return self.send(method, path.format(shop=self.shop), document, **headers)


SCHEDULES: dict[str, dict[str, Any]] = {"reminders": {}, "timers": {"scheduler": {}}}


@pytest.fixture(scope="module")
def cluster(control_plane: ControlPlane) -> Iterator[Cluster]:
    client, made = control_plane.client, Cluster()
    made.shop, made.bank, class_name = unique("shop"), unique("bank"), unique("standard")
    for namespace in (made.shop, made.bank):
        client.create("/api/v1/namespaces", {"metadata": {"name": namespace}})
    client.create(f"{API}/delayclasses", _class(class_name))
    for namespace in (made.shop, made.bank):
        for name, schedule in SCHEDULES.items():
            _accept(client, _topic(namespace, name, class_name, schedule))
    made.tokens = {
        "viewer": _account(control_plane, made.shop, "viewer", [(["delaytopics"], ["get"])]),
        "editor": _account(
            control_plane, made.shop, "editor", [(["delaytopics"], ["get"]), (["delaytopics/records"], ["update"])]
        ),
        "tenant": _account(
            control_plane, made.bank, "tenant", [(["delaytopics"], ["get"]), (["delaytopics/records"], ["update"])]
        ),
        "anybody": _account(control_plane, made.shop, "anybody", []),
        "bad": "made-up",
    }
    api = ApiServer(control_plane.kubeconfig_for_service_account(made.shop, _gateway(control_plane, made.shop)))
    made.routes = ClusterTopics(api, KAFKA, made.shop, lambda: NOW_MS, say=lambda line: None)
    proxy = TrustedProxy.of("X-Forwarded-User", "X-Forwarded-Groups", ["10.255.255.0/24"])
    with gateway_over(made, ClusterAccess(api, proxy)):
        # The server's authorizer learns of roles a moment later.
        wait_until(lambda: _can(made), timeout_seconds=30)
        yield made
    client.delete(f"{API}/delayclasses/{class_name}")
    for namespace in (made.shop, made.bank):
        client.delete(f"/api/v1/namespaces/{namespace}")


def _can(made: Cluster) -> bool:
    return [
        made.as_caller(caller, "GET", "/v1/delaytopics/{shop}/reminders").document.get("canSchedule")
        for caller in ("viewer", "editor")
    ] == [False, True] and len(made.as_caller("tenant", "GET", "/v1/delaytopics").document) == 2


def _class(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "delaytopic.dev/v1beta1",
        "kind": "DelayClass",
        "metadata": {"name": name},
        "spec": {"connection": {"bootstrapServers": KAFKA}, "backend": {"type": "KafkaBuckets"}},
    }


def _topic(namespace: str, name: str, class_name: str, schedule: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "delaytopic.dev/v1beta1",
        "kind": "DelayTopic",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "delayClassName": class_name,
            "source": {"topic": f"{namespace}.{name}.delayed"},
            "target": {"topic": f"{namespace}.{name}"},
            "schedule": schedule,
        },
    }


def _accept(client: KubeClient, document: dict[str, Any]) -> None:
    """Say what the operator says of what it has accepted."""
    path = f"{API}/namespaces/{document['metadata']['namespace']}/delaytopics"
    generation = client.create(path, document)["metadata"]["generation"]
    condition = {"type": "PolicyAccepted", "status": "True", "reason": "Accepted", "message": "yes"}
    conditions = [{**condition, "observedGeneration": generation, "lastTransitionTime": SINCE}]
    client.merge(f"{path}/{document['metadata']['name']}/status", {"status": {"conditions": conditions}})


def _account(plane: ControlPlane, namespace: str, name: str, rules: list[tuple[list[str], list[str]]]) -> str:
    """Make a ServiceAccount with these rights in its namespace; return a token of it."""
    plane.client.create(f"/api/v1/namespaces/{namespace}/serviceaccounts", {"metadata": {"name": name}})
    listed = [{"apiGroups": ["delaytopic.dev"], "resources": each, "verbs": verbs} for each, verbs in rules]
    plane.client.create(f"{RBAC}/namespaces/{namespace}/roles", {"metadata": {"name": name}, "rules": listed})
    binding = {
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
    }
    plane.client.create(f"{RBAC}/namespaces/{namespace}/rolebindings", binding)
    return plane.service_account_token(namespace, name)


def _gateway(plane: ControlPlane, namespace: str) -> str:
    """Make the gateway's own ServiceAccount, with the rights that the chart gives it and no others."""
    name = unique("gateway")
    plane.client.create(f"/api/v1/namespaces/{namespace}/serviceaccounts", {"metadata": {"name": name}})
    rules = [
        {"apiGroups": ["authentication.k8s.io"], "resources": ["tokenreviews"], "verbs": ["create"]},
        {"apiGroups": ["authorization.k8s.io"], "resources": ["subjectaccessreviews"], "verbs": ["create"]},
        {"apiGroups": ["delaytopic.dev"], "resources": ["delaytopics", "delayclasses"], "verbs": ["list"]},
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]},
    ]
    plane.client.create(f"{RBAC}/clusterroles", {"metadata": {"name": name}, "rules": rules})
    binding = {
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
    }
    plane.client.create(f"{RBAC}/clusterrolebindings", binding)
    return name


CALLERS = ("nobody", "bad", "anybody", "tenant", "viewer", "editor")
BASE, PAGES = "/v1/delaytopics/{shop}/reminders", "/delaytopics/{shop}/reminders"
PLACE = f"{TEA.due_ms}:2:7"
FORM = f"deliverAfter=1h&place={PLACE}".encode()
OLD = "/api/live/scheduler/{shop}"


@pytest.mark.parametrize(
    ("method", "path", "document", "statuses"),
    [
        ("GET", "/v1/delaytopics", None, (401, 401, 200, 200, 200, 200)),
        ("GET", BASE, None, (401, 401, 404, 404, 200, 200)),
        ("GET", f"{BASE}/records?contents=true", None, (401, 401, 404, 404, 200, 200)),
        ("GET", f"{BASE}/records?keyPrefix=s", None, (401, 401, 404, 404, 403, 200)),
        ("GET", f"{BASE}/records/tea", None, (401, 401, 404, 404, 200, 200)),
        ("POST", f"{BASE}/records", {"deliverAfter": "1h"}, (401, 401, 404, 404, 403, 202)),
        ("PATCH", f"{BASE}/records/tea", {}, (401, 401, 404, 404, 403, 202)),
        ("DELETE", f"{BASE}/records/tea", None, (401, 401, 404, 404, 403, 202)),
        ("GET", "/", None, (401, 401, 200, 200, 200, 200)),
        ("GET", PAGES, None, (401, 401, 404, 404, 200, 200)),
        ("GET", f"{PAGES}/record?place={PLACE}", None, (401, 401, 404, 404, 200, 200)),
        ("POST", f"{PAGES}/schedule", FORM, (401, 401, 404, 404, 403, 303)),
        ("POST", f"{PAGES}/move", FORM, (401, 401, 404, 404, 403, 303)),
        ("POST", f"{PAGES}/cancel", FORM, (401, 401, 404, 404, 403, 303)),
        ("GET", f"{BASE}/dead-letters", None, (401, 401, 404, 404, 200, 200)),
        ("POST", f"{BASE}/dead-letters/resend", {"all": True}, (401, 401, 404, 404, 403, 202)),
        ("POST", f"{PAGES}/dead-letters/resend", b"place=0:1", (401, 401, 404, 404, 403, 303)),
        ("GET", "/schedules", None, (401, 401, 200, 200, 200, 200)),
        ("GET", "/api/schedulers", None, (401, 401, 200, 200, 200, 200)),
        ("GET", f"{OLD}/schedule/timer", None, (401, 401, 404, 404, 200, 200)),
        ("GET", "/readyz", None, (200, 200, 200, 200, 200, 200)),
    ],
)
def test_each_caller_is_answered_by_the_rights_that_rbac_gives_him(
    cluster: Cluster, method: str, path: str, document: Any, statuses: tuple[int, ...]
) -> None:
    found = [cluster.as_caller(caller, method, path, document) for caller in CALLERS]

    assert tuple(each.status for each in found) == statuses
    told = {caller for caller, each in zip(CALLERS, found, strict=True) if "secret" in each.text}
    assert told <= ({"tenant", "editor"} if path == "/schedules" else {"editor"})


def test_each_tenant_sees_the_delay_topics_of_his_namespace_and_no_others(cluster: Cluster) -> None:
    found = {
        caller: [
            sorted({each["namespace"] for each in cluster.as_caller(caller, "GET", "/v1/delaytopics").document}),
            [each["name"] for each in cluster.as_caller(caller, "GET", "/api/schedulers").document],
            [name in cluster.as_caller(caller, "GET", "/").text for name in (cluster.shop, cluster.bank)],
        ]
        for caller in ("anybody", "tenant", "viewer")
    }

    assert found == {
        "anybody": [[], [], [False, False]],
        "tenant": [[cluster.bank], [cluster.bank], [False, True]],
        "viewer": [[cluster.shop], [cluster.shop], [True, False]],
    }


def test_the_status_of_the_object_tells_the_verdict_and_whether_it_is_ready(
    control_plane: ControlPlane, cluster: Cluster
) -> None:
    path = f"{API}/namespaces/{cluster.bank}/delaytopics/reminders/status"
    before = control_plane.client.get(path)["status"]["conditions"]
    told = {"lastTransitionTime": SINCE, "message": "words"}
    met = [
        {"type": "SLOMet", "status": "True", "reason": "Met"},
        {"type": "Ready", "status": "True", "reason": "Ready"},
    ]
    slo = {"attainmentPercent": "99.99%", "latenessP99": "40ms", "auditedAt": "2026-11-24T09:00:00Z"}
    conditions = [*before, *({**told, **each} for each in met)]
    control_plane.client.merge(path, {"status": {"conditions": conditions, "slo": slo}})
    routes = ClusterTopics(ApiServer(control_plane.kubeconfig), KAFKA, "default", lambda: NOW_MS)
    (served,) = [each for each in routes.all() if (each.namespace, each.name) == (cluster.bank, "reminders")]

    found = routes.state(served)

    assert found.ready is not None
    assert found.audit is not None
    assert (found.ready.status, found.audit.verdict, found.audit.at_ms) == ("True", "Met", 1_795_510_800_000)
    assert (found.audit.attainment, found.audit.lateness_p99_ms, found.lateness) == ("99.99%", 40, "40 ms (audit)")


def test_headers_of_a_proxy_are_refused_from_elsewhere_even_beside_a_good_token(cluster: Cluster) -> None:
    headers = {"Authorization": f"Bearer {cluster.tokens['editor']}", "X_Forwarded_User": "ann"}

    found = [cluster.get(path, **headers) for path in ("/v1/delaytopics", "/", "/schedules")]

    assert [each.status for each in found] == [403] * 3


def test_a_write_is_noted_with_the_name_that_the_cluster_knows(cluster: Cluster) -> None:
    cluster.audit.clear()

    cluster.as_caller("editor", "DELETE", f"{BASE}/records/tea")

    path = f"/v1/delaytopics/{cluster.shop}/reminders/records/tea"
    name = f"system:serviceaccount:{cluster.shop}:editor"
    assert cluster.audit == [AuditLine("127.0.0.1", "DELETE", path, 202, name)]


def test_users_behind_the_trusted_proxy_have_the_rights_of_their_groups(
    control_plane: ControlPlane, cluster: Cluster
) -> None:
    group = unique("staff")
    binding = {
        "metadata": {"name": group},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "viewer"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": group}],
    }
    control_plane.client.create(f"{RBAC}/namespaces/{cluster.shop}/rolebindings", binding)
    proxy = TrustedProxy.of("X-Forwarded-User", "X-Forwarded-Groups", ["127.0.0.0/8"])
    scene = Cluster()
    scene.routes = cluster.routes
    headers = {"X_Forwarded_User": "ann", "X_Forwarded_Groups": f"others,{group}"}
    paths = [path.format(shop=cluster.shop) for path in (BASE, f"{BASE}/records/tea")]

    with gateway_over(scene, ClusterAccess(ApiServer(control_plane.kubeconfig), proxy)):
        wait_until(lambda: scene.get(paths[0], **headers).status == 200, timeout_seconds=30)
        write = scene.send("DELETE", paths[1], None, **headers)
        stranger = scene.get(paths[0], X_Forwarded_User="ann")
        nobody = scene.get(paths[0])

    assert (write.status, stranger.status, nobody.status) == (403, 404, 401)
    assert scene.audit == [AuditLine("127.0.0.1", "DELETE", paths[1], 403, "ann")]


def test_relays_are_the_pods_where_the_operator_puts_them_and_none_of_a_tenants(
    control_plane: ControlPlane, cluster: Cluster, make_namespace: MakeNamespace
) -> None:
    (served,) = [each for each in cluster.routes.all() if (each.namespace, each.name) == (cluster.bank, "timers")]
    labels = {
        "app.kubernetes.io/name": "delaytopic-relay",
        "app.kubernetes.io/managed-by": "delaytopic-operator",
        "delaytopic.dev/namespace": cluster.bank,
        "delaytopic.dev/name": "timers",
    }
    for namespace, address in ((cluster.shop, "10.0.0.1"), (cluster.bank, "10.0.0.2")):
        container = {"name": "relay", "image": "relay", "ports": [{"name": "http", "containerPort": 8080}]}
        pod = {"metadata": {"name": "relay", "labels": labels}, "spec": {"containers": [container]}}
        path = f"/api/v1/namespaces/{namespace}/pods"
        wait_until(
            lambda: control_plane.client.find(f"{path.removesuffix('pods')}serviceaccounts/default") is not None,  # noqa: B023
            timeout_seconds=30,
        )
        control_plane.client.create(path, pod)
        status = {"phase": "Running", "podIP": address, "podIPs": [{"ip": address}]}
        control_plane.client.merge(f"{path}/relay/status", {"status": status})

    assert cluster.routes.relay_urls(served) == ["http://10.0.0.1:8080"]


def test_nothing_is_allowed_while_the_api_server_is_away(own_control_plane: OwnControlPlane) -> None:
    plane, scene = own_control_plane, Cluster()
    api = ApiServer(plane.kubeconfig)
    scene.routes = ClusterTopics(api, KAFKA, "default", lambda: NOW_MS)
    token = _account(plane, "default", unique("somebody"), [])

    with gateway_over(scene, ClusterAccess(api)):
        before = scene.get("/v1/delaytopics", Authorization=f"Bearer {token}").status
        plane.stop_api_server()
        known = scene.get("/openapi.json", Authorization="Bearer another")
        with pytest.raises(ApiServerUnreachableError):
            api.list("/api/v1/namespaces")
        alive = scene.get("/healthz").status

    assert (before, known.status, alive) == (200, 503, 200)


def test_the_command_serves_until_it_is_told_to_stop(
    control_plane: ControlPlane, cluster: Cluster, tmp_path: Path
) -> None:
    config = tmp_path / "kafka.yaml"
    config.write_text(f"bootstrapServers: {KAFKA}\n", encoding="utf-8")
    command = [sys.executable, "-m", "delaytopic_gateway", "--listen=127.0.0.1:0", "--kafka-config", str(config)]
    options = ["--kubeconfig", str(control_plane.kubeconfig), "--operator-namespace", cluster.shop]
    scene = Cluster()

    with subprocess.Popen([*command, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        match = re.fullmatch(r"listening at (http://\S+)\n", process.stderr.readline())
        assert match is not None
        scene.url = match[1]
        headers = {"Authorization": f"Bearer {cluster.tokens['viewer']}"}
        base = BASE.format(shop=cluster.shop)
        answers = [
            scene.get("/readyz"),
            scene.get("/v1/delaytopics"),
            scene.get("/v1/delaytopics", **headers),
            scene.send("POST", f"{base}/records", {"deliverAfter": "1h"}, **headers),
        ]
        process.send_signal(signal.SIGTERM)
        output, errors = process.communicate(timeout=30)

    assert [each.status for each in answers] == [200, 401, 200, 403]
    assert [(each["name"], each["pending"]) for each in answers[2].document] == [("reminders", None), ("timers", None)]
    (line,) = [json.loads(each) for each in output.splitlines()]
    assert (line["user"], line["status"]) == (f"system:serviceaccount:{cluster.shop}:viewer", 403)
    assert (process.returncode, errors.splitlines()[-1]) == (0, "stopped")
