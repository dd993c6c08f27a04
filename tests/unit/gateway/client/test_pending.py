from __future__ import annotations

from typing import Any

import pytest
from tests.support.relay.backlog.listings import AS_OF_MS, pending_list

from delaytopic_api.relay import DueBin, PendingList, PendingRecord, PendingShard
from delaytopic_gateway.client.pending import LAST_OFFSET, LAST_PARTITION, PendingReport, report, span_text
from delaytopic_gateway.client.relay_listing import RelayAnswer
from delaytopic_gateway.errors import RelayUnreachableError
from delaytopic_process.errors import InputError, ProgramError

SOURCE = "shop.reminders.delayed"


def record(due_ms: int, partition: int, offset: int) -> PendingRecord:
    return PendingRecord(due_ms=due_ms, partition=partition, offset=offset, target="shop.reminders")


def relay(number: int, *records: PendingRecord, **changes: Any) -> PendingList:
    """A relay that owns the partition of its number, of two."""
    shards = [PendingShard(partition=partition, listed=partition == number) for partition in range(2)]
    fields: dict[str, Any] = {"relay": f"relay-{number}", "source_partitions": 2, "shards": shards}
    return pending_list(**(fields | {"records": list(records)} | changes))


def answers(*documents: PendingList) -> list[RelayAnswer]:
    return [RelayAnswer(f"http://{document.relay}", document) for document in documents]


def places(found: PendingReport) -> list[tuple[int, int, int]]:
    return [(each.due_ms, each.partition, each.offset) for each in found.records]


def refusal(topic: str, told: list[RelayAnswer]) -> ProgramError:
    with pytest.raises(ProgramError) as caught:
        report(topic, told, 100)
    return caught.value


def test_the_lists_of_all_relays_become_one_in_the_order_of_delivery() -> None:
    both = answers(relay(0, record(5, 0, 1), record(9, 0, 2)), relay(1, record(5, 1, 0), record(7, 1, 1)))

    found = report(SOURCE, both, 100)

    assert places(found) == [(5, 0, 1), (5, 1, 0), (7, 1, 1), (9, 0, 2)]
    assert (found.complete, found.notes) == (True, [])


def test_counts_are_added_up() -> None:
    bins = [[DueBin(up_to_ms=AS_OF_MS + late_ms + 1_000, records=2)] for late_ms in (0, 70)]
    first = relay(0, pending=5, overdue=1, next_due_ms=40, ingest_lag=7, due_histogram=bins[0])
    second = relay(1, pending=6, overdue=2, next_due_ms=30, as_of_ms=AS_OF_MS + 70, due_histogram=bins[1])

    found = report(SOURCE, answers(first, second), 100)

    assert (found.pending, found.overdue, found.next_due_ms, found.ingest_lag) == (11, 3, 30, 7)
    assert found.histogram == [(1_000, 4)]


@pytest.mark.parametrize("topic", [SOURCE, "shop/reminders", "reminders"])
def test_a_delay_topic_is_named_by_its_source_or_its_name_with_or_without_namespace(topic: str) -> None:
    other = pending_list(relay="relay-9", delay_topic="shop/other", source="shop.other", pending=3)

    found = report(topic, answers(relay(0, pending=2), relay(1), other), 100)

    assert (found.delay_topic, found.source, found.pending) == ("shop/reminders", SOURCE, 2)


def test_the_limit_holds_for_all_together() -> None:
    both = answers(relay(0, record(1, 0, 1), record(4, 0, 2)), relay(1, record(2, 1, 0), record(3, 1, 1)))

    found = report(SOURCE, both, 3)

    assert places(found) == [(1, 0, 1), (2, 1, 0), (3, 1, 1)]
    assert (found.complete, found.notes) == (False, ["there are more than were asked for"])


def test_a_relay_that_has_more_than_the_limit_says_it_once() -> None:
    limited: dict[str, Any] = {"complete": False, "limited": True, "message": "there are more than the limit of 1"}

    found = report(SOURCE, answers(relay(0, record(1, 0, 1), **limited), relay(1, record(2, 1, 1), **limited)), 1)

    assert (places(found), found.notes) == ([(1, 0, 1)], ["there are more than were asked for"])


def test_behind_the_time_up_to_which_one_relay_can_list_nothing_is_shown() -> None:
    cut = relay(0, record(1, 0, 1), complete=False, listed_until_ms=5, message="the backlog cannot be read")

    found = report(SOURCE, answers(cut, relay(1, record(4, 1, 0), record(5, 1, 1))), 100)

    assert places(found) == [(1, 0, 1), (4, 1, 0)]
    assert (found.complete, found.notes) == (False, ["relay relay-0: the backlog cannot be read"])


