from __future__ import annotations

from dataclasses import replace
from typing import cast

import pytest
from confluent_kafka import TIMESTAMP_CREATE_TIME, Message
from hypothesis import given
from hypothesis import strategies as st

from delaytopic_api.records import RESERVED_HEADERS
from delaytopic_gateway.client.raw_records import Coordinates, Headers, RawRecord
from delaytopic_local.verifier.reading import Rules, read_dead_letter, read_delivered, read_source
from delaytopic_local.verifier.verdict import DeadLetter, DeliveredRecord, Fate, SourceRecord
from delaytopic_relay.core.commands import Cancel, Schedule, SourceMessage
from delaytopic_relay.dialects.native import NativeDialect, NativePolicy
from delaytopic_relay.dialects.reading import TopicGlobs

RULES = Rules(target="out", max_delay_ms=86_400_000, allowed_targets=("shop.*",))
AT = Coordinates("delayed", 3, 12)
SENT_MS = 1_795_269_600_000


def raw(*headers: tuple[str, bytes | None]) -> RawRecord:
    return RawRecord(AT, SENT_MS, b"key", b"value", headers)


def test_a_source_record_keeps_everything_but_its_control_headers() -> None:
    record = raw(("a", b"1"), ("deliver-at", b"1795269686270"), ("deliver-id", b"x"), ("a", None))

    read = read_source(record, RULES)

    assert read == SourceRecord(
        at=AT,
        sent_ms=SENT_MS,
        fate=Fate.SCHEDULE,
        due_ms=1_795_269_686_270,
        schedule_id=b"x",
        key=b"key",
        value=b"value",
        headers=(("a", b"1"), ("a", None)),
        sent_headers=record.headers,
        target="out",
    )


@pytest.mark.parametrize(
    ("headers", "due_ms"),
    [
        ((), SENT_MS),
        ((("deliver-after", b"1500"),), SENT_MS + 1_500),
        ((("deliver-after", b"1h30m"),), SENT_MS + 5_400_000),
        ((("deliver-after", b"2m500ms"),), SENT_MS + 120_500),
        ((("deliver-at", b"1795269686270"), ("deliver-after", b"1s")), 1_795_269_686_270),
        ((("deliver-after", b"1s"), ("deliver-after", b"2s")), SENT_MS + 2_000),
        ((("deliver-at", b"2026-11-21T14:00:00Z"),), 1_795_269_600_000),
        ((("deliver-at", b"2026-11-21T16:00:00.0001+02:00"),), 1_795_269_600_001),
        ((("deliver-at", b"2026-11-21T14:00:00.25Z"),), 1_795_269_600_250),
        ((("deliver-at", b"1000"),), 1_000),
    ],
)
def test_due_times_follow_the_record_contract(headers: Headers, due_ms: int) -> None:
    read = read_source(raw(*headers), RULES)

    assert (read.fate, read.due_ms) == (Fate.SCHEDULE, due_ms)


@pytest.mark.parametrize(
    "headers",
    [
        (("deliver-at", b"tomorrow"),),
        (("deliver-at", None),),
        (("deliver-at", b"2026-11-21T14:00:00"),),
        (("deliver-at", "\N{ARABIC-INDIC DIGIT ONE}".encode()),),
        (("deliver-after", b"-5"),),
        (("deliver-after", b"1 s"),),
        (("deliver-after", b"25h"),),
        (("deliver-action", b"explode"),),
        (("deliver-action", b"cancel"),),
        (("deliver-to", b"bank.transfers"),),
        (("deliver-cron", b"* * * * *"),),
        (("deliver-id", None),),
        (("deliver-action", b"cancel"), ("deliver-id", b"x"), ("deliver-at", b"1")),
        (("deliver-after", b"1s"), ("deliver-expires-at", b"5")),
        (("deliver-at", b"253402300800000"),),
    ],
)
def test_records_that_cannot_be_delivered_belong_on_the_dead_letter_topic(headers: Headers) -> None:
    assert read_source(raw(*headers), RULES).fate is Fate.DEAD_LETTER


def test_a_cancel_names_the_schedule_it_ends() -> None:
    read = read_source(raw(("deliver-action", b"cancel"), ("deliver-id", b"x")), RULES)

    assert (read.fate, read.schedule_id) == (Fate.CANCEL, b"x")


def test_an_allowed_other_target_is_expected_there() -> None:
    assert read_source(raw(("deliver-to", b"shop.vip")), RULES).target == "shop.vip"


