from __future__ import annotations

from delaytopic_api.records import DeadLetter, DeadLetterReason, Headers, parse_dead_letter
from delaytopic_relay.core.commands import ANY_PARTITION, Record, Reject
from delaytopic_relay.delivery.batch_size import record_batch_bytes
from delaytopic_relay.delivery.dead_letters import DeadLetters
from delaytopic_relay.delivery.refusals import Refusals, Refused

SHARD, AT_MS, OFFSET = 3, 1_795_269_686_271, 12_345
LIMIT = 1_000
SOON: Headers = [("deliver-at", b"soon"), ("a", None), ("a", b"1")]


def dead_letters() -> DeadLetters:
    return DeadLetters("shop.delayed", "dead", lambda topic: LIMIT, Refusals())


def rejected(value: bytes | None = b"value", headers: Headers | None = None, key: bytes | None = b"key") -> Reject:
    return Reject(OFFSET, key, value, headers, DeadLetterReason.MALFORMED_HEADER, "deliver-at must be a time")


def letter_of(reject: Reject, refused: Refused | None = None) -> Record:
    sender = dead_letters()
    if refused is not None:
        sender.refusals.refused[SHARD, OFFSET] = refused
    (letter,) = sender.records(SHARD, [reject], AT_MS)
    return letter


def appended(omitted: bytes | None = None) -> Headers:
    """Return what the relay adds."""
    headers: Headers = [
        ("dead-letter-reason", b"malformed-header"),
        ("dead-letter-detail", b"deliver-at must be a time"),
        ("dead-letter-source", b"shop.delayed:3:12345"),
        ("dead-letter-at", b"1795269686271"),
    ]
    return headers if omitted is None else [*headers, ("dead-letter-value-omitted", omitted)]


def test_a_dead_letter_is_the_untouched_record_with_reason_and_source_appended() -> None:
    letter = letter_of(rejected(headers=SOON))

    assert letter == Record("dead", b"value", b"key", [*SOON, *appended()], ANY_PARTITION)


def test_a_dead_letter_without_headers_key_and_value_has_only_what_is_appended() -> None:
    assert letter_of(rejected(None, None, None)) == Record("dead", None, None, appended(), ANY_PARTITION)


def test_what_is_appended_can_be_read_back() -> None:
    assert parse_dead_letter(letter_of(rejected(headers=SOON)).headers) == DeadLetter(
        "malformed-header", "deliver-at must be a time", "shop.delayed", SHARD, OFFSET, AT_MS
    )


def test_dead_letters_keep_the_order_of_the_rejects() -> None:
    rejects = [Reject(offset, None, b"%d" % offset, None, DeadLetterReason.EXPIRED, "no") for offset in (7, 5, 9)]

    letters = dead_letters().records(SHARD, rejects, AT_MS)

    assert [letter.value for letter in letters] == [b"7", b"5", b"9"]


def test_a_value_too_large_for_the_dead_letter_topic_is_left_out_and_its_size_named() -> None:
    letter = letter_of(rejected(b"x" * 2_000))

    assert letter == Record("dead", None, b"key", appended(b"2000"), ANY_PARTITION)


def test_only_the_value_is_left_out_when_that_is_enough() -> None:
    # Given a record of which all but the value fits
    letter = letter_of(rejected(b"x" * 2_000, SOON))

    assert letter == Record("dead", None, b"key", [*SOON, *appended(b"2000")], ANY_PARTITION)


def test_a_dead_letter_that_just_fits_keeps_its_value() -> None:
    room = LIMIT - record_batch_bytes(b"key", b"", appended())
    value = b"x" * next(n for n in range(room, 0, -1) if record_batch_bytes(b"key", b"x" * n, appended()) <= LIMIT)

    kept, omitted = letter_of(rejected(value)), letter_of(rejected(value + b"x"))

    assert (kept.value, omitted.value) == (value, None)


def test_headers_too_large_for_the_dead_letter_topic_do_not_keep_the_dead_letter_from_fitting() -> None:
    letter = letter_of(rejected(b"value", [("a", b"x" * 2_000)]))

    assert record_batch_bytes(letter.key, letter.value, letter.headers) <= LIMIT


def test_a_key_too_large_for_the_dead_letter_topic_does_not_keep_the_dead_letter_from_fitting() -> None:
    # Given that a dead letter which can never be sent would stall its shard
    letter = letter_of(rejected(b"value", key=b"x" * 2_000))

    assert record_batch_bytes(letter.key, letter.value, letter.headers) <= LIMIT


def test_a_dead_letter_that_kafka_refused_goes_without_its_value() -> None:
    refused = Refused(DeadLetterReason.REFUSED_BY_KAFKA, "invalid record", dead_letter=True)

    letter = letter_of(rejected(b"value"), refused)

    assert letter == Record("dead", None, b"key", appended(b"5"), ANY_PARTITION)


def test_the_dead_letter_of_a_record_that_kafka_refused_keeps_its_value() -> None:
    refused = Refused(DeadLetterReason.REFUSED_BY_KAFKA, "invalid record", dead_letter=False)

    assert letter_of(rejected(b"value"), refused).value == b"value"


def test_a_dead_letter_topic_of_unknown_limit_gets_everything() -> None:
    sender = DeadLetters("shop.delayed", "dead", lambda topic: None, Refusals())

    (letter,) = sender.records(SHARD, [rejected(b"x" * 2_000)], AT_MS)

    assert letter.value == b"x" * 2_000
