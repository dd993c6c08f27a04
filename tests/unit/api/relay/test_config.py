from __future__ import annotations

from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from delaytopic_api import InvalidDocument, dump_yaml, load_relay_config

FULL = """
apiVersion: delaytopic.dev/v1beta1
kind: RelayConfig
name: order-reminders
namespace: shop
groupId: delaytopic.shop.order-reminders
source: {topic: a}
target: {topic: b, allowedTopics: ["shop.*"], partitioning: ByKey, compression: Lz4}
deadLetter: {topic: a.dlq}
schedule: {defaultDelay: 5m, maxDelay: 720h, ids: ByHeader}
precision: 1s
guarantee: ExactlyOnce
backend:
  type: RedisZset
  id: delaytopic.shop.order-reminders
  redis: {urlFile: /etc/redis/url, caFile: /etc/redis/ca.crt}
kafka:
  bootstrapServers: kafka:9093
  security:
    {protocol: SASL_SSL, caFile: /kafka/ca.crt, mechanism: SCRAM-SHA-512, username: relay, passwordFile: /kafka/pw}
suspend: None
http: {host: 0.0.0.0, port: 8080, pending: Anywhere}
limits: {memory: 256Mi, idMemory: 64Mi, horizon: 10s, lookAhead: 10m, sessionTimeout: 6s, shutdownGrace: 20s}
"""
MINIMAL = """
kind: RelayConfig
name: order-reminders
namespace: shop
groupId: delaytopic.shop.order-reminders
source: {topic: a}
target: {topic: b}
deadLetter: {topic: a.dlq}
schedule: {maxDelay: 720h}
precision: 1s
guarantee: ExactlyOnce
backend: {type: KafkaBuckets, id: delaytopic.shop.order-reminders}
kafka: {bootstrapServers: "kafka:9092"}
"""


def refusal_of(**changes: Any) -> list[str]:
    with pytest.raises(InvalidDocument) as refused:
        load_relay_config(yaml.safe_dump(yaml.safe_load(FULL) | changes), "relay.yaml")
    prefix = "relay.yaml: RelayConfig shop/order-reminders: "
    return [line.removeprefix(prefix) for line in str(refused.value).splitlines()]


def test_every_field_of_a_written_configuration_is_what_was_decided() -> None:
    assert load_relay_config(FULL).to_document() == yaml.safe_load(FULL)


def test_a_configuration_survives_being_written_and_read_again() -> None:
    config = load_relay_config(FULL)

    assert load_relay_config(dump_yaml(config)) == config


def test_what_is_absent_has_the_documented_default() -> None:
    config = load_relay_config(MINIMAL)

    assert {name: value for name, value in config.to_document().items() if name not in yaml.safe_load(MINIMAL)} == {
        "apiVersion": "delaytopic.dev/v1beta1",
        "suspend": "None",
        "http": {"host": "0.0.0.0", "port": 8080, "pending": "Loopback"},
        "limits": {
            "memory": "256Mi",
            "idMemory": "64Mi",
            "horizon": "10s",
            "lookAhead": "10m",
            "sessionTimeout": "6s",
            "shutdownGrace": "20s",
        },
    }
    assert (config.schedule.dialect, config.schedule.ids, config.target.partitioning, config.target.allowed_topics) == (
        "Native",
        "ByHeader",
        "ByKey",
        [],
    )


def test_durations_and_sizes_are_numbers_to_the_relay() -> None:
    limits = load_relay_config(FULL).limits

    assert (limits.memory.value, limits.horizon.ms, limits.look_ahead.ms) == (256 * 2**20, 10_000, 600_000)


OAUTHBEARER = {"protocol": "SASL_SSL", "mechanism": "OAUTHBEARER"}
OAUTH = {"tokenEndpointUrl": "https://login.test/token", "clientIdFile": "/id", "clientSecretFile": "/secret"}


