from __future__ import annotations

from typing import Any

import pytest
from tests.support.relay.native_records import DAY_MS, POLICY, Header, native, record

from delaytopic_api.relay import RelayConfig
from delaytopic_relay.dialects import dialect_for

DOCUMENT: dict[str, Any] = {
    "apiVersion": "delaytopic.dev/v1beta1",
    "kind": "RelayConfig",
    "name": "reminders",
    "namespace": "shop",
    "groupId": "delaytopic.shop.reminders",
    "source": {"topic": "shop.reminders.delayed"},
    "target": {"topic": "shop.reminders", "allowedTopics": ["shop.*", "audit"]},
    "deadLetter": {"topic": "shop.reminders.dlq"},
    "precision": "1s",
    "guarantee": "ExactlyOnce",
    "backend": {"type": "RedisZset", "id": "delaytopic.shop.reminders", "redis": {"url": "redis://redis:6379"}},
    "kafka": {"bootstrapServers": "kafka:9092"},
}


@pytest.mark.parametrize(
    ("schedule", "rules"),
    [
        ({"maxDelay": "720h"}, {}),
        ({"maxDelay": "24h"}, {"max_delay_ms": DAY_MS}),
        ({"maxDelay": "720h", "defaultDelay": "5m"}, {"default_delay_ms": 300_000}),
        ({"maxDelay": "720h", "fixedDelay": "30s", "ids": "Disabled"}, {"delay_ms": 30_000, "ids_enabled": False}),
        ({"maxDelay": "720h", "ids": "Disabled"}, {"ids_enabled": False}),
    ],
)
@pytest.mark.parametrize(
    "header",
    [
        ("trace", b"1"),
        ("deliver-after", b"48h"),
        ("deliver-id", b"a"),
        ("deliver-to", b"audit"),
        ("deliver-to", b"bank"),
    ],
)
def test_the_native_dialect_follows_the_relay_configuration(
    schedule: dict[str, str], rules: dict[str, Any], header: Header
) -> None:
    config = RelayConfig.model_validate(DOCUMENT | {"schedule": schedule})

    command = dialect_for(config).read(record(header))

    assert command == native(**rules).read(record(header))


def test_the_policy_of_these_tests_is_that_of_their_document() -> None:
    assert POLICY.target_topic == DOCUMENT["target"]["topic"]
    assert list(POLICY.target_allowed.globs) == DOCUMENT["target"]["allowedTopics"]
