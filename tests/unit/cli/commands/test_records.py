"""`delaytopic get` and `cancel` of what has ended, through a gateway that reads outcomes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from tests.support.gateway.gateway import NOW_MS, REMINDERS, Scene, gateway_over

from delaytopic_api.relay import Ending, Outcome, RecordPlace
from delaytopic_cli.__main__ import run
from delaytopic_gateway.client.new_records import OutgoingRecord, Written
from delaytopic_relay.core.commands import Schedule

KEEPS = replace(REMINDERS, outcomes="shop.reminders.outcomes")
TEA = Schedule(NOW_MS + 3_600_000, 7, b"order-17", b"tea", [("deliver-id", b"order-17")], id=b"order-17")
TARGET = RecordPlace(topic="shop.reminders", partition=2, offset=41)


def ended(ending: Ending, offset: int = 7, **more: Any) -> Outcome:
    source = RecordPlace(topic=REMINDERS.source, partition=2, offset=offset)
    return Outcome(outcome=ending, id="order-17", ended_ms=NOW_MS, source=source, **more)


class AnsweringScene(Scene):
    """A source topic whose relay ends what waits in it as soon as a cancel is written."""

    ending = Ending.CANCELLED

    def write(self, topic: str, record: OutgoingRecord, partition: int | None) -> Written:
        written = super().write(topic, record, partition)
        by = RecordPlace(topic=topic, partition=2, offset=written.offset)
        more: dict[str, Any] = (
            {"ended_by": by, "requested_by": "shop-desk"} if self.ending is Ending.CANCELLED else {"target": TARGET}
        )
        self.outcomes.told.append((2, ended(self.ending, **more)))
        return written


@pytest.fixture
def scene() -> Iterator[AnsweringScene]:
    with gateway_over(AnsweringScene({KEEPS: []})) as found:
        assert isinstance(found, AnsweringScene)
        yield found


def test_what_was_delivered_is_shown_with_its_time_and_place(
    scene: AnsweringScene, capsys: pytest.CaptureFixture[str]
) -> None:
    scene.outcomes.told += [(2, ended(Ending.REPLACED, 5)), (2, ended(Ending.DELIVERED, target=TARGET))]

    code = run(["get", "shop/reminders", "order-17", "--gateway", scene.url, "-o", "text"])

    first, place, before = capsys.readouterr().out.splitlines()
    assert code == 0
    assert first.startswith("ended    delivered at ")
    assert first.endswith(" to shop.reminders:2:41")
    assert place == "place    shop.reminders.delayed:2:7"
    assert before.startswith("before   2:5 replaced at ")


def test_what_has_ended_is_a_document_for_programs(scene: AnsweringScene, capsys: pytest.CaptureFixture[str]) -> None:
    outcome = ended(Ending.CANCELLED, requested_by="shop-desk")
    scene.outcomes.told += [(2, outcome)]

    run(["get", "shop/reminders", "order-17", "--gateway", scene.url, "-o", "json"])

    document = json.loads(capsys.readouterr().out)
    assert document == {"outcomes": [outcome.model_dump(mode="json", by_alias=True)], "lookedAt": 1, "complete": True}


def test_an_id_without_any_end_is_an_error_that_says_where_it_was_looked_for(
    scene: AnsweringScene, capsys: pytest.CaptureFixture[str]
) -> None:
    code = run(["get", "shop/reminders", "order-17", "--gateway", scene.url])

    assert (code, capsys.readouterr().err) == (
        5,
        "error: no record with id order-17 is pending in shop/reminders; it was delivered, cancelled or never there; "
        "the topic of outcomes has no end of it (any more)\n",
    )


def test_a_cancel_that_won_names_who_asked(scene: AnsweringScene, capsys: pytest.CaptureFixture[str]) -> None:
    scene.begin({KEEPS: [(2, TEA)]})

    code = run(["cancel", "shop/reminders", "order-17", "--gateway", scene.url, "--wait", "30s", "-o", "text"])

    said = capsys.readouterr().out
    assert (code, said.startswith("order-17: cancelled at "), said.endswith(", by shop-desk\n")) == (0, True, True)


def test_a_cancel_that_lost_names_the_delivery(scene: AnsweringScene, capsys: pytest.CaptureFixture[str]) -> None:
    scene.begin({KEEPS: [(2, TEA)]}).ending = Ending.DELIVERED  # type: ignore[attr-defined]

    code = run(["cancel", "shop/reminders", "order-17", "--gateway", scene.url, "-o", "json"])

    (each,) = json.loads(capsys.readouterr().out)["ids"]
    assert (code, each["outcome"], each["ended"]["target"]) == (7, "TooLate", TARGET.to_document())


def test_a_cancel_that_met_nothing_does_not_hide_the_delivery(
    scene: AnsweringScene, capsys: pytest.CaptureFixture[str]
) -> None:
    scene.outcomes.told += [(2, ended(Ending.DELIVERED, target=TARGET)), (2, ended(Ending.NOT_PENDING, 9))]

    run(["get", "shop/reminders", "order-17", "--gateway", scene.url, "-o", "text"])

    first, _, after = capsys.readouterr().out.splitlines()
    assert first.startswith("ended    delivered at ")
    assert after.startswith("after    2:9 a cancel at ")
