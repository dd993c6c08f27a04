"""A DelayTopic that tells how its schedules end: the topic is made, and relays write to it."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.operator.app_team import AppTeam
from tests.support.operator.platform import Platform
from tests.support.relay.process import patient
from tests.support.relay.records import now_ms
from tests.support.servers.kafka_topics import KafkaTopics

from delaytopic_api.relay import Ending, Outcome

pytestmark = [pytest.mark.integration, pytest.mark.kubernetes]


def test_the_topic_of_outcomes_is_made_like_the_source_and_a_cancel_has_its_answer(
    running: Platform, tmp_path: Path
) -> None:
    topic = f"{running.team}.orders.outcomes"
    source = running.apply_topic("orders", outcomes={"topic": topic, "retention": "168h"})
    running.await_condition("orders", "Ready", seconds=60)
    team, topics = AppTeam.of(running, "orders", tmp_path), KafkaTopics(running.kafka.bootstrap_servers)
    due = [("deliver-id", b"a"), ("deliver-at", b"%d" % (now_ms() + 3_600_000))]
    cancel = [("deliver-id", b"a"), ("deliver-action", b"cancel"), ("deliver-requested-by", b"ann")]

    team.send([(b"a", b"v", [*due]), (b"a", None, [*cancel])])

    def told() -> list[Outcome]:
        return [Outcome.model_validate_json(each.value or b"") for each in team.read(topic)]

    assert patient(lambda: told() != [], 60), running.operator.why()
    assert [(each.outcome, each.id, each.requested_by, each.source.topic) for each in told()] == [
        (Ending.CANCELLED, "a", "ann", source)
    ]
    config, status = topics.config(topic), running.topic("orders")["status"]
    assert (config["cleanup.policy"], config["retention.ms"]) == ("delete", "604800000")
    assert (status["outcomes"]["ownership"], status["outcomes"]["partitions"]) == (
        "Created",
        status["source"]["partitions"],
    )
