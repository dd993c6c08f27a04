"""One DelayTopic in two Kubernetes clusters on one Kafka: both see it, records arrive once, topics are left alone."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from playground.kube.awaiting import await_object
from playground.kube.kube_client import Object
from tests.cluster.node.local_node import LocalNode
from tests.support.operator.app_team import AppTeam
from tests.support.operator.backlogs import all_arrived, relay_config, summary
from tests.support.operator.platform import Platform
from tests.support.relay.process import wait_for
from tests.support.servers.kafka_topics import KafkaTopics

from delaytopic_operator.kafka.admin import KafkaClusters
from delaytopic_operator.model.kube_cluster import mark_of
from delaytopic_operator.observe.topics import other_clusters

pytestmark = [pytest.mark.integration, pytest.mark.kubernetes]

NAME = "reminders"
THERE = "0a1b2c3d"
"""The mark of the other cluster."""


@pytest.fixture
def relays_there() -> Iterator[list[subprocess.Popen[bytes]]]:
    """Relays of the other cluster, which end with the test."""
    processes: list[subprocess.Popen[bytes]] = []
    yield processes
    for process in processes:
        process.kill()
        process.wait()


def relay_there(platform: Platform, folder: Path) -> subprocess.Popen[bytes]:
    """Start a relay of the same DelayTopic as another cluster's operator would."""
    found = relay_config(platform, NAME)
    assert found is not None
    config: dict[str, Any] = yaml.safe_load(found["data"]["relay.yaml"])
    path = folder / "relay.yaml"
    path.write_text(yaml.safe_dump({**config, "http": {"host": "127.0.0.1", "port": 0}}), encoding="utf-8")
    program = Path(sys.executable).with_name("delaytopic-relay")
    with (folder / "relay.log").open("wb") as log:
        command = [str(program), "--config", str(path), "--name", f"{NAME}-there.k-{THERE}"]
        return subprocess.Popen(command, stdout=log, stderr=log)


def await_no_other(platform: Platform) -> None:
    def holds(found: Object | None) -> bool:
        conditions = (found or {}).get("status", {}).get("conditions", [])
        return all(each["type"] != "OtherOwner" for each in conditions)

    await_object(platform.client, platform.path(NAME), holds, seconds=60)


@pytest.mark.nightly  # each day decisions leave alone what another operator owns
@pytest.mark.takes_long("members of the group are asked for three times a minute")
def test_each_side_sees_the_other_and_nobody_changes_what_both_have(
    platform: Platform, node: LocalNode, tmp_path: Path, relays_there: list[subprocess.Popen[bytes]]
) -> None:
    platform.start()
    team = AppTeam.of(platform, NAME, tmp_path)
    platform.apply_topic(NAME)
    platform.await_condition(NAME, "Ready", seconds=60)
    here = mark_of(platform.client.get("/api/v1/namespaces/kube-system")["metadata"]["uid"])
    clusters = KafkaClusters()
    cluster = clusters.cluster({"bootstrap.servers": platform.kafka.bootstrap_servers})
    group, topics = f"delaytopic.{platform.team}.{NAME}", KafkaTopics(platform.kafka.bootstrap_servers)

    relays_there.append(relay_there(platform, tmp_path))
    platform.await_condition(NAME, "OtherOwner", seconds=60)
    seen_there = other_clusters(cluster, group, THERE)
    team.send_due_in([0, 1_000, 2_000, 3_000] * 4)
    verdict = summary(team.audited(60))
    changed = {"topic": f"{platform.team}.{NAME}", "config": {"retention.ms": "7200000"}}
    generation = platform.topic(NAME)["metadata"]["generation"]
    platform.apply_topic(NAME, target=changed)
    wait_for(lambda: platform.condition(NAME, "OtherOwner")["observedGeneration"] > generation)
    left_alone = topics.config(f"{platform.team}.{NAME}")["retention.ms"]
    relays_there[0].terminate()
    await_no_other(platform)
    wait_for(lambda: topics.config(f"{platform.team}.{NAME}")["retention.ms"] == "7200000")
    clusters.close()

    assert seen_there == {here}
    assert verdict == all_arrived(16)
    assert left_alone != "7200000"
