"""One real Kafka for all tests of the audit here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from tests.slo.delay_topics import AuditedTopic

from delaytopic_cli.embedded.kafka_server import KafkaServer
from delaytopic_cli.embedded.redis_server import RedisServer

_numbers = count(1)


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaServer]:
    settings = {"log.retention.check.interval.ms": "500", "log.cleaner.backoff.ms": "200"}
    with KafkaServer(tmp_path_factory.mktemp("kafka"), settings=settings) as server:
        yield server


@pytest.fixture(scope="session")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    with RedisServer(tmp_path_factory.mktemp("redis")) as server:
        yield server


@pytest.fixture
def audited(kafka: KafkaServer, tmp_path: Path) -> Callable[..., AuditedTopic]:
    """Makes a DelayTopic with topics of its own; their settings by keyword."""

    def make(partitions: int = 2, spec: dict[str, Any] | None = None, **settings: str) -> AuditedTopic:
        topic = AuditedTopic(f"audited-{next(_numbers)}", kafka.bootstrap_servers, tmp_path / "ledger", spec or {})
        return topic.create(partitions, **settings)

    return make
