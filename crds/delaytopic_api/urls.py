"""Addresses of servers; they end up in ConfigMaps and logs, so none of them may hold a password."""

from __future__ import annotations

import re
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator

from delaytopic_api.errors import InvalidText

REDIS_SCHEMES = ("redis", "rediss", "unix")
_SERVER = re.compile(r"(?:[a-zA-Z0-9._-]+|\[[0-9a-fA-F:.]+\]):([0-9]{1,5})", re.ASCII)


def _check_redis_url(url: str) -> str:
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018  (raises where the port is no number)
    except ValueError as error:
        raise InvalidText(f"is not a URL ({error}); write it like redis://host:6379/0") from error
    if parts.username or parts.password or "password=" in parts.query:
        raise InvalidText("must not hold credentials: put them into a Secret (a file, in a relay's configuration)")
    if parts.scheme not in REDIS_SCHEMES or not (parts.hostname or parts.path):
        raise InvalidText(
            f'"{url}" is not the URL of a Redis; write it like redis://host:6379/0 or rediss://host:6380/0'
        )
    return url


def _check_bootstrap_servers(text: str) -> str:
    for server in text.split(","):
        match = _SERVER.fullmatch(server.strip())
        if match is None or not 0 < int(match[1]) < 65_536:
            raise InvalidText("is not a list of servers; write host:port, several separated by commas")
    return text


RedisUrl = Annotated[str, AfterValidator(_check_redis_url)]
BootstrapServers = Annotated[str, AfterValidator(_check_bootstrap_servers)]
