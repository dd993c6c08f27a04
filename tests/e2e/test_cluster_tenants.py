"""Two tenants on one cluster: neither gets at the topics, secrets or capacity of the other, nor does a relay."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from playground.kube.kube_client import RequestRefused
from playground.platform.installation import RELAY_NAMESPACE
from playground.platform.installed_platform import InstalledPlatform
from playground.traffic.plan import Plan
from tests.e2e.support.storm import is_running
from tests.e2e.support.team import MakeTeam, Team

pytestmark = pytest.mark.e2e

FLOOD = 40_000
LOOK_AROUND = """
import json, os
def can_write(folder):
    try:
        open(os.path.join(folder, "probe"), "w").close()
    except OSError:
        return False
    return True
print(json.dumps({
    "token": os.path.exists("/var/run/secrets/kubernetes.io/serviceaccount"),
    "root": os.getuid() == 0,
    "writes": [folder for folder in ("/", "/etc", "/home", "/tmp") if can_write(folder)],
}))
"""

ASK_BY_THE_NETWORK = """
import socket, urllib.error, urllib.request
try:
    urllib.request.urlopen(f"http://{socket.gethostbyname(socket.gethostname())}:8080/pending")
except urllib.error.HTTPError as refused:
    print(refused.code)
"""


@pytest.fixture(scope="module")
def blue(make_team: MakeTeam) -> Team:
    """The tenant that is to be left alone."""
    team = make_team("blue")
    team.apply("calm")
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "credentials", "namespace": team.namespace}}
    team.platform.kubectl.apply([{**secret, "stringData": {"password": "blue"}}])
    return team


@pytest.fixture(scope="module")
def red(make_team: MakeTeam) -> Team:
    """The tenant that tries; its developers have the cluster's role edit in its namespace."""
    team = make_team("red")
    team.apply("flood")
    team.let_developers_in()
    return team


def test_a_tenant_cannot_name_topics_of_another(red: Team, blue: Team) -> None:
    red.as_developer("apply", "-f", "-", given=json.dumps(red.document("thief", source={"topic": blue.source("calm")})))
    red.as_developer("apply", "-f", "-", given=json.dumps(red.document("spy", target={"topic": blue.target("calm")})))

    red.await_condition("thief", "Stalled", reason="SourceNotAllowed")
    red.await_condition("spy", "Stalled", reason="TargetNotAllowed")

    assert [red.client.find(red.platform.relay_deployment(red.namespace, name)) for name in ("thief", "spy")] == [
        None
    ] * 2


def test_a_tenant_may_use_delay_topics_and_cannot_read_secrets_or_enter_relays_of_others(red: Team, blue: Team) -> None:
    own = red.as_developer("get", "delaytopics", "-n", red.namespace, "-o", "name")
    refused = [
        red.as_developer("get", "secret", "credentials", "-n", blue.namespace),
        red.as_developer("get", "delaytopics", "-n", blue.namespace),
        red.as_developer("get", "secrets", "-n", RELAY_NAMESPACE),
        red.as_developer("get", "pods", "-n", RELAY_NAMESPACE),
        red.as_developer("create", "configmap", "probe", "-n", RELAY_NAMESPACE),
        red.as_developer("get", "delayclasses"),
    ]

    assert "delaytopic.delaytopic.dev/flood" in own
    assert [text for text in refused if "orbidden" not in text] == []


def test_a_flood_of_one_tenant_does_not_make_another_late(red: Team, blue: Team) -> None:
    blue.await_ready("calm")
    red.await_ready("flood")

    flood = red.start_sending("flood", Plan("flood", FLOOD, delays_ms=(15_000, 15_000), from_start=True))
    calm = blue.send("calm", Plan("calm", 400, per_second=20, delays_ms=(1_000, 5_000)))
    flooded, calmly = flood.verdict(), calm.verdict()

    assert (flooded["arrived"], calmly["arrived"]) == (FLOOD, 400), (flooded, calmly)
    assert calmly["late_ms"]["p99"] < 5_000, calmly


def test_pod_security_is_enforced_where_relays_run(platform: InstalledPlatform) -> None:
    container = {"name": "shell", "image": "busybox", "securityContext": {"privileged": True}}

    with pytest.raises(RequestRefused, match="violates PodSecurity"):
        platform.client.create(
            f"/api/v1/namespaces/{RELAY_NAMESPACE}/pods",
            {"metadata": {"name": "shell"}, "spec": {"containers": [container]}},
        )


def test_a_relay_has_no_token_is_not_root_and_writes_to_its_temporary_folder_only(blue: Team) -> None:
    blue.await_ready("calm")
    pod = next(each for each in blue.platform.relays(blue.namespace, "calm") if is_running(each))

    looked = blue.platform.kubectl(
        "exec", "-n", RELAY_NAMESPACE, pod["metadata"]["name"], "--", "python", "-c", LOOK_AROUND
    )

    assert json.loads(looked) == {"token": False, "root": False, "writes": ["/tmp"]}


def test_what_is_pending_is_listed_by_a_forwarded_port_and_to_no_address_of_the_network(
    blue: Team, kubeconfig: Path, kubectl_program: Path
) -> None:
    blue.await_ready("calm")
    blue.send("calm", Plan("listed", 50, delays_ms=(60_000, 60_000), from_start=True))
    blue.await_pending("calm", 50)
    pod = next(each for each in blue.platform.relays(blue.namespace, "calm") if is_running(each))

    listed = pending(blue, "calm", kubeconfig, kubectl_program)
    by_the_network = blue.platform.kubectl(
        "exec", "-n", RELAY_NAMESPACE, pod["metadata"]["name"], "--", "python", "-c", ASK_BY_THE_NETWORK
    )

    assert (listed["complete"], listed["pending"], len(listed["records"])) == (True, 50, 50)
    assert by_the_network == "403\n"


def pending(team: Team, name: str, kubeconfig: Path, kubectl_program: Path) -> dict[str, Any]:
    """Return what `kubectl delaytopic pending` prints, as data."""
    path = os.pathsep.join([str(kubectl_program.parent), os.environ["PATH"]])
    command = [sys.executable, "-m", "delaytopic_cli.kubectl", "pending", name, "-n", team.namespace, "-o", "json"]
    environment = {**os.environ, "KUBECONFIG": str(kubeconfig), "PATH": path}
    answer = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert answer.returncode == 0, answer.stderr
    return dict(json.loads(answer.stdout))
