"""`kubectl delaytopic` and `delaytopic plan --against cluster` with a living DelayTopic of a real cluster."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from tests.support.operator.app_team import AppTeam
from tests.support.operator.backlogs import with_pending
from tests.support.operator.platform import Platform

from delaytopic_cli.kubectl.__main__ import run
from delaytopic_cli.kubectl.client import Kubectl
from delaytopic_cli.kubectl.delay_topic import delay_topic
from delaytopic_cli.kubectl.relays import ask_pods, running_pods
from delaytopic_cli.plan.command import plan
from delaytopic_gateway.client.relay_listing import RelayAnswer

pytestmark = [pytest.mark.integration, pytest.mark.kubernetes, pytest.mark.usefixtures("users_kubectl")]


RBAC = "rbac.authorization.k8s.io"
NO_KUBELET = "kubectl says: error upgrading connection: no preferred addresses found; known addresses: []"

Plan = tuple[int, dict[str, Any]]
"""The exit code, and what was printed."""


@dataclass(frozen=True)
class Planned:
    """A DelayTopic that works, its file, and its plans before it was applied and once it worked."""

    name: str
    file: Path
    before: Plan
    afterwards: Plan


@pytest.fixture(scope="module")
def settings(running: Platform) -> Iterator[None]:
    """The operator's settings where its chart puts them.

    A plan looks for them in the whole cluster, which other test files use at the same time: it takes those of the
    operator that looks after the team's namespace, and no other file's may.
    """
    path = f"/api/v1/namespaces/{running.namespace}/configmaps/delaytopic"
    running.client.apply(path, settings_of(running))
    yield
    # A namespace goes in its own time: until then its settings would be found beside those of the next operator.
    running.client.delete(path)


@pytest.fixture(scope="module")
def planned(
    running: Platform, settings: None, users_kubectl: None, tmp_path_factory: pytest.TempPathFactory
) -> Planned:
    file = topic_file(running, tmp_path_factory.mktemp("files"), "reminders", precision="200ms")
    before = plan_of(file)
    running.plane.kubectl("apply", "-f", str(file))
    running.apply_topic("drained", precision="200ms", deletionPolicy="Retain")
    running.await_condition("reminders", "Ready", seconds=60)
    return Planned("reminders", file, before, plan_of(file))


@pytest.fixture(scope="module")
def reminders(planned: Planned) -> str:
    """The name of a DelayTopic that works."""
    return planned.name


def settings_of(platform: Platform) -> dict[str, Any]:
    labels = {"app.kubernetes.io/part-of": "delaytopic", "app.kubernetes.io/component": "operator"}
    config = {
        "apiVersion": "delaytopic.dev/v1beta1",
        "kind": "OperatorConfig",
        "namespace": platform.namespace,
        "watchNamespaces": [platform.team],
        "relayNamespaces": [],
    }
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "delaytopic", "namespace": platform.namespace, "labels": labels},
        "data": {"operator.yaml": yaml.safe_dump(config)},
    }


def topic_file(platform: Platform, directory: Path, name: str, **spec: object) -> Path:
    """The file of a DelayTopic of the team."""
    usual = {
        "delayClassName": platform.class_name,
        "source": {"topic": f"{platform.team}.{name}.delayed"},
        "target": {"topic": f"{platform.team}.{name}"},
    }
    document = {
        "apiVersion": "delaytopic.dev/v1beta1",
        "kind": "DelayTopic",
        "metadata": {"name": name, "namespace": platform.team},
        "spec": {**usual, **spec},
    }
    file = directory / f"{name}.yaml"
    file.write_text(yaml.safe_dump(document))
    return file


def plan_of(file: Path) -> Plan:
    with redirect_stdout(StringIO()) as printed:
        code = plan.main(["-f", str(file), "--against", "cluster", "-o", "json"], standalone_mode=False)
    return code, json.loads(printed.getvalue())


def actions(outcome: dict[str, Any]) -> list[str]:
    (topic,) = outcome["delayTopics"]
    return [f"{step['action']} {step['object'].split()[0]}" for step in topic["steps"]]


def test_before_a_file_is_applied_all_of_it_is_planned(running: Platform, planned: Planned) -> None:
    source = f"{running.team}.reminders.delayed"
    assert (planned.before[0], actions(planned.before[1])) == (
        2,
        [
            "Create DelayTopic", "AddFinalizer delaytopic.dev/drain", "Create ConfigMap", f"CreateTopic {source}.dlq",
            f"CreateTopic {running.team}.reminders", f"CreateTopic {source}", "Create ServiceAccount",
            "Create ConfigMap", "Create NetworkPolicy", "Create PodDisruptionBudget", "Create Deployment",
        ],
    )  # fmt: skip


def test_once_the_operator_has_done_its_part_nothing_is_planned(planned: Planned) -> None:
    code, outcome = planned.afterwards
    (topic,) = outcome["delayTopics"]

    assert (code, topic.get("reason"), topic.get("message"), topic["steps"]) == (0, None, None, [])


def test_of_a_change_only_what_changes_is_planned(running: Platform, planned: Planned, tmp_path: Path) -> None:
    code, outcome = plan_of(topic_file(running, tmp_path, planned.name, precision="250ms"))

    assert (code, actions(outcome)) == (2, ["Update DelayTopic", "Create ConfigMap", "Update Deployment"])


def test_a_plan_with_the_source_of_another_delay_topic_of_the_cluster_is_refused(
    running: Platform, planned: Planned, tmp_path: Path
) -> None:
    source = {"topic": f"{running.team}.{planned.name}.delayed"}

    code, outcome = plan_of(topic_file(running, tmp_path, "second", source=source))

    assert (code, outcome["delayTopics"][0]["reason"]) == (3, "ResourceConflict")


def test_what_would_be_refused_by_the_api_server_is_refused_by_the_plan(
    running: Platform, planned: Planned, tmp_path: Path
) -> None:
    code, outcome = plan_of(topic_file(running, tmp_path, planned.name, target={"topic": f"{running.team}.other"}))

    assert (code, outcome["delayTopics"][0]["reason"]) == (3, "ImmutableField")


def test_who_may_only_read_delay_topics_gets_a_plan_with_notes(
    running: Platform, planned: Planned, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given somebody of the app team who may read DelayTopics and classes
    user = f"reader-of-{running.team}"
    for path, document in rights(running.team, user).items():
        running.client.create(path, document)
    monkeypatch.setenv("KUBECONFIG", str(running.plane.kubeconfig_for_user(user)))

    # When they plan
    same = plan_of(planned.file)
    other = plan_of(topic_file(running, tmp_path, planned.name, precision="250ms"))

    # Then it says what they would change, and what they may not see
    assert (same[0], actions(same[1])) == (0, [])
    assert actions(other[1]) == ["Update DelayTopic", "Create ConfigMap", "Update Deployment"]
    assert any("DelayTopics of other namespaces may not be listed" in note for note in same[1]["notes"])
    assert any("it is taken to be as the operator makes it" in note for note in same[1]["notes"])


def rights(namespace: str, user: str) -> dict[str, dict[str, Any]]:
    """Roles to read DelayTopics of a namespace and all classes, and their bindings, by the path to create them at."""
    found: dict[str, dict[str, Any]] = {}
    for scope, place, resource in (("", f"namespaces/{namespace}/", "delaytopics"), ("Cluster", "", "delayclasses")):
        name = f"{namespace}-reads-{resource}"
        rule = {"apiGroups": ["delaytopic.dev"], "resources": [resource], "verbs": ["get", "list"]}
        role = {"apiGroup": RBAC, "kind": f"{scope}Role", "name": name}
        binding = {"metadata": {"name": name}, "subjects": [{"kind": "User", "name": user}], "roleRef": role}
        api = f"/apis/{RBAC}/v1/{place}{scope.lower()}"
        found[f"{api}roles"] = {"metadata": {"name": name}, "rules": [rule]}
        found[f"{api}rolebindings"] = binding
    return found


def test_a_cluster_that_does_not_answer_is_no_plan(
    running: Platform, users_kubectl: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = topic_file(running, tmp_path, "unseen")
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))

    with pytest.raises(Exception, match="does not answer") as failed:
        plan_of(file)

    assert getattr(failed.value, "exit_code", None) == 1
    assert not isinstance(failed.value, click.ClickException)


def said(platform: Platform, capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    """Exit code, and what was printed."""
    code = run([*arguments, "-n", platform.team])
    printed = capsys.readouterr()
    return code, printed.out + printed.err


def test_a_page_begins_with_the_verdict_and_names_the_topics(
    running: Platform, reminders: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, page = said(running, capsys, "status", reminders)

    assert code == 0
    assert page.startswith(f"{running.team}/reminders: ")
    assert f"{running.team}.reminders.delayed.dlq" in page
    assert "1 of 1 relay ready" in page
    assert "TopicCreated" in page


def test_the_table_and_the_json_tell_of_all(
    running: Platform, reminders: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, table = said(running, capsys, "status")
    _, text = said(running, capsys, "status", "-o", "json")

    assert code == 0
    assert table.splitlines()[0].split()[:2] == ["NAME", "VERDICT"]
    assert reminders in [each["name"] for each in json.loads(text)]


def test_why_scale_reads_out_the_operators_decision(
    running: Platform, reminders: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, text = said(running, capsys, "why-scale", reminders)

    assert code == 0
    assert "AutoscalingActive: " in text
    assert "Sizes for 4 partitions: 1, 2, 4." in text


def test_a_paused_delay_topic_says_so_until_it_is_resumed(
    running: Platform, reminders: str, capsys: pytest.CaptureFixture[str]
) -> None:
    paused = said(running, capsys, "pause", reminders)
    running.await_condition(reminders, "Paused")
    page = said(running, capsys, "status", reminders)
    again = said(running, capsys, "pause", reminders)
    resumed = said(running, capsys, "resume", reminders)
    looked = said(running, capsys, "reconcile", reminders, "--wait")

    name = f"{running.team}/{reminders}"
    assert paused == (0, f"{name} is paused: the operator changes nothing; relays run on, and deliver\n")
    assert page[1].startswith(f"{name}: Paused\n")
    assert again == (0, f"{name} is paused already\n")
    assert resumed == (0, f"{name} goes on: the operator looks after it again\n")
    assert looked[0] == 0
    assert "Paused" not in looked[1]


@pytest.mark.takes_long("records have to become due")
def test_a_drain_delivers_what_is_pending_before_the_object_goes(
    running: Platform, reminders: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Given a DelayTopic that would retain its backlog, and records that wait
    team = AppTeam.of(running, "drained", tmp_path)
    with_pending(running, team, [8_000, 8_200, 8_400])

    # When it is drained
    code, text = said(running, capsys, "drain", "drained", "--wait")

    # Then all of them arrive, and the object is gone
    assert code == 0
    assert text.startswith(f"{running.team}/drained drains: ")
    assert text.endswith(f"{running.team}/drained is gone\n")
    assert len(team.delivered()) == 3


def test_a_name_that_is_not_there_is_one_sentence(
    running: Platform, reminders: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, text = said(running, capsys, "status", "nobody")

    assert code == 1
    assert text == (
        f"error: there is no DelayTopic nobody in the namespace {running.team}; kubectl delaytopic status -A\n"
    )


def test_kubectl_finds_the_plugin(running: Platform, reminders: str, tmp_path: Path) -> None:
    script = tmp_path / "kubectl-delaytopic"
    script.write_text(f'#!/bin/sh\nexec {sys.executable} -m delaytopic_cli.kubectl "$@"\n')
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    environment = {**os.environ, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}

    result = subprocess.run(
        ["kubectl", "delaytopic", "status", "-n", running.team],
        capture_output=True, text=True, check=True, env=environment, timeout=60,
    )  # fmt: skip

    assert reminders in result.stdout


def test_relays_are_found_and_their_ports_asked_for_through_the_api_server(running: Platform, reminders: str) -> None:
    kubectl = Kubectl.of(namespace=running.team)

    pods = running_pods(kubectl, delay_topic(kubectl, reminders))
    answers = ask_pods(kubectl, [*pods, (running.namespace, "gone")], {"limit": 5})

    assert [namespace for namespace, _ in pods] == [running.namespace]
    assert answers == [
        # The node of these tests forwards no ports: the API server finds no kubelet there.
        RelayAnswer("/".join(pods[0]), problem=NO_KUBELET),
        RelayAnswer(f"{running.namespace}/gone", problem='the cluster says: pods "gone" not found'),
    ]


@pytest.mark.parametrize(
    ("subresource", "verbs", "problem"),
    [
        ("pods/proxy", ["get", "create"], 'cannot create resource "pods/portforward" in API group ""'),
        ("pods/portforward", ["create"], NO_KUBELET),
    ],
)
def test_the_right_to_forward_ports_is_what_lets_ask(
    running: Platform, reminders: str, monkeypatch: pytest.MonkeyPatch, subresource: str, verbs: list[str], problem: str
) -> None:
    # Given somebody who may see the pods, and has one right more
    user = f"{subresource.replace('/', '-')}-of-{running.team}"
    kubectl = Kubectl.of(namespace=running.team)
    pods = running_pods(kubectl, delay_topic(kubectl, reminders))
    rules = [
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]},
        {"apiGroups": [""], "resources": [subresource], "verbs": verbs},
    ]
    role = {"apiGroup": RBAC, "kind": "Role", "name": user}
    api = f"/apis/{RBAC}/v1/namespaces/{running.namespace}"
    running.client.create(f"{api}/roles", {"metadata": {"name": user}, "rules": rules})
    binding = {"metadata": {"name": user}, "subjects": [{"kind": "User", "name": user}], "roleRef": role}
    running.client.create(f"{api}/rolebindings", binding)

    # When they ask the relays
    monkeypatch.setenv("KUBECONFIG", str(running.plane.kubeconfig_for_user(user)))
    (answer,) = ask_pods(kubectl, pods, {"limit": 5})

    # Then the API server lets those through who may forward ports
    assert answer.url == "/".join(pods[0])
    assert problem in (answer.problem or "")