def test_a_relay_that_does_not_answer_is_noted_and_so_are_its_partitions() -> None:
    told = [*answers(relay(0, record(1, 0, 1))), RelayAnswer("http://b", problem="does not answer: refused")]

    found = report(SOURCE, told, 100)

    assert (places(found), found.complete) == ([(1, 0, 1)], False)
    assert found.notes == ["http://b does not answer: refused", "partitions that none of these relays lists: 1"]


def test_a_partition_that_another_relay_owns_is_no_lack_when_that_one_was_asked() -> None:
    elsewhere = [PendingShard(partition=1, listed=False, message="not with this relay: ask the others of its group")]
    here = [PendingShard(partition=1, listed=True)]
    told = answers(
        relay(0, shards=elsewhere, complete=False, message="not with this relay: ask the others of its group"),
        relay(1, record(3, 1, 1), shards=here),
    )

    found = report(SOURCE, told, 100)

    assert (places(found), found.complete, found.notes) == ([(3, 1, 1)], True, [])


def test_what_two_relays_list_during_a_hand_over_is_shown_once() -> None:
    found = report(SOURCE, answers(relay(0, record(1, 0, 1)), relay(0, record(1, 0, 1)), relay(1)), 100)

    assert places(found) == [(1, 0, 1)]


def test_when_no_relay_answers_the_error_names_each() -> None:
    error = refusal(
        SOURCE,
        [
            RelayAnswer("http://a", problem="does not answer: refused"),
            RelayAnswer("http://b", problem="answered 404: no such page"),
        ],
    )

    assert isinstance(error, RelayUnreachableError)
    assert str(error) == (
        "no relay told what is pending: http://a does not answer: refused; http://b answered 404: no such page; "
        "ask again when they answer"
    )


def test_when_nobody_serves_the_topic_the_error_says_what_they_serve() -> None:
    error = refusal("shop.oders", answers(relay(0), relay(1)))

    assert isinstance(error, InputError)
    assert str(error) == (
        "none of the relays serves shop.oders; they serve shop/reminders (source shop.reminders.delayed)"
    )


def test_while_a_relay_is_silent_that_may_serve_the_topic_the_caller_is_not_blamed() -> None:
    silent = RelayAnswer("http://b", problem="does not answer: refused")

    error = refusal("shop/orders", [*answers(relay(0)), silent])

    assert isinstance(error, RelayUnreachableError)
    assert str(error) == (
        "no relay of shop/orders answered: those that did serve shop/reminders (source shop.reminders.delayed), and "
        "http://b does not answer: refused; if one of these serves it, ask again when it answers"
    )


def test_a_name_in_two_namespaces_is_refused_with_both() -> None:
    other = pending_list(delay_topic="bar/reminders", source="bar.delayed")

    assert str(refusal("reminders", answers(relay(0), other))) == (
        "reminders is the name of several DelayTopics here: bar/reminders (source bar.delayed), "
        "shop/reminders (source shop.reminders.delayed); write one of these"
    )


def test_the_next_page_begins_behind_what_every_relay_has_listed() -> None:
    cut = relay(0, record(1, 0, 1), complete=False, listed_until_ms=5, message="the backlog cannot be read")
    limited = relay(1, record(2, 1, 0), record(3, 1, 1), complete=False, limited=True)
    whole = relay(0, record(1, 0, 1), record(9, 0, 2))

    found = {
        "all": report(SOURCE, answers(relay(0, record(1, 0, 1)), relay(1)), 2),
        "the limit": report(SOURCE, answers(whole, relay(1, record(2, 1, 0))), 2),
        "a time": report(SOURCE, answers(cut, relay(1, record(4, 1, 0))), 9),
        "an answer that was too long": report(SOURCE, answers(whole, limited), 9),
    }

    assert {why: (len(one.records), one.next_after) for why, one in found.items()} == {
        "all": (1, None),
        "the limit": (2, (2, 1, 0)),
        "a time": (2, (4, LAST_PARTITION, LAST_OFFSET)),
        "an answer that was too long": (3, (3, 1, 1)),
    }


@pytest.mark.parametrize(
    ("span_ms", "text"),
    [
        (-1, "late"),
        (0, "0ms"),
        (999, "999ms"),
        (1_000, "1s"),
        (90_500, "1m30s"),
        (3_600_000, "1h"),
        (90_061_000, "1d1h"),
    ],
)
def test_a_span_is_told_in_its_two_largest_units(span_ms: int, text: str) -> None:
    assert span_text(span_ms) == text
