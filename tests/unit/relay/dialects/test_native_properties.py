from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.support.relay.native_records import (
    DAY_MS,
    KEY,
    OFFSET,
    POLICY,
    TIMESTAMP_MS,
    VALUE,
    Header,
    Timestamp,
    record,
)

from delaytopic_api.records import CONTROL_HEADERS
from delaytopic_relay.core.commands import Cancel, Reject, Schedule
from delaytopic_relay.dialects.native import NativeDialect, NativePolicy, read_carefully
from delaytopic_relay.dialects.reading import SourceRecord

POLICIES = (
    POLICY,
    POLICY._replace(default_delay_ms=300_000),
    POLICY._replace(delay_ms=30_000),
    POLICY._replace(ids_enabled=False, max_delay_ms=0),
)
NAMES = st.sampled_from(sorted(CONTROL_HEADERS)) | st.sampled_from(["trace", "Deliver-At", ""]) | st.text(max_size=12)
NUMBERS = st.one_of(
    st.integers(-10, 10),
    st.integers(TIMESTAMP_MS - 5, TIMESTAMP_MS + 40 * DAY_MS),
    st.integers(253_402_300_799_990, 253_402_300_800_010),
    st.integers(),
).map(lambda number: b"%d" % number)
TEXTS = st.one_of(
    st.none(),
    st.binary(max_size=20),
    NUMBERS,
    NUMBERS.map(lambda digits: b"0" * 20 + digits),
    st.datetimes().map(lambda instant: f"{instant.isoformat()}Z".encode()),
    st.sampled_from([b"cancel", b"schedule", b"shop.mails", b"other", b"90s", b"1h30m", b"1_000", b"9" * 4_500]),
)
HEADERS: st.SearchStrategy[list[Header]] = st.lists(st.tuples(NAMES, TEXTS), max_size=6)
TIMESTAMPS = st.tuples(
    st.sampled_from([0, 1, 2]),
    st.one_of(st.just(TIMESTAMP_MS), st.integers(-2, 2), st.integers(253_402_300_700_000, 253_402_300_900_000)),
)


@given(HEADERS, TIMESTAMPS, st.sampled_from(POLICIES))
def test_reading_never_raises_and_gives_the_same_each_time(
    headers: list[Header], timestamp: Timestamp, policy: NativePolicy
) -> None:
    dialect = NativeDialect(policy)
    before = list(headers)

    first = dialect.read(record(*headers, timestamp=timestamp))
    again = dialect.read(record(*headers, timestamp=timestamp))

    assert first == again
    assert isinstance(first, Schedule | Cancel | Reject)
    assert headers == before


@given(HEADERS, TIMESTAMPS, st.sampled_from(POLICIES))
@example([("deliver-at", b"0")], (1, TIMESTAMP_MS), POLICIES[2])
@example([("deliver-at", b"253402300800000")], (1, 253_402_300_799_000), POLICY)
@example([("deliver-at", b"0" * 5_000)], (1, TIMESTAMP_MS), POLICY)
def test_the_short_way_gives_what_the_careful_way_gives(
    headers: list[Header], timestamp: Timestamp, policy: NativePolicy
) -> None:
    places = [place for place, (name, _) in enumerate(headers) if name in CONTROL_HEADERS]
    control = {0: -1, 1: places[0] if places else -1}.get(len(places), -2)
    kind, time_ms = timestamp
    usable = kind != 0 and 0 <= time_ms <= 253_402_300_799_999
    message = record(*headers, timestamp=timestamp)
    same = SourceRecord(OFFSET, KEY, VALUE, headers or None, time_ms if usable else None, message)

    command = NativeDialect(policy).read(message)

    assert command == read_carefully(policy, same, control)


@given(HEADERS, st.sampled_from(POLICIES))
def test_what_is_accepted_is_due_within_the_longest_delay(headers: list[Header], policy: NativePolicy) -> None:
    command = NativeDialect(policy).read(record(*headers))

    if isinstance(command, Schedule):
        latest_ms = TIMESTAMP_MS + max(policy.max_delay_ms, policy.implied_delay_ms or 0)
        assert 0 <= command.due_ms <= latest_ms
        assert command.expires_ms is None or command.expires_ms >= command.due_ms


@given(HEADERS)
def test_the_detail_of_a_dead_letter_is_one_short_ascii_line(headers: list[Header]) -> None:
    command = NativeDialect(POLICY).read(record(*headers))

    if isinstance(command, Reject):
        assert command.detail.isascii()
        assert command.detail.isprintable()
        assert len(command.detail) < 500


@pytest.mark.parametrize("policy", POLICIES)
def test_records_without_headers_are_always_accepted(policy: NativePolicy) -> None:
    command = NativeDialect(policy).read(record())

    due_ms = TIMESTAMP_MS + (policy.implied_delay_ms or 0)
    assert command == Schedule(due_ms, OFFSET, KEY, VALUE, None, timestamp_ms=TIMESTAMP_MS)
