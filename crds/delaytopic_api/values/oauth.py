"""Words of OAuth: where tokens come from, what is asked for there, and what goes along with a token."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Final
from urllib.parse import urlsplit

from delaytopic_api.errors import InvalidText
from delaytopic_api.values.cluster_rules import Checked, Rule
from delaytopic_api.values.names import Matching
from delaytopic_api.values.urls import PORT_IN_RANGE

_LONGEST_URL: Final = 2048
_MOST_EXTENSIONS: Final = 20
_NO_URL: Final = "is not the URL of a token endpoint; write it like https://login.example.com/oauth2/token"
_NO_CREDENTIALS: Final = "must not hold credentials: put them into a Secret (files, in a relay's configuration)"
_WORD: Final = "[-a-zA-Z0-9._~:/@,;?!*()]+"
_NAME: Final = "[a-zA-Z]{1,100}"
_RESERVED_NAME: Final = "auth"
_NO_NAMES: Final = "must have names of 1 to 100 letters, other than auth, which SASL uses itself"


def _check_url(url: str) -> str:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise InvalidText(f"is not a URL ({error}); write it like https://login.example.com/oauth2/token") from error
    if "@" in parts.netloc:
        raise InvalidText(_NO_CREDENTIALS)
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0 or "#" in url or re.search(r"\s", url):
        raise InvalidText(_NO_URL)
    return url


def _check_names(extensions: Mapping[str, str]) -> Mapping[str, str]:
    if any(re.fullmatch(_NAME, name, re.ASCII) is None or name == _RESERVED_NAME for name in extensions):
        raise InvalidText(_NO_NAMES)
    return extensions


TokenEndpointUrl = Annotated[
    str,
    Checked(
        _check_url,
        Rule("!self.matches('^[^/]*://[^/?#]*@')", _NO_CREDENTIALS),
        Rule(f"isURL(self) && self.matches('^https?://[^/?#\\\\s]+[^#\\\\s]*$') && {PORT_IN_RANGE}", _NO_URL),
        maxLength=_LONGEST_URL,
    ),
]
# The client library writes a scope into a form as it is, so that & would begin another field. It splits extensions at
# commas, and takes what follows a backslash as it is.
OAuthScope = Annotated[
    str,
    Matching(
        f"{_WORD}( {_WORD})*",
        1024,
        "a scope; use words of letters, digits and -._~:/@,;?!*(), with one blank between two",
    ),
]
SaslExtensions = Annotated[
    dict[
        str,
        Annotated[
            str,
            Matching(r"[!-+\--\[\]-~]+", 1024, "an extension's value; use visible ASCII but for comma and backslash"),
        ],
    ],
    Checked(
        _check_names,
        Rule(f"self.all(name, name.matches('^{_NAME}$') && name != '{_RESERVED_NAME}')", _NO_NAMES),
        maxProperties=_MOST_EXTENSIONS,
    ),
]
