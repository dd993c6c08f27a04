"""`delaytopic plan --against cluster`: before, while and after the operator does what was planned."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest
from tests.support.platform import Platform

from delaytopic_cli.commands.plan import plan

pytestmark = [pytest.mark.integration, pytest.mark.kubernetes, pytest.mark.usefixtures("users_kubectl")]


def planned(file: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, Any]]:
    """Exit code and plan."""
    code = plan.main(["-f", str(file), "--against", "cluster", "-o", "json"], standalone_mode=False)
    return code, json.loads(capsys.readouterr().out)


def actions(outcome: dict[str, Any]) -> list[str]:
    (topic,) = outcome["delayTopics"]
    return [f"{step['action']} {step['object'].split()[0]}" for step in topic["steps"]]


def test_what_a_file_changes_is_planned_and_nothing_more_once_it_was_done(
    running: Platform, topic_file: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    # Given a file that was never applied
    file = topic_file("planned")
    before = planned(file, capsys)

    # When it is applied, and the operator has done its part
    running.plane.kubectl("apply", "-f", str(file))
    running.await_condition("planned", "Ready", seconds=60)
    afterwards = planned(file, capsys)
    other = planned(topic_file("planned", precision="250ms"), capsys)

    # Then before all of it is to be done, afterwards nothing is, and a change is only what changes
    source = f"{running.team}.planned.delayed"
    assert (before[0], actions(before[1])) == (
        2,
        [
            "Create DelayTopic", "Hold finalizer", "Create ConfigMap", f"CreateTopic {source}.dlq",
            f"CreateTopic {running.team}.planned", f"CreateTopic {source}", "Create ServiceAccount", "Create ConfigMap",
            "Create NetworkPolicy", "Create PodDisruptionBudget", "Create Deployment",
        ],
    )  # fmt: skip
    assert (afterwards[0], afterwards[1]["delayTopics"][0]["steps"]) == (0, [])
    assert (other[0], actions(other[1])) == (2, ["Update DelayTopic", "Update ConfigMap", "Update Deployment"])


def test_a_source_that_another_delay_topic_of_the_cluster_has_is_refused(
    running: Platform, topic_file: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    source = running.apply_topic("first")

    code, outcome = planned(topic_file("second", source={"topic": source}), capsys)

    (topic,) = outcome["delayTopics"]
    assert (code, topic["reason"]) == (3, "ResourceConflict")
    assert f"is that of {running.team}/first already" in topic["message"]


def test_what_would_be_refused_by_the_api_server_is_refused_by_the_plan(
    running: Platform, topic_file: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    running.apply_topic("fixed")

    code, outcome = planned(topic_file("fixed", target={"topic": f"{running.team}.other"}), capsys)

    assert (code, outcome["delayTopics"][0]["reason"]) == (3, "ImmutableField")


def test_who_may_only_read_delay_topics_gets_a_plan_with_notes(
    running: Platform,
    topic_file: Callable[..., Path],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    # Given a DelayTopic that works, and somebody of the app team who may read DelayTopics and classes
    file = topic_file("watched", precision="500ms")
    running.plane.kubectl("apply", "-f", str(file))
    running.await_condition("watched", "Ready", seconds=60)
    running.plane.kubectl.apply(_rights(running.team))
    monkeypatch.setenv("KUBECONFIG", str(running.plane.kubeconfig_for_user("ann")))

    # When they plan
    same = planned(file, capsys)
    other = planned(topic_file("watched", precision="250ms"), capsys)

    # Then it says what they would change, and what they may not see
    assert (same[0], actions(same[1])) == (0, [])
    assert actions(other[1]) == ["Update DelayTopic", "Update ConfigMap", "Update Deployment"]
    assert any("DelayTopics of other namespaces may not be listed" in note for note in same[1]["notes"])
    assert any("it is taken to be as the operator makes it" in note for note in same[1]["notes"])


def _rights(namespace: str) -> list[dict[str, Any]]:
    rbac, ann = "rbac.authorization.k8s.io", {"kind": "User", "name": "ann"}
    documents: list[dict[str, Any]] = []
    for scope, kinds in (("", "delaytopics"), ("Cluster", "delayclasses")):
        metadata = {"name": f"{namespace}-reads-{kinds}", **({} if scope else {"namespace": namespace})}
        rule = {"apiGroups": ["delaytopic.dev"], "resources": [kinds], "verbs": ["get", "list"]}
        role = {"apiGroup": rbac, "kind": f"{scope}Role", "name": metadata["name"]}
        common = {"apiVersion": f"{rbac}/v1", "metadata": metadata}
        documents.append({**common, "kind": f"{scope}Role", "rules": [rule]})
        documents.append({**common, "kind": f"{scope}RoleBinding", "subjects": [ann], "roleRef": role})
    return documents


def test_a_cluster_that_does_not_answer_is_no_plan(
    topic_file: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))

    with pytest.raises(Exception, match="does not answer") as failed:
        plan.main(["-f", str(topic_file("unseen")), "--against", "cluster"], standalone_mode=False)

    assert getattr(failed.value, "exit_code", None) == 1
    assert not isinstance(failed.value, click.ClickException)
