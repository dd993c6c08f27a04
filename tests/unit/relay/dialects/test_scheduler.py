from __future__ import annotations

from typing import Any, cast

import pytest
from confluent_kafka import Message
from tests.support.relay.native_records import KEY, OFFSET, TIMESTAMP_MS, VALUE, Header, record

from delaytopic_api.records import DeadLetterReason
from delaytopic_api.values import Partitioning
from delaytopic_relay.core.commands import Cancel, Command, Ignore, Record, Reject, Schedule, SourceMessage
from delaytopic_relay.delivery.dead_letters import DeadLetters
from delaytopic_relay.delivery.further_targets import FurtherTargets
from delaytopic_relay.delivery.record_writer import RecordWriter
from delaytopic_relay.delivery.refusals import Refusals, Refused
from delaytopic_relay.dialects import Forms
from delaytopic_relay.dialects.reading import RoutePolicy, TopicGlobs
from delaytopic_relay.dialects.scheduler import SchedulerDialect, SchedulerRules

SOURCE, TARGET, DEAD_LETTER = "shop.reminders.delayed", "shop.reminders", "shop.reminders.dlq"
PARTITION = 3
SENT_MS = TIMESTAMP_MS + 5_001
POLICY = RoutePolicy(TARGET, TopicGlobs([]), 3_600_000)
SECOND_S = TIMESTAMP_MS // 1_000
TOPIC: Header = ("scheduler-target-topic", TARGET.encode())


def epoch(seconds: int) -> Header:
    return ("scheduler-epoch", b"%d" % seconds)


def read(message: SourceMessage, **rules: Any) -> Command:
    return SchedulerDialect(POLICY, SchedulerRules(**rules)).read(message)


DIALECT = SchedulerDialect(POLICY, SchedulerRules(history="history"))


def writer() -> RecordWriter:
    further = FurtherTargets([], "delaytopic.team.shop")
    forms = Forms({DIALECT.read_by: DIALECT.write}, DIALECT.letter)
    return RecordWriter(SOURCE, TARGET, Partitioning.BY_KEY, 4, lambda topic: 1_000_000, further, Refusals(), forms)


def dead_letters(
    refusals: Refusals | None = None, *, dead_letter_bytes: int = 1_000_000, source_bytes: int = 1_000_000
) -> DeadLetters:
    limits = {DEAD_LETTER: dead_letter_bytes, SOURCE: source_bytes}
    return DeadLetters(SOURCE, DEAD_LETTER, limits.get, refusals or Refusals(), DIALECT.letter)


def written() -> list[Record]:
    """Return a delivery, its tombstone and its copy."""
    schedule = read(record(epoch(SECOND_S + 5), TOPIC))
    assert isinstance(schedule, Schedule)
    records, _ = writer().records(PARTITION, [schedule], SENT_MS)
    return records


def null_at(topic: str, partition: int, offset: int, headers: list[Header]) -> SourceMessage:
    message = Message(topic=topic, partition=partition, offset=offset, key=KEY, value=None, headers=[*headers])
    return cast(SourceMessage, message)


def test_a_null_with_all_headers_of_a_delivery_cancels() -> None:
    delivery, _, _ = written()

    command = read(null_at(SOURCE, PARTITION, OFFSET + 9, delivery.headers))

    assert command == Cancel(OFFSET + 9, KEY)


def test_a_tombstone_that_the_relay_has_written_asks_for_nothing() -> None:
    _, tombstone, _ = written()

    assert read(null_at(SOURCE, PARTITION, OFFSET + 1, tombstone.headers)) == Ignore(OFFSET + 1)


@pytest.mark.parametrize(
    ("topic", "partition", "offset"),
    [
        pytest.param("shop.copy", PARTITION, OFFSET + 1, id="in another topic"),
        pytest.param(SOURCE, PARTITION + 1, OFFSET + 1, id="in another partition"),
        pytest.param(SOURCE, PARTITION, OFFSET, id="in front of its schedule"),
    ],
)
def test_a_tombstone_of_another_place_cancels(topic: str, partition: int, offset: int) -> None:
    _, tombstone, _ = written()

    assert read(null_at(topic, partition, offset, tombstone.headers)) == Cancel(offset, KEY)


