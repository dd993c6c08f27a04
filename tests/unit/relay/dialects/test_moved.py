"""Records of a clock that a test has moved ahead: they count from their timestamp plus that."""

from __future__ import annotations

import pytest
from tests.support.relay.native_records import DAY_MS, NO_TIMESTAMP, TIMESTAMP_MS, Header, Timestamp, record

from delaytopic_api.values import Dialect
from delaytopic_relay.core.commands import Reject, Schedule
from delaytopic_relay.core.rules import Rules, target_mark
from delaytopic_relay.dialects import dialect_by

RULES = Rules(Dialect.NATIVE, 30 * DAY_MS, target_mark("target"), shift_ms=7 * DAY_MS)
MOVED_MS = TIMESTAMP_MS + 7 * DAY_MS


@pytest.mark.parametrize(
    ("header", "due_ms"),
    [
        (("deliver-after", b"1h"), MOVED_MS + 3_600_000),
        (("deliver-after", b"90000"), MOVED_MS + 90_000),
        (("deliver-at", b"%d" % (MOVED_MS + 5)), MOVED_MS + 5),
        (("other", None), MOVED_MS),
    ],
)
def test_a_record_counts_from_its_timestamp_plus_the_shift_and_keeps_its_own(header: Header, due_ms: int) -> None:
    (command,) = dialect_by(RULES, "target").read_all([record(header)])

    assert isinstance(command, Schedule)
    assert (command.due_ms, command.timestamp_ms) == (due_ms, TIMESTAMP_MS)


def test_the_longest_delay_counts_from_there_too() -> None:
    far = record(("deliver-at", b"%d" % (MOVED_MS + 31 * DAY_MS)))

    assert isinstance(dialect_by(RULES, "target").read(far), Reject)


@pytest.mark.parametrize("timestamp", NO_TIMESTAMP)
def test_a_record_without_a_timestamp_is_read_as_ever(timestamp: Timestamp) -> None:
    message = record(timestamp=timestamp)

    assert dialect_by(RULES, "target").read(message) == dialect_by(RULES._replace(shift_ms=0), "target").read(message)
