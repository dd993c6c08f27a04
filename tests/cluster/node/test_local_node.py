"""The node of the tests: pods as processes, with probes, restarts and mounts as a kubelet has them."""

from __future__ import annotations

import json
import signal
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from tests.cluster.awaiting import await_condition, await_object, condition_of
from tests.cluster.control_plane import ControlPlane
from tests.cluster.node.local_node import NODE_LABEL, LocalNode, RunningPod
from tests.cluster.pods import await_rollout, pods_of, waiting_reasons
from tests.harness.names import unique

from delaytopic_process.waiting import wait_until

pytestmark = [pytest.mark.integration, pytest.mark.kubernetes]

# Serves its arguments, a variable and the mounted greeting as JSON, and ends cleanly at SIGTERM.
PROGRAM = """
import http.server, json, os, pathlib, signal, sys
host, file = sys.argv[1:]
class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps({"who": os.environ["WHO"], "greeting": pathlib.Path(file).read_text()}).encode())
signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
http.server.HTTPServer((host, 8080), Page).serve_forever()
"""


def deployment(replicas: int = 1, **container: Any) -> dict[str, Any]:
    """Return a Deployment that serves a ConfigMap's greeting."""
    labels = {"app": "greeter"}
    spec = {
        "name": "greeter",
        "image": "greeter",
        "command": ["python", "-c", PROGRAM],
        "args": ["$(IP)", "/etc/greeter/text"],
        "env": [
            {"name": "WHO", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}},
            {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        ],
        "ports": [{"name": "http", "containerPort": 8080}],
        "readinessProbe": {"httpGet": {"path": "/", "port": "http"}, "periodSeconds": 10},
        "volumeMounts": [{"name": "texts", "mountPath": "/etc/greeter"}],
    } | container
    pod = {"containers": [spec], "volumes": [{"name": "texts", "configMap": {"name": "texts"}}]}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "greeter"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }


@pytest.fixture(scope="module")
def greeters(control_plane: ControlPlane, node: LocalNode) -> Iterator[str]:
    """A namespace with two pods of a Deployment that are ready; tests may kill their processes and change the text."""
    namespace = unique("greeters")
    metadata = {"name": namespace, "labels": {NODE_LABEL: node.name}}
    control_plane.client.create("/api/v1/namespaces", {"metadata": metadata})
    applied(control_plane, namespace, texts("hello"), deployment(replicas=2))
    await_rollout(control_plane.client, namespace, "greeter", 2)
    yield namespace
    control_plane.client.delete(f"/api/v1/namespaces/{namespace}")


def restarts(pod: dict[str, Any] | None) -> int:
    return sum(status["restartCount"] for status in (pod or {})["status"]["containerStatuses"])


def is_ready(pod: dict[str, Any] | None) -> bool:
    return bool(condition_of(pod or {}, "Ready")["status"] == "True")


def texts(greeting: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "texts"}, "data": {"text": greeting}}


def answer(pod: RunningPod) -> Any:
    with urllib.request.urlopen(f"http://{pod.ip}:8080/", timeout=5) as page:
        return json.load(page)


def reasons(control_plane: ControlPlane, namespace: str) -> set[str]:
    """Return the reasons for which containers wait."""
    return {reason for pod in pods_of(control_plane.client, namespace) for reason in waiting_reasons(pod).values()}


def applied(control_plane: ControlPlane, namespace: str, *objects: dict[str, Any]) -> None:
    control_plane.kubectl.apply(objects, "-n", namespace)


def available(control_plane: ControlPlane, namespace: str) -> None:
    await_rollout(control_plane.client, namespace, "greeter", 1)


def test_the_pods_of_a_deployment_run_and_become_ready(
    control_plane: ControlPlane, node: LocalNode, greeters: str
) -> None:
    text = control_plane.client.get(f"/api/v1/namespaces/{greeters}/configmaps/texts")["data"]["text"]

    pods = node.pods(greeters, app="greeter")

    assert [answer(pod) for pod in pods] == 2 * [{"who": greeters, "greeting": text}]
    assert len({pod.ip for pod in pods}) == 2


