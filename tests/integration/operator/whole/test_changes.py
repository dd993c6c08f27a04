"""A living DelayTopic is changed: what can roll safely does, with records in flight; all else is refused in words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playground.kube.awaiting import await_object
from playground.kube.kube_client import Object
from playground.kube.pods import await_rollout, pods_of
from tests.support.operator.app_team import AppTeam
from tests.support.operator.backlogs import relay_config_path
from tests.support.operator.platform import Platform
from tests.support.relay.process import wait_for
from tests.support.servers.kafka_topics import KafkaTopics

from delaytopic_operator.model.reconciliation import Key
from delaytopic_operator.resources import relays_name

pytestmark = [pytest.mark.integration, pytest.mark.kubernetes, pytest.mark.nightly]


def ready(platform: Platform, name: str, directory: Path, **spec: Any) -> AppTeam:
    """A DelayTopic that works, and the team that uses it."""
    platform.apply_topic(name, **spec)
    platform.await_condition(name, "Ready", seconds=60)
    return AppTeam.of(platform, name, directory)


def deployment_path(platform: Platform, name: str, namespace: str | None = None) -> str:
    relays = relays_name(Key(platform.team, name))
    return f"/apis/apps/v1/namespaces/{namespace or platform.namespace}/deployments/{relays}"


def rolled_out(platform: Platform, name: str, change: Any) -> Object:
    """Do something that starts the relays anew, and wait until the new ones have taken over, and the old are gone."""
    path = deployment_path(platform, name)
    before = platform.client.get(path)["metadata"]["generation"]
    change()
    await_object(platform.client, path, lambda found: bool(found and found["metadata"]["generation"] > before))
    namespace, relays = path.split("/")[5], path.rpartition("/")[2]
    deployment = await_rollout(platform.client, namespace, relays, 1, seconds=60)
    # A Deployment does not count pods that are told to stop; until they have, they may deliver by what they were told.
    labels = deployment["spec"]["selector"]["matchLabels"]
    wait_for(lambda: len(pods_of(platform.client, namespace, **labels)) == 1, lambda: f"old pods of {relays} stay")
    return deployment


def test_partitions_grow_while_records_wait(running: Platform, tmp_path: Path) -> None:
    team = ready(running, "grown", tmp_path)
    team.send_due_in(range(2_000, 22_000, 500))

    running.apply_topic("grown", source={"topic": team.source, "partitions": 6})
    await_object(
        running.client,
        running.path("grown"),
        lambda found: bool(found and found["status"].get("source", {}).get("partitions") == 6),
    )
    team.send_due_in(range(1_000, 11_000, 500))
    verdict = team.audited(60)

    assert (verdict.faults, verdict.delivered) == ({}, 60)
    assert KafkaTopics(running.kafka.bootstrap_servers).partitions(team.source) == 6


def test_fewer_partitions_than_there_are_is_refused_in_words_and_delivery_goes_on(
    running: Platform, tmp_path: Path
) -> None:
    team = ready(running, "shrunk", tmp_path)

    running.apply_topic("shrunk", source={"topic": team.source, "partitions": 2})
    stalled = running.await_condition("shrunk", "Stalled", reason="PartitionDecrease")
    team.send_due_in([500, 1_000])
    verdict = team.audited()

    said = next(each["message"] for each in stalled["status"]["conditions"] if each["type"] == "Stalled")
    assert said == (
        f"the source topic {team.source} has 4 partitions, and Kafka cannot take any away: set "
        "spec.source.partitions to 4 or more"
    )
    assert (verdict.faults, verdict.delivered) == ({}, 2)


def test_what_relays_read_at_the_start_changes_by_a_rollout_that_neither_loses_nor_doubles(
    running: Platform, tmp_path: Path
) -> None:
    team = ready(running, "edited", tmp_path)
    team.send_due_in(range(1_000, 61_000, 1_000))

    rolled_out(running, "edited", lambda: running.apply_topic("edited", precision="200ms"))
    rolled_out(
        running,
        "edited",
        lambda: running.apply_topic("edited", precision="200ms", schedule={"maxDelay": "800h"}),
    )
    verdict = team.audited(70)

    assert (verdict.faults, verdict.delivered) == ({}, 60)
    assert running.topic("edited")["status"]["effective"]["maxDelay"] == "800h"
    assert KafkaTopics(running.kafka.bootstrap_servers).config(team.source)["retention.ms"] == str(968 * 3_600_000)


def test_the_guarantee_changes_there_and_back_by_rollouts_that_lose_nothing(running: Platform, tmp_path: Path) -> None:
    team = ready(running, "loosened", tmp_path)
    team.send_due_in(range(1_000, 31_000, 1_000))

    rolled_out(running, "loosened", lambda: running.apply_topic("loosened", guarantee="AtLeastOnce"))
    rolled_out(running, "loosened", lambda: running.apply_topic("loosened"))
    verdict = team.audited(70)

    # A relay of AtLeastOnce may send again what it could not commit before it stopped.
    assert {*verdict.faults} <= {"twice"}
    assert verdict.delivered >= 30


def test_suspend_holds_what_it_says_and_lets_go_again(running: Platform, tmp_path: Path) -> None:
    team = ready(running, "halted", tmp_path)

    # Delivery: taken in, and held
    rolled_out(running, "halted", lambda: running.apply_topic("halted", suspend="Delivery"))
    team.send_due_in([0, 0, 0])
    _await_backlog(running, "halted", pending=3, overdue=3)
    held = len(team.delivered())
    suspended = running.condition("halted", "Ready")

    # Ingest: what was taken in leaves, and nothing more is taken in
    rolled_out(running, "halted", lambda: running.apply_topic("halted", suspend="Ingest"))
    wait_for(lambda: len(team.delivered()) == 3, lambda: "what was taken in did not leave")
    team.send_due_in([0, 0])
    _await_backlog(running, "halted", pending=0, overdue=0)
    untouched = len(team.delivered())

    # None: all of it
    rolled_out(running, "halted", lambda: running.apply_topic("halted"))
    verdict = team.audited()

    assert (held, untouched) == (0, 3)
    assert (suspended["status"], suspended["reason"]) == ("False", "Suspended")
    assert {name: len(found) for name, found in verdict.faults.items()} == {}
    assert verdict.delivered == 5
    running.await_condition("halted", "Ready")


def test_all_suspended_stands_still(running: Platform, tmp_path: Path) -> None:
    team = AppTeam.of(running, "frozen", tmp_path)
    running.apply_topic("frozen", suspend="Delivery", autoscaling={"mode": "Fixed"})
    running.await_condition("frozen", "Ready", "False", reason="Suspended", seconds=60)
    team.send_due_in([0, 0])
    _await_backlog(running, "frozen", pending=2, overdue=2)

    rolled_out(running, "frozen", lambda: running.apply_topic("frozen", suspend="All", autoscaling={"mode": "Fixed"}))
    team.send_due_in([0])
    _await_backlog(running, "frozen", pending=2, overdue=2)

    assert team.delivered() == []
    assert running.condition("frozen", "Ready")["message"] == (
        "spec.suspend is All: nothing is taken in, and what is due is held"
    )


def test_a_label_of_the_allow_list_is_inherited_and_no_other(running: Platform, tmp_path: Path) -> None:
    ready(running, "labelled", tmp_path)

    running.client.merge(
        running.path("labelled"), {"metadata": {"labels": {"team": "checkout", "argocd.argoproj.io/instance": "shop"}}}
    )
    path = deployment_path(running, "labelled")
    found = await_object(
        running.client, path, lambda found: bool(found and found["metadata"]["labels"].get("team") == "checkout")
    )

    assert found is not None
    assert "argocd.argoproj.io/instance" not in found["metadata"]["labels"]
    assert found["spec"]["template"]["metadata"]["labels"].get("argocd.argoproj.io/instance") is None


def test_what_somebody_did_to_the_objects_is_undone(running: Platform, tmp_path: Path) -> None:
    team = ready(running, "meddled", tmp_path, autoscaling={"mode": "Fixed"})
    path = deployment_path(running, "meddled")
    config = relay_config_path(running, "meddled")
    budget = path.replace("/apps/v1", "/policy/v1").replace("/deployments/", "/poddisruptionbudgets/")
    wanted = running.client.get(config)["data"]
    team.send_due_in(range(1_000, 21_000, 500))

    running.client.merge(path, {"spec": {"replicas": 3}})
    await_object(running.client, path, lambda found: bool(found and found["spec"]["replicas"] == 1))
    made = running.client.get(config)["metadata"]["uid"]
    running.client.delete(config)
    await_object(running.client, config, lambda found: bool(found and found["metadata"]["uid"] != made))
    assert running.client.get(config)["data"] == wanted
    old = running.client.get(budget)["metadata"]["uid"]
    running.client.delete(budget)
    await_object(running.client, budget, lambda found: bool(found and found["metadata"]["uid"] != old))
    # All at once: the API server passes over a pod that the Deployment ends at the same moment.
    pods = f"/api/v1/namespaces/{running.namespace}/pods"
    running.client.request("DELETE", pods, query={"labelSelector": "delaytopic.dev/name=meddled"})
    verdict = team.audited(60)

    assert (verdict.faults, verdict.delivered) == ({}, 40)
    assert running.operator.metric('delaytopic_operator_drift_corrections_total{object="Deployment"}') >= 1
    running.await_condition("meddled", "Ready")


def _await_backlog(platform: Platform, name: str, *, pending: int, overdue: int) -> None:
    def holds(found: Object | None) -> bool:
        backlog = (found or {}).get("status", {}).get("backlog", {})
        return (backlog.get("pending"), backlog.get("overdue")) == (pending, overdue)

    await_object(platform.client, platform.path(name), holds, seconds=40)
