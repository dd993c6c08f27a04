from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.relay.schedules import schedule

from delaytopic_api.records import DeadLetterReason, Headers
from delaytopic_api.values import Partitioning
from delaytopic_relay.core.commands import (
    ANY_PARTITION,
    NO_CONTROL_HEADER,
    SEVERAL_CONTROL_HEADERS,
    Record,
    Reject,
    Schedule,
)
from delaytopic_relay.delivery.batch_size import record_batch_bytes
from delaytopic_relay.delivery.further_targets import FurtherTargets
from delaytopic_relay.delivery.record_writer import RecordWriter
from delaytopic_relay.delivery.refusals import Refusals, Refused

SHARD, SENT_MS = 3, 1_795_269_686_271
DUE_MS, OFFSET = 1_795_269_686_270, 12_345
RECEIPT = ("delay-receipt", b"1795269686270:3:12345:1795269686271:shop.delayed")
AT = ("deliver-at", b"1795269686270")
LIMITS = {"target": 1_000, "other": 500, "dead": 1_000}
FURTHER = FurtherTargets(["other", "nowhere", "mails.*"], "delaytopic.team.shop")


def a_writer(partitioning: Partitioning = Partitioning.BY_KEY) -> RecordWriter:
    """Of a DelayTopic that may deliver to `target` (4 partitions) and `other`."""
    return RecordWriter("shop.delayed", "target", partitioning, 4, LIMITS.get, FURTHER, Refusals())


def entry(headers: Headers | None, control: int = NO_CONTROL_HEADER, **more: object) -> Schedule:
    return Schedule(DUE_MS, OFFSET, b"key", b"value", headers, control, **more)  # type: ignore[arg-type]


def sent(writer: RecordWriter, *schedules: Schedule) -> list[Record]:
    """The records, of which none may be withheld."""
    records, rejects = writer.records(SHARD, schedules, SENT_MS)
    assert rejects == []
    return records


def headers_of(schedule: Schedule) -> Headers:
    (record,) = sent(a_writer(), schedule)
    return record.headers


def withheld(writer: RecordWriter, schedule: Schedule, sent_ms: int = SENT_MS) -> Reject:
    """Return why the only record is not sent."""
    records, (reject,) = writer.records(SHARD, [schedule], sent_ms)
    assert records == []
    return reject


# -- headers


def test_a_record_goes_to_the_target_with_key_value_and_a_receipt() -> None:
    assert sent(a_writer(), entry(None)) == [Record("target", b"value", b"key", [RECEIPT], ANY_PARTITION)]


@pytest.mark.parametrize("headers", [None, []])
def test_a_record_without_headers_has_a_receipt_only(headers: Headers | None) -> None:
    assert headers_of(entry(headers)) == [RECEIPT]


def test_null_keys_and_values_stay_null() -> None:
    (record,) = sent(a_writer(), Schedule(DUE_MS, OFFSET, None, None, None))

    assert (record.key, record.value) == (None, None)


def test_the_receipt_comes_after_the_headers_of_a_record_without_control_headers() -> None:
    assert headers_of(entry([("a", b"1"), ("b", b"2")])) == [("a", b"1"), ("b", b"2"), RECEIPT]


@pytest.mark.parametrize("place", [0, 1, 2])
def test_the_only_control_header_is_taken_out_and_the_receipt_comes_last(place: int) -> None:
    headers: Headers = [("a", b"1"), ("b", b"2")]
    headers.insert(place, AT)

    assert headers_of(entry(headers, place)) == [("a", b"1"), ("b", b"2"), RECEIPT]


def test_of_several_control_headers_none_is_left() -> None:
    controls: Headers = [AT, ("deliver-id", b"x"), ("deliver-to", b"target"), ("deliver-expires-at", None), AT]
    headers: Headers = [("a", b"1"), *controls[:3], ("b", b"2"), *controls[3:]]

    assert headers_of(entry(headers, SEVERAL_CONTROL_HEADERS)) == [("a", b"1"), ("b", b"2"), RECEIPT]


@pytest.mark.parametrize("control", [NO_CONTROL_HEADER, 0, SEVERAL_CONTROL_HEADERS])
def test_null_empty_and_repeated_headers_of_the_producer_are_kept_in_their_order(control: int) -> None:
    own: Headers = [("a", None), ("a", b""), ("", b"1"), ("a", b"2"), ("A", b"3"), ("ä", b"\xff\x00")]
    controls: dict[int, Headers] = {NO_CONTROL_HEADER: [], 0: [AT], SEVERAL_CONTROL_HEADERS: [AT, AT]}

    kept = headers_of(entry([*controls[control], *own], control))

    assert [header for header in kept if header != RECEIPT] == own


def test_the_headers_of_the_schedule_itself_are_left_alone() -> None:
    # Given that the same schedule may have to be sent again
    headers: Headers = [AT, ("a", b"1")]

    headers_of(entry(headers, 0))

    assert headers == [AT, ("a", b"1")]


