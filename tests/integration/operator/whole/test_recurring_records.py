"""A RecurringRecord on a real cluster: written, replaced, suspended, and deleted by either policy."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AclOperation  # type: ignore[attr-defined]  # public, by an implicit re-export
from playground.kube.awaiting import await_condition, await_gone, await_object, condition_of
from playground.kube.kube_client import Object
from tests.harness.shared_servers import SharedKafka
from tests.support.operator.app_team import AppTeam
from tests.support.operator.own_classes import guarded_connection, own_class
from tests.support.operator.platform import API, Platform
from tests.support.relay.process import wait_for
from tests.support.servers.kafka_topics import KafkaTopics
from tests.support.servers.secure_servers import allow_again, deny

from delaytopic_operator.model.conditions import instant_ms

pytestmark = [pytest.mark.integration, pytest.mark.kubernetes]

NOTICED_SECONDS = 100.0
DAILY: dict[str, Any] = {"cron": "0 9 * * *", "value": "report"}


class OneRecord:
    """A RecurringRecord of the platform's team, and the source that it is written to."""

    def __init__(self, platform: Platform, team: AppTeam, name: str, **spec: Any) -> None:
        self.platform, self.team, self.name = platform, team, name
        self.path = f"{API}/namespaces/{platform.team}/recurringrecords/{name}"
        self.apply(**spec)

    def apply(self, **spec: Any) -> None:
        whole = {**DAILY, "delayTopic": "recurring", **spec}
        self.platform.apply("RecurringRecord", self.name, whole, namespace=self.platform.team)

    def await_ready(self, status: str = "True", reason: str = "Written") -> Object:
        return await_condition(self.platform.client, self.path, "Ready", status, reason=reason, seconds=40)

    def await_digest_other_than(self, before: Object) -> Object:
        known = before["status"]["written"].get("digest")

        def is_written(found: Object | None) -> bool:
            digest = ((found or {}).get("status") or {}).get("written", {}).get("digest")
            return digest is not None and digest != known

        return await_object(self.platform.client, self.path, is_written, seconds=40) or {}

    def events(self) -> list[tuple[str, str]]:
        """Type and reason of each Event about it."""
        listed = self.platform.client.get(f"/apis/events.k8s.io/v1/namespaces/{self.platform.team}/events")["items"]
        about = [each for each in listed if each["regarding"]["name"] == self.name]
        return [(each["type"], each["reason"]) for each in about]

    def written(self, uid: str) -> list[tuple[bytes | None, bytes | None]]:
        """Action and value of each record that the operator wrote for the object, in order."""
        found = []
        for record in self.team.read(self.team.source):
            headers = dict(record.headers)
            # Relays write occurrences under the same id.
            if headers.get("deliver-id") == uid.encode() and "delay-restated" not in headers:
                found.append((headers.get("deliver-action"), record.value))
        return found


def is_going(found: Object | None) -> bool:
    return found is not None and "deletionTimestamp" in found["metadata"]


def written_again(before: Object) -> Callable[[Object | None], bool]:
    """Return whether an object was written later than it was before."""

    def holds(found: Object | None) -> bool:
        at = ((found or {}).get("status") or {}).get("written", {}).get("at")
        return at is not None and at != before["status"]["written"]["at"]

    return holds


@pytest.fixture(scope="module")
def team(running: Platform, tmp_path_factory: pytest.TempPathFactory) -> AppTeam:
    """A team with a DelayTopic that takes ids."""
    running.apply_topic("recurring", schedule={"ids": "ByHeader"})
    running.await_condition("recurring", "Ready", seconds=60)
    return AppTeam.of(running, "recurring", tmp_path_factory.mktemp("recurring"))


def test_a_record_is_written_replaced_suspended_and_resumed_by_its_object(running: Platform, team: AppTeam) -> None:
    record = OneRecord(running, team, "edited")
    first = record.await_ready()
    record.apply(value="other")
    second = record.await_digest_other_than(first)
    record.apply(value="other", suspend=True)
    record.await_ready("False", "Suspended")
    record.apply(value="other")
    record.await_ready()

    assert record.written(first["metadata"]["uid"]) == [
        (None, b"report"),
        (None, b"other"),
        (b"cancel", None),
        (None, b"other"),
    ]
    assert second["status"]["written"]["partition"] == first["status"]["written"]["partition"]


@pytest.mark.parametrize(
    ("policy", "last"),
    [pytest.param("Keep", (None, b"report"), marks=pytest.mark.nightly), ("Cancel", (b"cancel", None))],
)
def test_what_waits_when_an_object_is_deleted_is_left_by(
    running: Platform, team: AppTeam, policy: str, last: tuple[bytes | None, bytes | None]
) -> None:
    record = OneRecord(running, team, f"deleted-{policy.lower()}", deletionPolicy=policy)
    uid = record.await_ready()["metadata"]["uid"]

    running.client.delete(record.path)
    await_gone(running.client, record.path, seconds=40)

    assert record.written(uid)[-1] == last


