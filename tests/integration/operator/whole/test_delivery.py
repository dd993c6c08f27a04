"""DelayTopics on a real cluster: made, delivering, described by their status, and moved to another backend."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from playground.kube.awaiting import await_object
from playground.kube.kube_client import Object
from playground.kube.pods import await_rollout
from tests.support.operator.app_team import AppTeam
from tests.support.operator.backlogs import await_pending
from tests.support.operator.platform import Platform
from tests.support.relay.process import patient, wait_for
from tests.support.relay.records import now_ms
from tests.support.relay.route import ClientHeaders
from tests.support.servers.kafka_topics import KafkaTopics

from delaytopic_api.relay import Ending, Outcome
from delaytopic_operator.model.conditions import instant_ms
from delaytopic_operator.model.reconciliation import Key
from delaytopic_operator.resources import relays_name

pytestmark = [pytest.mark.integration, pytest.mark.kubernetes]

SOON_MS = [2_000, 1_000, 1_500, 0, 3_000, 4_000]
LATER_MS = [3_600_000, 7_200_000, 2_400_000]
"""Beyond the end of any run of these tests."""
TRUE_WHILE_IT_DELIVERS = {
    "Ready": "Ready",
    "PolicyAccepted": "Accepted",
    "TopicsReady": "AsSpecified",
    "RelayAvailable": "RelaysReady",
    "DeliveringOnTime": "OnTime",
}


@dataclass(frozen=True)
class Reminders:
    """A DelayTopic at work: its team, the due times of the records that wait, and the events of its making."""

    team: AppTeam
    later_ms: list[int]
    events: list[str]


@pytest.fixture(scope="module")
def reminders(running: Platform, tmp_path_factory: pytest.TempPathFactory) -> Reminders:
    """One of three lines, with records that leave soon and others that wait."""
    running.apply_topic("reminders")
    running.await_condition("reminders", "Ready", seconds=60)
    wait_for(lambda: "Normal Ready" in events_about(running, "reminders"), running.operator.why)
    events = events_about(running, "reminders")
    team = AppTeam.of(running, "reminders", tmp_path_factory.mktemp("reminders"))
    due_ms = team.send_due_in([*SOON_MS, *LATER_MS])
    return Reminders(team, due_ms[len(SOON_MS) :], events)


def events_about(platform: Platform, name: str) -> list[str]:
    """Type and reason of each event about a DelayTopic, sorted."""
    found = platform.client.get(f"/apis/events.k8s.io/v1/namespaces/{platform.team}/events")["items"]
    own = [each for each in found if each["regarding"]["name"] == name]
    return sorted(f"{each['type']} {each['reason']}" for each in own)


def test_events_tell_what_was_made_and_no_more(reminders: Reminders) -> None:
    assert reminders.events == ["Normal Ready", *["Normal TopicCreated"] * 3]


def test_records_arrive_exactly_once_and_not_before_their_time(reminders: Reminders) -> None:
    reminders.team.await_delivered(len(SOON_MS))

    verdict = reminders.team.verdict()

    assert (verdict.faults, verdict.delivered, verdict.pending) == ({}, len(SOON_MS), len(LATER_MS))


def test_the_status_tells_topics_settings_backlog_and_relays(running: Platform, reminders: Reminders) -> None:
    topic = await_object(running.client, running.path("reminders"), delivers_and_holds_what_waits, seconds=60) or {}

    status = topic["status"]
    assert {each["observedGeneration"] for each in status["conditions"]} == {topic["metadata"]["generation"]}
    assert status["effective"] == {
        "precision": "1s",
        "dialect": "Native",
        "maxDelay": "720h",
        "ids": "ByHeader",
        "delayClass": running.class_name,
        "delayClassGeneration": 1,
    }
    assert status["backend"] == {"type": "RedisZset", "id": f"delaytopic.{running.team}.reminders"}
    parts = {role: (status[role]["ownership"], status[role]["partitions"]) for role in ("source", "target")}
    assert parts == {"source": ("Created", 4), "target": ("Created", 4)}
    # Beyond the horizon, a relay knows of due times by the slices that they are in.
    first_ms = min(reminders.later_ms)
    assert first_ms - 120_000 < instant_ms(status["backlog"]["nextDue"]) <= first_ms
    relay = {name: status["relay"][name] for name in ("replicas", "readyReplicas", "desiredReplicas", "summary")}
    assert relay == {"replicas": 1, "readyReplicas": 1, "desiredReplicas": 1, "summary": "1/1"}
    assert status["scaling"]["sentence"]


def delivers_and_holds_what_waits(found: Object | None) -> bool:
    status = (found or {}).get("status", {})
    backlog = status.get("backlog", {})
    reasons = {each["type"]: each["reason"] for each in status.get("conditions", []) if each["status"] == "True"}
    # A record that is about to be put in the backlog is pending, and nobody knows yet when it is due.
    waits = (backlog.get("pending"), backlog.get("overdue"), "nextDue" in backlog) == (len(LATER_MS), 0, True)
    return waits and TRUE_WHILE_IT_DELIVERS.items() <= reasons.items()


def test_a_line_of_kubectl_get_tells_how_it_stands(running: Platform, reminders: Reminders) -> None:
    await_object(running.client, running.path("reminders"), delivers_and_holds_what_waits, seconds=60)

    shown = running.plane.kubectl("get", "dtopic", "reminders", "-n", running.team, "-o", "wide")

    columns, line = (each.split() for each in shown.splitlines())
    assert columns[:10] == ["NAME", "READY", "REASON", "PENDING", "OVERDUE", "NEXT", "DUE", "P99", "COUNTED", "RELAYS"]
    assert line[:5] == ["reminders", "True", "Ready", "3", "0"]
    assert line[7] == "1/1"
    assert "records are taken in and delivered at their own time" in shown


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


@pytest.mark.nightly  # each day relays hand a backlog over to those with another backend, there and back
@pytest.mark.takes_long("each rollout waits ten seconds for its pods to settle")
@pytest.mark.parametrize("backends", [["KafkaBuckets"], ["KafkaBuckets", "RedisZset"]], ids=["there", "and back"])
def test_a_backlog_moves_to_another_backend_while_it_is_delivered(
    backends: list[str], running: Platform, tmp_path: Path
) -> None:
    name = f"moved-{len(backends)}"
    running.apply_topic(name)
    running.await_condition(name, "Ready", seconds=60)
    team = AppTeam.of(running, name, tmp_path)
    soon, later = range(1_000, 11_000 * len(backends), 250), [LATER_MS[0]] * 20
    team.send_due_in([*soon, *later])

    seen: list[Object] = []
    for backend in backends:
        change_backend(running, name, backend)
        seen.append(running.await_condition(name, "Ready", seconds=60)["status"]["backend"])
    team.await_delivered(len(soon), seconds=120)
    verdict = team.verdict()

    assert [each["type"] for each in seen] == backends
    assert KafkaTopics(running.kafka.bootstrap_servers).partitions(f"{seen[0]['id']}.delay.0") == 4
    assert (verdict.faults, verdict.delivered, verdict.pending) == ({}, len(soon), len(later))
    if backends == ["KafkaBuckets"]:
        # After the way back the status has been seen to say too much is pending; what is delivered is judged above.
        await_pending(running, name, len(later), seconds=120)


def change_backend(platform: Platform, name: str, type: str) -> None:
    """Apply it, and wait until the relays of the new one have taken over."""
    relays = relays_name(Key(platform.team, name))
    path = f"/apis/apps/v1/namespaces/{platform.namespace}/deployments/{relays}"
    before = platform.client.get(path)["metadata"]["generation"]
    platform.apply_topic(name, backend={"type": type})
    await_object(platform.client, path, lambda found: bool(found and found["metadata"]["generation"] > before))
    await_rollout(platform.client, platform.namespace, relays, 1, seconds=60)
