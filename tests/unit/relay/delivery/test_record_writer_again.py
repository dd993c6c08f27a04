"""Records that go into the source again, or the reasons why they do not."""

from __future__ import annotations

from delaytopic_api.records import DeadLetterReason, Headers
from delaytopic_api.values import Partitioning
from delaytopic_relay.core.commands import OCCURRENCE, Record, Rewritten, Schedule
from delaytopic_relay.delivery.batches import again
from delaytopic_relay.delivery.further_targets import FurtherTargets
from delaytopic_relay.delivery.record_writer import Again, RecordWriter
from delaytopic_relay.delivery.refusals import Refusal, Refusals
from delaytopic_relay.dialects import Forms
from delaytopic_relay.dialects.reading import RoutePolicy, TopicGlobs
from delaytopic_relay.dialects.recurring import RecurringWriter
from delaytopic_relay.dialects.writing import untouched

DUE_MS, HOUR_MS = 1_795_269_600_000, 3_600_000
HEADERS: Headers = [("deliver-id", b"a"), ("deliver-every", b"1h")]
FIRST: Headers = [*HEADERS, ("delay-occurrence", b"1:%d" % DUE_MS), ("delay-restated", b"%d:3:4:4:delayed" % DUE_MS)]
WRITTEN = Record(
    "delayed",
    b"value",
    b"key",
    [
        *HEADERS,
        ("delay-occurrence", b"2:%d" % (DUE_MS + HOUR_MS)),
        ("delay-restated", b"%d:3:7:7:delayed" % (DUE_MS + HOUR_MS)),
    ],
    3,
)


def a_writer(source_bytes: int = 1_000) -> RecordWriter:
    """Of a DelayTopic in which records recur; its source takes records of so many bytes."""
    recurring = RecurringWriter(RoutePolicy("target", TopicGlobs([]), 30 * 24 * HOUR_MS))
    forms = Forms({OCCURRENCE: recurring.write}, untouched, {OCCURRENCE: recurring.rewrite})
    limits = {"delayed": source_bytes, "target": 1_000}
    further = FurtherTargets([], "shop")
    return RecordWriter("delayed", "target", Partitioning.BY_KEY, 4, limits.get, further, Refusals(), forms)


def an_occurrence(headers: Headers) -> Schedule:
    return Schedule(DUE_MS, 7, b"key", b"value", headers, OCCURRENCE, b"a", rank=4)


def what_follows(writer: RecordWriter, headers: Headers = FIRST) -> Again:
    """Return what is written when an occurrence is delivered on time."""
    return writer.rewritten(3, [Rewritten(an_occurrence(headers), 7, goes_on=True)], DUE_MS)


def test_the_next_occurrence_goes_into_the_partition_of_the_one_before() -> None:
    assert what_follows(a_writer()) == Again([WRITTEN], [], [])


def test_of_the_last_occurrence_nothing_is_written_and_its_offset_is_told() -> None:
    assert what_follows(a_writer(), [*FIRST, ("deliver-count", b"1")]) == Again([], [], [7])


def test_where_the_relay_may_not_write_to_its_source_what_recurs_is_a_dead_letter() -> None:
    writer = a_writer()
    writer.may_write_source = lambda: False

    records, (reject,), ended, _ = what_follows(writer)

    assert (records, reject.offset, reject.reason, ended) == ([], 7, DeadLetterReason.UNSUPPORTED, [])
    assert "allow WRITE there" in reject.detail


def test_what_has_become_too_large_for_the_source_is_a_dead_letter() -> None:
    records, (reject,), _, _ = what_follows(a_writer(source_bytes=100))

    assert (records, reject.reason) == ([], DeadLetterReason.TOO_LARGE)


def test_a_delivery_that_kafka_refuses_keeps_no_chain_from_going_on() -> None:
    writer = a_writer()
    writer.refusals.note([Refusal("refused", too_large=False, partition=3, offset=7)])

    assert what_follows(writer) == Again([WRITTEN], [], [])


def test_what_kafka_refuses_to_take_into_the_source_is_a_dead_letter() -> None:
    writer = a_writer()
    writer.refusals.note([Refusal("refused", too_large=False, partition=3, offset=again(7))])

    records, (reject,), _, _ = what_follows(writer)

    assert (records, reject.reason) == ([], DeadLetterReason.REFUSED_BY_KAFKA)
