"""A DelayClass tells whether it can be used and by how many, and is not taken away from those who use it."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import pytest
from playground.kube.awaiting import await_condition, await_gone, await_object, condition_of
from playground.kube.kube_client import Object
from tests.support.operator.platform import API, Platform
from tests.support.relay.process import wait_for

from delaytopic_api.documents import DEFAULT_CLASS_ANNOTATION

pytestmark = [pytest.mark.integration, pytest.mark.kubernetes]

WAY_OUT = '{"metadata":{"finalizers":null}}'
"""As docs/reference/delaytopic.md tells it."""


class OneClass:
    """A class of a platform, whose DelayTopics are refused: they use it all the same, and no relays are started."""

    def __init__(self, platform: Platform, name: str, **spec: Any) -> None:
        self.platform = platform
        self.client = platform.client
        self.name = f"{platform.class_name}-{name}"
        self.path = f"{API}/delayclasses/{self.name}"
        self.apply(**spec)

    def apply(self, **spec: Any) -> None:
        kafka = {"bootstrapServers": self.platform.kafka.bootstrap_servers}
        refusing = {"access": {"sourceTopics": ["nobody.*"]}}
        self.platform.apply("DelayClass", self.name, {"connection": kafka, **refusing, **spec})

    def use(self, count: int = 1) -> Object:
        for number in range(count):
            topic: dict[str, Any] = {"delayClassName": self.name, "deletionPolicy": "Retain"}
            self.platform.apply_topic(f"{self.name}-{number}", **topic)
        return self.await_users(count)

    def leave(self) -> None:
        self.platform.delete_topic(f"{self.name}-0")

    def await_users(self, count: int) -> Object:
        def holds(found: Object | None) -> bool:
            return bool(found and found.get("status", {}).get("users") == count)

        return await_object(self.client, self.path, holds, seconds=20) or {}

    def await_accepted(self, status: str = "True", reason: str = "Accepted", seconds: float = 30.0) -> Object:
        return await_condition(self.client, self.path, "Accepted", status, reason=reason, seconds=seconds)


def finalizers(found: Object | None) -> list[str]:
    return list((found or {"metadata": {}})["metadata"].get("finalizers", []))


def test_a_class_in_use_outlives_its_deletion_until_nobody_uses_it_and_says_who_does(running: Platform) -> None:
    held = OneClass(running, "held")
    used = held.use()

    held.client.delete(held.path)
    blocked = await_condition(held.client, held.path, "DeletionBlocked", reason="InUse")
    wait_for(lambda: _warnings(blocked, running), running.operator.why)
    held.leave()
    await_gone(held.client, held.path)

    said = condition_of(blocked, "DeletionBlocked")["message"]
    assert finalizers(used) == [f"{running.namespace}.delaytopic.dev/in-use"]
    assert said.startswith(f"1 DelayTopic uses it: {running.team}/{held.name}-0. ")
    assert _warnings(blocked, running) == [said]


@pytest.mark.nightly
def test_without_an_operator_the_finalizer_is_taken_away_by_hand_and_the_class_applied_again(
    platform: Platform,
) -> None:
    platform.start()
    lost = OneClass(platform, "lost")
    first = lost.use()
    platform.operator.terminate()

    lost.client.delete(lost.path)
    waiting = lost.client.get(lost.path)
    platform.plane.kubectl("patch", "delayclass", lost.name, "--type=merge", "-p", WAY_OUT)
    await_gone(lost.client, lost.path, seconds=5)
    lost.apply()
    platform.operator = platform.make_operator("another").start()
    again = lost.await_users(1)

    assert "deletionTimestamp" in waiting["metadata"]
    assert again["metadata"]["uid"] != first["metadata"]["uid"]
    assert finalizers(again) == finalizers(first)


REDIS = {"type": "RedisZset", "redis": {"urlSecret": {"secretName": "redis", "key": "url"}}}


def test_what_is_wrong_with_a_class_is_told_and_so_is_that_it_was_mended(running: Platform) -> None:
    wrong = OneClass(running, "wrong", backend=REDIS)
    wrong.use()

    missing = wrong.await_accepted("False", "SecretMissing")
    wrong.apply()
    accepted = wrong.await_accepted()
    wrong.apply(relayNamespace="elsewhere")
    refused = wrong.await_accepted("False", "RelayNamespaceNotAllowed")

    expected = f"the Secret {running.namespace}/redis does not exist; create it with the key url"
    assert condition_of(missing, "Accepted")["message"] == expected
    assert accepted["status"]["observedGeneration"] == accepted["metadata"]["generation"]
    assert condition_of(refused, "Accepted")["message"].endswith("add it to its relayNamespaces")


@pytest.mark.nightly
def test_a_secret_that_comes_later_is_found(running: Platform) -> None:
    late = OneClass(running, "late", backend=REDIS)
    late.use()
    late.await_accepted("False", "SecretMissing")

    data = {"url": b64encode(running.redis.url.encode()).decode()}
    late.client.create(f"/api/v1/namespaces/{running.namespace}/secrets", {"metadata": {"name": "redis"}, "data": data})

    # What was read of a Secret counts for half a minute.
    late.await_accepted(seconds=60)


@pytest.mark.nightly
def test_a_kafka_that_does_not_answer_is_told_of_the_class(running: Platform) -> None:
    away = OneClass(running, "away", connection={"bootstrapServers": "127.0.0.1:1"})

    away.use()
    told = away.await_accepted("Unknown", "KafkaUnreachable")

    assert "127.0.0.1:1" in condition_of(told, "Accepted")["message"]


@pytest.mark.nightly  # each day rules keep it in the class that it has
def test_a_delay_topic_stays_in_the_default_class_that_it_got_whichever_is_the_default_later(running: Platform) -> None:
    first, second = f"{running.class_name}-first", f"{running.class_name}-second"
    _make_default(running, first)
    of_before = _of_default_class(running, "before")
    _make_default(running, first, default=False)
    _make_default(running, second)

    of_now = _of_default_class(running, "now")
    edited = _of_default_class(running, "before", precision="5s")
    # Classes are of the cluster, which tests of other files share.
    _make_default(running, second, default=False)

    assert [_class_in_force(each) for each in (of_before, of_now, edited)] == [first, second, first]
    assert edited["status"]["effective"]["precision"] == "5s"


def _make_default(platform: Platform, name: str, *, default: bool = True) -> None:
    kafka = {"bootstrapServers": platform.kafka.bootstrap_servers}
    marks = {DEFAULT_CLASS_ANNOTATION: str(default).lower()}
    spec = {"connection": kafka, "defaults": {"partitions": 1, "replicationFactor": 1}}
    platform.apply("DelayClass", name, spec, annotations=marks)


def _of_default_class(platform: Platform, name: str, **spec: Any) -> Object:
    """Apply a DelayTopic that names no class, and return it when the operator has resolved it as it is now."""
    topics = {"source": {"topic": f"{platform.team}.{name}.delayed"}, "target": {"topic": f"{platform.team}.{name}"}}
    platform.apply("DelayTopic", name, {**topics, **spec}, namespace=platform.team)
    generation = platform.topic(name)["metadata"]["generation"]

    def is_resolved(found: Object | None) -> bool:
        status = (found or {}).get("status", {})
        return status.get("observedGeneration") == generation and "delayClass" in status.get("effective", {})

    return await_object(platform.client, platform.path(name), is_resolved, seconds=40) or {}


def _class_in_force(found: Object) -> str:
    return str(found["status"]["effective"]["delayClass"])


@pytest.mark.nightly
def test_many_delay_topics_are_counted_in_few_writes(running: Platform) -> None:
    mark = running.plane.audit.mark()
    busy = OneClass(running, "busy")

    def writes() -> int:
        calls = running.plane.audit.calls(mark)
        return sum(call.resource == "delayclasses/status" and call.name == busy.name for call in calls)

    busy.use(60)

    # The object is seen when it is stored, and the call is logged a moment later.
    wait_for(lambda: writes() > 0, running.operator.why)
    assert 1 <= writes() <= 20


def _warnings(about: Object, platform: Platform) -> list[str]:
    """The notes of the class's Events that say that its deletion waits."""
    listed = platform.client.get("/apis/events.k8s.io/v1/namespaces/default/events")["items"]
    uid = about["metadata"]["uid"]
    found = [each for each in listed if each["regarding"].get("uid") == uid and each["reason"] == "DeletionBlocked"]
    return [each["note"] for each in found if each["type"] == "Warning"]
