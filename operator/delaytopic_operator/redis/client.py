"""Edge: from a connection and the Secrets that it names to a client of a Redis whose answers end."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from socket import socket
from time import monotonic
from typing import Any, Final, TypeAlias

import redis
from redis import exceptions
from redis._parsers import _RESP2Parser
from redis.backoff import NoBackoff
from redis.cluster import RedisCluster
from redis.retry import Retry

from delaytopic_api.documents import RedisConnection
from delaytopic_api.errors import InvalidText
from delaytopic_api.values import REDIS_URLS, RedisAddress, parse_redis_url
from delaytopic_operator.errors import OperatorError, RedisNotAuthenticated, RedisUnavailable, SecretMissing
from delaytopic_operator.model.secret_values import SecretValues

MOST_BYTES: Final = 4 << 20
"""The bound of one answer; a thousand names of keys, or the slots of a large cluster, are far less."""
TIMEOUT_S: Final = 5.0
Client: TypeAlias = "redis.Redis | RedisCluster"


@dataclass(frozen=True, slots=True)
class RedisTarget:
    """One Redis, or a node of a Redis Cluster; its text shows no credentials."""

    host: str
    port: int
    database: int
    tls: bool
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    authorities: str | None = field(default=None, repr=False)
    """Certificates to trust, in PEM; None: those of the operating system."""

    @property
    def where(self) -> str:
        """Return how sentences call it."""
        return f"Redis at {self.host}:{self.port}"


def redis_target(connection: RedisConnection, secrets: SecretValues) -> RedisTarget:
    """Return where it is. Raises `SecretMissing`, naming the Secret and the key; no part of a secret url is in it."""
    address = _address(connection, secrets)
    password = address.password
    if connection.password_secret is not None:
        wanted = connection.password_secret
        password = secrets.text(wanted.secret_name, wanted.password)
    trusted = connection.tls.trusted_certificates if connection.tls else []
    authorities = [secrets.pem(one.secret_name, one.certificate, "CERTIFICATE") for one in trusted]
    return RedisTarget(
        address.host,
        address.port,
        address.database,
        address.tls,
        address.username,
        password,
        "\n".join(authorities) or None,
    )


def _address(connection: RedisConnection, secrets: SecretValues) -> RedisAddress:
    if connection.url_secret is None:
        return _written_address(connection.url or "")  # the document was checked
    wanted = connection.url_secret
    where = f"the key {wanted.key} of the Secret {wanted.secret_name}"
    try:
        address = parse_redis_url(secrets.text(wanted.secret_name, wanted.key))
    except InvalidText as error:
        raise SecretMissing(f"{where} {error}") from None
    if address.path is not None:
        raise SecretMissing(f"{where} is the path of a socket, which no pod reaches; write it like {REDIS_URLS}")
    return address


# It is asked for at each look at a DelayTopic. No url of a Secret is kept so.
_written_address = lru_cache(maxsize=1_024)(parse_redis_url)


class BoundedPool(redis.ConnectionPool):
    """Connections whose answers end, whatever the server sends."""

    def __init__(self, connection_class: type[redis.Connection] = redis.Connection, **options: Any) -> None:
        # The parser in C makes room for as many items as an answer announces, before any of them is there.
        super().__init__(_bounded(connection_class), **{**options, "parser_class": _RESP2Parser})


class BoundedSocket:
    """A socket that counts from the last request on; everything else is the socket's own."""

    def __init__(self, of: socket, timeout_s: float) -> None:
        """`timeout_s` is for a whole answer: the socket's own is for each part of it."""
        self._of = of
        self._timeout_s = timeout_s
        self._begin()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._of, name)

    def sendall(self, data: bytes) -> None:
        """Send a request, of which the answer comes next."""
        self._begin()
        self._of.sendall(data)

    def recv_into(self, buffer: bytearray, *arguments: int) -> int:
        """Receive a part of the answer; raises `TimeoutError` and `ConnectionError` beyond the bounds."""
        self._check_time()
        return self._counted(self._of.recv_into(buffer, *arguments))

    def recv(self, size: int, *flags: int) -> bytes:
        """Receive a part of the answer; raises `TimeoutError` and `ConnectionError` beyond the bounds."""
        self._check_time()
        data = self._of.recv(size, *flags)
        self._counted(len(data))
        return data

    def _begin(self) -> None:
        self._left = MOST_BYTES
        self._ends = monotonic() + self._timeout_s

    def _check_time(self) -> None:
        if monotonic() > self._ends:
            raise TimeoutError(f"the answer did not end within {self._timeout_s:g} s")

    def _counted(self, size: int) -> int:
        self._left -= size
        if self._left < 0:
            raise ConnectionError(f"the answer is larger than {MOST_BYTES} bytes")
        return size


