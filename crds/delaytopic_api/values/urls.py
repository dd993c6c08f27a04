"""Addresses of servers; they end up in ConfigMaps and logs, so none of them may hold a password."""

from __future__ import annotations

import re
from typing import Annotated
from urllib.parse import urlsplit

from delaytopic_api.errors import InvalidText
from delaytopic_api.values.cluster_rules import Checked, Rule

REDIS_SCHEMES = ("redis", "rediss", "unix")
LONGEST_ADDRESS = 2048
_HOST = r"([a-zA-Z0-9._-]+|\[[0-9a-fA-F:.]+\])"
_PORT = "([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])"
_NOT_SERVERS = "is not a list of servers; write host:port, several separated by commas"
_SERVERS = f" *{_HOST}:{_PORT} *(, *{_HOST}:{_PORT} *)*"


def _check_redis_url(url: str) -> str:
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018  (raises where the port is no number)
    except ValueError as error:
        raise InvalidText(f"is not a URL ({error}); write it like redis://host:6379/0") from error
    if parts.username or parts.password or "password=" in parts.query:
        raise InvalidText("must not hold credentials: put them into a Secret (a file, in a relay's configuration)")
    if parts.scheme not in REDIS_SCHEMES or not (parts.path if parts.scheme == "unix" else parts.hostname):
        raise InvalidText(
            f'"{url}" is not the URL of a Redis; write it like redis://host:6379/0 or rediss://host:6380/0'
        )
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
            "isURL(self) && self.matches('^(rediss?://[^/?#]+|unix://[^?#]+)')",
            "is not the URL of a Redis; write it like redis://host:6379/0 or rediss://host:6380/0",
        ),
        maxLength=LONGEST_ADDRESS,
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