# -- where to


def test_a_record_that_names_another_topic_goes_there() -> None:
    (record,) = sent(a_writer(), entry([("deliver-to", b"other")], 0, target="other"))

    assert record == Record("other", b"value", b"key", [RECEIPT], ANY_PARTITION)


def test_by_key_the_client_chooses_the_partition() -> None:
    records = sent(a_writer(Partitioning.BY_KEY), *(schedule(DUE_MS, offset) for offset in range(3)))

    assert [record.partition for record in records] == [ANY_PARTITION] * 3


def test_the_same_partition_is_that_of_the_source() -> None:
    records = sent(a_writer(Partitioning.SAME_PARTITION), *(schedule(DUE_MS, offset) for offset in range(3)))

    assert [record.partition for record in records] == [SHARD] * 3


def test_round_robin_takes_turns_across_calls() -> None:
    turns = a_writer(Partitioning.ROUND_ROBIN)

    pairs = [sent(turns, schedule(DUE_MS, n), schedule(DUE_MS, n + 1)) for n in range(4)]

    partitions = [record.partition for pair in pairs for record in pair]
    assert (sorted(partitions[:4]), partitions[4:]) == ([0, 1, 2, 3], partitions[:4])


@pytest.mark.parametrize("partitioning", [Partitioning.SAME_PARTITION, Partitioning.ROUND_ROBIN])
def test_in_another_topic_which_may_have_fewer_partitions_the_client_chooses_the_partition(
    partitioning: Partitioning,
) -> None:
    records = sent(a_writer(partitioning), *(entry(None, target="other") for _ in range(4)))

    assert [record.partition for record in records] == [ANY_PARTITION] * 4


# -- what is not sent


def test_a_record_may_be_sent_until_the_very_moment_it_expires() -> None:
    assert len(sent(a_writer(), entry(None, expires_ms=SENT_MS))) == 1


def test_an_expired_record_is_withheld_untouched() -> None:
    headers: Headers = [AT, ("deliver-expires-at", b"1795269686270")]

    reject = withheld(a_writer(), entry(headers, SEVERAL_CONTROL_HEADERS, expires_ms=SENT_MS - 1))

    detail = f"it expired at {SENT_MS - 1}, before it could be sent"
    assert reject == Reject(OFFSET, b"key", b"value", headers, DeadLetterReason.EXPIRED, detail, due_ms=DUE_MS)


def test_a_topic_that_does_not_exist_withholds_the_record() -> None:
    reject = withheld(a_writer(), entry(None, target="nowhere"))

    detail = "the topic nowhere does not exist, or this relay's user may not describe it and write to it"
    assert reject == Reject(OFFSET, b"key", b"value", None, DeadLetterReason.UNKNOWN_TARGET, detail, due_ms=DUE_MS)


@pytest.mark.parametrize(("target", "topic"), [(None, "target"), ("other", "other")])
def test_a_record_that_just_fits_its_topic_is_sent_and_a_byte_more_is_too_large(target: str | None, topic: str) -> None:
    # Given the largest value that fits with its receipt
    largest = LIMITS[topic] - record_batch_bytes(b"key", b"", [RECEIPT])
    value = b"x" * next(n for n in range(largest, 0, -1) if fits(topic, n))

    just = Schedule(DUE_MS, OFFSET, b"key", value, None, target=target)
    over = Schedule(DUE_MS, OFFSET, b"key", value + b"x", None, target=target)

    assert [record.topic for record in sent(a_writer(), just)] == [topic]
    assert withheld(a_writer(), over).reason is DeadLetterReason.TOO_LARGE


def fits(topic: str, value_bytes: int) -> bool:
    return record_batch_bytes(b"key", b"x" * value_bytes, [RECEIPT]) <= LIMITS[topic]


def test_the_detail_of_a_too_large_record_names_both_sizes_and_the_setting() -> None:
    reject = withheld(a_writer(), Schedule(DUE_MS, OFFSET, b"key", b"x" * 2_000, None))

    size = record_batch_bytes(b"key", b"x" * 2_000, [RECEIPT])
    assert reject.detail == f"it takes {size} bytes with its receipt, target allows 1000 (max.message.bytes)"


