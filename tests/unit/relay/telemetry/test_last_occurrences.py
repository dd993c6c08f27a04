"""The last delivery of a record that recurs, as a relay tells it."""

from __future__ import annotations

import json

import pytest

from delaytopic_process.pages import Request
from delaytopic_relay.core.commands import OCCURRENCE, Schedule
from delaytopic_relay.telemetry import last_occurrences
from delaytopic_relay.telemetry.last_occurrences import NOT_KNOWN, LastOccurrences


def occurrence(name: str, number: int, slot_ms: int) -> Schedule:
    headers: list[tuple[str, bytes | None]] = [("deliver-id", name.encode())]
    headers.append(("delay-occurrence", b"%d:%d" % (number, slot_ms)))
    return Schedule(number, slot_ms + 5, None, None, id=name.encode(), headers=headers, control=OCCURRENCE)


def asked(occurrences: LastOccurrences, parameters: str) -> tuple[int, object]:
    """Return the status and the body of the page."""
    answer = occurrences.page(Request(parameters, "10.1.2.3"))
    body = answer.body.decode()
    return answer.status, json.loads(body) if answer.content_type == "application/json" else body.strip()


def test_a_delivery_is_told_by_its_id_once_it_is_committed() -> None:
    occurrences = LastOccurrences()
    occurrences.sent([occurrence("a b", 2, 120_000), occurrence("other", 7, 90_000)], 120_010)

    before = asked(occurrences, "id=a+b")
    occurrences.committed()

    assert before == (404, NOT_KNOWN)
    assert asked(occurrences, "id=a+b") == (200, {"number": 2, "slotMs": 120_000, "sentMs": 120_010})


def test_the_latest_delivery_is_told() -> None:
    occurrences = LastOccurrences()
    for number in (2, 3):
        occurrences.sent([occurrence("report", number, number * 60_000)], number * 60_000 + 20)
        occurrences.committed()

    assert asked(occurrences, "id=report") == (200, {"number": 3, "slotMs": 180_000, "sentMs": 180_020})


def test_a_delivery_that_was_not_committed_is_not_told() -> None:
    occurrences = LastOccurrences()
    occurrences.sent([occurrence("report", 2, 120_000)], 120_010)
    occurrences.reset()
    occurrences.committed()

    assert asked(occurrences, "id=report") == (404, NOT_KNOWN)


def test_the_deliveries_of_most_ids_are_told_and_the_oldest_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(last_occurrences, "MOST", 2)
    occurrences = LastOccurrences()
    for name, number in (("first", 1), ("second", 1), ("first", 2), ("third", 1)):
        occurrences.sent([occurrence(name, number, number * 60_000)], number * 60_000)
        occurrences.committed()

    assert {name: asked(occurrences, f"id={name}")[0] for name in ("first", "second", "third")} == {
        "first": 200,
        "second": 404,
        "third": 200,
    }


@pytest.mark.parametrize("parameters", ["", "name=report", "id=a&id=b"])
def test_the_page_wants_one_id(parameters: str) -> None:
    assert asked(LastOccurrences(), parameters) == (400, "name one id: /occurrence?id=ID")
