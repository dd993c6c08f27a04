from __future__ import annotations

import pytest
from redis import exceptions

from delaytopic_relay.backlog.redis.errors import AnswerTooLarge, ask, translate
from delaytopic_relay.errors import (
    BacklogFull,
    BacklogUnavailable,
    ConfigurationError,
    CorruptState,
    OversizedAnswer,
    RelayError,
)

WHERE = "Redis at cache:6379"
# How a Redis before 7.0 frames the error of a script's command, and how the client frames one of a pipeline.
SCRIPT_6_2 = "Error running script (call to f_84150966): @user_script:1: @user_script: 1: -"
SCRIPT_6_2_TYPE = "Error running script (call to f_ef542eb9): @user_script:1: "
PIPELINE = "Command # 2 (LRANGE {shop:0}:s:0:1000 0 9) of pipeline caused error: "


@pytest.mark.parametrize(
    "error",
    [
        exceptions.ConnectionError("Error 111 connecting to cache:6379. Connection refused."),
        exceptions.TimeoutError("Timeout reading from socket"),
        exceptions.BusyLoadingError("Redis is loading the dataset in memory", status_code="LOADING"),
        exceptions.ReadOnlyError("You can't write against a read only replica.", status_code="READONLY"),
        exceptions.MasterDownError("Link with MASTER is down", status_code="MASTERDOWN"),
        exceptions.ClusterDownError("The cluster is down", status_code="CLUSTERDOWN"),
        exceptions.TryAgainError("Multiple keys request during rehashing of slot", status_code="TRYAGAIN"),
        exceptions.MovedError("3999 127.0.0.1:6381", status_code="MOVED"),
        exceptions.RedisClusterException("Redis Cluster cannot be connected."),
        exceptions.NoScriptError("No matching script.", status_code="NOSCRIPT"),
        exceptions.ResponseError(
            "MISCONF Redis is configured to save RDB snapshots, but is unable to persist to disk."
        ),
        exceptions.ResponseError("NOREPLICAS Not enough good replicas to write."),
        exceptions.ResponseError("BUSY Redis is busy running a script."),
        exceptions.InvalidResponse("Protocol error"),
        exceptions.ResponseError(
            SCRIPT_6_2 + "READONLY You can't write against a read only replica.", status_code="ERR"
        ),
    ],
    ids=lambda error: type(error).__name__,
)
def test_what_passes_is_unavailable(error: exceptions.RedisError) -> None:
    translated = translate(error, WHERE)

    assert isinstance(translated, BacklogUnavailable)
    assert str(translated).startswith(f"{WHERE} is not available: ")


@pytest.mark.parametrize(
    "error",
    [
        exceptions.OutOfMemoryError("command not allowed when used memory > 'maxmemory'.", status_code="OOM"),
        exceptions.ResponseError(SCRIPT_6_2 + "OOM command not allowed when used memory.", status_code="ERR"),
    ],
)
def test_a_full_server_says_what_to_do(error: exceptions.RedisError) -> None:
    translated = translate(error, WHERE)

    assert (type(translated), str(translated)) == (
        BacklogFull,
        "Redis at cache:6379 is full: maxmemory is reached and nothing may be evicted. "
        "What waits there is delivered in time, and further records wait in the source topic meanwhile; "
        "raise maxmemory, or move other data elsewhere",
    )


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (
            exceptions.AuthenticationError("Authentication required.", status_code="NOAUTH"),
            "refuses the credentials (Authentication required.): check backend.redis.usernameFile and passwordFile",
        ),
        (
            exceptions.NoPermissionError("User u has no permissions to run the 'get' command", status_code="NOPERM"),
            "does not permit what the relay needs (User u has no permissions to run the 'get' command): "
            "extend its user's ACL",
        ),
        (
            exceptions.ResponseError("ACL failure in script: User u has no permissions to run the 'rpush' command"),
            "does not permit what the relay needs (ACL failure in script: User u has no permissions to run the "
            "'rpush' command): extend its user's ACL",
        ),
        (
            exceptions.ResponseError(
                SCRIPT_6_2[:-1] + "The user executing the script can't run this command or subcommand",
                status_code="ERR",
            ),
            "does not permit what the relay needs (The user executing the script can't run this command or "
            "subcommand): extend its user's ACL",
        ),
        (
            exceptions.ResponseError("unknown command 'EVALSHA', with args beginning with: ", status_code="ERR"),
            "cannot serve as a backlog: unknown command 'EVALSHA', with args beginning with: ",
        ),
    ],
)
def test_what_somebody_must_change_is_a_matter_of_configuration(error: exceptions.RedisError, text: str) -> None:
    translated = translate(error, WHERE)

    assert (type(translated), str(translated)) == (ConfigurationError, f"{WHERE} {text}")


@pytest.mark.parametrize("frame", ["", SCRIPT_6_2_TYPE, PIPELINE])
def test_keys_of_another_type_are_corrupt_state_however_the_error_is_framed(frame: str) -> None:
    error = exceptions.ResponseError(frame + "WRONGTYPE Operation against a key holding the wrong kind of value")

    assert isinstance(translate(error, WHERE), CorruptState)


def test_the_clients_error_is_the_cause_of_the_relays() -> None:
    error = exceptions.RedisClusterException("Redis Cluster cannot be connected.")

    def question() -> None:
        raise error

    with pytest.raises(RelayError) as caught:
        ask(WHERE, question)

    assert caught.value.__cause__ is error


@pytest.mark.parametrize(
    ("code", "leaves"),
    [
        ("READONLY", True),
        ("LOADING", True),
        ("MISCONF", True),
        ("OOM", False),
        ("TRYAGAIN", False),
        ("WRONGTYPE", False),
    ],
)
def test_a_server_that_is_not_the_one_to_ask_is_left(code: str, leaves: bool) -> None:
    left: list[None] = []

    def question() -> None:
        raise exceptions.ResponseError("said the server", status_code=code)

    with pytest.raises(RelayError):
        ask(WHERE, question, lambda: left.append(None))

    assert left == [None] * leaves


def test_an_answer_that_no_relay_has_made_so_large_is_corrupt_state() -> None:
    translated = translate(AnswerTooLarge("answers with more than 64 MiB, which no relay has put there"), WHERE)

    assert (type(translated), str(translated)) == (
        OversizedAnswer,
        f"{WHERE} answers with more than 64 MiB, which no relay has put there: "
        "somebody else writes to the backlog's keys",
    )
