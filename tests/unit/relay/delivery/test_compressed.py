"""Tests of what leaves although it is larger than its topic allows: Kafka judges it compressed."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from delaytopic_api.records import DeadLetter, DeadLetterReason, parse_dead_letter
from delaytopic_api.values import Partitioning
from delaytopic_relay.core.commands import NO_CONTROL_HEADER, Reject, Schedule
from delaytopic_relay.delivery.dead_letters import DeadLetters
from delaytopic_relay.delivery.further_targets import FurtherTargets
from delaytopic_relay.delivery.record_writer import RecordWriter
from delaytopic_relay.delivery.refusals import Refusal, Refusals, Refused
from delaytopic_relay.errors import ProducerOutdated, RecordsRefused

SHARD, OFFSET, SENT_MS, TIMESTAMP_MS = 3, 12_345, 1_795_269_686_271, 1_795_269_000_000
LIMITS = {"target": 1_000, "other": 2_000, "dead": 1_100}
CERTAIN_BYTES = 200
TEXT = b"the same again and again, " * 50
UNTIL = "2026-12-21T13:50:00Z"


class Compressing:
    """A writer and dead letters of a target that may compress, and how often it was asked to."""

    def __init__(self, *, may: bool = True, limit: Callable[[str], int | None] = LIMITS.get) -> None:
        further = FurtherTargets(["other"], "delaytopic.team.shop")
        self.refusals = Refusals()
        self.refusals.compress = self._compress if may else None
        self.writer = RecordWriter("shop.delayed", "target", Partitioning.BY_KEY, 4, limit, further, self.refusals)
        self.writer.certain_bytes = CERTAIN_BYTES
        self.dead_letters = DeadLetters("shop.delayed", "dead", limit, self.refusals)
        self.dead_letters.source_until = lambda timestamp_ms: UNTIL if timestamp_ms == TIMESTAMP_MS else None
        self.asked = 0

    def _compress(self) -> None:
        self.asked += 1

    def values(self, value: bytes, **more: object) -> list[bytes | None]:
        """The values of the records that a schedule becomes, none if it is withheld."""
        records, _ = self.writer.records(SHARD, [schedule(value, **more)], SENT_MS)
        return [record.value for record in records]

    def letter(self, value: bytes | None, reason: DeadLetterReason) -> tuple[bytes | None, DeadLetter]:
        """The value of the dead letter of a record, and what is said in it."""
        reject = Reject(OFFSET, b"key", value, None, reason, "why", TIMESTAMP_MS)
        (record,) = self.dead_letters.records(SHARD, [reject], SENT_MS)
        said = parse_dead_letter(record.headers)
        assert said is not None
        return record.value, said


def schedule(value: bytes, **more: object) -> Schedule:
    return Schedule(SENT_MS - 1, OFFSET, b"key", value, None, NO_CONTROL_HEADER, **more)  # type: ignore[arg-type]


@pytest.fixture
def sender() -> Compressing:
    return Compressing()


def test_a_record_that_is_too_large_as_it_is_leaves_once_the_target_compresses(sender: Compressing) -> None:
    assert (sender.values(TEXT), sender.asked) == ([TEXT], 1)


@pytest.mark.parametrize("value", [b"small", b"x" * (CERTAIN_BYTES + 1)])
def test_a_record_that_fits_as_it_is_has_nobody_compress(sender: Compressing, value: bytes) -> None:
    assert (sender.values(value), sender.asked) == ([value], 0)


def test_a_record_that_no_codec_makes_fit_is_withheld_and_has_nobody_compress(sender: Compressing) -> None:
    noise = schedule(random.Random(1).randbytes(1_500))

    records, (reject,) = sender.writer.records(SHARD, [noise], SENT_MS)

    assert (records, reject.reason, sender.asked) == ([], DeadLetterReason.TOO_LARGE, 0)


def test_a_target_that_may_not_compress_gets_nothing_larger_than_it_allows() -> None:
    sender = Compressing(may=False)

    assert sender.values(TEXT) == []


def test_each_topic_is_judged_by_its_own_limit(sender: Compressing) -> None:
    assert (sender.values(TEXT, target="other"), sender.asked) == ([TEXT], 0)


def test_the_tick_is_given_up_where_the_target_cannot_compress_at_once(sender: Compressing) -> None:
    def compress() -> None:
        raise ProducerOutdated("later")

    sender.refusals.compress = compress

    with pytest.raises(ProducerOutdated):
        sender.values(TEXT)


def test_a_refusal_of_what_was_doubtful_says_nothing_of_other_records(sender: Compressing) -> None:
    sender.values(TEXT)

    with pytest.raises(RecordsRefused):
        sender.writer.note_refusals([Refusal("target: too large", True, SHARD, OFFSET)])

    assert sender.writer.certain_bytes == CERTAIN_BYTES
    assert sender.refusals.refused == {
        (SHARD, OFFSET): Refused(DeadLetterReason.TOO_LARGE, "target: too large", dead_letter=False)
    }


def test_after_the_refusal_of_a_record_that_was_taken_to_fit_all_are_measured(sender: Compressing) -> None:
    with pytest.raises(RecordsRefused):
        sender.writer.note_refusals([Refusal("target: too large", True, SHARD, OFFSET)])

    assert sender.writer.certain_bytes == 0


def test_what_is_committed_is_not_doubtful_any_more(sender: Compressing) -> None:
    sender.values(TEXT)

    sender.refusals.settled(committed=False)
    before = dict(sender.refusals.doubtful)
    sender.refusals.settled(committed=True)

    assert (before, sender.refusals.doubtful) == ({(SHARD, OFFSET): LIMITS["target"]}, {})


# -- dead letters


def test_a_dead_letter_keeps_a_value_that_fits_only_compressed(sender: Compressing) -> None:
    value, said = sender.letter(TEXT, DeadLetterReason.EXPIRED)

    assert (value, said.omitted_bytes, said.source_until, sender.asked) == (TEXT, None, None, 1)


def test_a_dead_letter_is_tried_compressed_where_its_topic_takes_more_than_the_one_that_refused(
    sender: Compressing,
) -> None:
    sender.values(TEXT)

    value, _ = sender.letter(TEXT, DeadLetterReason.TOO_LARGE)

    assert value == TEXT


def test_a_dead_letter_of_a_refused_record_leaves_its_value_out_where_that_is_unlikely_to_fit(
    sender: Compressing,
) -> None:
    # Given a value that zlib halves, and that is larger than the topic of dead letters allows then
    digits = "".join(random.Random(1).choices("01234", k=4_000)).encode()
    assert sender.values(digits) == [digits]

    value, said = sender.letter(digits, DeadLetterReason.TOO_LARGE)

    assert (value, said.omitted_bytes, said.source_until) == (None, len(digits), UNTIL)


def test_a_dead_letter_leaves_its_value_out_where_a_topic_of_that_limit_has_refused_it() -> None:
    sender = Compressing(limit=lambda topic: 1_000)
    sender.values(TEXT)

    value, said = sender.letter(TEXT, DeadLetterReason.TOO_LARGE)

    assert (value, said.omitted_bytes, said.source_until) == (None, len(TEXT), UNTIL)


def test_what_was_refused_stays_doubtful_while_others_are_committed_before_its_dead_letter_is_made() -> None:
    sender = Compressing(limit=lambda topic: 1_000)
    sender.values(TEXT)
    with pytest.raises(RecordsRefused):
        sender.writer.note_refusals([Refusal("target: too large", True, SHARD, OFFSET)])
    sender.refusals.settled(committed=False)
    sender.refusals.settled(committed=True)

    value, _ = sender.letter(TEXT, DeadLetterReason.TOO_LARGE)
    sender.refusals.settled(committed=True)

    assert (value, sender.refusals.refused, sender.refusals.doubtful) == (None, {}, {})


def test_a_dead_letter_that_kafka_refused_compressed_leaves_its_value_out_and_says_until_when_the_source_has_it(
    sender: Compressing,
) -> None:
    sender.refusals.refused[SHARD, OFFSET] = Refused(DeadLetterReason.TOO_LARGE, "why", dead_letter=True)

    value, said = sender.letter(TEXT, DeadLetterReason.TOO_LARGE)

    assert (value, said.omitted_bytes, said.source_until) == (None, len(TEXT), UNTIL)


def test_a_dead_letter_with_its_value_says_nothing_of_the_source(sender: Compressing) -> None:
    value, said = sender.letter(b"small", DeadLetterReason.EXPIRED)

    assert (value, said.omitted_bytes, said.source_until) == (b"small", None, None)
