"""The errors of the Redis client in the relay's words: wait, fix the configuration, or repair what is stored."""

from __future__ import annotations

import re
import ssl
from collections.abc import Callable
from typing import TypeVar

from redis import exceptions

from delaytopic_relay.errors import (
    BacklogFull,
    BacklogUnavailable,
    ConfigurationError,
    CorruptState,
    OversizedAnswer,
    RelayError,
)

Answer = TypeVar("Answer")

_FULL = (
    "is full: maxmemory is reached and nothing may be evicted. What waits there is delivered in time, and further "
    "records wait in the source topic meanwhile; raise maxmemory, or move other data elsewhere"
)
_ELSEWHERE_CODES = frozenset({
    *("CLUSTERDOWN", "FAILOVER", "LOADING", "MASTERDOWN", "READONLY"),  # it is not the primary, or not yet
    *("MISCONF", "NOREPLICAS"),  # it takes no writes: another server may have been promoted meanwhile
})  # fmt: skip
_PASSING_CODES = _ELSEWHERE_CODES | {"ASK", "BUSY", "MOVED", "NOSCRIPT", "TRYAGAIN", "UNKILLABLE"}
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


class AnswerTooLarge(exceptions.ConnectionError):
    """An answer has more bytes than any that the relay asks for; the connection is closed in the middle of it."""


class CredentialsError(exceptions.AuthenticationError):
    """A file with credentials cannot be read; raised inside the client, which connects when it wants to."""


def ask(where: str, question: Callable[[], Answer], leave: Callable[[], object] = lambda: None) -> Answer:
    """The answer to a question to Redis; its client's errors become the relay's (see `translate`).

    `leave` closes connections, so that the next question asks the address again. A server that was demoted keeps its
    connections open, and answers each question with the same error for ever.
    """
    try:
        return question()
    except (exceptions.RedisError, exceptions.RedisClusterException) as error:
        if _code_of(error)[0] in _ELSEWHERE_CODES:
            leave()
        raise translate(error, where) from error


def _code_of(error: Exception) -> tuple[str, str]:
    """Return the code of a server's error, and its text without what others have put in front."""
    text = _FRAMES.sub("", str(error), count=1)
    status: str | None = getattr(error, "status_code", None)
    return (text.partition(" ")[0] if status in (None, "ERR") else status), text


def translate(error: exceptions.RedisError | exceptions.RedisClusterException, where: str) -> RelayError:
    """The relay's error for one of the client's; `where` names the server, never its credentials.

    `BacklogUnavailable` for what passes, and of it `BacklogFull` for a full Redis; `ConfigurationError` for what
    somebody must change; `CorruptState` for keys of another type, and for an answer that no relay has made so large.
    """
    code, text = _code_of(error)
    if (refusal := _refusal(error, code, text, where)) is not None:
        return ConfigurationError(refusal)
    if isinstance(error, AnswerTooLarge):
        return OversizedAnswer(f"{where} {text}: somebody else writes to the backlog's keys")
    if code == "OOM":
        return BacklogFull(f"{where} {_FULL}")
    if isinstance(error, _PASSING) or code in _PASSING_CODES:
        return BacklogUnavailable(f"{where} is not available: {text}")
    if code == "WRONGTYPE" or text.removeprefix("ERR ").startswith(_NO_NUMBER):
        return CorruptState(f"{where} holds keys of another type under the backlog's names: set another backend.id")
    return ConfigurationError(f"{where} cannot serve as a backlog: {text}")


def _refusal(error: Exception, code: str, text: str, where: str) -> str | None:
    """Say what keeps the relay out for as long as nobody changes it; None for anything else."""
    if isinstance(error, CredentialsError):
        return text
    if isinstance(error, exceptions.AuthenticationError | exceptions.AuthorizationError):
        return f"{where} refuses the credentials ({text}): check backend.redis.usernameFile and passwordFile"
    if code == "NOPERM" or text.startswith(_FORBIDDEN_IN_SCRIPT):
        return f"{where} does not permit what the relay needs ({text}): extend its user's ACL"
    if isinstance(error.__context__, ssl.SSLCertVerificationError):
        return (
            f"{where} has a certificate that cannot be verified ({error.__context__.verify_message}): "
            "check backend.redis.caFile and the host name in the url"
        )
    return None