def test_a_fixed_delay_counts_from_the_records_timestamp() -> None:
    rules = Rules(target="out", max_delay_ms=86_400_000, fixed_delay_ms=30_000)

    assert read_source(raw(), rules).due_ms == SENT_MS + 30_000


def test_a_delivered_record_is_read_by_its_last_receipt() -> None:
    receipt = b"1795269686270:3:12345:1795269686271:shop.reminders:delayed"
    record = RawRecord(
        Coordinates("out", 0, 5), 1_795_269_686_272, b"k", None, (("delay-receipt", b"x"), ("delay-receipt", receipt))
    )

    read = read_delivered(record)

    assert read == DeliveredRecord(
        source=Coordinates("shop.reminders:delayed", 3, 12345),
        due_ms=1_795_269_686_270,
        sent_ms=1_795_269_686_271,
        timestamp_ms=1_795_269_686_272,
        key=b"k",
        value=None,
        headers=(("delay-receipt", b"x"),),
        topic="out",
    )


def test_a_delivered_record_without_receipt_comes_from_nowhere_known() -> None:
    assert read_delivered(raw()).source == AT


def test_a_dead_letter_names_its_source_and_reason_and_keeps_what_the_producer_wrote() -> None:
    own: Headers = (("dead-letter-reason", b"of an earlier life"), ("deliver-at", b"x"), ("a", None))
    appended: Headers = (("dead-letter-reason", b"malformed-header"), ("dead-letter-source", b"a.delayed:3:17"))

    letter = read_dead_letter(raw(*own, *appended))

    assert letter == DeadLetter(Coordinates("a.delayed", 3, 17), "malformed-header", b"key", b"value", own)


def test_a_dead_letter_that_did_not_fit_says_so() -> None:
    letter = read_dead_letter(raw(("dead-letter-reason", b"too-large"), ("dead-letter-value-omitted", b"2000000")))

    assert letter.is_shortened


def test_a_record_that_is_no_dead_letter_names_itself() -> None:
    assert read_dead_letter(raw()) == DeadLetter(AT, "", b"key", b"value")


TEXTS = st.sampled_from(
    [
        *(b"0", b"1500", b"1s", b"1h30m", b"-1", b"", b"25h", b"1795269686270", b"9" * 19, b"9" * 20),
        *(b"2026-11-21T14:00:00.0001+00:30", b"2026-11-21T14:00:00", b"2026-02-30T00:00:00Z"),
        *(b"9999-12-31T23:59:59.9999Z", b"out", b"shop.vip", b"bank", b"schedule", b"cancel"),
        *(b"x", b"i" * 257, b"\xff", None),
    ]
)
NAMES = st.sampled_from(
    [
        *("deliver-at", "deliver-after", "deliver-id", "deliver-action", "deliver-to", "deliver-expires-at"),
        *(*RESERVED_HEADERS, "Deliver-At", "a"),
    ]
)
ALL_RULES = [
    RULES,
    replace(RULES, default_delay_ms=300_000),
    replace(RULES, fixed_delay_ms=30_000, uses_ids=False),
    replace(RULES, uses_ids=False),
]


@given(st.lists(st.tuples(NAMES, TEXTS), max_size=4), st.sampled_from(ALL_RULES))
def test_the_audit_and_the_relay_read_the_same_out_of_any_record(
    headers: list[tuple[str, bytes | None]], rules: Rules
) -> None:
    message = Message(
        topic="delayed",
        partition=3,
        offset=12,
        key=b"key",
        value=b"value",
        headers=list(headers) or None,
        timestamp=(TIMESTAMP_CREATE_TIME, SENT_MS),
    )
    dialect = NativeDialect(
        NativePolicy(
            target_topic=rules.target,
            target_allowed=TopicGlobs(rules.allowed_targets),
            max_delay_ms=rules.max_delay_ms,
            default_delay_ms=rules.default_delay_ms,
            delay_ms=rules.fixed_delay_ms,
            ids_enabled=rules.uses_ids,
        )
    )

    by_relay = dialect.read(cast(SourceMessage, message))
    by_audit = read_source(raw(*headers), rules)

    expected: tuple[Fate, int, bytes | None, str | None, int | None] = (Fate.DEAD_LETTER, 0, None, None, None)
    if isinstance(by_relay, Schedule):
        expected = (Fate.SCHEDULE, by_relay.due_ms, by_relay.id, by_relay.target or rules.target, by_relay.expires_ms)
    elif isinstance(by_relay, Cancel):
        expected = (Fate.CANCEL, 0, by_relay.id, None, None)
    assert (by_audit.fate, by_audit.due_ms, by_audit.schedule_id, by_audit.target, by_audit.expires_ms) == expected
