from __future__ import annotations

import pytest

from delaytopic_cli.audit import Coordinates, DeadLetter, DeliveredRecord, Fate, Headers, SourceRecord
from delaytopic_cli.audit_reading import RawRecord, Rules, read_dead_letter, read_delivered, read_source
from delaytopic_cli.errors import InputError

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


def test_recurring_records_are_refused_with_their_coordinates() -> None:
    with pytest.raises(InputError, match="delayed:3:12 is recurring"):
        read_source(raw(("deliver-cron", b"* * * * *")), RULES)


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


def test_a_dead_letter_names_its_source_and_reason() -> None:
    record = raw(("dead-letter-reason", b"malformed-header"), ("dead-letter-source", b"a.delayed:3:17"))

    assert read_dead_letter(record) == DeadLetter(Coordinates("a.delayed", 3, 17), "malformed-header")
