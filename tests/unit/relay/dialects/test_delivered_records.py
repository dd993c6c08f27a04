from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.relay.native_records import KEY, TIMESTAMP_MS, VALUE, Header, native, record

from delaytopic_api.records import CONTROL_HEADERS, DEAD_LETTER_REASON, RECEIPT, DeadLetterReason
from delaytopic_api.values import Partitioning
from delaytopic_relay.core.commands import Record, Reject, Schedule, SourceMessage
from delaytopic_relay.delivery.dead_letters import DeadLetters
from delaytopic_relay.delivery.further_targets import FurtherTargets
from delaytopic_relay.delivery.record_writer import RecordWriter
from delaytopic_relay.delivery.refusals import Refusals, Refused

SOURCE, TARGET, DEAD_LETTER = "shop.reminders.delayed", "shop.reminders", "shop.reminders.dlq"
SHARD = 3
SENT_MS = TIMESTAMP_MS + 5_001
RECEIPT_VALUE = b"1795269605000:3:41@1795269600000:1795269605001:shop.reminders.delayed"

NAMES = st.sampled_from(["trace", "dup", "delay-receipt", "dead-letter-reason", ""]) | st.text(max_size=8)
USER_HEADERS: st.SearchStrategy[list[Header]] = st.lists(
    st.tuples(NAMES.filter(lambda name: name not in CONTROL_HEADERS), st.none() | st.binary(max_size=8)), max_size=5
)

FURTHER = FurtherTargets(["shop.*", "audit"], "delaytopic.team.shop")


def sent(message: SourceMessage, limits: dict[str, int] | None = None) -> Record:
    """Return what leaves the relay for this record.

    Topics that have no limit named take 1 MB, those with 0 do not exist.
    """
    sizes = limits or {}
    refusals = Refusals()

    def limit(topic: str) -> int | None:
        return sizes.get(topic, 1_000_000) or None

    writer = RecordWriter(SOURCE, TARGET, Partitioning.BY_KEY, 4, limit, FURTHER, refusals)
    dead_letters = DeadLetters(SOURCE, DEAD_LETTER, limit, refusals)
    command = native().read(message)
    assert isinstance(command, Schedule | Reject)
    schedules = [command] if isinstance(command, Schedule) else []
    records, rejects = writer.records(SHARD, schedules, SENT_MS)
    if isinstance(command, Reject):
        rejects.append(command)
    (outgoing,) = [*records, *dead_letters.records(SHARD, rejects, SENT_MS)]
    return outgoing


@given(USER_HEADERS, st.none() | st.binary(max_size=20), st.none() | st.binary(max_size=20))
def test_a_record_is_delivered_byte_for_byte_with_one_receipt_behind_its_own_headers(
    user: list[Header], key: bytes | None, value: bytes | None
) -> None:
    message = record(("deliver-after", b"5s"), *user, key=key, value=value)

    assert sent(message) == Record(TARGET, value, key, [*user, (RECEIPT, RECEIPT_VALUE)])


@given(USER_HEADERS)
def test_a_record_without_control_headers_is_delivered_with_a_receipt(user: list[Header]) -> None:
    receipt = (RECEIPT, b"%d:3:41@%d:%d:shop.reminders.delayed" % (TIMESTAMP_MS, TIMESTAMP_MS, SENT_MS))

    assert sent(record(*user)) == Record(TARGET, VALUE, KEY, [*user, receipt])


@given(USER_HEADERS, USER_HEADERS)
def test_all_control_headers_are_stripped_on_delivery(before: list[Header], after: list[Header]) -> None:
    controls: list[Header] = [
        ("deliver-after", b"1h"),
        ("deliver-after", b"5s"),
        ("deliver-id", b"a"),
        ("deliver-action", b"schedule"),
        ("deliver-to", b"shop.mails"),
        ("deliver-expires-at", b"1795269605001"),
    ]
    message = record(*controls[:2], *before, *controls[2:], *after)

    assert sent(message) == Record("shop.mails", VALUE, KEY, [*before, *after, (RECEIPT, RECEIPT_VALUE)])


@given(USER_HEADERS)
def test_a_dead_letter_is_the_untouched_record_with_reason_detail_source_and_time_appended(user: list[Header]) -> None:
    message = record(*user, ("deliver-action", b"explode"))

    assert sent(message) == Record(
        DEAD_LETTER,
        VALUE,
        KEY,
        [
            *user,
            ("deliver-action", b"explode"),
            ("dead-letter-reason", b"unknown-action"),
            ("dead-letter-detail", b"header deliver-action must be schedule or cancel, but is 'explode'"),
            ("dead-letter-source", b"shop.reminders.delayed:3:41"),
            ("dead-letter-at", b"1795269605001"),
        ],
    )


@pytest.mark.parametrize(
    ("header", "limits", "reason"),
    [
        (("deliver-expires-at", b"1795269605000"), {}, DeadLetterReason.EXPIRED),
        (("deliver-to", b"shop.gone"), {"shop.gone": 0}, DeadLetterReason.UNKNOWN_TARGET),
        (("trace", b"1"), {TARGET: 100}, DeadLetterReason.TOO_LARGE),
    ],
)
def test_what_only_shows_when_a_record_is_sent_makes_it_a_dead_letter_too(
    header: Header, limits: dict[str, int], reason: DeadLetterReason
) -> None:
    message = record(header)

    outgoing = sent(message, limits)

    assert (outgoing.topic, outgoing.key, outgoing.value, outgoing.headers[0]) == (DEAD_LETTER, KEY, VALUE, header)
    assert dict(outgoing.headers)[DEAD_LETTER_REASON] == reason.value.encode()


def test_a_record_that_kafka_refused_when_it_was_sent_becomes_a_dead_letter_with_kafkas_words() -> None:
    writer = RecordWriter(SOURCE, TARGET, Partitioning.BY_KEY, 4, lambda topic: 1_000_000, FURTHER, Refusals())
    schedule = Schedule(TIMESTAMP_MS, 41, KEY, VALUE, [("trace", b"1")])
    reason, detail = DeadLetterReason.REFUSED_BY_KAFKA, "Broker: Broker failed to validate record"
    writer.refusals.refused[SHARD, 41] = Refused(reason, detail)

    outcome = writer.records(SHARD, [schedule], SENT_MS)

    assert outcome == ([], [Reject(41, KEY, VALUE, [("trace", b"1")], reason, detail, due_ms=TIMESTAMP_MS)])


def test_a_dead_letter_that_is_too_large_keeps_the_key_and_says_how_large_the_value_was() -> None:
    message = record(("deliver-action", b"explode"), value=b"x" * 1_000)

    outgoing = sent(message, {DEAD_LETTER: 1_000})

    assert (outgoing.topic, outgoing.key, outgoing.value) == (DEAD_LETTER, KEY, None)
    assert [name for name, _ in outgoing.headers] == [
        "deliver-action",
        "dead-letter-reason",
        "dead-letter-detail",
        "dead-letter-source",
        "dead-letter-at",
        "dead-letter-value-omitted",
    ]
    assert outgoing.headers[-1] == ("dead-letter-value-omitted", b"1000")
