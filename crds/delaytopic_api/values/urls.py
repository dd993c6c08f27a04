"""Addresses of servers; they end up in ConfigMaps and logs, so none of them may hold a password."""

from __future__ import annotations

import re
from typing import Annotated

from delaytopic_api.errors import InvalidText
from delaytopic_api.values.cluster_rules import Checked, Rule
from delaytopic_api.values.redis_url import REDIS_URLS, parse_redis_url

LONGEST_ADDRESS = 2048
_HOST = r"([a-zA-Z0-9._-]+|\[[0-9a-fA-F:.]+\])"
_PORT = "([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])"
PORT_IN_RANGE = rf"self.matches('^[^/]*://(\\[[^/?#]*\\]|[^:/?#]*)(:(0*{_PORT})?)?([/?#]|$)')"
"""A rule for URLs, in CEL: the server's own functions take any number for a port."""
_NO_CREDENTIALS = "must not hold credentials: put them into a Secret (a file, in a relay's configuration)"
_REDIS = "^(rediss?://[^/?#]+(/[0-9]{0,9}/?)?|unix:///[^?#]+([?]db=[0-9]{0,9})?)$"
_NOT_SERVERS = "is not a list of servers; write host:port, several separated by commas"
_SERVERS = f" *{_HOST}:{_PORT} *(, *{_HOST}:{_PORT} *)*"


def _check_redis_url(url: str) -> str:
    if "password=" in url.partition("?")[2]:
        raise InvalidText(_NO_CREDENTIALS)
    try:
        address = parse_redis_url(url)
    except InvalidText as error:
        shown = "" if "@" in url else f'"{url}" '  # what is before an @ may be a password
        raise InvalidText(f"{shown}{error}") from None
    if address.has_credentials:
        raise InvalidText(_NO_CREDENTIALS)
    return url


def _check_server(url: str) -> str:
    if url.startswith("unix:"):
        raise InvalidText(f'"{url}" cannot be reached from a pod; use redis:// or rediss://')
    return url


def _check_bootstrap_servers(text: str) -> str:
    if re.fullmatch(_SERVERS, text, re.ASCII) is None:
        raise InvalidText(_NOT_SERVERS)
    return text


# Rules instead of patterns: the API server answers with the pattern, which nobody reads, and with the text, password
# included.
RedisUrl = Annotated[
    str,
    Checked(
        _check_redis_url,
        Rule(
            "!self.matches('^[^/]*://[^/?#]*@') && !self.matches('[?].*password=')",
            "must not hold credentials: put them into a Secret",
        ),
        Rule(
            f"isURL(self) && self.matches('{_REDIS}') && {PORT_IN_RANGE}",
            f"is not the URL of a Redis; write it like {REDIS_URLS}, without a query",
        ),
        maxLength=LONGEST_ADDRESS,
    ),
]
"""An address of a server or a socket, without credentials."""
RedisServerUrl = Annotated[
    RedisUrl,
    Checked(
        _check_server, Rule("!self.startsWith('unix:')", "cannot be reached from a pod; use redis:// or rediss://")
    ),
]
BootstrapServers = Annotated[
    str,
    Checked(
        _check_bootstrap_servers,
        Rule(f"self.matches(r'^{_SERVERS}$')", _NOT_SERVERS),
        maxLength=LONGEST_ADDRESS,
    ),
]
