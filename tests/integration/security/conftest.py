"""Relays that come through the guarded listeners of the shared Kafka, and a Redis that lets nobody else in."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from redis import Redis
from tests.harness.names import unique
from tests.harness.shared_servers import RedisAddress, SharedKafka
from tests.harness.tls_redis import tls_redis
from tests.support.relay.route import Route, Servers
from tests.support.servers.secure_servers import GuardedRoute, SecureKafka, SecureRedis
from tests.support.servers.tls import Certificates


@pytest.fixture(scope="session")
def certificates(kafka: SharedKafka) -> Certificates:
    """Certificates of the shared Kafka's authority."""
    return kafka.certificates


@pytest.fixture(scope="session")
def guarded_kafka(kafka: SharedKafka) -> SecureKafka:
    """The listeners of the shared Kafka that ask for TLS and a password or a certificate, and the plain one."""
    return kafka.listeners


@pytest.fixture
def guarded_redis(tmp_path: Path, certificates: Certificates) -> Iterator[SecureRedis]:
    """Its own TLS, which asks for a certificate, and a password."""
    password = "redis-password-in-a-file"
    with tls_redis(tmp_path / "guarded-redis", certificates, ask_for_client=True) as server:
        with Redis.from_url(server.plain_url) as client:
            client.config_set("requirepass", password)
        yield SecureRedis(f"rediss://127.0.0.1:{server.port}/0", password)


@pytest.fixture
def guarded_route(guarded_kafka: SecureKafka, redis: RedisAddress, tmp_path: Path) -> Iterator[GuardedRoute]:
    """A DelayTopic whose relays come through a guarded listener, while the test looks on through the plain one."""
    routes: list[Route] = []

    def make(listener: str, security: dict[str, Any], **spec: Any) -> Route:
        kafka = {"bootstrapServers": listener, "security": security}
        servers = Servers(guarded_kafka.plain, redis.url)
        routes.append(Route(servers, tmp_path, unique("guarded"), {"kafka": kafka, **spec}))
        return routes[-1].create_topics()

    yield make
    for route in routes:
        route.stop_relays()
