"""One real Kafka and one real Redis for these tests, and the operator's own clients of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.harness.names import unique
from tests.harness.shared_servers import KafkaAddress

from delaytopic_local.servers.redis_server import RedisServer
from delaytopic_operator.kafka.admin import KafkaCluster, KafkaClusters


@pytest.fixture
def asked() -> Counter[tuple[str, str]]:
    """The requests of `clusters`, counted by verb and result."""
    return Counter()


@pytest.fixture
def clusters(asked: Counter[tuple[str, str]]) -> Iterator[KafkaClusters]:
    def observe(what: str, result: str, seconds: float) -> None:
        asked[what, result] += 1

    opened = KafkaClusters(observe=observe)
    yield opened
    opened.close()


@pytest.fixture
def cluster(clusters: KafkaClusters, kafka: KafkaAddress) -> KafkaCluster:
    return clusters.cluster({"bootstrap.servers": kafka.bootstrap_servers})


@pytest.fixture
def topic() -> str:
    """A name that no other test uses."""
    return unique("topic")


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
