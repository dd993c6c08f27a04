"""One real Kafka for these tests, and the operator's own client of it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import pytest

from delaytopic_cli.embedded.kafka_server import KafkaServer
from delaytopic_operator.kafka_admin import KafkaClusters

_numbers = count(1)


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaServer]:
    with KafkaServer(tmp_path_factory.mktemp("kafka")) as server:
        yield server


@pytest.fixture
def clusters() -> Iterator[KafkaClusters]:
    opened = KafkaClusters()
    yield opened
    opened.close()


@pytest.fixture
def topic() -> str:
    """A name that no other test uses."""
    return f"shop.progress-{next(_numbers)}"
