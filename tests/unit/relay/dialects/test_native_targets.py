from __future__ import annotations

import pytest
from tests.support.relay.native_records import TIMESTAMP_MS, fixed, native, record, reject, schedule

from delaytopic_api.records import DeadLetterReason
from delaytopic_relay.core.commands import SEVERAL_CONTROL_HEADERS


@pytest.mark.parametrize("topic", ["shop.reminders", "shop.mails", "shop.", "audit"])
def test_a_record_may_choose_the_target_and_the_allowed_topics(topic: str) -> None:
    message = record(("deliver-to", topic.encode()))

    command = native().read(message)

    assert command == schedule(message, TIMESTAMP_MS, control=0, target=topic)


def test_a_record_without_deliver_to_goes_to_the_target() -> None:
    message = record(("deliver-after", b"1s"))

    command = native().read(message)

    assert command == schedule(message, TIMESTAMP_MS + 1_000, control=0, target=None)


@pytest.mark.parametrize("topic", ["bank.transfers", "audit2", "Audit", "my.shop.mails", "shop"])
def test_any_other_topic_is_forbidden(topic: str) -> None:
    message = record(("deliver-to", topic.encode()))

    command = native().read(message)

    detail = (
        f"header deliver-to names topic {topic}, but this DelayTopic allows"
        " shop.reminders, shop.*, audit (target.allowedTopics)"
    )
    assert command == reject(message, DeadLetterReason.FORBIDDEN_TARGET, detail)


@pytest.mark.parametrize(
    ("topic", "shown"),
    [
        (None, "null"),
        (b"", "empty"),
        (b".", "'.'"),
        (b"..", "'..'"),
        (b"shop.a b", "'shop.a b'"),
        (b"shop.mails\n", "'shop.mails\\n'"),
        (b"shop.*", "'shop.*'"),
        (b"shop.\xff", "'shop.\\xff'"),
        ("shop.\u00e4".encode(), "'shop.\\xc3\\xa4'"),
        (b"shop." + b"a" * 245, f"'shop.{'a' * 58}..."),
    ],
)
def test_what_is_no_topic_name_is_malformed(topic: bytes | None, shown: str) -> None:
    message = record(("deliver-to", topic))

    command = native().read(message)

    allowed = "a topic name of 1 to 249 letters, digits, dots, underscores or hyphens"
    detail = f"header deliver-to must be {allowed}, but is {shown}"
    assert command == reject(message, DeadLetterReason.MALFORMED_HEADER, detail)


def test_a_fixed_delay_goes_with_deliver_to_and_an_expiry() -> None:
    expires_ms = TIMESTAMP_MS + 60_000
    message = record(("deliver-to", b"audit"), ("deliver-expires-at", b"%d" % expires_ms))

    command = fixed().read(message)

    assert command == schedule(
        message, TIMESTAMP_MS + 30_000, control=SEVERAL_CONTROL_HEADERS, target="audit", expires_ms=expires_ms
    )


def test_a_record_may_expire_at_the_moment_that_it_is_due() -> None:
    message = record(("deliver-after", b"5s"), ("deliver-expires-at", b"2026-11-21T14:00:05Z"))

    command = native().read(message)

    due_ms = TIMESTAMP_MS + 5_000
    assert command == schedule(message, due_ms, control=SEVERAL_CONTROL_HEADERS, expires_ms=due_ms)


def test_a_record_that_expires_before_it_is_due_contradicts_itself() -> None:
    message = record(("deliver-after", b"5s"), ("deliver-expires-at", b"%d" % (TIMESTAMP_MS + 4_999)))

    command = native().read(message)

    detail = "header deliver-expires-at is 2026-11-21T14:00:04.999Z, before the record is due: 2026-11-21T14:00:05.000Z"
    assert command == reject(message, DeadLetterReason.CONTRADICTORY_HEADERS, detail)


def test_a_fixed_delay_longer_than_the_expiry_contradicts_it() -> None:
    message = record(("deliver-expires-at", b"%d" % TIMESTAMP_MS))

    command = fixed().read(message)

    detail = "header deliver-expires-at is 2026-11-21T14:00:00.000Z, before the record is due: 2026-11-21T14:00:30.000Z"
    assert command == reject(message, DeadLetterReason.CONTRADICTORY_HEADERS, detail)