def test_values_of_a_certain_size_are_sent_without_asking_for_limits() -> None:
    # Given a limit that nobody may ask for
    certain = RecordWriter("shop.delayed", "target", Partitioning.BY_KEY, 4, lambda topic: 1 // 0, FURTHER, Refusals())
    certain.certain_bytes = 5

    assert len(sent(certain, entry(None))) == 1


def test_a_record_that_kafka_refused_before_is_withheld_with_its_reason() -> None:
    refusing = a_writer()
    refusing.refusals.refused[SHARD, OFFSET] = Refused(DeadLetterReason.REFUSED_BY_KAFKA, "invalid record")

    reject = withheld(refusing, entry(None))

    assert (reject.reason, reject.detail) == (DeadLetterReason.REFUSED_BY_KAFKA, "invalid record")


def test_the_same_offset_of_another_shard_is_not_withheld() -> None:
    refusing = a_writer()
    refusing.refusals.refused[SHARD + 1, OFFSET] = Refused(DeadLetterReason.REFUSED_BY_KAFKA, "invalid record")

    assert len(sent(refusing, entry(None))) == 1


def test_one_withheld_record_does_not_keep_back_its_neighbours() -> None:
    schedules = [schedule(DUE_MS, 1), schedule(DUE_MS, 2, value=b"x" * 2_000), schedule(DUE_MS, 3)]

    records, rejects = a_writer().records(SHARD, schedules, SENT_MS)

    assert (len(records), [reject.offset for reject in rejects]) == (2, [2])


# -- targets named in a backlog


@pytest.mark.parametrize("topic", ["other", "target"])
def test_a_schedule_goes_to_the_allowed_topic_that_it_names(topic: str) -> None:
    assert [record.topic for record in sent(a_writer(), entry(None, target=topic))] == [topic]


@pytest.mark.parametrize("topic", ["payments", "", "no topic!", "dead", "mail"])
def test_a_schedule_of_a_backlog_that_names_a_topic_beyond_the_allowed_ones_is_not_sent_there(topic: str) -> None:
    reject = withheld(a_writer(), entry(None, target=topic))

    assert (reject.reason, reject.detail) == (
        DeadLetterReason.FORBIDDEN_TARGET,
        f"it asks for topic {topic}, but this DelayTopic now allows target, other, nowhere, mails.*"
        " (target.allowedTopics)",
    )


@pytest.mark.parametrize(
    "topic",
    [
        "__consumer_offsets",
        "__transaction_state",
        "delaytopic.team.shop.delay.0",
        "delaytopic.team.shop.delay.ids",
        "delaytopic.other.their.delay.3",
        "delaytopic.other.their.delay.ids",
        "delaytopic.gateway.jobs",
    ],
)
def test_no_glob_lets_a_schedule_reach_topics_of_kafka_relays_or_gateways(topic: str) -> None:
    all_allowed = FurtherTargets(["*"], "delaytopic.team.shop")
    everywhere = RecordWriter(
        "shop.delayed", "target", Partitioning.BY_KEY, 4, lambda topic: 9_000, all_allowed, Refusals()
    )

    reject = withheld(everywhere, entry(None, target=topic))

    assert (reject.reason, reject.detail) == (
        DeadLetterReason.FORBIDDEN_TARGET,
        f"it asks for topic {topic}, which belongs to Kafka or to a relay",
    )


def test_a_backlog_that_names_a_place_for_a_header_which_is_not_there_stops_nobody() -> None:
    # Given entries as only a foreign writer makes them
    headers = [headers_of(entry(None, 3)), headers_of(entry([("a", b"1"), AT], 9))]

    assert headers == [[RECEIPT], [("a", b"1"), RECEIPT]]


# -- sizes


NULLABLE = st.none() | st.binary(max_size=300)
HEADERS: st.SearchStrategy[Headers | None] = st.none() | st.lists(
    st.tuples(st.text(max_size=80), NULLABLE), max_size=70
)

# Found on a broker 4.3: a topic with max.message.bytes of this takes the record, and with one less refuses it.
SMALLEST_LIMIT: list[tuple[bytes | None, bytes | None, Headers | None, int]] = [
    (None, None, None, 68),
    (b"k", b"v", [], 70),
    (b"", b"", [("", b"")], 70),
    (b"k" * 63, b"v" * 64, [("a", None)], 200),
    (b"k" * 64, b"v" * 8_191, [("\u00fc", b"x" * 63)] * 3, 8_528),
    (None, b"v" * 8_192, [("h" * 64, b"")] * 63, 12_485),
    (b"k", b"x" * 100_000, [("h", b"1")] * 64, 100_330),
    (b"k", b"x" * 1_048_576, None, 1_048_651),
]


@pytest.mark.parametrize(("key", "value", "headers", "limit"), SMALLEST_LIMIT)
def test_the_size_is_the_smallest_limit_at_which_a_broker_takes_the_record(
    key: bytes | None, value: bytes | None, headers: Headers | None, limit: int
) -> None:
    assert record_batch_bytes(key, value, headers) == limit


@given(NULLABLE, NULLABLE, HEADERS)
def test_one_more_byte_of_value_adds_a_byte_and_at_most_two_longer_lengths(
    key: bytes | None, value: bytes | None, headers: Headers | None
) -> None:
    smaller = record_batch_bytes(key, value or b"", headers)

    assert 1 <= record_batch_bytes(key, (value or b"") + b"x", headers) - smaller <= 3