@pytest.mark.parametrize(
    ("changes", "lines"),
    [
        ({"backend": {"type": "RedisZset", "id": "x"}}, ["backend.redis: is required for type RedisZset"]),
        (
            {"backend": {"type": "KafkaBuckets", "id": "a}b"}},
            ['backend.id: "a}b" is not an id; use up to 180 letters, digits, dots, underscores, hyphens'],
        ),
        (
            {"backend": {"type": "RedisZset", "id": "x", "redis": {"url": "redis://r:6379", "urlFile": "/url"}}},
            ["backend.redis: set exactly one of url and urlFile"],
        ),
        (
            {"backend": {"type": "RedisZset", "id": "x", "redis": {"url": "redis://me:secret@r:6379"}}},
            [
                "backend.redis.url: must not hold credentials: "
                "put them into a Secret (a file, in a relay's configuration)"
            ],
        ),
        (
            {"backend": {"type": "RedisZset", "id": "x", "redis": {"url": "rediss://r:6379", "keyFile": "/k"}}},
            ["backend.redis.keyFile: goes together with certificateFile"],
        ),
        (
            {"kafka": {"bootstrapServers": "k:9092", "security": {"protocol": "SASL_SSL"}}},
            ["kafka.security.mechanism: is required for SASL_SSL"],
        ),
        (
            {"kafka": {"bootstrapServers": "k:9092", "security": {"protocol": "SSL", "mechanism": "PLAIN"}}},
            ["kafka.security.mechanism: is not for SSL"],
        ),
        (
            {"kafka": {"bootstrapServers": "k:9092", "security": {"protocol": "SASL_PLAINTEXT", "mechanism": "PLAIN"}}},
            [
                "kafka.security.username: is required for PLAIN and SCRAM, or usernameFile",
                "kafka.security.passwordFile: is required for PLAIN and SCRAM",
            ],
        ),
        (
            {"kafka": {"bootstrapServers": "k:9092", "security": {"username": "a", "usernameFile": "/a"}}},
            ["kafka.security.usernameFile: set username or usernameFile, not both"],
        ),
        (
            {"kafka": {"bootstrapServers": "k:9092", "security": {"password": "hunter2"}}},
            [
                "kafka.security.password: is not a field; did you mean passwordFile? Allowed: protocol, caFile, "
                "certificateFile, keyFile, mechanism, username, usernameFile, passwordFile, oauth"
            ],
        ),
        (
            {"kafka": {"bootstrapServers": "k:9", "security": {"protocol": "SASL_SSL", "mechanism": "OAUTHBEARER"}}},
            ["kafka.security.oauth: is required for OAUTHBEARER"],
        ),
        (
            {"kafka": {"bootstrapServers": "k:9092", "security": {"oauth": OAUTH}}},
            ["kafka.security.oauth: is only for OAUTHBEARER"],
        ),
        (
            {"kafka": {"bootstrapServers": "k:9092", "security": OAUTHBEARER | {"oauth": {"scope": "a&b"}}}},
            [
                "kafka.security.oauth.tokenEndpointUrl: is required",
                "kafka.security.oauth.clientIdFile: is required",
                "kafka.security.oauth.clientSecretFile: is required",
                'kafka.security.oauth.scope: "a&b" is not a scope; use words of letters, digits and -._~:/@,;?!*(), '
                "with one blank between two",
            ],
        ),
        (
            {
                "kafka": {
                    "bootstrapServers": "k:9092",
                    "security": OAUTHBEARER | {"oauth": OAUTH | {"extensions": {"auth": "a"}}},
                }
            },
            [
                "kafka.security.oauth.extensions: must have names of 1 to 100 letters, other than auth, which SASL "
                "uses itself"
            ],
        ),
        ({"http": {"port": 65_536}}, ["http.port: must be at most 65535, not 65536"]),
        ({"http": {"pending": "Nobody"}}, ['http.pending: "Nobody" is not allowed; allowed: Loopback, Anywhere']),
        ({"limits": {"memory": "1Mi"}}, ['limits.memory: "1Mi" is too little; a relay needs at least 16Mi']),
        (
            {"limits": {"horizon": "1h"}},
            ['limits.horizon: "1h" is out of range; it must be between 1s and 10m'],
        ),
    ],
)
def test_a_configuration_with_a_mistake_is_refused_with_the_path_and_what_is_allowed(
    changes: dict[str, Any], lines: list[str]
) -> None:
    assert refusal_of(**changes) == lines


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", "relay.yaml: must hold one RelayConfig, not 0 documents"),
        (f"{MINIMAL}---{MINIMAL}", "relay.yaml: must hold one RelayConfig, not 2 documents"),
        ("kind: DelayTopic\nmetadata: {name: x}", "relay.yaml: DelayTopic default/x: kind: must be RelayConfig"),
        ("text", "relay.yaml: document 1: kind: must be RelayConfig"),
    ],
)
def test_a_file_that_is_not_one_relays_configuration_is_refused(text: str, line: str) -> None:
    with pytest.raises(InvalidDocument) as refused:
        load_relay_config(text, "relay.yaml")

    assert str(refused.value) == line


def test_a_configuration_cannot_be_changed_under_a_running_relay() -> None:
    config = load_relay_config(MINIMAL)

    with pytest.raises(ValidationError, match="frozen"):
        config.__setattr__("precision", config.limits.horizon)
