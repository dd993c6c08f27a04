"""A DelayTopic in place of another scheduler: its topics are made as that one wants them, and its records are read."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.operator.app_team import AppTeam
from tests.support.operator.platform import Platform
from tests.support.relay.process import patient
from tests.support.relay.records import now_ms
from tests.support.relay.route import ClientHeaders
from tests.support.servers.kafka_topics import KafkaTopics

pytestmark = [pytest.mark.integration, pytest.mark.kubernetes]


def test_a_scheduler_s_topics_are_made_and_a_delivery_comes_with_its_tombstone_and_its_copy(
    running: Platform, tmp_path: Path
) -> None:
    source = running.apply_topic("videos", schedule={"scheduler": {}})
    running.await_condition("videos", "Ready", seconds=60)
    team, topics = AppTeam.of(running, "videos", tmp_path), KafkaTopics(running.kafka.bootstrap_servers)
    headers: ClientHeaders = [
        ("scheduler-epoch", b"%d" % (now_ms() // 1000)),
        ("scheduler-target-topic", team.target.encode()),
        ("scheduler-target-key", b"vid1"),
    ]

    team.send([(b"vid1-online", b"video 1", headers)])

    def values(topic: str) -> list[tuple[bytes | None, bytes | None]]:
        return [(record.key, record.value) for record in team.read(topic)]

    assert patient(lambda: values(f"{source}.history") != [], 60), running.operator.why()
    assert values(team.target) == values(f"{source}.history") == [(b"vid1", b"video 1")]
    assert values(source) == [(b"vid1-online", b"video 1"), (b"vid1-online", None)]
    config, status = topics.config(source), running.topic("videos")["status"]
    assert (config["cleanup.policy"], config["retention.ms"]) == ("compact", "-1")
    assert (status["history"]["ownership"], status["history"]["partitions"]) == ("Created", 4)
