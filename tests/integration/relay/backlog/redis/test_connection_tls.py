"""TLS to a real Redis: the server's own, and in front of one that is built without."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.harness.shared_servers import SharedRedis
from tests.harness.tls_redis import tls_redis
from tests.support.servers.redis_server import RedisFields, refusal, serves_as_a_store
from tests.support.servers.tls import Certificates, TlsTerminator, make_certificates

from delaytopic_relay.backlog.redis.connection import connect_redis
from delaytopic_relay.errors import BacklogUnavailable

pytestmark = pytest.mark.integration


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="session", params=["behind a terminator", "its own"])
def tls_port(
    request: pytest.FixtureRequest,
    certificates: Certificates,
    redis: SharedRedis,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[int]:
    with speaking(request.param, redis, tmp_path_factory.mktemp("redis"), certificates, ask_for_client=False) as port:
        yield port


@pytest.fixture(scope="session", params=["behind a terminator", "its own"])
def asking_port(
    request: pytest.FixtureRequest,
    certificates: Certificates,
    redis: SharedRedis,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[int]:
    """Return the port of a Redis that asks its clients for a certificate."""
    with speaking(request.param, redis, tmp_path_factory.mktemp("redis"), certificates, ask_for_client=True) as port:
        yield port


@contextmanager
def speaking(
    how: str, redis: SharedRedis, directory: Path, certificates: Certificates, *, ask_for_client: bool
) -> Iterator[int]:
    if how == "its own":
        with tls_redis(directory, certificates, ask_for_client=ask_for_client) as server:
            yield server.port
    else:
        with TlsTerminator(certificates, redis.port, ask_for_client=ask_for_client) as terminator:
            yield terminator.port


def test_tls_opens_a_server_whose_certificate_the_file_vouches_for(tls_port: int, certificates: Certificates) -> None:
    connection = connect_redis(RedisFields(url=f"rediss://127.0.0.1:{tls_port}", ca_file=str(certificates.authority)))

    assert serves_as_a_store(connection)


def test_tls_refuses_a_certificate_that_nobody_vouches_for(tls_port: int) -> None:
    message = refusal(RedisFields(url=f"rediss://127.0.0.1:{tls_port}"))

    assert message.startswith(f"Redis at 127.0.0.1:{tls_port} has a certificate that cannot be verified (")
    assert message.endswith("): check backend.redis.caFile and the host name in the url")


def test_tls_refuses_a_certificate_for_another_name(tls_port: int, certificates: Certificates) -> None:
    message = refusal(RedisFields(url=f"rediss://localhost:{tls_port}", ca_file=str(certificates.authority)))

    assert message == (
        f"Redis at localhost:{tls_port} has a certificate that cannot be verified (Hostname mismatch, certificate is "
        "not valid for 'localhost'.): check backend.redis.caFile and the host name in the url"
    )


def test_tls_refuses_a_server_of_another_authority(tls_port: int, tmp_path: Path) -> None:
    strangers = make_certificates(tmp_path)

    message = refusal(RedisFields(url=f"rediss://127.0.0.1:{tls_port}", ca_file=str(strangers.authority)))

    assert message.startswith(f"Redis at 127.0.0.1:{tls_port} has a certificate that cannot be verified (")
    assert message.endswith("): check backend.redis.caFile and the host name in the url")


def test_tls_shows_the_relays_certificate_to_a_server_that_asks(asking_port: int, certificates: Certificates) -> None:
    connection = connect_redis(with_certificate(asking_port, certificates, of=certificates))

    assert serves_as_a_store(connection)


def test_a_server_that_asks_for_a_certificate_lets_nobody_in_without(
    asking_port: int, certificates: Certificates
) -> None:
    with pytest.raises(BacklogUnavailable):
        connect_redis(
            RedisFields(url=f"rediss://127.0.0.1:{asking_port}", ca_file=str(certificates.authority)),
        )


def test_a_server_that_asks_for_a_certificate_lets_in_none_of_another_authority(
    asking_port: int, certificates: Certificates, tmp_path: Path
) -> None:
    with pytest.raises(BacklogUnavailable):
        connect_redis(with_certificate(asking_port, certificates, of=make_certificates(tmp_path)))


def with_certificate(port: int, certificates: Certificates, *, of: Certificates) -> RedisFields:
    return RedisFields(
        url=f"rediss://127.0.0.1:{port}",
        ca_file=str(certificates.authority),
        certificate_file=str(of.client),
        key_file=str(of.client_key),
    )
