"""The URL of a Redis server, as relays, operator and commands read it. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import SplitResult, unquote, urlsplit

from delaytopic_api.errors import InvalidText

DEFAULT_PORT: Final = 6379
REDIS_URLS: Final = "redis://host:6379/0 or rediss://host:6380/0"
_DATABASE: Final = re.compile("[0-9]{0,9}")


@dataclass(frozen=True, slots=True)
class RedisAddress:
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

    @property
    def has_credentials(self) -> bool:
        """True if the URL holds a user name or a password."""
        return bool(self.username or self.password)


def parse_redis_url(text: str) -> RedisAddress:
    """Return the parts of a URL. Raises `InvalidText`, whose message holds no part of it: it may hold a password."""
    try:
        parts = urlsplit(text.strip())
        return _socket(parts) if parts.scheme == "unix" else _server(parts)
    except InvalidText:
        raise
    except ValueError:  # its text may hold a part of the password
        raise InvalidText(f"is not the URL of a Redis; write it like {REDIS_URLS}") from None


def _socket(parts: SplitResult) -> RedisAddress:
    if not parts.path or parts.hostname or parts.fragment:
        raise ValueError("no path")
    if parts.query and not parts.query.startswith("db="):
        raise InvalidText("has a query that nobody reads; only ?db=0 may be there")
    return RedisAddress("", 0, unquote(parts.path), _database(parts.query.removeprefix("db=")), False, *_user(parts))


def _server(parts: SplitResult) -> RedisAddress:
    if parts.scheme not in ("redis", "rediss") or not parts.hostname:
        raise ValueError("unknown form")
    if parts.query or parts.fragment:
        raise InvalidText("has a query that nobody reads; write the database behind the host: redis://host:6379/3")
    if parts.port == 0:
        raise ValueError("no port")
    database = _database(parts.path.removeprefix("/").removesuffix("/"))
    port = parts.port if parts.port is not None else DEFAULT_PORT
    return RedisAddress(parts.hostname, port, None, database, parts.scheme == "rediss", *_user(parts))


def _user(parts: SplitResult) -> tuple[str | None, str | None]:
    return (
        unquote(parts.username) if parts.username else None,
        unquote(parts.password) if parts.password else None,
    )


def _database(text: str) -> int:
    if not _DATABASE.fullmatch(text):
        raise ValueError("no database number")
    return int(text or 0)
