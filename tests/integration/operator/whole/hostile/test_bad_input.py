"""Problem around a DelayTopic: reported with a reason and a remedy, and over once its cause is mended."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka.admin import AclOperation  # type: ignore[attr-defined]  # public, by an implicit re-export
from playground.kube.awaiting import await_object
from playground.kube.kube_client import Object
from redis import Redis
from tests.cluster.node.local_node import LocalNode
from tests.harness.shared_servers import RedisAddress, SharedKafka
from tests.support.operator.app_team import AppTeam
from tests.support.operator.own_classes import guarded_connection, own_class, secret
from tests.support.operator.platform import Platform
from tests.support.servers.kafka_topics import KafkaTopics
from tests.support.servers.secure_servers import PASSWORD, deny

from delaytopic_local.servers.kafka_server import KafkaServer
from delaytopic_local.servers.redis_server import RedisServer
from delaytopic_operator.model.reconciliation import Key
from delaytopic_operator.resources import relays_name

pytestmark = [pytest.mark.integration, pytest.mark.kubernetes, pytest.mark.nightly]


def said(topic: Object, type: str) -> tuple[str, str, str]:
    """Status, reason and message of a condition."""
    condition = next(each for each in topic["status"]["conditions"] if each["type"] == type)
    return condition["status"], condition["reason"], condition["message"]


def works(platform: Platform, name: str, directory: Path) -> None:
    """It is ready, and a record arrives."""
    platform.await_condition(name, "Ready", seconds=90)
    team = AppTeam.of(platform, name, directory)
    team.send_due_in([0])
    verdict = team.audited()
    assert (verdict.faults, verdict.delivered > 0) == ({}, True)


def test_a_class_that_comes_later(running: Platform, tmp_path: Path) -> None:
    missing = f"later-{running.namespace.rpartition('-')[2]}"
    running.apply_topic("early", delayClassName=missing)
    refused = running.await_condition("early", "Ready", "False", reason="ClassNotFound")

    own_class(running, "later")

    assert f'there is no DelayClass "{missing}"' in said(refused, "PolicyAccepted")[2]
    works(running, "early", tmp_path)


def test_a_topic_that_somebody_else_made(running: Platform, tmp_path: Path) -> None:
    source = f"{running.team}.taken.delayed"
    KafkaTopics(running.kafka.bootstrap_servers).create(source, 4)
    running.apply_topic("taken")
    refused = running.await_condition("taken", "Stalled", reason="TopicExists")
    running.apply_class(access={"adoptTopics": ["{namespace}.*"]})

    running.apply_topic("taken", source={"topic": source, "management": "Adopt"})

    assert said(refused, "Stalled")[2] == (
        f"the source topic {source} exists, and was not made by this operator; to take it over set "
        "spec.source.management: Adopt, to use it as it is Observe"
    )
    works(running, "taken", tmp_path)
    assert running.topic("taken")["status"]["source"]["ownership"] == "Adopted"


def test_two_on_one_source_and_the_younger_gives_way(running: Platform, tmp_path: Path) -> None:
    source = running.apply_topic("elder")
    running.await_condition("elder", "Ready", seconds=60)
    running.apply_topic("younger", source={"topic": source})
    refused = running.await_condition("younger", "Stalled", reason="ResourceConflict")

    running.delete_topic("elder")
    running.await_gone("elder")

    assert said(refused, "Stalled")[2] == (
        f"spec.source.topic: {source} is the source topic of {running.team}/elder already; use another"
    )
    running.await_condition("younger", "Stalled", reason="TopicExists")


def test_a_secret_with_the_redis_url_that_is_missing_and_wrong_and_deleted_and_rotated(
    running: Platform, tmp_path: Path
) -> None:
    url_secret = {"secretName": "redis-url", "key": "url"}
    of_class = own_class(running, "secret", backend={"type": "RedisZset", "redis": {"urlSecret": url_secret}})

    # Missing
    running.apply_topic("sealed", delayClassName=of_class)
    missing = running.await_condition("sealed", "Ready", "False", reason="SecretMissing")
    expected = f"the Secret {running.namespace}/redis-url does not exist; create it with the key url"
    assert said(missing, "BackendReady")[2] == expected

    # Without the key
    secret(running, "redis-url", wrong=running.redis.url)
    await_object(
        running.client,
        running.path("sealed"),
        lambda found: bool(found and "holds: wrong" in said(found, "BackendReady")[2]),
        seconds=60,
    )

    # Mended
    secret(running, "redis-url", url=running.redis.url)
    works(running, "sealed", tmp_path)

    # Deleted: the relays run on
    running.client.delete(f"/api/v1/namespaces/{running.namespace}/secrets/redis-url")
    running.await_condition("sealed", "Ready", "False", reason="SecretMissing", seconds=60)
    team = AppTeam.of(running, "sealed", tmp_path)
    team.send_due_in([100])
    assert team.audited().faults == {}

    # There again, and another one: the relays start anew with it
    before = _generation(running, "sealed")
    secret(running, "redis-url", url=f"{running.redis.url.rstrip('0')}1")
    await_object(
        running.client,
        _deployment(running, "sealed"),
        lambda found: bool(found and found["metadata"]["generation"] > before),
        seconds=60,
    )
    works(running, "sealed", tmp_path)


def test_a_redis_that_is_away_or_would_evict(running: Platform, tmp_path: Path) -> None:
    (tmp_path / "redis").mkdir()
    with RedisServer(tmp_path / "redis") as redis:
        backend = {"type": "RedisZset", "redis": {"url": redis.url}}
        of_class = own_class(running, "fragile", backend=backend)
        running.apply_topic("kept", delayClassName=of_class)
        running.await_condition("kept", "Ready", seconds=60)

        _configure(redis, "maxmemory-policy", "allkeys-lru")
        unsafe = running.await_condition("kept", "BackendReady", "False", reason="EvictionPolicyUnsafe", seconds=60)
        assert "set maxmemory-policy noeviction" in said(unsafe, "BackendReady")[2]
        _configure(redis, "maxmemory-policy", "noeviction")
        running.await_condition("kept", "BackendReady", seconds=60)

        redis.stop()
        away = running.await_condition("kept", "Ready", "Unknown", reason="RedisUnreachable", seconds=60)
        assert f"Redis at 127.0.0.1:{redis.port} is not available" in said(away, "BackendReady")[2]
        redis.start()
        works(running, "kept", tmp_path)


def test_an_image_that_cannot_be_pulled(running: Platform, node: LocalNode, tmp_path: Path) -> None:
    node.missing_images.add("registry.example/relay:typo")
    connection = {"bootstrapServers": running.kafka.bootstrap_servers}
    backend = {"type": "RedisZset", "redis": {"url": running.redis.url}}
    topics = {"partitions": 1, "replicationFactor": 1}
    spec = {
        "connection": connection,
        "backend": backend,
        "source": {"topic": f"{running.team}.typo.delayed", **topics},
        "target": {"topic": f"{running.team}.typo", **topics},
        "deadLetter": {"topic": f"{running.team}.typo.delayed.dlq", **topics},
    }

    running.apply("DelayTopic", "typo", {**spec, "relay": {"image": "registry.example/relay:typo"}}, running.team)
    pulling = running.await_condition("typo", "RelayAvailable", "False", reason="ImagePull", seconds=60)
    running.apply("DelayTopic", "typo", {**spec, "relay": {}}, running.team)

    assert "registry.example/relay:typo" in said(pulling, "RelayAvailable")[2]
    works(running, "typo", tmp_path)


def test_a_quota_that_leaves_no_room(running: Platform, tmp_path: Path) -> None:
    path = f"/api/v1/namespaces/{running.namespace}/resourcequotas/none"
    running.client.apply(
        path,
        {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none"}, "spec": {"hard": {"pods": "0"}}},
    )
    await_object(running.client, path, lambda found: bool(found and found.get("status", {}).get("hard")))

    running.apply_topic("crammed")
    crammed = running.await_condition("crammed", "RelayAvailable", "False", reason="QuotaExceeded", seconds=60)
    running.client.delete(path)

    assert "exceeded quota: none" in said(crammed, "RelayAvailable")[2]
    works(running, "crammed", tmp_path)


def test_a_kafka_that_goes_and_comes_back(running: Platform, tmp_path: Path) -> None:
    (tmp_path / "kafka-of-its-own").mkdir()
    with KafkaServer(tmp_path / "kafka-of-its-own") as kafka:
        of_class = own_class(running, "brittle", connection={"bootstrapServers": kafka.bootstrap_servers})
        running.apply_topic("brittle", delayClassName=of_class)
        running.await_condition("brittle", "Ready", seconds=90)

        kafka.stop()
        away = running.await_condition("brittle", "Ready", "Unknown", reason="KafkaUnreachable", seconds=120)
        kafka.start()
        running.await_condition("brittle", "Ready", seconds=120)

    assert kafka.bootstrap_servers in said(away, "TopicsReady")[2]


def test_a_wrong_password_and_a_right_that_is_missing(running: Platform, kafka: SharedKafka) -> None:
    of_class = own_class(running, "guarded", connection=guarded_connection(running, kafka, "wrong"))
    forbidden = f"{running.team}.forbidden"
    KafkaTopics(kafka.bootstrap_servers).create(forbidden)
    deny(kafka.bootstrap_servers, forbidden, AclOperation.DESCRIBE, AclOperation.DESCRIBE_CONFIGS)

    # A wrong password
    running.apply_topic("locked", delayClassName=of_class)
    running.apply_topic("forbidden", delayClassName=of_class, target={"topic": forbidden, "management": "Observe"})
    locked = running.await_condition("locked", "Ready", "False", reason="AuthenticationFailed", seconds=90)
    assert "wrong" not in said(locked, "TopicsReady")[2]

    # Mended; but one topic may not be seen, which costs no other anything
    secret(running, "kafka-password", password=PASSWORD)
    running.await_condition("locked", "Ready", seconds=120)
    unseen = running.await_condition("forbidden", "TopicsReady", "False", reason="AuthorizationFailed", seconds=90)
    assert said(unseen, "TopicsReady")[2].startswith(
        f"the operator's Kafka user may not see the target topic {forbidden}: grant it"
    )


def _deployment(platform: Platform, name: str) -> str:
    return f"/apis/apps/v1/namespaces/{platform.namespace}/deployments/{relays_name(Key(platform.team, name))}"


def _generation(platform: Platform, name: str) -> int:
    return int(platform.client.get(_deployment(platform, name))["metadata"]["generation"])


def _configure(redis: RedisAddress, name: str, value: str) -> None:
    with Redis.from_url(redis.url) as client:
        client.config_set(name, value)