def _bounded(kind: type[redis.Connection]) -> type[redis.Connection]:
    class Bounded(kind):  # type: ignore[misc, valid-type]
        def _connect(self) -> BoundedSocket:
            return BoundedSocket(super()._connect(), self.socket_timeout)

    return Bounded


@contextmanager
def opened(target: RedisTarget, timeout_s: float = TIMEOUT_S) -> Iterator[Client]:
    """A client for as long as it is needed. Raises `RedisUnavailable` and `RedisNotAuthenticated`, also of what is
    done inside.
    """
    options = _options(target, timeout_s)
    kind: type[redis.Connection] = redis.SSLConnection if target.tls else redis.Connection
    client: Client | None = None
    try:
        client = redis.Redis.from_pool(
            BoundedPool(kind, host=target.host, port=target.port, db=target.database, **options)
        )
        if _is_cluster(client):
            client.close()
            # Only from a URL does it take the class of pools.
            host = f"[{target.host}]" if ":" in target.host else target.host
            url = f"redis{'s' if target.tls else ''}://{host}:{target.port}"
            client = RedisCluster(url=url, connection_pool_class=BoundedPool, **options)
        yield client
    except (exceptions.RedisError, exceptions.RedisClusterException) as error:
        raise translate(error, target.where) from error
    except RecursionError as error:
        raise RedisUnavailable(f"{target.where} answers with lists in lists, as no Redis does") from error
    finally:
        if client is not None:
            client.close()


def primaries(client: Client, target: RedisTarget) -> list[tuple[str, redis.Redis]]:
    """The servers that hold keys, each with what sentences call it."""
    if not isinstance(client, RedisCluster):
        return [(target.where, client)]
    return [(f"Redis at {node.name}", client.get_redis_connection(node)) for node in client.get_primaries()]  # type: ignore[no-untyped-call]


def translate(error: exceptions.RedisError | exceptions.RedisClusterException, where: str) -> OperatorError:
    """The operator's error for one of the client's; `where` names the server, never its credentials."""
    text = str(error)
    if isinstance(error, exceptions.AuthenticationError | exceptions.AuthorizationError):
        return RedisNotAuthenticated(f"{where} refuses the credentials ({text}); check the Secret with its password")
    if isinstance(error, exceptions.NoPermissionError):
        return RedisNotAuthenticated(f"{where} does not permit what the operator needs ({text}); extend its user's ACL")
    return RedisUnavailable(f"{where} is not available: {text}")


def _is_cluster(client: redis.Redis) -> bool:
    """Ask by HELLO, which every user may: the field of INFO has another name in Valkey than in Redis."""
    answer = client.execute_command("HELLO")  # type: ignore[no-untyped-call]
    facts = dict(zip(answer[::2], answer[1::2], strict=True))
    return bool(facts.get(b"mode") == b"cluster")


def _options(target: RedisTarget, timeout_s: float) -> dict[str, Any]:
    options: dict[str, Any] = {
        "username": target.username,
        "password": target.password,
        "socket_connect_timeout": timeout_s,
        "socket_timeout": timeout_s,
        "retry": Retry(NoBackoff(), 0),
        "protocol": 2,
    }
    if target.tls:
        options |= {
            "ssl_ca_data": target.authorities,
            "ssl_min_version": ssl.TLSVersion.TLSv1_2,
        }
    return options
