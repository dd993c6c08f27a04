"""The gateway's documents on how schedules ended, over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from tests.support.gateway.gateway import NOW_MS, REMINDERS, Scene, gateway_over
from tests.support.gateway.rights import Table

from delaytopic_api.relay import Ending, Outcome, RecordPlace
from delaytopic_relay.core.commands import Schedule

HOUR_MS = 3_600_000
BASE = "/v1/delaytopics/shop/reminders"
KEEPS = replace(REMINDERS, outcomes="shop.reminders.outcomes")
TEA = Schedule(NOW_MS + HOUR_MS, 7, b"order-17", b"tea", [("deliver-id", b"order-17")], id=b"order-17")


def ended(ending: Ending, offset: int = 7, **more: Any) -> Outcome:
    source = RecordPlace(topic=REMINDERS.source, partition=2, offset=offset)
    return Outcome(outcome=ending, id="order-17", ended_ms=NOW_MS, source=source, **more)


@pytest.fixture(scope="module")
def served() -> Iterator[Scene]:
    with gateway_over(Scene()) as found:
        yield found


@pytest.fixture
def scene(served: Scene) -> Scene:
    return served.begin({KEEPS: [(2, TEA)]})


def test_a_cancel_names_where_the_end_of_its_record_is_told(scene: Scene) -> None:
    scene.outcomes.told += [(2, ended(Ending.DELIVERED, 5))]

    answer = scene.send("DELETE", f"{BASE}/records/order-17", None)

    address = f"{BASE}/outcomes/2:7?from=1"
    document = {"partition": 2, "offset": 1, "dueMs": None, "outcomesFrom": 1, "outcome": address}
    assert (answer.status, answer.document, answer.headers["location"]) == (202, document, address)


def test_a_move_names_where_the_end_of_the_moved_record_is_told(scene: Scene) -> None:
    answer = scene.send("PATCH", f"{BASE}/records/order-17", {"deliverAfter": "2h"})

    assert answer.document["outcome"] == f"{BASE}/outcomes/2:7?from=0"


def test_a_new_record_names_where_its_own_end_is_told(scene: Scene) -> None:
    answer = scene.send("POST", f"{BASE}/records", {"deliverAfter": "2h", "value": "tea"})

    assert answer.document["outcome"] == f"{BASE}/outcomes/0:1?from=0"


def test_a_write_goes_on_where_the_end_of_outcomes_cannot_be_read(scene: Scene) -> None:
    scene.outcomes.broken = 'there is no topic "é"'

    answer = scene.send("DELETE", f"{BASE}/records/order-17", None)

    assert (answer.status, answer.document["outcome"], len(scene.written)) == (202, None, 1)
    assert answer.headers["warning"] == '199 delaytopic "how it ends is not told: there is no topic    "'


def test_an_end_that_is_known_is_answered_whole(scene: Scene) -> None:
    by = RecordPlace(topic=REMINDERS.source, partition=2, offset=9)
    outcome = ended(Ending.CANCELLED, due_ms=TEA.due_ms, ended_by=by, requested_by="shop-desk")
    scene.outcomes.told += [(2, outcome)]

    answer = scene.get(f"{BASE}/outcomes/2:7?from=0")

    assert (answer.status, Outcome.model_validate(answer.document)) == (200, outcome)


def test_an_end_that_is_not_known_yet_is_answered_with_the_address_to_go_on_at(scene: Scene) -> None:
    scene.outcomes.told += [(2, ended(Ending.DELIVERED, 5))]

    answer = scene.get(f"{BASE}/outcomes/2:7?from=0&wait=1500ms")

    assert (answer.status, answer.document) == (
        202,
        {"outcome": None, "next": f"{BASE}/outcomes/2:7?from=1", "expired": 0},
    )
    assert scene.outcomes.waited_s == [1.5]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("2:7?wait=21s", "wait: 20s at most; ask again for longer"),
        ("2:7?from=-1", "from: Input should be greater than or equal to 0"),
    ],
)
def test_what_nobody_can_answer_is_refused(scene: Scene, query: str, message: str) -> None:
    answer = scene.get(f"{BASE}/outcomes/{query}")

    assert (answer.status, answer.document) == (400, {"message": message})


def test_the_ends_of_an_id_are_listed_the_last_one_first(scene: Scene) -> None:
    scene.outcomes.told += [(2, ended(Ending.REPLACED, 5)), (2, ended(Ending.DELIVERED, 7))]

    found = scene.get(f"{BASE}/outcomes?id=order-17").document

    assert [each["outcome"] for each in found["outcomes"]] == ["Delivered", "Replaced"]
    assert (found["lookedAt"], found["complete"]) == (2, True)


def test_the_ends_of_another_source_in_the_same_topic_are_left_out(scene: Scene) -> None:
    other = RecordPlace(topic="another", partition=2, offset=7)
    scene.outcomes.told += [(2, ended(Ending.DELIVERED).model_copy(update={"source": other}))]

    assert scene.get(f"{BASE}/outcomes?id=order-17").document["outcomes"] == []


def test_a_delay_topic_without_outcomes_says_so(served: Scene) -> None:
    scene = served.begin({REMINDERS: [(2, TEA)]})

    answer = scene.get(f"{BASE}/outcomes?id=order-17")

    assert (answer.status, answer.document["message"]) == (
        409,
        "shop/reminders has no topic of outcomes, so that nobody knows how its schedules ended; name one in "
        "spec.outcomes",
    )
    assert scene.send("DELETE", f"{BASE}/records/order-17", None).document["outcome"] is None


def test_what_a_known_caller_writes_names_him() -> None:
    with gateway_over(Scene({KEEPS: [(2, TEA)]}), Table()) as scene:
        scene.send("DELETE", f"{BASE}/records/order-17", None, Authorization="Bearer editor")
        scene.send("PATCH", f"{BASE}/records/order-17", {"deliverAfter": "2h"}, Authorization="Bearer editor")

        headers = [record.headers for _, record, _ in scene.written]

    assert [each[-1] for each in headers] == [("deliver-requested-by", b"editor")] * 2


def test_the_words_of_who_asked_are_for_callers_that_may_see_headers() -> None:
    with gateway_over(Scene({KEEPS: []}), Table()) as scene:
        scene.outcomes.told += [(2, ended(Ending.CANCELLED, requested_by="shop-desk"))]
        reader, writer = (
            scene.get(f"{BASE}/outcomes/2:7", Authorization=f"Bearer {user}") for user in ("viewer", "editor")
        )

    assert (reader.document["requestedBy"], writer.document["requestedBy"]) == (None, "shop-desk")
