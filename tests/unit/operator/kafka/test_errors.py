"""Errors of the Kafka client as errors of the operator: their class, and a text that says what is wrong."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError

from delaytopic_operator.errors import KafkaNotAuthorized, KafkaUnavailable, OperatorError, TopicRejected
from delaytopic_operator.kafka.errors import translate

MAY_NOT = "the operator's Kafka user may not ask: grant it the right (Broker: Group authorization failed)"


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (KafkaError(KafkaError._TIMED_OUT), KafkaUnavailable("Kafka did not ask: Local: Timed out")),
        (
            KafkaError(KafkaError.COORDINATOR_NOT_AVAILABLE, "ConsumerGroupDescribe: "),
            KafkaUnavailable("Kafka did not ask: ConsumerGroupDescribe: COORDINATOR_NOT_AVAILABLE"),
        ),
        (KafkaError(KafkaError.GROUP_AUTHORIZATION_FAILED), KafkaNotAuthorized(MAY_NOT)),
        (KafkaError(KafkaError.POLICY_VIOLATION, "no"), TopicRejected("Kafka refuses to ask: no")),
    ],
    ids=["no answer", "a code without a text", "no right", "a refusal"],
)
def test_an_error_of_the_client_says_whose_fault_it_is_and_what_is_wrong(
    error: KafkaError, expected: OperatorError
) -> None:
    found = translate(error, "ask")

    assert (type(found), str(found)) == (type(expected), str(expected))