@pytest.mark.parametrize(
    "end",
    [
        [("delay-ended", b"delivered")],
        [("delay-ended", b"delivered"), ("delay-receipt", None)],
        [("delay-ended", b"delivered"), ("delay-receipt", b"1:3:x:1:shop.reminders.delayed")],
        [("delay-ended", b"delivered"), ("delay-receipt", b"1:3:" + b"1" * 5_000 + b":1:shop.reminders.delayed")],
        [("delay-ended", b"expired"), ("dead-letter-source", b"shop.reminders.delayed:3")],
        [("delay-ended", b"expired"), ("trace", b"shop.reminders.delayed:3:1")],
    ],
)
def test_a_null_whose_end_names_no_place_cancels(end: list[Header]) -> None:
    assert read(null_at(SOURCE, PARTITION, OFFSET, end)) == Cancel(OFFSET, KEY)


@pytest.mark.parametrize(
    ("epoch_s", "reason"), [(SECOND_S - 1, None), (SECOND_S - 2, DeadLetterReason.EXPIRED), (SECOND_S, None)]
)
def test_the_grace_is_counted_in_whole_seconds(epoch_s: int, reason: DeadLetterReason | None) -> None:
    # Given a record of the last millisecond of its second, and a grace of one second
    message = record(epoch(epoch_s), TOPIC, timestamp=(1, TIMESTAMP_MS + 999))

    command = read(message, grace_ms=1_000)

    assert (command.reason if isinstance(command, Reject) else None) is reason


def expired() -> Reject:
    command = read(record(epoch(SECOND_S - 2), TOPIC), grace_ms=1_000)
    assert isinstance(command, Reject)
    return command


def test_what_came_too_late_gets_its_tombstone_beside_its_dead_letter() -> None:
    letter, tombstone = dead_letters().records(PARTITION, [expired()], SENT_MS)

    end = [("delay-ended", b"expired"), ("dead-letter-source", b"shop.reminders.delayed:3:41")]
    assert (letter.topic, letter.key, letter.value) == (DEAD_LETTER, KEY, VALUE)
    assert tombstone == Record(SOURCE, None, KEY, [epoch(SECOND_S - 2), TOPIC, *end], PARTITION)


def test_the_tombstone_of_what_came_too_late_asks_for_nothing() -> None:
    _, tombstone = dead_letters().records(PARTITION, [expired()], SENT_MS)

    assert read(null_at(SOURCE, PARTITION, OFFSET + 1, tombstone.headers)) == Ignore(OFFSET + 1)


def test_a_record_that_cannot_be_read_keeps_its_place_in_the_source() -> None:
    command = read(record(("scheduler-epoch", b"soon"), TOPIC))
    assert isinstance(command, Reject)

    (letter,) = dead_letters().records(PARTITION, [command], SENT_MS)

    assert letter.topic == DEAD_LETTER


def test_a_dead_letter_without_its_value_leaves_the_record_in_the_source() -> None:
    reject = expired()
    reject.value = b"x" * 1_000

    (letter,) = dead_letters(dead_letter_bytes=700).records(PARTITION, [reject], SENT_MS)

    assert (letter.topic, letter.value) == (DEAD_LETTER, None)


def test_a_tombstone_that_the_source_does_not_take_is_left_out() -> None:
    (letter,) = dead_letters(source_bytes=100).records(PARTITION, [expired()], SENT_MS)

    assert letter.topic == DEAD_LETTER


def test_a_dead_letter_that_was_refused_with_its_tombstone_goes_alone() -> None:
    refusals = Refusals()
    refusals.refused[PARTITION, OFFSET] = Refused(DeadLetterReason.REFUSED_BY_KAFKA, "no")

    assert len(dead_letters(refusals).records(PARTITION, [expired()], SENT_MS)) == 1
