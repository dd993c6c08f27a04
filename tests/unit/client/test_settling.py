"""Tests of questions to Kafka that are asked again while a leader or a coordinator moves."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from confluent_kafka import KafkaError, KafkaException

from delaytopic.settling import settled

PATIENCE_S = 10.0


def answering(*answers: int | str) -> Callable[[], str]:
    """Give these answers one after another: the code of an error, or what Kafka says."""
    left = iter(answers)

    def ask() -> str:
        answer = next(left)
        if isinstance(answer, int):
            raise KafkaException(KafkaError(answer))
        return answer

    return ask


@pytest.mark.parametrize(
    "code", [KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.LEADER_NOT_AVAILABLE, KafkaError.NOT_COORDINATOR]
)
def test_a_broker_that_does_not_lead_is_asked_again(code: int) -> None:
    assert settled(answering(code, code, "7 records"), PATIENCE_S) == "7 records"


@pytest.mark.parametrize(
    ("code", "patience_s"),
    [(KafkaError.TOPIC_AUTHORIZATION_FAILED, PATIENCE_S), (KafkaError.NOT_LEADER_FOR_PARTITION, 0.0)],
    ids=["it is about something else", "the time is over"],
)
def test_an_error_that_does_not_pass_is_raised(code: int, patience_s: float) -> None:
    with pytest.raises(KafkaException) as refused:
        settled(answering(code, "7 records"), patience_s)

    assert refused.value.args[0].code() == code
