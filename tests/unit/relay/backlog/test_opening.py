"""The second clock that a relay opens: its backend's, unless it is switched off."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from delaytopic_api.loading import load_relay_config
from delaytopic_api.relay import RelayConfig
from delaytopic_relay.backlog.opening import SECOND_CLOCK, open_second_clock
from delaytopic_relay.clock import SystemClock
from delaytopic_relay.errors import ConfigurationError


def config(backend: str, **schedule: str) -> RelayConfig:
    document: dict[str, Any] = {
        "apiVersion": "delaytopic.dev/v1beta1",
        "kind": "RelayConfig",
        "name": "reminders",
        "namespace": "shop",
        "groupId": "delaytopic.shop.reminders",
        "source": {"topic": "source"},
        "target": {"topic": "target"},
        "deadLetter": {"topic": "dead"},
        "schedule": {"maxDelay": "720h", **schedule},
        "precision": "1s",
        "guarantee": "ExactlyOnce",
        "backend": {"type": backend, "id": "delaytopic.shop.reminders", "redis": {"url": "redis://redis:6379"}},
        "kafka": {"bootstrapServers": "kafka:9092"},
    }
    return load_relay_config(yaml.safe_dump(document))


def name_of_clock(configured: RelayConfig) -> str | None:
    clock = open_second_clock(configured, {}, "relay", SystemClock())
    if clock is None:
        return None
    clock.close()
    return clock.name


@pytest.mark.parametrize("schedule", [{}, {"fixedDelay": "5m"}])
def test_a_relay_asks_its_backend_also_where_a_fixed_delay_stores_nothing(schedule: dict[str, str]) -> None:
    names = [name_of_clock(config(backend, **schedule)) for backend in ("RedisZset", "KafkaBuckets")]

    assert names == ["Redis", "the broker of delaytopic.shop.reminders.delay.ids[0]"]


def test_a_relay_whose_clock_is_moved_by_a_test_asks_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SECOND_CLOCK, "0")

    assert name_of_clock(config("RedisZset")) is None


def test_a_word_that_is_neither_on_nor_off_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SECOND_CLOCK, "no")

    with pytest.raises(ConfigurationError, match="DELAYTOPIC_SECOND_CLOCK is 'no': it may be 1 or 0"):
        name_of_clock(config("RedisZset"))
