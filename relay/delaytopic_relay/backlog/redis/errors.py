"""The errors of the Redis client in the relay's words: wait, fix the configuration, or repair what is stored."""

from __future__ import annotations

import re
import ssl
from collections.abc import Callable
from typing import TypeVar

from redis import exceptions

from delaytopic_relay.errors import BacklogUnavailable, ConfigurationError, CorruptState, RelayError

Answer = TypeVar("Answer")

_FULL = (
    "is full: maxmemory is reached and nothing may be evicted. Records wait in the source topic meanwhile; "
    "raise maxmemory, or move other data elsewhere"
)
_PASSING_CODES = frozenset({
    *("ASK", "CLUSTERDOWN", "LOADING", "MASTERDOWN", "MOVED", "READONLY", "TRYAGAIN"),  # a failover or a resharding
    *("BUSY", "FAILOVER", "MISCONF", "NOREPLICAS", "NOSCRIPT", "UNKILLABLE"),
})  # fmt: skip
_PASSING = (
    exceptions.ConnectionError,
    exceptions.TimeoutError,
    exceptions.InvalidResponse,
    exceptions.ClusterError,
    exceptions.RedisClusterException,  # no RedisError, whatever its name
)
_FRAMES = re.compile(
    r"^(Command # \d+ .* of pipeline caused error: )?"  # the client's
    r"(Error running script .*?@user_script: ?\d+: (@user_script: ?\d+: )?-?)?"  # Redis' own before 7.0
)
_NO_NUMBER = ("hash value is not an integer", "increment or decrement would overflow")
_FORBIDDEN_IN_SCRIPT = ("ACL failure in script", "The user executing the script can't")


class CredentialsError(exceptions.AuthenticationError):
    """A file with credentials cannot be read; raised inside the client, which connects when it wants to."""


def ask(where: str, question: Callable[[], Answer]) -> Answer:
    """The answer to a question to Redis; its client's errors become the relay's (see `translate`)."""
    try:
        return question()
    except (exceptions.RedisError, exceptions.RedisClusterException) as error:
        raise translate(error, where) from error


def translate(error: exceptions.RedisError | exceptions.RedisClusterException, where: str) -> RelayError:
    """The relay's error for one of the client's; `where` names the server, never its credentials.

    `BacklogUnavailable` for what passes, a full Redis included; `ConfigurationError` for what somebody must
    change; `CorruptState` for keys of another type.
    """
    text = _FRAMES.sub("", str(error), count=1)
    status: str | None = getattr(error, "status_code", None)
    code = text.partition(" ")[0] if status in (None, "ERR") else status
    if isinstance(error, CredentialsError):
        return ConfigurationError(text)
    if isinstance(error, exceptions.AuthenticationError | exceptions.AuthorizationError):
        return ConfigurationError(
            f"{where} refuses the credentials ({text}): check backend.redis.usernameFile and passwordFile"
        )
    if code == "NOPERM" or text.startswith(_FORBIDDEN_IN_SCRIPT):
        return ConfigurationError(f"{where} does not permit what the relay needs ({text}): extend its user's ACL")
    if isinstance(error.__context__, ssl.SSLCertVerificationError):
        return ConfigurationError(
            f"{where} has a certificate that cannot be verified ({error.__context__.verify_message}): "
            "check backend.redis.caFile and the host name in the url"
        )
    if code == "OOM":
        return BacklogUnavailable(f"{where} {_FULL}")
    if isinstance(error, _PASSING) or code in _PASSING_CODES:
        return BacklogUnavailable(f"{where} is not available: {text}")
    if code == "WRONGTYPE" or text.removeprefix("ERR ").startswith(_NO_NUMBER):
        return CorruptState(f"{where} holds keys of another type under the backlog's names: set another backend.id")
    return ConfigurationError(f"{where} cannot serve as a backlog: {text}")