def test_a_killed_process_comes_back_and_is_counted(
    control_plane: ControlPlane, node: LocalNode, greeters: str
) -> None:
    victim = node.pods(greeters)[0]
    path = f"/api/v1/namespaces/{greeters}/pods/{victim.name}"
    before = restarts(control_plane.client.get(path))

    victim.process.kill()

    pod = await_object(control_plane.client, path, lambda found: restarts(found) == before + 1 and is_ready(found))
    [status] = (pod or {})["status"]["containerStatuses"]
    assert status["lastState"]["terminated"]["exitCode"] == 137


@pytest.mark.nightly
def test_a_pod_that_is_deleted_by_force_is_killed_and_not_asked_to_stop(
    control_plane: ControlPlane, node: LocalNode, greeters: str
) -> None:
    gone, *_ = node.pods(greeters)

    control_plane.client.delete(f"/api/v1/namespaces/{greeters}/pods/{gone.name}", gracePeriodSeconds=0)
    assert wait_until(lambda: gone.process.exit_code is not None, timeout_seconds=10)

    assert gone.process.exit_code == -signal.SIGKILL
    await_rollout(control_plane.client, greeters, "greeter", 2)


def test_a_process_that_hangs_is_restarted(control_plane: ControlPlane, node: LocalNode, pod_namespace: str) -> None:
    probe = {"httpGet": {"path": "/", "port": "http"}, "periodSeconds": 1, "failureThreshold": 3}
    applied(control_plane, pod_namespace, texts("hello"), deployment(livenessProbe=probe))
    available(control_plane, pod_namespace)
    victim = node.pods(pod_namespace)[0]
    path = f"/api/v1/namespaces/{pod_namespace}/pods/{victim.name}"

    victim.process.send_signal(signal.SIGSTOP)

    await_object(control_plane.client, path, lambda found: restarts(found) == 1 and is_ready(found))
    assert node.pod(pod_namespace, victim.name).process is not victim.process


def test_a_changed_configmap_reaches_the_process(control_plane: ControlPlane, node: LocalNode, greeters: str) -> None:
    text = unique("good-morning")

    applied(control_plane, greeters, texts(text))

    pods = node.pods(greeters)
    assert wait_until(lambda: all(answer(pod)["greeting"] == text for pod in pods), timeout_seconds=30)


def test_a_pod_waits_for_what_it_mounts(control_plane: ControlPlane, node: LocalNode, pod_namespace: str) -> None:
    applied(control_plane, pod_namespace, deployment())
    assert wait_until(lambda: bool(reasons(control_plane, pod_namespace)), timeout_seconds=30)
    waiting = reasons(control_plane, pod_namespace)

    applied(control_plane, pod_namespace, texts("at last"))
    available(control_plane, pod_namespace)

    assert waiting == {"ContainerCreating"}
    assert answer(node.pods(pod_namespace)[0])["greeting"] == "at last"


def test_a_container_that_names_a_missing_secret_says_so(control_plane: ControlPlane, pod_namespace: str) -> None:
    variable = {"name": "WHO", "valueFrom": {"secretKeyRef": {"name": "nowhere", "key": "who"}}}

    applied(control_plane, pod_namespace, texts("hello"), deployment(env=[variable]))

    wanted = {"CreateContainerConfigError"}
    assert wait_until(lambda: reasons(control_plane, pod_namespace) == wanted, timeout_seconds=30)


def test_a_program_that_ends_is_backed_off(control_plane: ControlPlane, pod_namespace: str) -> None:
    applied(control_plane, pod_namespace, texts("hello"), deployment(command=["python", "-c", "raise SystemExit(3)"]))

    wanted = {"CrashLoopBackOff"}
    assert wait_until(lambda: reasons(control_plane, pod_namespace) == wanted, timeout_seconds=30)


