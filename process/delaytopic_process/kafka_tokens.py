"""OAuth towards Kafka: the authorities that vouch for an issuer, and what its refusals mean.

Each client gets tokens by itself: the client library asks for the next one when four fifths of a token's life are over,
and, while it gets none, every ten seconds. It tells of a failure once, until the text changes.
"""

from __future__ import annotations

import json
import re
import ssl
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

from confluent_kafka import KafkaError

Value = TypeVar("Value")

_BEGINNING: Final = "Failed to acquire SASL OAUTHBEARER token: "
_ABOUT_THE_SCOPE: Final = "invalid_scope"
_PASSING: Final = frozenset({"temporarily_unavailable", "server_error"})
_OF_CERTIFICATES: Final = (
    "SSL certificate",
    "SSL: certificate subject name",
    "SSL: no alternative certificate subject name",
    "error adding trust anchors",
    "error setting certificate",
)
_OF_NO_TOKEN: Final = ("Expected JSON", "Expected token", "Failed to decode JWT", "Failed to parse JSON JWT")
_LONGEST_SHOWN: Final = 200
BUNDLES: Final = (
    "/etc/ssl/certs/ca-certificates.crt",  # Debian, Ubuntu, Alpine
    "/etc/pki/tls/certs/ca-bundle.crt",  # Red Hat, Fedora
    "/etc/ssl/ca-bundle.pem",  # SUSE
    "/etc/ssl/cert.pem",  # macOS
)
"""Files of the authorities that an operating system trusts."""


class TokenProblem(Enum):
    """The reason why there is no token: what somebody has to look at."""

    CLIENT = "the client's id and secret, or what the issuer lets it have"
    SCOPE = "the scope that is asked for"
    AUTHORITY = "the authority that vouches for the issuer"
    ENDPOINT = "the address, or what is there"


class TokenFailure(NamedTuple):
    """A client that got no token."""

    problem: TokenProblem
    reason: str
    """The issuer's or the client library's words, in one line."""
    passes: bool
    """True if the next attempt may succeed though nobody changes anything here."""


def token_failure(error: KafkaError) -> TokenFailure | None:
    """Return what an error of a client says of its token; None if it is about something else."""
    text = error.str()
    if error.code() != KafkaError._AUTHENTICATION or not text.startswith(_BEGINNING):
        return None
    said = text.removeprefix(_BEGINNING)
    refusal = _refusal(said)
    if refusal is not None:
        word, reason = refusal
        if word in _PASSING:
            return TokenFailure(TokenProblem.ENDPOINT, reason, passes=True)
        problem = TokenProblem.SCOPE if word == _ABOUT_THE_SCOPE else TokenProblem.CLIENT
        return TokenFailure(problem, reason, passes=False)
    if said.startswith(_OF_CERTIFICATES):
        return TokenFailure(TokenProblem.AUTHORITY, _one_line(said), passes=False)
    if said.startswith(_OF_NO_TOKEN):
        return TokenFailure(TokenProblem.ENDPOINT, f"it gives no JWT with sub and exp: {_one_line(said)}", passes=False)
    return TokenFailure(TokenProblem.ENDPOINT, _shown(said), passes=True)


def with_authorities(settings: Mapping[str, Value]) -> dict[str, Value | str]:
    """Return the settings of a client with the authorities of the operating system, if it gets tokens and names none.

    The library's own default is one of these files, whether it is there or not; of a folder it makes nothing.
    """
    named = {"https.ca.location", "https.ca.pem"} & settings.keys()
    if settings.get("sasl.oauthbearer.method") != "oidc" or named:
        return {**settings}
    files = (ssl.get_default_verify_paths().cafile, *BUNDLES)
    found = next((file for file in files if file and Path(file).is_file()), None)
    return {**settings, **({"https.ca.location": found} if found is not None else {})}


def _refusal(said: str) -> tuple[str, str] | None:
    """Return the error's name and words, if an issuer answered as OAuth has it (RFC 6749, 5.2), or as Okta does."""
    try:
        answer = json.loads(said)
    except ValueError:
        return None
    if not isinstance(answer, dict):
        return None
    word = answer.get("error") or answer.get("errorCode")
    if not isinstance(word, str):
        return None
    words = answer.get("error_description") or answer.get("errorSummary")
    return word, _one_line(f"{word}: {words}" if isinstance(words, str) else word)


def _shown(said: str) -> str:
    """Return the library's words; what a server said that speaks no OAuth is nobody's business."""
    if re.search(r"\n|^\s*[<{\[]", said):
        return "it answers something that is none of OAuth's errors"
    return _one_line(said)


def _one_line(text: str) -> str:
    printable = "".join(each if each.isprintable() else " " for each in text)
    return printable if len(printable) <= _LONGEST_SHOWN else f"{printable[:_LONGEST_SHOWN]}..."
