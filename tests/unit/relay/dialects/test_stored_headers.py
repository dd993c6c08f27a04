"""Tests of records that were in a backlog: they are written as those that were not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.properties import QUICK
from tests.support.relay import markers
from tests.support.relay.native_records import POLICY, TIMESTAMP_MS, Header, record

from delaytopic_relay.backlog.segments import decode_segment, encode_segment
from delaytopic_relay.core.commands import Schedule
from delaytopic_relay.dialects.cesium import CesiumDialect, CesiumRules
from delaytopic_relay.dialects.redelivery import RedeliveryDialect
from delaytopic_relay.dialects.timebridge import TimebridgeDialect
from delaytopic_relay.dialects.writing import Sending, WritingDialect

SENDING = Sending("shop.reminders.delayed", 3, TIMESTAMP_MS + 5_001)
DUE = b"%d" % (TIMESTAMP_MS + 5_000)
MARKER = markers.start(3, 300, 5_000, b"q", b"hi")
CESIUM: list[Header] = [("cesium-deliver-at", DUE), ("cesium-delay-ms", b"5000"), ("delay-by", b"5000")]
TIMEBRIDGE: list[Header] = [("X-Timebridge-When", b"2026-11-21T14:01:26Z"), ("X-Timebridge-Where", b"shop.reminders")]
REDELIVERY: list[Header] = [("redelivery-count", b"2"), ("delay-restated", b"junk"), ("delay-ended", b"")]


def as_read(dialect: WritingDialect, *headers: Header) -> Schedule | None:
    command = dialect.read(record(*headers, key=b"q", value=MARKER))
    return command if isinstance(command, Schedule) else None


@pytest.mark.parametrize(
    ("dialect", "controls"),
    [
        pytest.param(CesiumDialect(POLICY, CesiumRules()), CESIUM, id="Cesium"),
        pytest.param(TimebridgeDialect(POLICY), TIMEBRIDGE, id="Timebridge"),
        pytest.param(RedeliveryDialect(POLICY), REDELIVERY, id="Redelivery"),
    ],
)
def test_a_record_is_written_alike_from_memory_and_from_a_backlog(
    dialect: WritingDialect, controls: list[Header]
) -> None:
    @QUICK
    @given(st.lists(st.sampled_from([*controls, ("own", b"1"), ("trace", None)]), max_size=6))
    def holds(headers: list[Header]) -> None:
        schedule = as_read(dialect, *headers)
        if schedule is None:
            return
        (stored,) = decode_segment(encode_segment([schedule]))
        assert dialect.write(schedule, SENDING) == dialect.write(stored, SENDING)

    holds()
