"""The url of a Redis server. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import SplitResult, unquote, urlsplit

from delaytopic_relay.errors import ConfigurationError

ALLOWED = "redis://host[:port][/database], rediss://host[:port][/database] or unix:///path[?db=database]"
DEFAULT_PORT = 6379


@dataclass(frozen=True, slots=True)
class RedisUrl:
    """The address of a Redis: a host and port, or the `path` of a socket. Credentials are kept out of the repr."""

    host: str
    port: int
    path: str | None
    database: int
    tls: bool
    username: str | None = field(default=None, repr=False)
    password: str | None = field(default=None, repr=False)

    @property
    def where(self) -> str:
        """Host and port, or the path of the socket."""
        if self.path is not None:
            return self.path
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_redis_url(text: str, *, secret: bool) -> RedisUrl:
    """The parts of a url; credentials are allowed only in one that came from a file (`secret`).

    Raises `ConfigurationError`; of a secret url no part is in the message.
    """
    setting = "backend.redis.urlFile" if secret else "backend.redis.url"
    try:
        parts = urlsplit(text.strip())
        url = _of(parts)
    except ValueError:  # its text may hold a part of the password
        shown = "its content" if secret else repr(_without_credentials(text))
        raise ConfigurationError(f"{setting}: {shown} is no url of a Redis, allowed is {ALLOWED}") from None
    if not secret and (parts.username or parts.password):
        raise ConfigurationError(
            f"{setting} holds credentials: put them into usernameFile and passwordFile, or use urlFile"
        )
    return url


def _of(parts: SplitResult) -> RedisUrl:
    username = unquote(parts.username) if parts.username else None
    password = unquote(parts.password) if parts.password else None
    if parts.scheme == "unix":
        if not parts.path or parts.hostname:
            raise ValueError("no path")
        database = _database(parts.query.removeprefix("db=") if parts.query else "")
        return RedisUrl("", 0, unquote(parts.path), database, False, username, password)
    if parts.scheme not in ("redis", "rediss") or not parts.hostname or parts.query or parts.fragment:
        raise ValueError("unknown form")
    database = _database(parts.path.strip("/"))
    port = parts.port if parts.port is not None else DEFAULT_PORT
    return RedisUrl(parts.hostname, port, None, database, parts.scheme == "rediss", username, password)


def _database(text: str) -> int:
    if text and not text.isdecimal():
        raise ValueError("no database number")
    return int(text or 0)


def _without_credentials(text: str) -> str:
    _, at, after = text.rpartition("@")
    return f"...@{after}" if at else text