def test_an_object_without_its_delay_topic_is_counted_and_told_and_hangs_on_nothing(
    running: Platform, team: AppTeam
) -> None:
    record = OneRecord(running, team, "alone", delayTopic="nowhere", deletionPolicy="Cancel")
    record.await_ready("False", "DelayTopicMissing")

    # The test may see the status a moment before the operator has the answer to its own write.
    wait_for(lambda: without_delay_topic(running) == 1, running.operator.why)
    told = wait_for(lambda: warnings(running, "alone"), running.operator.why)
    running.client.delete(record.path)
    await_gone(running.client, record.path, seconds=40)
    wait_for(lambda: without_delay_topic(running) == 0, running.operator.why)

    note = f"there is no DelayTopic {running.team}/nowhere: apply it, or name another one"
    assert told == [("DelayTopicMissing", note)]


def without_delay_topic(platform: Platform) -> float:
    """Return how many RecurringRecords of the team the operator's page of metrics counts as such."""
    labels = f'delaytopic_namespace="{platform.team}",reason="DelayTopicMissing",status="False"'
    series = f"delaytopic_operator_recurring_records{{{labels}}} "
    lines = platform.operator.get("/metrics").splitlines()
    return sum(float(line.removeprefix(series)) for line in lines if line.startswith(series))


def warnings(platform: Platform, name: str) -> list[tuple[str, str]]:
    """Return reason and note of each Warning about one of them."""
    listed = platform.client.get(f"/apis/events.k8s.io/v1/namespaces/{platform.team}/events")["items"]
    about = ("RecurringRecord", name)
    found = [each for each in listed if (each["regarding"]["kind"], each["regarding"]["name"]) == about]
    return [(each["reason"], each["note"]) for each in found if each["type"] == "Warning"]


def test_a_record_whose_write_was_not_told_of_is_written_again_in_its_place(running: Platform, team: AppTeam) -> None:
    record = OneRecord(running, team, "untold")
    before = record.await_ready()

    # So an operator leaves it that is killed between the write and the status.
    running.client.merge(f"{record.path}/status", {"status": {"written": {"digest": None, "at": None}}})
    after = await_object(running.client, record.path, written_again(before), seconds=60)

    assert after is not None
    assert after["status"]["written"]["partition"] == before["status"]["written"]["partition"]
    assert record.written(before["metadata"]["uid"]) == [(None, b"report")] * 2


@pytest.mark.nightly  # each day one without its DelayTopic is told, and goes
def test_what_goes_through_a_delay_topic_that_is_deleted_first_hangs_on_nothing_and_is_written_when_it_is_back(
    running: Platform, tmp_path: Path
) -> None:
    # Given a DelayTopic through which two recur
    ids = {"ids": "ByHeader"}
    running.apply_topic("brief", schedule=ids, deletionPolicy="Retain")
    team = AppTeam.of(running, "brief", tmp_path)
    kept, cancelled = (
        OneRecord(running, team, f"brief-{policy.lower()}", delayTopic="brief", deletionPolicy=policy)
        for policy in ("Keep", "Cancel")
    )
    before = [record.await_ready() for record in (kept, cancelled)]

    # When it is deleted, and applied again
    running.delete_topic("brief")
    running.await_gone("brief", seconds=60)
    for record in (kept, cancelled):
        record.await_ready("False", "DelayTopicMissing")
    running.apply_topic("brief", schedule=ids, deletionPolicy="Retain")
    for record, was in zip((kept, cancelled), before, strict=True):
        assert await_object(running.client, record.path, written_again(was), seconds=60) is not None
    again = [record.written(was["metadata"]["uid"]) for record, was in zip((kept, cancelled), before, strict=True)]

    # And when it goes first for good
    running.delete_topic("brief")
    running.await_gone("brief", seconds=60)
    for record in (kept, cancelled):
        running.client.delete(record.path)
        await_gone(running.client, record.path, seconds=60)

    assert again == [[(None, b"report")] * 2] * 2


@pytest.mark.nightly  # each day plans say what a DelayTopic does not take
def test_what_its_delay_topic_no_longer_takes_is_said_and_written_when_it_takes_it_again(
    running: Platform, tmp_path: Path
) -> None:
    running.apply_topic("edited-under", schedule={"ids": "ByHeader"})
    team = AppTeam.of(running, "edited-under", tmp_path)
    record = OneRecord(running, team, "under", delayTopic="edited-under")
    first = record.await_ready()

    running.apply_topic("edited-under", schedule={"ids": "Disabled"})
    no_ids = record.await_ready("False", "IdsNotTaken")
    running.apply_topic("edited-under", schedule={"ids": "ByHeader"})
    second = await_object(running.client, record.path, written_again(first), seconds=60)
    running.apply_topic("edited-under", schedule={"ids": "ByHeader", "maxDelay": "12h"})
    too_seldom = record.await_ready("False", "BeyondMaxDelay")
    running.apply_topic("edited-under", schedule={"ids": "ByHeader"})
    assert second is not None
    third = await_object(running.client, record.path, written_again(second), seconds=60)

    assert third is not None
    assert record.written(first["metadata"]["uid"]) == [(None, b"report")] * 3
    assert [condition_of(each, "Ready")["message"] for each in (no_ids, too_seldom)] == [
        f"the DelayTopic {running.team}/edited-under takes no ids by header:"
        " it needs the native dialect with schedule.ids: ByHeader",
        condition_of(too_seldom, "Ready")["message"],
    ]
    assert "at most 12h (schedule.maxDelay)" in condition_of(too_seldom, "Ready")["message"]


