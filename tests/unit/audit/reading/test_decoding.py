"""From records to rows: by the relay's dialect, and by what relays write."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256

import pytest
from tests.support.relay import markers
from tests.unit.audit.messages import FakeMessage, config_for, reading

from delaytopic_api.documents import member
from delaytopic_api.records import DeadLetter, dead_letter_headers
from delaytopic_api.relay import Ending, Outcome, RecordPlace, RelayConfig, RelaySchedule
from delaytopic_api.values import Dialect
from delaytopic_audit.model.manifest import Role
from delaytopic_audit.model.words import Kind
from delaytopic_audit.reading.decoding import ARROW, batch_of, decoder_for, id_hash_of
from delaytopic_audit.tables.schemas import EXTRACT

CONFIG = config_for("a", "b", "a.dlq", ["c"])
AT = 1_795_269_686_270
RECEIPT = ("delay-receipt", b"1795269686270:3:12345:1795269686271:a")
UNREADABLE = UnicodeDecodeError("utf-8", b"", 0, 1, "x")


@pytest.mark.parametrize(
    ("headers", "row"),
    [
        (None, (Kind.SCHEDULE, 2, 7, AT, AT, True, None, None, "b", None, None, None)),
        ([("deliver-after", b"5")], (Kind.SCHEDULE, 2, 7, AT + 5, AT, True, None, None, "b", None, None, None)),
        ([("deliver-to", b"c")], (Kind.SCHEDULE, 2, 7, AT, AT, True, None, None, "c", None, None, None)),
        (
            [("deliver-id", b"x")],
            (Kind.SCHEDULE, 2, 7, AT, AT, True, None, id_hash_of(b"x"), "b", None, None, None),
        ),
        (
            [("deliver-id", b"x"), ("deliver-action", b"cancel")],
            (Kind.CANCEL, 2, 7, None, AT, True, None, id_hash_of(b"x"), None, None, None, None),
        ),
        ([("deliver-at", b"never")], (Kind.REJECT, 2, 7, None, AT, True, None, None, None, None, None, None)),
        (UNREADABLE, (Kind.REJECT, 2, 7, None, AT, True, None, None, None, None, None, None)),
    ],
)
def test_source_records_become_asks(headers: object, row: tuple[object, ...]) -> None:
    assert decoder_for(Role.SOURCE, "a", CONFIG)(FakeMessage(("a", 2, 7), headers)) == row


RULE = [("deliver-id", b"x"), ("deliver-every", b"1h")]
HOURLY = '{"deliver-every": "1h"}'
OCCURRENCE = [("delay-occurrence", b"1:1795269686000"), ("delay-restated", b"1795273286270:2:5:5:a")]
BEYOND = [("delay-occurrence", b"1:1795269686000"), ("delay-restated", b"2795269686270:2:5:5:a")]


@pytest.mark.parametrize(
    ("written", "row"),
    [
        (
            [],
            (*(Kind.RULE, 2, 7, AT, AT, True, None, id_hash_of(b"x"), "b", None, None), f":{AT + 3_600_000}:{HOURLY}"),
        ),
        (
            [("delay-occurrence", b"1:1795269686000")],
            (*(Kind.RULE, 2, 7, AT, AT, True, None, id_hash_of(b"x"), "b", None, None), f":{AT + 3_600_000}:{HOURLY}"),
        ),
        (
            OCCURRENCE,
            (
                *(Kind.SCHEDULE, 2, 7, AT + 3_600_000, AT, True, None, id_hash_of(b"x"), "b", None, 5),
                f"1795269686000:1795273286000:{HOURLY}",
            ),
        ),
        (
            BEYOND,
            (
                *(Kind.REJECT, 2, 7, None, AT, True, None, id_hash_of(b"x"), None, None, 5),
                f"1795269686000:1795273286000:{HOURLY}",
            ),
        ),
    ],
    ids=["as it was produced", "with a number of its own", "an occurrence", "an occurrence that rules refuse"],
)
def test_a_record_that_recurs_asks_for_its_occurrences_and_each_of_these_for_a_delivery(
    written: list[tuple[str, bytes]], row: tuple[object, ...]
) -> None:
    assert decoder_for(Role.SOURCE, "a", CONFIG)(FakeMessage(("a", 2, 7), [*RULE, *written])) == row


@pytest.mark.parametrize(
    ("headers", "kind"),
    [
        ([RECEIPT], Kind.DELIVERED),
        ([("delay-receipt", b"1:0:0:1:other"), RECEIPT], Kind.DELIVERED),
        ([RECEIPT, ("delay-receipt", b"1:0:0:1:other")], Kind.FOREIGN),
        ([("delay-receipt", b"nonsense")], Kind.FOREIGN),
        ([("delay-receipt", None)], Kind.FOREIGN),
        (None, Kind.FOREIGN),
        (UNREADABLE, Kind.FOREIGN),
    ],
)
def test_target_records_are_of_this_source_by_their_last_receipt(headers: object, kind: Kind) -> None:
    assert decoder_for(Role.TARGET, "b", CONFIG)(FakeMessage(("b", 1, 9), headers))[0] == kind


def test_a_delivered_record_has_the_coordinates_of_its_source_and_says_where_it_is() -> None:
    row = decoder_for(Role.TARGET, "b", CONFIG)(FakeMessage(("b", 1, 9), [RECEIPT], AT + 9))

    assert row == (Kind.DELIVERED, 3, 12345, AT, AT + 9, True, AT + 1, None, "b", 1, 9, None)


def test_a_dead_letter_has_the_coordinates_of_its_source_and_its_reason() -> None:
    headers = dead_letter_headers(DeadLetter("expired", "why", "a", 3, 12345, AT))

    row = decoder_for(Role.DEAD_LETTER, "a.dlq", CONFIG)(FakeMessage(("a.dlq", 0, 4), headers, kind=1))

    assert row == (Kind.DEAD_LETTER, 3, 12345, None, AT, False, AT, None, None, 0, 4, "expired")


def test_dead_letters_of_other_sources_are_foreign() -> None:
    headers = dead_letter_headers(DeadLetter("expired", "why", "other", 3, 12345, AT))
    decode = decoder_for(Role.DEAD_LETTER, "a.dlq", CONFIG)

    assert decode(FakeMessage(("a.dlq", 0, 4), headers))[0] == Kind.FOREIGN
    assert decode(FakeMessage(("a.dlq", 0, 4), None))[0] == Kind.FOREIGN


SOURCE, PLACE = RecordPlace(topic="a", partition=3, offset=12345), RecordPlace(topic="b", partition=1, offset=9)
BY = RecordPlace(topic="a", partition=3, offset=12350)


@pytest.mark.parametrize(
    ("outcome", "row"),
    [
        (
            Outcome(outcome=Ending.DELIVERED, source=SOURCE, ended_ms=AT + 1, due_ms=AT, target=PLACE, id="x"),
            (Kind.TOLD, 3, 12345, AT, AT + 9, True, AT + 1, None, "b", 1, 9, "Delivered"),
        ),
        (
            Outcome(outcome=Ending.CANCELLED, source=SOURCE, ended_ms=AT + 1, due_ms=AT, ended_by=BY, id="x"),
            (Kind.TOLD, 3, 12345, AT, AT + 9, True, AT + 1, None, None, 3, 12350, "Cancelled"),
        ),
        (
            Outcome(outcome=Ending.REPLACED, source=SOURCE, ended_ms=AT + 1, due_ms=AT, ended_by=PLACE),
            (Kind.TOLD, 3, 12345, AT, AT + 9, True, AT + 1, None, None, None, None, "Replaced"),
        ),
        (
            Outcome(outcome=Ending.DEAD_LETTERED, source=SOURCE, ended_ms=AT + 1, reason="expired"),
            (Kind.TOLD, 3, 12345, None, AT + 9, True, AT + 1, None, None, None, None, "DeadLettered"),
        ),
        (
            Outcome(outcome=Ending.NOT_PENDING, source=BY, ended_ms=AT + 1, id="x"),
            (Kind.TOLD, 3, 12350, None, AT + 9, True, AT + 1, id_hash_of(b"x"), None, None, None, "NotPending"),
        ),
        (
            Outcome(outcome=Ending.NOT_PENDING, source=BY, ended_ms=AT + 1, id_base64="/w=="),
            (Kind.TOLD, 3, 12350, None, AT + 9, True, AT + 1, id_hash_of(b"\xff"), None, None, None, "NotPending"),
        ),
    ],
    ids=["delivered", "cancelled", "by a record elsewhere", "without a place", "not pending", "an id that is no text"],
)
def test_an_outcome_has_the_coordinates_of_its_source_and_names_a_place(
    outcome: Outcome, row: tuple[object, ...]
) -> None:
    text = outcome.model_dump_json(by_alias=True, exclude_none=True).encode()

    assert decoder_for(Role.OUTCOMES, "o", CONFIG)(FakeMessage(("o", 3, 4), None, AT + 9, content=text)) == row


@pytest.mark.parametrize(
    "content",
    [None, b"v", b'{"outcome": "Delivered", "endedMs": 1, "source": {"topic": "other", "partition": 0, "offset": 0}}'],
    ids=["nothing", "no outcome", "of another source"],
)
def test_what_is_no_outcome_of_this_source_is_foreign(content: bytes | None) -> None:
    assert decoder_for(Role.OUTCOMES, "o", CONFIG)(FakeMessage(("o", 3, 4), content=content))[0] == Kind.FOREIGN


def test_batches_have_the_columns_of_the_extract() -> None:
    row = decoder_for(Role.TARGET, "b", CONFIG)(FakeMessage(("b", 1, 9), [RECEIPT], AT + 9))

    assert batch_of({1: [row], 2: [row]}).column(0).to_pylist() == [1, 2]
    assert batch_of({}).num_rows == 0
    assert ARROW.names == EXTRACT.names


START, END = markers.start(3, 8, 5_000, b"k", b"v"), markers.end(3, 8)
NAME = id_hash_of(b"\x03\x08k")
IGNORED = (Kind.IGNORED, 2, 7, None, AT, True, None, None, None, None, None, None)


@pytest.mark.parametrize(
    ("value", "headers", "row"),
    [
        (START, None, (Kind.SCHEDULE, 2, 7, AT + 5_000, AT, True, None, NAME, "b", None, None, None)),
        (
            START,
            [("delay-restated", b"%d:2:4:6:a" % (AT + 9_000))],
            (Kind.SCHEDULE, 2, 7, AT + 9_000, AT, True, None, NAME, "b", None, 4, None),
        ),
        (
            START,
            [("delay-restated", b"%d:2:9999999999999999999:6:a" % AT)],
            (Kind.SCHEDULE, 2, 7, AT, AT, True, None, NAME, "b", None, (1 << 63) - 1, None),
        ),
        (
            markers.keep_alive(3, 8, 6_000),
            None,
            (Kind.POSTPONE, 2, 7, AT + 6_000, AT, True, None, NAME, None, None, None, None),
        ),
        (END, None, (Kind.CANCEL, 2, 7, None, AT, True, None, NAME, None, None, None, None)),
        (END, [("delay-ended", b"redelivered")], IGNORED),
        (END, [("delay-restated", b":2:4:6:a")], IGNORED),
        (b"\xff", None, (Kind.REJECT, 2, 7, None, AT, True, None, None, None, None, None, None)),
    ],
)
def test_markers_become_asks_and_what_relays_write_beside_them_none(
    value: bytes, headers: object, row: tuple[object, ...]
) -> None:
    decode = decoder_for(Role.SOURCE, "a", config_of(Dialect.REDELIVERY))

    assert decode(FakeMessage(("a", 2, 7), headers, content=value)) == row


@pytest.mark.parametrize(
    ("dialect", "mark"),
    [(Dialect.SCHEDULER, ("delay-ended", b"delivered")), (Dialect.SCHEDULER_JSON, ("schedule:expired", b"true"))],
)
def test_a_tombstone_that_a_relay_has_written_asks_for_nothing(dialect: Dialect, mark: tuple[str, bytes]) -> None:
    receipt = ("delay-receipt", b"1795269686270:2:3:1795269686271:a")
    decode = decoder_for(Role.SOURCE, "a", config_of(dialect))

    found = [decode(FakeMessage(("a", 2, 7), each, content=None))[0] for each in ([mark, receipt], [receipt], None)]

    assert found == [Kind.IGNORED, Kind.CANCEL, Kind.CANCEL]


@pytest.mark.parametrize("order", [range(6), reversed(range(6))])
def test_a_source_record_is_read_by_the_rules_of_its_offset_and_what_is_older_by_the_oldest(
    order: Iterable[int],
) -> None:
    generations = [
        reading(2, 1, default_delay_ms=5),
        reading(2, 3, default_delay_ms=7),
        reading(2, 4, max_delay_ms=8, reader=9),
        reading(2, 5, delay_ms=9),
        reading(3, 0),
    ]
    decode = decoder_for(Role.SOURCE, "a", CONFIG, generations)

    rows = [decode(FakeMessage(("a", 2, offset))) for offset in order]

    assert {row[2]: (row[0], row[3]) for row in rows} == {
        **dict.fromkeys((0, 1, 2), (Kind.SCHEDULE, AT + 5)),
        3: (Kind.SCHEDULE, AT + 7),
        4: (Kind.IGNORED, None),
        5: (Kind.SCHEDULE, AT + 9),
    }
    assert decode(FakeMessage(("a", 3, 0)))[3] == AT


def test_a_source_record_that_was_read_by_rules_of_a_former_target_goes_to_the_present_one() -> None:
    former = reading(2, 0, target=sha256(b"former").hexdigest()[:8])

    found = [
        decoder_for(Role.SOURCE, "a", CONFIG, [former])(FakeMessage(("a", 2, 7), headers))
        for headers in (None, [("deliver-to", b"former")], [("deliver-to", b"elsewhere")])
    ]

    assert [(row[0], row[8]) for row in found] == [
        *((Kind.SCHEDULE, "b"), (Kind.SCHEDULE, "former"), (Kind.REJECT, None)),
    ]


def config_of(dialect: Dialect) -> RelayConfig:
    schedule = RelaySchedule.model_validate(CONFIG.schedule.to_document() | member(dialect))
    return CONFIG.model_copy(update={"schedule": schedule})