def test_the_last_words_of_a_program_are_told(control_plane: ControlPlane, pod_namespace: str) -> None:
    command = ["python", "-c", "raise SystemExit('no broker')"]

    talker = deployment(command=command, terminationMessagePolicy="FallbackToLogsOnError")
    applied(control_plane, pod_namespace, texts("hello"), talker)

    def said() -> set[str]:
        pods = pods_of(control_plane.client, pod_namespace)
        statuses = [status for pod in pods for status in pod.get("status", {}).get("containerStatuses", [])]
        return {status["lastState"].get("terminated", {}).get("message", "") for status in statuses}

    assert wait_until(lambda: any(words.startswith("no broker") for words in said()), timeout_seconds=30)


def test_an_image_that_is_not_there_keeps_a_pod_waiting(
    control_plane: ControlPlane, node: LocalNode, pod_namespace: str
) -> None:
    node.missing_images.add("nowhere")
    applied(control_plane, pod_namespace, texts("hello"), deployment(image="nowhere"))
    wanted = {"ImagePullBackOff"}
    assert wait_until(lambda: reasons(control_plane, pod_namespace) == wanted, timeout_seconds=30)

    node.missing_images.remove("nowhere")

    available(control_plane, pod_namespace)


def test_a_job_runs_to_its_end(control_plane: ControlPlane, node: LocalNode, pod_namespace: str) -> None:
    container = {"name": "audit", "image": "audit", "command": ["python", "-c", "print('done')"]}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "audit"}, "spec": {"template": template}}

    applied(control_plane, pod_namespace, job)

    path = f"/apis/batch/v1/namespaces/{pod_namespace}/jobs/audit"
    await_condition(control_plane.client, path, "Complete")
    [pod] = node.pods(pod_namespace)
    assert pod.log_file.read_text() == "done\n"


def test_a_program_in_a_pod_talks_to_the_api_server_as_its_service_account(
    control_plane: ControlPlane, node: LocalNode, pod_namespace: str
) -> None:
    words = ["kubectl", "auth", "whoami", "-o", "jsonpath={.status.userInfo.username}"]
    program = f"import os, sys; os.environ['PATH'] = sys.argv[1]; os.execvp('kubectl', {words})"
    command = ["python", "-c", program, str(control_plane.programs.directory)]
    pod = {"restartPolicy": "Never", "containers": [{"name": "who", "image": "who", "command": command}]}

    applied(control_plane, pod_namespace, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "who"}, "spec": pod})

    path = f"/api/v1/namespaces/{pod_namespace}/pods/who"
    await_object(control_plane.client, path, lambda found: (found or {})["status"]["phase"] == "Succeeded")
    said = node.pod(pod_namespace, "who").log_file.read_text()
    assert said == f"system:serviceaccount:{pod_namespace}:default"


def test_pods_that_are_no_longer_wanted_end_and_go(
    control_plane: ControlPlane, node: LocalNode, pod_namespace: str
) -> None:
    applied(control_plane, pod_namespace, texts("hello"), deployment())
    available(control_plane, pod_namespace)
    processes = [pod.process for pod in node.pods(pod_namespace)]

    control_plane.kubectl("scale", "deployment/greeter", "--replicas=0", "-n", pod_namespace)

    path = f"/api/v1/namespaces/{pod_namespace}/pods"
    assert wait_until(lambda: not control_plane.client.get(path)["items"], timeout_seconds=30)
    assert [process.exit_code for process in processes] == [0]


@pytest.mark.nightly
def test_a_namespace_with_running_pods_goes(control_plane: ControlPlane, node: LocalNode, pod_namespace: str) -> None:
    applied(control_plane, pod_namespace, texts("hello"), deployment())
    available(control_plane, pod_namespace)
    processes = [pod.process for pod in node.pods(pod_namespace)]

    control_plane.client.delete(f"/api/v1/namespaces/{pod_namespace}")

    path = f"/api/v1/namespaces/{pod_namespace}"
    assert wait_until(lambda: control_plane.client.find(path) is None, timeout_seconds=60)
    assert [process.is_running() for process in processes] == [False]
