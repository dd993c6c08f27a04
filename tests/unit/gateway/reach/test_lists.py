"""Lists and sendings that take several calls."""

from __future__ import annotations

from typing import Any, cast

import pytest
from tests.support.gateway.dead_letters import stored
from tests.support.gateway.gateway import NOW_MS, REMINDERS, Scene, gateway_over

from delaytopic_gateway.dead_letters.documents import NotSent, Resend, ResendResult
from delaytopic_gateway.documents import RecordSelection
from delaytopic_gateway.errors import ConflictError
from delaytopic_gateway.reach import lists
from delaytopic_gateway.reach.lists import dead_letters, pending_records, sent_again
from delaytopic_gateway.reach.rest import GatewayClient, GatewayTopic
from delaytopic_gateway.reach.service import TopicService
from delaytopic_relay.core.commands import Schedule

ALL = Resend(all=True)
WAITING = [(0, Schedule(NOW_MS + offset, offset, b"k" * 9_000, b"v", [])) for offset in range(700)]


def test_what_has_no_room_in_an_answer_is_listed_page_by_page() -> None:
    with gateway_over(Scene({REMINDERS: WAITING})) as scene:
        topic = GatewayTopic(GatewayClient(scene.url), "shop", "reminders")
        first = topic.pending(RecordSelection(limit=700))

        whole, some = (pending_records(topic, RecordSelection(limit=limit)) for limit in (700, 690))

    assert (len(first.records) < 690, first.complete) == (True, False)
    assert [each.offset for each in whole.records] == [*range(700)]
    assert (whole.complete, whole.notes, whole.next, whole.pending) == (True, [], None, 700)
    assert (len(some.records), some.complete, some.notes) == (690, False, ["there are more than were asked for"])


def test_more_dead_letters_than_a_page_has_are_listed_page_by_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lists, "MOST_LETTERS", 1)
    scene = Scene({REMINDERS: []})
    scene.letters.records = {REMINDERS.dead_letter: [stored(f"0:{offset}", REMINDERS.source) for offset in (1, 3, 4)]}
    with gateway_over(scene):
        topic = GatewayTopic(GatewayClient(scene.url), "shop", "reminders")

        whole, some = dead_letters(topic, [], 10), dead_letters(topic, [], 2)

    assert ([each.place for each in whole.dead_letters], whole.next) == (["0:4", "0:3", "0:1"], None)
    assert [each.place for each in some.dead_letters] == ["0:4", "0:3"]


class _Turns:
    """A DelayTopic that answers to each resend with the next of some results."""

    def __init__(self, *results: ResendResult | Exception) -> None:
        self._results = iter(results)

    def resend(self, resend: Resend) -> ResendResult:
        result = next(self._results)
        if isinstance(result, Exception):
            raise result
        return result


def turns(*results: ResendResult | Exception) -> TopicService:
    return cast(TopicService, _Turns(*results))


def turn(*places: str, complete: bool, **changes: Any) -> ResendResult:
    """The answer of a gateway to one of several turns."""
    facts: dict[str, Any] = {"source": "s", "sent": len(places), "places": [*places], "complete": complete}
    nothing: dict[str, Any] = {"sent_before": [], "incomplete": [], "incomplete_count": 0}
    return ResendResult.model_validate({**facts, **nothing, "from_first": False, "dry_run": False, **changes})


def test_a_gateway_that_stops_on_the_way_is_asked_again() -> None:
    lost = NotSent(place="0:9", reason="its value was left out")
    first = turn("0:1", "0:2", complete=False, from_first=True, incomplete=[lost], incomplete_count=1)

    found = sent_again(turns(first, turn("0:3", complete=True)), ALL)

    assert found == turn("0:1", "0:2", "0:3", complete=True, from_first=True, incomplete=[lost], incomplete_count=1)


@pytest.mark.parametrize("last", [turn(complete=False), turn(complete=True)])
def test_a_gateway_that_sends_no_more_is_not_asked_for_ever(last: ResendResult) -> None:
    found = sent_again(turns(turn("0:1", complete=False), last), ALL)

    assert found == turn("0:1", complete=last.complete)


def test_a_dry_run_is_one_call() -> None:
    assert sent_again(turns(turn("0:1", complete=False, dry_run=True)), ALL).sent == 1


def test_an_error_on_the_way_says_what_was_sent_before() -> None:
    with pytest.raises(ConflictError) as failed:
        sent_again(turns(turn("0:1", complete=False), ConflictError("another one goes on")), ALL)

    assert str(failed.value) == (
        "another one goes on; 1 dead letter sent again before; the same command goes on behind them"
    )
