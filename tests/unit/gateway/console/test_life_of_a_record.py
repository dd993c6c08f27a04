"""Pages on the whole life of an id: what waits, and how schedules ended."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from tests.support.gateway.gateway import NOW_MS, REMINDERS, Scene, gateway_over

from delaytopic_api.relay import Ending, Outcome, RecordPlace
from delaytopic_relay.core.commands import Schedule

HOUR_MS = 3_600_000
PAGE = "/delaytopics/shop/reminders"
PLACE = f"{NOW_MS + HOUR_MS}:2:7"
KEEPS = replace(REMINDERS, outcomes="shop.reminders.outcomes")
TEA = Schedule(NOW_MS + HOUR_MS, 7, b"a", b"tea", [("deliver-id", b"a")], id=b"a")


def place(offset: int, topic: str = REMINDERS.source) -> RecordPlace:
    return RecordPlace(topic=topic, partition=2, offset=offset)


def ended(ending: Ending, offset: int, **more: Any) -> tuple[int, Outcome]:
    return 2, Outcome(outcome=ending, id="a", due_ms=NOW_MS, ended_ms=NOW_MS, source=place(offset), **more)


@pytest.fixture(scope="module")
def served() -> Iterator[Scene]:
    with gateway_over(Scene()) as found:
        yield found


@pytest.fixture
def scene(served: Scene) -> Scene:
    return served.begin({KEEPS: [(2, TEA)]})


def texts(page: str) -> str:
    """Return the text that a reader sees, in one line."""
    return " ".join(re.sub(r"<[^>]+>", " ", page).split())


def test_a_record_that_waits_shows_what_its_id_was_before(scene: Scene) -> None:
    scene.outcomes.told.append(ended(Ending.REPLACED, 5, ended_by=place(7), requested_by="<desk>"))

    page = scene.get(f"{PAGE}/record?place={PLACE}").text

    assert "Earlier schedules of this id" in texts(page)
    assert re.search(r"2:5 \S+( \S+)? replaced \S+( \S+)? &lt;desk&gt;, record 2:7 -", texts(page))


def test_the_page_of_a_record_shows_its_end_when_it_waits_no_more(scene: Scene) -> None:
    address = next(iter(re.findall(rf'href="({PAGE}/record[^"]*)"', scene.get(PAGE).text))).replace("&amp;", "&")
    scene.waiting[KEEPS] = []
    scene.outcomes.told += [
        ended(Ending.REPLACED, 5, ended_by=place(7)),
        ended(Ending.DELIVERED, 7, target=place(41, "shop.reminders")),
    ]

    answer = scene.get(address)

    assert (address, answer.status) == (f"{PAGE}/record?place={PLACE}&id=a", 200)
    page = texts(answer.text)
    assert "Id a Nothing with this id is pending. Ended delivered 0ms ago" in page
    assert "Where shop.reminders:2:41" in page
    assert re.findall(r"2:\d+ \S+( \S+)? (replaced|delivered)", page) == [("", "replaced"), ("", "delivered")]


def test_an_id_is_looked_up_whether_it_waits_or_has_ended(scene: Scene) -> None:
    assert f'action="{PAGE}/record"' in scene.get(PAGE).text
    assert "<h1>Record 2:7</h1>" in scene.get(f"{PAGE}/record?id=a").text


def test_an_id_that_nobody_knows_says_where_it_was_looked_for(scene: Scene) -> None:
    answer = scene.get(f"{PAGE}/record?id=gone", accept="text/html")

    assert answer.status == 404
    assert "the topic of outcomes knows of none that has ended" in answer.text


def test_a_record_is_shown_where_outcomes_cannot_be_read(scene: Scene) -> None:
    scene.outcomes.broken = "there is no topic shop.reminders.outcomes"

    answer = scene.get(f"{PAGE}/record?place={PLACE}")

    assert answer.status == 200
    assert "How schedules of this id ended cannot be read: there is no topic" in answer.text


def test_a_delay_topic_without_outcomes_offers_no_look_and_no_life(served: Scene) -> None:
    scene = served.begin({REMINDERS: [(2, TEA)]})

    assert f'action="{PAGE}/record"' not in scene.get(PAGE).text
    assert "Earlier schedules" not in scene.get(f"{PAGE}/record?place={PLACE}").text


def test_a_record_that_recurs_shows_its_rule_and_its_next_occurrences(scene: Scene) -> None:
    nominal_ms = NOW_MS + HOUR_MS
    rule: Any = [("deliver-id", b"a"), ("deliver-every", b"1h"), ("deliver-count", b"4")]
    report = Schedule(nominal_ms, 7, b"a", b"v", [*rule, ("delay-occurrence", b"3:%d" % nominal_ms)], id=b"a")
    scene.waiting[KEEPS] = [(2, report)]

    page = texts(scene.get(f"{PAGE}/record?place={PLACE}").text)

    assert re.search(r"Recurs Every 1h, counted from \S+; UTC; 4 times Occurrence By the clocks of UTC Due 3 \S+", page)
    assert " 4 20" in page
    assert " 5 20" not in page
    assert "Move" not in page