@pytest.mark.nightly  # each day plans wait for a cancel that may not be written
@pytest.mark.takes_long("a class changes twice, and topics are made")
def test_a_record_whose_topics_a_class_takes_away_says_so_and_waits_for_its_cancel(
    running: Platform, tmp_path: Path
) -> None:
    of_class = own_class(running, "narrowed")
    running.apply_topic("narrowed", delayClassName=of_class, schedule={"ids": "ByHeader"})
    team = AppTeam.of(running, "narrowed", tmp_path)
    record = OneRecord(running, team, "of-narrowed", delayTopic="narrowed", deletionPolicy="Cancel")
    uid = record.await_ready()["metadata"]["uid"]

    own_class(running, "narrowed", access={"sourceTopics": ["nobody.*"]})
    refused = record.await_ready("False", "DelayTopicRefused")
    running.client.delete(record.path)
    await_object(running.client, record.path, is_going)
    before = record.written(uid)
    own_class(running, "narrowed")
    await_gone(running.client, record.path, seconds=NOTICED_SECONDS)

    assert f"DelayClass {of_class} allows nobody.*" in condition_of(refused, "Ready")["message"]
    assert (before, record.written(uid)) == ([(None, b"report")], [(None, b"report"), (b"cancel", None)])


@pytest.mark.nightly
def test_a_record_that_kafka_refuses_is_told_and_is_written_once_it_may_be(
    running: Platform, kafka: SharedKafka, tmp_path: Path
) -> None:
    of_class = own_class(running, "guarded", connection=guarded_connection(running, kafka))
    source = running.apply_topic("guarded", delayClassName=of_class, schedule={"ids": "ByHeader"})
    team = AppTeam.of(running, "guarded", tmp_path)
    running.await_condition("guarded", "TopicsReady", seconds=60)
    deny(kafka.bootstrap_servers, source, AclOperation.WRITE)

    record = OneRecord(running, team, "refused", delayTopic="guarded")
    refused = record.await_ready("False", "AuthorizationFailed")
    told = wait_for(record.events, running.operator.why)
    allow_again(kafka.bootstrap_servers, source)
    written = record.await_ready()

    assert f"may not write to the topic {source}: grant it" in condition_of(refused, "Ready")["message"]
    assert told == [("Warning", "AuthorizationFailed")]
    assert record.written(written["metadata"]["uid"]) == [(None, b"report")]


@pytest.mark.nightly
@pytest.mark.takes_long("nothing recurs more often than once a minute")
def test_its_status_tells_the_last_delivery_that_a_relay_made(running: Platform, team: AppTeam) -> None:
    record = OneRecord(running, team, "told", cron="* * * * *")
    written = record.await_ready()

    def is_told(found: Object | None) -> bool:
        return "last" in ((found or {}).get("status") or {})

    found = await_object(running.client, record.path, is_told, seconds=NOTICED_SECONDS) or {}
    told = [dict(each.headers).get("delay-occurrence") for each in team.read(team.target)]

    status = found["status"]
    # The first look that is answered may be one after the second delivery.
    assert b"%d:%d" % (status["delivered"], instant_ms(status["last"])) in told
    assert status["missed"] == 0
    assert instant_ms(status["last"]) > instant_ms(written["status"]["written"]["at"])


@pytest.mark.nightly
@pytest.mark.takes_long("a topic is looked at once a minute")
def test_a_chain_that_was_lost_with_its_source_is_written_anew(running: Platform, tmp_path: Path) -> None:
    topics = KafkaTopics(running.kafka.bootstrap_servers)
    source = running.apply_topic("remade", schedule={"ids": "ByHeader"})
    team = AppTeam.of(running, "remade", tmp_path)
    record = OneRecord(running, team, "of-remade", delayTopic="remade")
    before, former = record.await_ready(), topics.id(source)

    topics.delete(source)
    await_condition(running.client, record.path, "Ready", "False", reason="TopicMissing", seconds=NOTICED_SECONDS)
    running.client.merge(
        running.path("remade"), {"metadata": {"annotations": {"delaytopic.dev/accept-topic-recreation": former}}}
    )
    after = await_object(running.client, record.path, written_again(before), seconds=NOTICED_SECONDS)

    assert after is not None
    assert after["status"]["written"]["topicId"] == topics.id(source) != former
    assert record.written(before["metadata"]["uid"]) == [(None, b"report")]
