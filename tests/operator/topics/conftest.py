"""One real Kafka and one real Redis for these tests, and the operator's own clients of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from delaytopic_cli.embedded.kafka_server import KafkaServer
from delaytopic_cli.embedded.redis_server import RedisServer
from delaytopic_operator.kafka_admin import KafkaCluster, KafkaClusters

_numbers = count(1)


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaServer]:
    """It creates topics that anybody asks for, which is what Kafka does unless told otherwise."""
    settings = {"auto.create.topics.enable": "true"}
    with KafkaServer(tmp_path_factory.mktemp("kafka"), settings=settings) as server:
        yield server


@pytest.fixture(scope="session")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    with RedisServer(tmp_path_factory.mktemp("redis")) as server:
        yield server


@pytest.fixture
def asked() -> Counter[tuple[str, str]]:
    """How often `clusters` asked what, and how it went."""
    return Counter()


@pytest.fixture
def clusters(asked: Counter[tuple[str, str]]) -> Iterator[KafkaClusters]:
    def observe(what: str, result: str, seconds: float) -> None:
        asked[what, result] += 1

    opened = KafkaClusters(observe=observe)
    yield opened
    opened.close()


@pytest.fixture
def cluster(clusters: KafkaClusters, kafka: KafkaServer) -> KafkaCluster:
    return clusters.cluster({"bootstrap.servers": kafka.bootstrap_servers})


@pytest.fixture
def topic() -> str:
    """A name that no other test uses."""
    return f"topic-{next(_numbers)}"


@pytest.fixture
def start_redis(tmp_path: Path) -> Iterator[Callable[..., RedisServer]]:
    servers: list[RedisServer] = []

    def start(**settings: str) -> RedisServer:
        named = {name.replace("_", "-"): value for name, value in settings.items()}
        servers.append(RedisServer(tmp_path / f"redis-{len(servers)}", settings=named))
        servers[-1].start()
        return servers[-1]

    yield start
    for server in servers:
        server.kill()
