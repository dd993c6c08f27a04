"""Markers as a hostile client writes them: the dialect Redelivery answers each with a command, and none holds it up."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import strategies as st
from tests.simulation.world.source_log import SourceRecord
from tests.support.fuzzing import fuzz, nightly_for, peak_memory_bytes
from tests.support.relay import markers

from delaytopic_api.records import ENDED, RESTATED, Headers
from delaytopic_relay.core.commands import Cancel, Command, Postpone, Rewritten, Schedule
from delaytopic_relay.dialects.reading import MAX_ID_BYTES, RoutePolicy, TopicGlobs
from delaytopic_relay.dialects.redelivery import COUNT, RedeliveryDialect
from delaytopic_relay.dialects.writing import Sending

DAY_MS = 86_400_000
OFFSET = 1_000
DIALECT = RedeliveryDialect(RoutePolicy("target", TopicGlobs([]), DAY_MS))
SENDING = Sending("source", 0, 5)

numbers = st.integers(0, (1 << 64) - 1) | st.integers(0, 300)
fields = st.builds(markers.number, st.integers(0, 20), numbers) | st.builds(
    markers.length_delimited, st.integers(0, 20), st.binary(max_size=30)
)
nearly = st.builds(
    lambda kind, place, after_ms, more: (
        markers.marker(kind, place[0], place[1], after_ms, b"queue", b"payload") + b"".join(more)
    ),
    st.integers(0, 2) | st.integers(0, 4),
    st.tuples(st.integers(0, 300) | numbers, st.integers(0, 300) | numbers),
    st.integers(0, DAY_MS) | numbers,
    st.lists(fields, max_size=3),
)
damaged = st.builds(
    lambda data, at, byte: data[:at] + bytes([byte]) + data[at + 1 :], nearly, st.integers(0, 60), st.integers(0, 255)
)
values = (
    nearly | nearly | st.none() | st.binary(max_size=60) | st.lists(fields, max_size=6).map(b"".join) | nearly | damaged
)
own = st.builds(lambda due_ms, rank: b"%d:0:1:%d:source" % (due_ms, rank), st.integers(0, DAY_MS), st.integers(0, 999))
rewritten = own | st.builds(
    lambda due_ms, rank, tail: b"%b:0:1:%b:%b" % (due_ms, rank, tail),
    st.just(b"") | st.integers(-5, 10**16).map(lambda number: b"%d" % number),
    st.integers(-5, 2_000).map(lambda number: b"%d" % number) | st.binary(max_size=5),
    st.just(b"source") | st.binary(max_size=5),
)
headers = st.lists(
    st.tuples(st.sampled_from([RESTATED, COUNT, ENDED, "trace"]), st.none() | st.binary(max_size=9) | rewritten),
    max_size=4,
)
plain = st.builds(
    lambda kind, after_ms: markers.marker(kind, 1, 2, after_ms, b"queue", b"payload"),
    st.integers(0, 2),
    st.integers(0, DAY_MS),
)
keys = st.just(b"queue") | st.binary(min_size=1, max_size=20) | st.none() | st.binary(max_size=260)
of_ours = st.builds(
    lambda kind, after_ms, header: (
        b"queue",
        markers.marker(kind, 1, 2, after_ms, b"queue", b"payload"),
        [header],
    ),
    st.integers(0, 1),
    st.integers(0, DAY_MS),
    st.tuples(st.just(RESTATED), own) | st.just((ENDED, b"")),
)
# Which constants of the project hypothesis mixes in depends on the modules that are loaded: what has to occur is never
# left to few of the examples.
records = st.tuples(st.just(b"queue"), plain, headers) | st.tuples(keys, values, headers) | of_ours


def read(key: bytes | None, value: bytes | None, of_record: Headers) -> Command:
    """The command that a record becomes."""
    return DIALECT.read(SourceRecord(0, OFFSET, 1_795_269_600_000, key, value, of_record))


@nightly_for(150)
def test_whatever_a_client_writes_is_a_command(seconds: int, record_property: Callable[[str, object], None]) -> None:
    counts = {"Schedule": 0, "Cancel": 0, "Postpone": 0, "Reject": 0, "Ignore": 0, "put off": 0, "bytes": 0}

    def try_(record: tuple[bytes | None, bytes | None, Headers]) -> None:
        key, value, _ = record
        command = read(*record)
        counts[type(command).__name__] += 1
        counts["bytes"] += len(value or b"")
        assert (command, command.offset) == (read(*record), OFFSET)
        if isinstance(command, Schedule | Cancel | Postpone):
            assert 0 < len(command.id or b"") <= MAX_ID_BYTES
        if isinstance(command, Schedule | Cancel):
            assert command.rank is None or 0 <= command.rank < OFFSET
        if isinstance(command, Schedule):
            counts["put off"] += command.rank is not None
            check_writing(command, key, value)

    tried = fuzz(records, try_, seconds)

    record_property("hostile", {"markers": tried, **counts, "peak_memory_bytes": peak_memory_bytes()})
    assert min(counts.values()) > 0


def check_writing(schedule: Schedule, key: bytes | None, value: bytes | None) -> None:
    """Check that what a relay writes of a schedule is read back as what it stands for."""
    DIALECT.write(schedule, SENDING)
    again = DIALECT.rewrite(Rewritten(schedule, 7, schedule.due_ms + 1), SENDING).record
    end = DIALECT.rewrite(Rewritten(schedule, 8), SENDING).record
    assert again is not None
    assert end is not None

    put_off = (schedule.due_ms + 1, OFFSET, key, value, again.headers, int(DIALECT.read_by), schedule.id)
    timestamp_ms = schedule.timestamp_ms
    assert read(again.key, again.value, again.headers) == Schedule(*put_off, timestamp_ms=timestamp_ms, rank=7)
    assert read(end.key, end.value, end.headers) == Cancel(OFFSET, schedule.id or b"", 8)
