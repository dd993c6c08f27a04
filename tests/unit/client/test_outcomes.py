"""The answers that cancels get from outcomes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from delaytopic.outcomes import (
    Answer,
    Cancelled,
    CancelQuestion,
    CancelRefusedError,
    NotPending,
    Outcome,
    Place,
    TooLate,
)
from delaytopic_api.relay import Ending, RecordPlace
from delaytopic_api.relay import Outcome as OutcomeDocument

SOURCE = "shop.delayed"
SCHEDULE, REPLACEMENT, CANCEL, OTHER_CANCEL = (Place(SOURCE, 3, offset) for offset in (10, 15, 20, 21))


def ended(ending: Ending, source: Place = SCHEDULE, by: Place | None = None, **more: Any) -> Outcome:
    return Outcome(str(ending), source, 1_795_269_686_270, ended_by=by, **more)


DELIVERED = ended(Ending.DELIVERED, target=Place("shop", 3, 7))
BY_CANCEL = ended(Ending.CANCELLED, by=CANCEL)
MET_NOTHING = ended(Ending.NOT_PENDING, CANCEL)


def answer(*outcomes: Outcome, own: Place | None = None, looked_back: bool = True, whole: bool = True) -> Answer | None:
    question = CancelQuestion(100)
    for offset, outcome in enumerate(outcomes):
        question.take(offset, outcome)
    question.locate(CANCEL, own)
    return question.answer(looked_back=looked_back, whole=whole)


def test_a_value_that_a_relay_writes_is_read_whole() -> None:
    place = RecordPlace(topic=SOURCE, partition=3, offset=10)
    document = OutcomeDocument(
        outcome=Ending.CANCELLED,
        reason="a reason",
        id="order-17",
        due_ms=1_795_269_686_270,
        ended_ms=1_795_269_600_000,
        source=place,
        target=RecordPlace(topic="shop", partition=3, offset=7),
        ended_by=RecordPlace(topic=SOURCE, partition=3, offset=20),
        requested_by="shop-desk",
    )

    assert Outcome.parse(document.model_dump_json().encode()) == Outcome(
        "Cancelled",
        SCHEDULE,
        1_795_269_600_000,
        1_795_269_686_270,
        b"order-17",
        "a reason",
        Place("shop", 3, 7),
        CANCEL,
        "shop-desk",
    )


def test_an_id_that_is_no_text_is_read_as_bytes() -> None:
    document = OutcomeDocument(
        outcome=Ending.NOT_PENDING,
        id_base64="/w==",
        ended_ms=1,
        source=RecordPlace(topic=SOURCE, partition=3, offset=20),
    )

    assert Outcome.parse(document.model_dump_json().encode()) == Outcome("NotPending", CANCEL, 1, id=b"\xff")


@pytest.mark.parametrize(
    "value", [None, b"", b"{}", b"[]", b"7", b"\xff", json.dumps({"outcome": "Delivered"}).encode()]
)
def test_a_value_that_no_relay_wrote_is_no_outcome(value: bytes | None) -> None:
    assert Outcome.parse(value) is None


def test_a_cancel_that_ended_a_schedule_has_won() -> None:
    assert answer(BY_CANCEL) == Cancelled(BY_CANCEL)


def test_an_outcome_of_another_cancel_of_the_id_answers_nothing() -> None:
    assert answer(ended(Ending.CANCELLED, by=OTHER_CANCEL)) is None


def test_nothing_is_answered_while_the_place_of_the_cancel_is_not_known() -> None:
    question = CancelQuestion(100)
    question.take(0, BY_CANCEL)

    assert question.answer(looked_back=True, whole=True) is None


def test_a_cancel_that_met_nothing_after_a_delivery_was_too_late() -> None:
    assert answer(DELIVERED, MET_NOTHING) == TooLate(DELIVERED)


def test_a_cancel_that_met_nothing_after_a_dead_letter_was_too_late() -> None:
    dead = ended(Ending.DEAD_LETTERED, reason="expired")

    assert answer(dead, MET_NOTHING) == TooLate(dead)


def test_a_cancel_that_met_nothing_after_another_cancel_found_nothing_pending() -> None:
    before = ended(Ending.CANCELLED, by=OTHER_CANCEL)

    assert answer(before, MET_NOTHING) == NotPending(MET_NOTHING, before)


def test_a_cancel_that_met_nothing_waits_for_the_look_back() -> None:
    assert answer(MET_NOTHING, looked_back=False) is None


def test_a_cancel_of_an_id_without_any_end_found_nothing_pending() -> None:
    assert answer(MET_NOTHING) == NotPending(MET_NOTHING, None)


def test_a_look_back_that_left_outcomes_out_is_told() -> None:
    assert answer(MET_NOTHING, whole=False) == NotPending(MET_NOTHING, None, whole=False)


def test_a_delivery_after_the_cancel_was_read_does_not_make_it_late() -> None:
    assert answer(MET_NOTHING, DELIVERED) == NotPending(MET_NOTHING, None)


def test_a_cancel_of_one_schedule_that_met_its_replacement_was_too_late() -> None:
    replaced = ended(Ending.REPLACED, by=REPLACEMENT)
    of_replacement = ended(Ending.CANCELLED, REPLACEMENT, CANCEL)

    assert answer(replaced, of_replacement, own=SCHEDULE) == TooLate(replaced, of_replacement)


def test_a_cancel_of_an_id_that_met_a_replacement_has_won() -> None:
    of_replacement = ended(Ending.CANCELLED, REPLACEMENT, CANCEL)

    assert answer(ended(Ending.REPLACED, by=REPLACEMENT), of_replacement) == Cancelled(of_replacement)


def test_a_cancel_of_one_schedule_names_its_end_and_not_that_of_another() -> None:
    replaced, other = ended(Ending.REPLACED, by=REPLACEMENT), ended(Ending.DELIVERED, REPLACEMENT)

    assert answer(replaced, other, MET_NOTHING, own=SCHEDULE) == TooLate(replaced)


def test_a_cancel_that_the_relay_refused_is_an_error_with_its_reason() -> None:
    with pytest.raises(CancelRefusedError, match=r"shop\.delayed:3:20: unsupported"):
        answer(ended(Ending.DEAD_LETTERED, CANCEL, reason="unsupported"))
