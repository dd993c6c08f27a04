from __future__ import annotations

import json

import pytest
from tests.support.relay.schedules import reject, schedule

from delaytopic_api.records import DeadLetterReason
from delaytopic_api.relay import Ending, Outcome, RecordPlace
from delaytopic_relay.core.commands import End, Record, Reject, Schedule
from delaytopic_relay.delivery.outcomes import Outcomes, Places, Sent

ALL = [*Ending]


def outcomes(*only: Ending) -> Outcomes:
    return Outcomes("told", only or ALL, "source", "target", "dead")


def read(records: list[Record]) -> list[Outcome]:
    return [Outcome.model_validate_json(record.value or b"") for record in records]


def place(topic: str, partition: int, offset: int) -> RecordPlace:
    return RecordPlace(topic=topic, partition=partition, offset=offset)


def test_a_delivery_is_told_with_the_place_that_it_has() -> None:
    told = outcomes()
    told.sent(3, [schedule(50, 7, b"a")], [], 60)

    (found,) = read(told.records({Sent("target", 3, 7, False): (1, 900)}))

    assert found == Outcome(
        outcome=Ending.DELIVERED,
        id="a",
        due_ms=50,
        ended_ms=60,
        source=place("source", 3, 7),
        target=place("target", 1, 900),
    )


def test_a_delivery_whose_place_is_not_known_is_told_without_it() -> None:
    told = outcomes()
    told.sent(3, [schedule(50, 7)], [], 60)

    (found,) = read(told.records({}))

    assert (found.outcome, found.target) == (Ending.DELIVERED, None)


def test_a_record_for_another_topic_is_found_there() -> None:
    told = outcomes()
    told.sent(3, [Schedule(50, 7, None, b"v", None, target="other")], [], 60)

    (found,) = read(told.records({Sent("other", 3, 7, False): (0, 1)}))

    assert found.target == place("other", 0, 1)


def test_what_could_not_be_delivered_is_told_as_a_dead_letter_alone() -> None:
    told = outcomes()
    refused = reject(7)
    told.sent(3, [schedule(50, 7), schedule(50, 8)], [refused], 60)

    (dead, delivered) = read(told.records({Sent("dead", 3, 7, True): (0, 5)}))

    assert (dead.outcome, dead.reason, dead.target) == (
        Ending.DEAD_LETTERED,
        refused.reason.value,
        place("dead", 0, 5),
    )
    assert (delivered.outcome, delivered.source.offset) == (Ending.DELIVERED, 8)


def test_a_record_that_could_not_be_read_is_told_under_the_id_that_it_names() -> None:
    told = outcomes()
    told.sent(0, [], [Reject(7, None, None, [("deliver-id", b"a")], DeadLetterReason.MALFORMED_HEADER, "why")], 60)

    assert [(each.id, each.due_ms) for each in read(told.records({}))] == [("a", None)]


def test_a_command_is_told_with_its_place_and_with_who_asked() -> None:
    told = outcomes()
    told.ended(3, [End(Ending.CANCELLED, 7, 50, b"a", 9, b"ann")], 60)

    assert read(told.records({})) == [
        Outcome(
            outcome=Ending.CANCELLED,
            id="a",
            due_ms=50,
            ended_ms=60,
            source=place("source", 3, 7),
            ended_by=place("source", 3, 9),
            requested_by="ann",
        )
    ]


def test_the_key_is_the_id_or_else_the_place_and_the_partition_that_of_the_source() -> None:
    told = outcomes()
    told.sent(3, [schedule(50, 7, b"\xff"), schedule(50, 8)], [], 60)

    records = told.records({})

    assert [(each.topic, each.key, each.partition, each.headers) for each in records] == [
        ("told", b"\xff", 3, []),
        ("told", b"source:3:8", 3, []),
    ]
    assert (read(records)[0].id, read(records)[0].id_base64) == (None, "/w==")


@pytest.mark.parametrize("value", [None, b"\xff", b"a" * 257])
def test_words_that_are_no_short_text_are_not_passed_on(value: bytes | None) -> None:
    told = outcomes()
    told.sent(0, [Schedule(50, 7, None, b"v", [("deliver-requested-by", value)])], [], 60)

    assert read(told.records({}))[0].requested_by is None


def test_only_the_endings_that_are_asked_for_are_told() -> None:
    told = outcomes(Ending.CANCELLED)
    told.sent(0, [schedule(50, 7)], [reject(8)], 60)
    told.ended(0, [End(Ending.CANCELLED, 1, 2, b"a", 3), End(Ending.NOT_PENDING, 4, None, b"a")], 60)

    assert told.counts() == {Ending.CANCELLED: 1}


def test_what_ended_in_a_partition_that_went_away_is_told_by_its_successor() -> None:
    told = outcomes()
    told.sent(0, [schedule(50, 7)], [], 60)
    told.sent(1, [schedule(50, 7)], [], 60)

    told.forget([0])

    assert [each.source.partition for each in read(told.records({}))] == [1]


def test_an_outcome_has_no_field_that_says_nothing() -> None:
    told = outcomes()
    told.ended(0, [End(Ending.NOT_PENDING, 4, None, b"a")], 60)
    nowhere: Places = {}

    assert json.loads(told.records(nowhere)[0].value or b"") == {
        "outcome": "NotPending",
        "endedMs": 60,
        "source": {"topic": "source", "partition": 0, "offset": 4},
        "id": "a",
    }
