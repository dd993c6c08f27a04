"""A Kafka that lets nobody in without TLS and a password or a certificate, and a Redis likewise."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from redis import Redis
from tests.support.secure_servers import SecureKafka, SecureRedis, secure_kafka
from tests.support.tls import Certificates, TlsTerminator, make_certificates

from delaytopic_cli.embedded.redis_server import RedisServer


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
