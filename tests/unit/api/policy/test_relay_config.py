from __future__ import annotations

import dataclasses

import pytest
from tests.support.paths import ROOT

from delaytopic_api import (
    DelayTopic,
    Duration,
    Refused,
    Settings,
    dump_yaml,
    load_documents,
    load_relay_config,
    relay_config,
    resolve,
)
from delaytopic_api.relay import HttpServer, KafkaClient, RedisClient, RelayLimits
from delaytopic_api.values import Compression

EXAMPLE = ROOT / "examples/reminders.yaml"
KAFKA = KafkaClient(bootstrap_servers="127.0.0.1:9092")
REDIS = RedisClient(url="redis://127.0.0.1:6379/0")


def settings_of(text: str) -> Settings:
    [topic] = load_documents(text)
    assert isinstance(topic, DelayTopic)
    return resolve(topic)


def test_the_relay_is_told_everything_that_is_in_force() -> None:
    config = relay_config(settings_of(EXAMPLE.read_text()), KAFKA, REDIS, HttpServer(host="127.0.0.1", port=0))

    assert config.to_document() == {
        "apiVersion": "delaytopic.dev/v1beta1",
        "kind": "RelayConfig",
        "name": "order-reminders",
        "namespace": "shop",
        "groupId": "delaytopic.shop.order-reminders",
        "source": {"topic": "shop.order-reminders.delayed"},
        "target": {
            "topic": "shop.order-reminders",
            "allowedTopics": [],
            "partitioning": "ByKey",
            "compression": "Auto",
        },
        "deadLetter": {"topic": "shop.order-reminders.delayed.dlq"},
        "schedule": {"maxDelay": "720h", "ids": "ByHeader"},
        "precision": "50ms",
        "guarantee": "ExactlyOnce",
        "backend": {
            "type": "RedisZset",
            "id": "delaytopic.shop.order-reminders",
            "redis": {"url": "redis://127.0.0.1:6379/0"},
        },
        "kafka": {"bootstrapServers": "127.0.0.1:9092", "security": {"protocol": "PLAINTEXT"}},
        "suspend": "None",
        "http": {"host": "127.0.0.1", "port": 0, "pending": "Loopback"},
        "limits": {
            "idMemory": "64Mi",
            "memory": "256Mi",
            "horizon": "10s",
            "lookAhead": "10m",
            "sessionTimeout": "6s",
            "shutdownGrace": "20s",
        },
    }


@pytest.mark.parametrize(
    "schedule",
    ["{}", "{defaultDelay: 5m, maxDelay: 1h}", "{fixedDelay: 1ms}", "{fixedDelay: 87600h}", "{maxDelay: 87600h}"],
)
def test_what_the_relay_is_told_it_can_read(schedule: str) -> None:
    text = EXAMPLE.read_text().replace("precision:", f"schedule: {schedule}\n  precision:")

    config = relay_config(settings_of(text), KAFKA, REDIS)

    assert load_relay_config(dump_yaml(config)) == config


@pytest.mark.parametrize("compression", Compression)
def test_the_relay_is_told_how_what_it_delivers_is_compressed(compression: Compression) -> None:
    settings = settings_of(EXAMPLE.read_text())
    edited = dataclasses.replace(settings, compression=compression)

    assert relay_config(edited, KAFKA, REDIS, HttpServer(host="127.0.0.1", port=0)).target.compression is compression


def test_the_look_ahead_of_autoscaling_is_how_far_the_relay_counts() -> None:
    text = EXAMPLE.read_text().replace("precision:", "autoscaling: {lookAhead: 20m}\n  precision:")

    assert relay_config(settings_of(text), KAFKA, REDIS).limits == RelayLimits(look_ahead=Duration("20m"))


def test_buckets_need_no_redis() -> None:
    text = EXAMPLE.read_text().replace("type: RedisZset", "type: KafkaBuckets")

    config = relay_config(settings_of(text), KAFKA)

    assert config.backend.to_document() == {"type": "KafkaBuckets", "id": "delaytopic.shop.order-reminders"}


def test_a_missing_redis_is_refused_with_the_way_to_do_without() -> None:
    with pytest.raises(Refused) as refused:
        relay_config(settings_of(EXAMPLE.read_text()), KAFKA)

    assert str(refused.value) == (
        "DelayTopic shop/order-reminders: spec.backend.type: RedisZset needs a Redis; use KafkaBuckets without one"
    )
