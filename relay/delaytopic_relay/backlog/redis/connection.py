"""The edge that opens Redis: from the relay's configuration to a client, with credentials read from files."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from pathlib import Path
from socket import socket
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar
from weakref import finalize

import redis
from redis.backoff import NoBackoff
from redis.cluster import RedisCluster
from redis.credentials import CredentialProvider
from redis.retry import Retry

from delaytopic_api.errors import InvalidText
from delaytopic_api.values import RedisAddress, parse_redis_url
from delaytopic_relay.backlog.redis.errors import AnswerTooLarge, CredentialsError, ask
from delaytopic_relay.errors import ConfigurationError

CONNECT_TIMEOUT_S = 2.0
READ_TIMEOUT_S = 5.0
HEALTH_CHECK_S = 15  # an idle connection is tried with a PING before it carries a put
READ_SIZE = 1 << 18  # bytes; segments come in by the megabyte

MOST_BYTES = 64 << 20
"""The bound of the answers to one request. A portion has some megabytes, a segment one, or a single larger record."""

Answer = TypeVar("Answer")
Client: TypeAlias = "redis.Redis | RedisCluster"


class RedisSettings(Protocol):
    """The fields of `backend.redis` in the relay's configuration; secrets only ever as paths of files."""

    @property
    def url(self) -> str | None: ...  # noqa: D102

    @property
    def url_file(self) -> str | None: ...  # noqa: D102

    @property
    def ca_file(self) -> str | None: ...  # noqa: D102

    @property
    def certificate_file(self) -> str | None: ...  # noqa: D102

    @property
    def key_file(self) -> str | None: ...  # noqa: D102

    @property
    def username_file(self) -> str | None: ...  # noqa: D102

    @property
    def password_file(self) -> str | None: ...  # noqa: D102


class RedisConnection(NamedTuple):
    """A client, and the server's name for messages (host and port, or socket; no credentials)."""

    client: Client
    where: str

    def ask(self, question: Callable[[], Answer]) -> Answer:
        """The answer to a question; errors are the relay's.

        Where the server says that it is not the one to ask, the address is asked again for the next question.
        """
        return ask(self.where, question, self.leave)

    def leave(self) -> None:
        """Close the connections that nobody uses at this moment."""
        if isinstance(self.client, RedisCluster):
            self.client.disconnect_connection_pools()  # type: ignore[no-untyped-call]
        else:
            self.client.connection_pool.disconnect(inuse_connections=False)


class BoundedSocket:
    """A socket that counts what it receives from the last request on; everything else is the socket's own."""

    def __init__(self, of: socket, most_bytes: int) -> None:
        self._of = of
        self._most_bytes = self._left = most_bytes
        # The client of a cluster drops the connections of nodes that it learns anew, and closes none of them.
        finalize(self, of.close).atexit = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._of, name)

    def sendall(self, data: bytes) -> None:
        """Send a request, or a part of one, of which the answer comes next."""
        self._left = self._most_bytes
        self._of.sendall(data)

    def recv_into(self, buffer: bytearray) -> int:
        """Receive a part of the answer. Raises `AnswerTooLarge`."""
        size = self._of.recv_into(buffer)
        self._left -= size
        if self._left < 0:
            raise AnswerTooLarge(f"answers with more than {self._most_bytes >> 20} MiB, which no relay has put there")
        return size


class BoundedPool(redis.ConnectionPool):
    """Connections whose answers are bounded: what others put into the keys must not fill the relay's memory."""

    def __init__(self, connection_class: type[redis.Connection] = redis.Connection, **options: Any) -> None:
        super().__init__(_bounded(connection_class), **options)


def _bounded(kind: type[redis.Connection]) -> type[redis.Connection]:
    class Bounded(kind):  # type: ignore[misc, valid-type]
        def _connect(self) -> BoundedSocket:
            return BoundedSocket(super()._connect(), MOST_BYTES)

    return Bounded


class FileCredentials(CredentialProvider):
    """User name and password, read again for each connection, so that a rotated secret needs no restart."""

    def __init__(self, settings: RedisSettings, url: RedisAddress) -> None:
        """Connect by the files in `settings`; what these do not give may be in the url, if it came from a file."""
        self._settings = settings
        self._url = url

    def get_credentials(self) -> tuple[str] | tuple[str, str]:
        """Return the arguments of AUTH. Raises `CredentialsError`."""
        try:
            username = _read("usernameFile", self._settings.username_file) or self._url.username
            password = _read("passwordFile", self._settings.password_file) or self._url.password or ""
        except ConfigurationError as error:
            raise CredentialsError(str(error)) from error
        return (username, password) if username else (password,)


