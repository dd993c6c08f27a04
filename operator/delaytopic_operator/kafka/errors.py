"""Edge: what the Kafka client's errors mean to the operator: wait, ask for a right, or change the document."""

from __future__ import annotations

from typing import Final

from confluent_kafka import KafkaError

from delaytopic_operator.errors import (
    KafkaNotAuthenticated,
    KafkaNotAuthorized,
    KafkaUnavailable,
    OperatorError,
    TopicRejected,
)
from delaytopic_process.kafka_tokens import TokenFailure, TokenProblem

NOT_LET_IN: Final = frozenset(
    {
        KafkaError._AUTHENTICATION,
        KafkaError.SASL_AUTHENTICATION_FAILED,
        KafkaError.UNSUPPORTED_SASL_MECHANISM,
        KafkaError.ILLEGAL_SASL_STATE,
        KafkaError._SSL,
    }
)
UNKNOWN_TOPIC: Final = frozenset({KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC})
_NOT_ALLOWED: Final = frozenset(
    {
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    }
)
_REFUSED: Final = frozenset(
    {
        KafkaError.TOPIC_EXCEPTION,
        KafkaError.INVALID_PARTITIONS,
        KafkaError.INVALID_REPLICATION_FACTOR,
        KafkaError.INVALID_REPLICA_ASSIGNMENT,
        KafkaError.INVALID_CONFIG,
        KafkaError.INVALID_REQUEST,
        KafkaError.INVALID_GROUP_ID,
        KafkaError.POLICY_VIOLATION,
        KafkaError.UNSUPPORTED_VERSION,
        KafkaError._INVALID_ARG,
    }
)
_FIELDS_OF_TOKENS: Final = {
    TokenProblem.CLIENT: "credentials and the Secret that it names",
    TokenProblem.SCOPE: "scope",
    TokenProblem.AUTHORITY: "trustedCertificate",
    TokenProblem.ENDPOINT: "tokenEndpointUrl",
}


def translate(error: KafkaError, what: str) -> OperatorError:
    """The operator's error for one of the client's; `what` was being done, such as `create the topic a`."""
    code, text = error.code(), error.str().rstrip()
    if text.endswith(":"):
        text = f"{text} {error.name()}"  # librdkafka names the question, and leaves out what is wrong
    if code in NOT_LET_IN:
        return not_let_in(text)
    if code in _NOT_ALLOWED:
        return KafkaNotAuthorized(f"the operator's Kafka user may not {what}: grant it the right ({text})")
    if code in _REFUSED:
        return TopicRejected(f"Kafka refuses to {what}: {text}")
    return KafkaUnavailable(f"Kafka did not {what}: {text}")


def not_let_in(text: str) -> KafkaNotAuthenticated:
    """Return the error of a log-in that was refused."""
    return KafkaNotAuthenticated(
        f"Kafka does not let the operator in ({text}); check authentication and tls of the connection, and the Secrets "
        "behind them"
    )


def no_token(failure: TokenFailure) -> OperatorError:
    """Return the error of an issuer that gives the operator no token."""
    kind = KafkaUnavailable if failure.passes else KafkaNotAuthenticated
    return kind(
        f"the OAuth issuer gives the operator no token ({failure.reason}); it is asked again, check "
        f"authentication.oauth.{_FIELDS_OF_TOKENS[failure.problem]} of the connection"
    )
