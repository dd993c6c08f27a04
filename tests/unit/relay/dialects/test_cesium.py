"""Tests of Cesium's records without a timestamp, which no broker of today makes: a conformance table cannot."""

from __future__ import annotations

import pytest
from tests.support.relay.native_records import NO_TIMESTAMP, POLICY, TIMESTAMP_MS, Timestamp, record

from delaytopic_api.records import DeadLetterReason
from delaytopic_api.values import OnBeyondMaxDelay, OnMalformed
from delaytopic_relay.core.commands import Reject, Schedule
from delaytopic_relay.dialects.cesium import CesiumDialect, CesiumRules

IN_AN_HOUR_MS = TIMESTAMP_MS + 3_600_000
RULES = [CesiumRules(malformed, beyond) for malformed in OnMalformed for beyond in OnBeyondMaxDelay]


@pytest.mark.parametrize("timestamp", NO_TIMESTAMP)
@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("name", ["cesium-deliver-at", "cesium-delay-until", "delay-until"])
def test_an_instant_needs_no_timestamp(name: str, rules: CesiumRules, timestamp: Timestamp) -> None:
    message = record((name, b"%d" % IN_AN_HOUR_MS), timestamp=timestamp)

    command = CesiumDialect(POLICY, rules).read(message)

    assert isinstance(command, Schedule)
    assert (command.due_ms, command.timestamp_ms) == (IN_AN_HOUR_MS, None)


@pytest.mark.parametrize("timestamp", NO_TIMESTAMP)
@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("cesium-delay-ms", b"3600000", DeadLetterReason.MALFORMED_HEADER),
        ("cesium-deliver-at", b"253402300800000", DeadLetterReason.BEYOND_MAX_DELAY),
    ],
)
def test_a_delay_without_a_timestamp_and_an_instant_of_no_calendar_are_not_sent_at_once(
    name: str, value: bytes, reason: DeadLetterReason, rules: CesiumRules, timestamp: Timestamp
) -> None:
    command = CesiumDialect(POLICY, rules).read(record((name, value), timestamp=timestamp))

    assert isinstance(command, Reject)
    assert command.reason is reason


@pytest.mark.parametrize("timestamp", NO_TIMESTAMP)
def test_a_header_that_cannot_be_read_is_sent_at_once_where_that_is_asked_for(timestamp: Timestamp) -> None:
    dialect = CesiumDialect(POLICY, CesiumRules(OnMalformed.DELIVER))

    command = dialect.read(record(("cesium-deliver-at", b"soon"), timestamp=timestamp))

    assert isinstance(command, Schedule)
    assert command.due_ms == 0
