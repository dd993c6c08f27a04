"""A Kafka that lets nobody in without TLS and a password or a certificate, and a Redis likewise."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from redis import Redis
from tests.support.route import Route, Servers
from tests.support.secure_servers import GuardedRoute, SecureKafka, SecureRedis, secure_kafka
from tests.support.tls import Certificates, TlsTerminator, make_certificates

from delaytopic_cli.embedded.redis_server import RedisServer

_numbers = count(1)


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="session")
def guarded_kafka(tmp_path_factory: pytest.TempPathFactory, certificates: Certificates) -> Iterator[SecureKafka]:
    with secure_kafka(tmp_path_factory.mktemp("guarded-kafka"), certificates) as kafka:
        yield kafka


@pytest.fixture
def guarded_redis(tmp_path: Path, certificates: Certificates) -> Iterator[SecureRedis]:
    """Its clients must be gone before it ends: whoever uses it stops the relays first."""
    password = "redis-password-in-a-file"
    with RedisServer(tmp_path / "guarded-redis") as server:
        with Redis.from_url(server.url) as client:
            client.config_set("requirepass", password)
        with TlsTerminator(certificates, server.port, ask_for_client=True) as outside:
            yield SecureRedis(f"rediss://127.0.0.1:{outside.port}/0", password)


@pytest.fixture
def guarded_route(guarded_kafka: SecureKafka, redis: RedisServer, tmp_path: Path) -> Iterator[GuardedRoute]:
    """A DelayTopic whose relays come through a guarded listener, while the test looks on through the plain one."""
    routes: list[Route] = []

    def make(listener: str, security: dict[str, Any], **spec: Any) -> Route:
        kafka = {"bootstrapServers": listener, "security": security}
        servers = Servers(guarded_kafka.plain, redis.url)
        routes.append(Route(servers, tmp_path, f"guarded-{next(_numbers)}", {"kafka": kafka, **spec}))
        return routes[-1].create_topics()

    yield make
    for route in routes:
        route.stop_relays()
