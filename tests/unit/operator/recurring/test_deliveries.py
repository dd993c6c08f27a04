"""The status of a RecurringRecord: its deliveries, as relays tell the last one."""

from __future__ import annotations

from typing import Any

import pytest

from delaytopic_api.relay import LastOccurrence
from delaytopic_operator.model.conditions import instant
from delaytopic_operator.recurring.deliveries import asked_after, shown, with_occurrence
from delaytopic_operator.recurring.plan import read_document

NINE_MS = 1_795_510_800_000
"""2026-11-24T09:00:00Z."""
HOUR_MS = 3_600_000
WRITTEN_MS = NINE_MS - HOUR_MS // 2
HOURLY = {"delayTopic": "reminders", "cron": "0 * * * *", "value": "report"}
CONDITION = {
    "type": "Ready",
    "status": "True",
    "reason": "Written",
    "message": "it recurs",
    "lastTransitionTime": instant(WRITTEN_MS),
}
WRITTEN = {"topic": "t", "topicId": "i", "delayTopicUid": "d", "partition": 0, "at": instant(WRITTEN_MS)}
DELIVERED_ONCE = {"last": instant(NINE_MS), "delivered": 1, "missed": 0}


def record(**status: Any) -> Any:
    """Return an hourly record, written half an hour before nine."""
    return read_document(
        {
            "apiVersion": "delaytopic.dev/v1beta1",
            "kind": "RecurringRecord",
            "metadata": {"name": "report", "namespace": "shop", "uid": "u1", "generation": 2},
            "spec": HOURLY,
            "status": {"observedGeneration": 2, "conditions": [CONDITION], "written": WRITTEN, **status},
        }
    )


def told(number: int, slot_ms: int) -> LastOccurrence:
    return LastOccurrence(number=number, slot_ms=slot_ms, sent_ms=slot_ms + 20)


@pytest.mark.parametrize(
    ("status", "now_ms", "known_ms"),
    [
        ({}, NINE_MS - 1, None),
        ({}, NINE_MS, WRITTEN_MS),
        (DELIVERED_ONCE, NINE_MS + HOUR_MS - 1, None),
        (DELIVERED_ONCE, NINE_MS + HOUR_MS, NINE_MS),
        ({"observedGeneration": 1}, NINE_MS, None),
        ({"conditions": [{**CONDITION, "status": "False", "reason": "Suspended"}]}, NINE_MS, None),
        ({"conditions": [{**CONDITION, "reason": "Ended"}]}, NINE_MS, WRITTEN_MS),
        ({"written": {**WRITTEN, "at": None}}, NINE_MS, None),
        ({"written": None}, NINE_MS, None),
    ],
    ids=[
        "no time has passed since it was written",
        "one has",
        "none has since the last",
        "one has since the last",
        "its spec is another one by now",
        "it is suspended",
        "it has ended",
        "nobody knows whether it was written",
        "it was never written",
    ],
)
def test_relays_are_asked_if(status: dict[str, Any], now_ms: int, known_ms: int | None) -> None:
    assert asked_after(record(**status), now_ms) == known_ms


@pytest.mark.parametrize(
    ("status", "occurrence", "expected"),
    [
        ({}, told(1, NINE_MS), DELIVERED_ONCE),
        ({}, told(1, NINE_MS + 2 * HOUR_MS), {"last": instant(NINE_MS + 2 * HOUR_MS), "delivered": 1, "missed": 2}),
        ({}, told(3, NINE_MS + 2 * HOUR_MS), {"last": instant(NINE_MS + 2 * HOUR_MS), "delivered": 3, "missed": 0}),
        (
            {"last": instant(NINE_MS), "delivered": 1, "missed": 4},
            told(3, NINE_MS + 5 * HOUR_MS),
            {"last": instant(NINE_MS + 5 * HOUR_MS), "delivered": 3, "missed": 7},
        ),
        (
            {"last": instant(NINE_MS - 24 * HOUR_MS)},
            told(1, NINE_MS),
            DELIVERED_ONCE,
        ),
    ],
    ids=[
        "the first of its times",
        "the third of its times, for which the first delivery was made",
        "the third of its times, which all were delivered",
        "two of five more",
        "the first since it was written anew",
    ],
)
def test_a_status_tells(status: dict[str, Any], occurrence: LastOccurrence, expected: dict[str, Any]) -> None:
    assert with_occurrence(record(**status), occurrence, NINE_MS + 6 * HOUR_MS) == expected


@pytest.mark.parametrize(
    "occurrence",
    [
        None,
        told(1, NINE_MS),
        told(40, NINE_MS - HOUR_MS),
        told(2, NINE_MS + HOUR_MS + 60_000),
        told(2, NINE_MS + 7 * HOUR_MS),
        told(1, NINE_MS + HOUR_MS),
    ],
    ids=[
        "nothing",
        "what is known",
        "a delivery of the record that it replaced",
        "a time that is none of its rule",
        "a time to come",
        "a later time without a further delivery",
    ],
)
def test_a_status_says_the_same_as_before_if_relays_tell(occurrence: LastOccurrence | None) -> None:
    before = record(**DELIVERED_ONCE)

    assert with_occurrence(before, occurrence, NINE_MS + 6 * HOUR_MS) == shown(before.status) == DELIVERED_ONCE


def test_the_last_time_stays_and_the_counts_begin_anew_with_what_is_written() -> None:
    assert shown(record(**DELIVERED_ONCE).status, begins=True) == {"last": instant(NINE_MS)}
