from __future__ import annotations

from typing import cast

import pytest
from bench.clock import now_ms
from bench.dialects import NATIVE, OTHERS, Speech
from bench.processes.measured import by_record, relay_config
from confluent_kafka import TIMESTAMP_CREATE_TIME, Message

from delaytopic_api.relay import RelayBackend
from delaytopic_api.values import BackendType, Dialect, Guarantee
from delaytopic_relay.core.commands import Command, Schedule, SourceMessage
from delaytopic_relay.dialects import dialect_for

EVERY = [NATIVE, *OTHERS.values()]


def command_of(speech: Speech, due_ms: int | None) -> Command:
    config = relay_config(
        "bench",
        bootstrap_servers="localhost:9092",
        backend=RelayBackend(type=BackendType.KAFKA_BUCKETS, id="bench"),
        source="source",
        target="target",
        guarantee=Guarantee.AT_LEAST_ONCE,
        precision="100ms",
        schedule=by_record(speech.dialect),
    )
    key, value, headers = speech.write(7, due_ms, "target")
    message = Message("source", 0, 5, key, value, [*headers], None, (TIMESTAMP_CREATE_TIME, int(now_ms())))
    return dialect_for(config).read(cast(SourceMessage, message))


def test_every_dialect_has_a_speech() -> None:
    assert {speech.dialect for speech in EVERY} == set(Dialect)


@pytest.mark.parametrize("speech", EVERY, ids=lambda speech: str(speech.dialect))
def test_a_record_is_due_when_its_plan_says(speech: Speech) -> None:
    planned_ms = speech.due_ms(int(now_ms()) + 90_123)

    command = command_of(speech, planned_ms)

    assert isinstance(command, Schedule)
    # These count from the record's timestamp, which is the broker's business: it is due then or some ms later.
    counts_down = speech.dialect in (Dialect.BLACK_BOX, Dialect.REDELIVERY)
    late_ms = command.due_ms - planned_ms
    assert 0 <= late_ms <= (5_000 if counts_down else 0)