def connect_redis(settings: RedisSettings) -> RedisConnection:
    """A client of the Redis, or Redis Cluster, that the settings name; asks it once what it is.

    Nothing is repeated automatically: the backlog's caller decides, knowing that its writes may be repeated.
    Raises `ConfigurationError` and `BacklogUnavailable`.
    """
    url = _url(settings)
    options = _options(settings, url)
    client = _single(url, options)
    where = f"Redis at {url.where}"
    if not ask(where, lambda: _is_cluster(client)):
        return RedisConnection(client, where)
    client.close()
    if url.path is not None or url.database:
        raise ConfigurationError(f"{where} is a Redis Cluster: backend.redis.url must name a host, and no database")
    # Only from a url does the client of a cluster take a class of pools.
    host = f"[{url.host}]" if ":" in str(url.host) else url.host
    address = f"redis{'s' if url.tls else ''}://{host}:{url.port}"
    options |= {"connection_pool_class": BoundedPool, "retry": _no_retry()}
    cluster = ask(where, lambda: RedisCluster.from_url(address, **options))
    return RedisConnection(cluster, where)


def _url(settings: RedisSettings) -> RedisAddress:
    text = settings.url if settings.url is not None else _read("urlFile", settings.url_file)
    if not text:
        raise ConfigurationError("backend.redis has neither url nor urlFile: one of them must name the Redis")
    field = "urlFile" if settings.url is None else "url"
    try:
        url = parse_redis_url(text)
    except InvalidText as error:
        raise ConfigurationError(f"backend.redis.{field}: {error}") from None
    if url.has_credentials and settings.url is not None:
        raise ConfigurationError(
            "backend.redis.url holds credentials: put them into usernameFile and passwordFile, or use urlFile"
        )
    tls_fields = {
        "caFile": settings.ca_file,
        "certificateFile": settings.certificate_file,
        "keyFile": settings.key_file,
    }
    given = [name for name, value in tls_fields.items() if value]
    if given and not url.tls:
        raise ConfigurationError(f"backend.redis.{given[0]} is set, but the url does not begin with rediss://")
    return url


def _options(settings: RedisSettings, url: RedisAddress) -> dict[str, Any]:
    options: dict[str, Any] = {
        "socket_connect_timeout": CONNECT_TIMEOUT_S,
        "socket_timeout": READ_TIMEOUT_S,
        "socket_read_size": READ_SIZE,
        "health_check_interval": HEALTH_CHECK_S,
        "retry": _no_retry(),
        "protocol": 2,
    }
    if settings.username_file or settings.password_file or url.username or url.password:
        options["credential_provider"] = FileCredentials(settings, url)
    if url.tls:
        _check_tls_files(settings)
        options |= {
            "ssl_ca_certs": settings.ca_file,
            "ssl_certfile": settings.certificate_file,
            "ssl_keyfile": settings.key_file,
            "ssl_min_version": ssl.TLSVersion.TLSv1_2,
        }
    return options


def _single(url: RedisAddress, options: dict[str, Any]) -> redis.Redis:
    if url.path is not None:
        kind: type[Any] = redis.UnixDomainSocketConnection
        place: dict[str, Any] = {"path": url.path}
    else:
        kind = redis.SSLConnection if url.tls else redis.Connection
        place = {"host": url.host, "port": url.port, "socket_keepalive": True}
    return redis.Redis.from_pool(BoundedPool(kind, db=url.database, **place, **options))


def _is_cluster(client: redis.Redis) -> bool:
    """Return whether the server is a node of a Redis Cluster; one too old to say is left to the checks at start."""
    try:
        answer = client.execute_command("HELLO")  # type: ignore[no-untyped-call]
    except redis.ResponseError as error:
        if str(error).startswith("unknown command"):
            return False
        raise
    facts = dict(zip(answer[::2], answer[1::2], strict=True))
    return bool(facts.get(b"mode") == b"cluster")


def _no_retry() -> Retry:
    return Retry(NoBackoff(), 0)


def _check_tls_files(settings: RedisSettings) -> None:
    """Load the files once, so that a bad one is told by its field. Raises `ConfigurationError`."""
    context = ssl.create_default_context()
    try:
        if settings.ca_file:
            context.load_verify_locations(cafile=settings.ca_file)
    except OSError as error:
        raise ConfigurationError(
            f"backend.redis.caFile: {settings.ca_file} is no readable PEM file ({error})"
        ) from error
    if bool(settings.certificate_file) != bool(settings.key_file):
        raise ConfigurationError("backend.redis.certificateFile and keyFile go together: set both or neither")
    try:
        if settings.certificate_file:
            context.load_cert_chain(settings.certificate_file, settings.key_file)
    except OSError as error:
        raise ConfigurationError(
            f"backend.redis.certificateFile and keyFile: {settings.certificate_file} and {settings.key_file} "
            f"are no readable pair of PEM files ({error})"
        ) from error


def _read(field: str, path: str | None) -> str | None:
    """The text of a file without its last line end; None without a path. Raises `ConfigurationError`."""
    if path is None:
        return None
    try:
        return Path(path).read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise ConfigurationError(f"backend.redis.{field}: {path} cannot be read: {reason}") from error
