"""Decisions about a RecurringRecord: what is written when, what is said of it, and what its deletion waits for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any
from zlib import crc32

import pytest
from tests.support.operator.topic_scenes import wanted

from delaytopic_operator.model.conditions import instant
from delaytopic_operator.model.kafka_view import NewRecord
from delaytopic_operator.observe.observation import Problem
from delaytopic_operator.recurring.plan import (
    FINALIZER,
    Hindrance,
    RecurringObservation,
    RecurringPlan,
    Source,
    plan_recurring,
    status_of_refused,
)

NINE_MS = 1_795_510_800_000
"""2026-11-24T09:00:00Z, a Tuesday."""
NOW_MS = NINE_MS - 3_600_000
SECOND_MS = 1_000
TAKES_IDS = wanted(schedule={"ids": "ByHeader"}).settings
SOURCE = Source("shop.delayed", "t1", 4, "d1", TAKES_IDS)
PARTITION = crc32(b"u1") % 4
DAILY: dict[str, Any] = {"delayTopic": "reminders", "cron": "0 9 * * *", "value": "report"}
CONTROLS = [("deliver-id", b"u1"), ("deliver-cron", b"0 9 * * *"), ("deliver-missed", b"Latest")]
CANCEL = [("deliver-id", b"u1"), ("deliver-action", b"cancel")]
MISSING = Hindrance(Problem("DelayTopicMissing", "there is no DelayTopic shop/reminders"), is_gone=True)
AWAY = Hindrance(Problem("KafkaUnreachable", "Kafka did not answer", passing=True))
NO_IDS = Hindrance(Problem("IdsNotTaken", "the DelayTopic shop/reminders takes no ids by header"), is_doubtful=True)
BRIEF = replace(SOURCE, settings=wanted(schedule={"ids": "ByHeader", "maxDelay": "12h"}).settings)


@dataclass
class OneRecord:
    """A RecurringRecord as the API server has it, whose status becomes what is decided."""

    spec: dict[str, Any]
    status: dict[str, Any] | None = None
    finalizers: tuple[str, ...] = ()
    is_going: bool = False
    generation: int = 2

    def look(
        self, now_ms: int = NOW_MS, source: Source | Hindrance = SOURCE, *, crashes: bool = False
    ) -> RecurringPlan:
        """Decide, and do what is decided: up to the write with `crashes`, else all of it."""
        plan = plan_recurring(self.seen(now_ms, source))
        for applied in (plan.intent, None if crashes else plan.status):
            self.status = dict(applied["status"]) if applied is not None else self.status
        return plan

    def seen(self, now_ms: int, source: Source | Hindrance = SOURCE) -> RecurringObservation:
        """Return one look at it as it is now."""
        metadata: dict[str, Any] = {"name": "report", "namespace": "shop", "uid": "u1", "generation": self.generation}
        metadata |= {"creationTimestamp": instant(NOW_MS), "finalizers": [*self.finalizers]}
        if self.is_going:
            metadata["deletionTimestamp"] = instant(NOW_MS)
        document = {"apiVersion": "delaytopic.dev/v1beta1", "kind": "RecurringRecord", "metadata": metadata}
        document |= {"spec": self.spec, **({"status": self.status} if self.status is not None else {})}
        return RecurringObservation(now_ms, document, source)

    def ready(self) -> tuple[str, str]:
        assert self.status is not None
        found = next(each for each in self.status["conditions"] if each["type"] == "Ready")
        return found["status"], found["reason"]


def written(at_ms: int, headers: list[tuple[str, bytes]], value: bytes | None = b"report") -> NewRecord:
    return NewRecord("shop.delayed", PARTITION, None, value, headers, at_ms)


def test_a_record_is_written_once_under_the_uid_of_its_object() -> None:
    record = OneRecord(DAILY)

    plans = [record.look(), record.look(NOW_MS + SECOND_MS)]

    assert [plan.message for plan in plans] == [written(NOW_MS, CONTROLS), None]
    assert plans[1].status is None
    assert record.ready() == ("True", "Written")
    assert (record.status or {})["next"] == instant(NINE_MS)


def test_the_status_names_the_partition_before_anything_is_written() -> None:
    plan = OneRecord(DAILY).look()

    assert plan.intent is not None
    assert plan.intent["status"]["written"] == {
        "topic": "shop.delayed",
        "topicId": "t1",
        "delayTopicUid": "d1",
        "partition": PARTITION,
    }


def test_what_a_crash_left_without_a_status_is_written_again_to_the_same_partition() -> None:
    record = OneRecord(DAILY)
    record.look(crashes=True)

    again = record.look(NOW_MS + SECOND_MS, replace(SOURCE, partitions=64))

    assert again.message == written(NOW_MS + SECOND_MS, CONTROLS)
    assert record.ready() == ("True", "Written")


@pytest.mark.parametrize("from_slot_ms", [-9_999, 0, 9_999])
def test_a_replacement_waits_until_a_slot_of_its_rule_is_delivered(from_slot_ms: int) -> None:
    record = OneRecord(DAILY)
    record.look()
    record.spec = {**DAILY, "value": "other"}

    waits = record.look(NINE_MS + from_slot_ms)
    at_ms = waits.next_at_ms
    assert at_ms is not None
    replaces = record.look(at_ms)

    assert (waits.message, at_ms) == (None, NINE_MS + 10_000)
    assert replaces.message == written(NINE_MS + 10_000, CONTROLS, b"other")


def test_what_kafka_refuses_is_told_once_and_tried_again() -> None:
    record = OneRecord(DAILY)
    refused = Problem("AuthorizationFailed", "it may not write to shop.delayed")

    told = []
    for number in range(3):
        seen, decided = record.seen(NOW_MS + number * SECOND_MS), record.look(NOW_MS + number * SECOND_MS, crashes=True)
        news = status_of_refused(seen, decided, refused)
        record.status = dict(news["status"]) if news is not None else record.status
        told.append((decided.message is not None, decided.intent is not None, news is not None, record.ready()))
    written_at_last = record.look(NOW_MS + 3 * SECOND_MS)

    reason = ("False", "AuthorizationFailed")
    assert told == [(True, True, True, reason), *[(True, False, False, reason)] * 2]
    assert (written_at_last.message is not None, record.ready()) == (True, ("True", "Written"))


def test_a_replacement_waits_for_the_jitter_of_the_slot_before_it_too() -> None:
    record = OneRecord({**DAILY, "jitter": "30s"})
    record.look()
    record.spec = {**record.spec, "value": "other"}

    waits = record.look(NINE_MS + 39_000)

    assert (waits.message, waits.next_at_ms) == (None, NINE_MS + 40_000)


def test_a_replacement_is_written_at_once_where_jitter_leaves_no_time_between_slots() -> None:
    record = OneRecord({"delayTopic": "reminders", "every": "1m", "jitter": "1m", "value": "report"})
    record.look()
    record.spec = {**record.spec, "value": "other"}

    replaces = record.look(NOW_MS + 60_000)

    assert replaces.message is not None


def test_an_interval_counts_from_the_creation_however_often_the_record_is_written() -> None:
    record = OneRecord({"delayTopic": "reminders", "every": "1h", "value": "report"})
    first = record.look(NOW_MS + 5_000).message
    record.spec = {**record.spec, "value": "other"}
    second = record.look(NOW_MS + 1_800_000).message

    assert first is not None
    assert second is not None
    assert [dict(each.headers)["deliver-from"] for each in (first, second)] == [b"%d" % NOW_MS] * 2


@pytest.mark.parametrize(
    "source",
    [replace(SOURCE, topic_id="t2"), replace(SOURCE, delay_topic_uid="d2")],
    ids=["made anew is the topic", "made anew is the DelayTopic"],
)
def test_a_chain_is_armed_again_where_it_was_lost_with(source: Source) -> None:
    record = OneRecord(DAILY)
    record.look()

    again = record.look(NOW_MS + SECOND_MS, source)

    assert again.message == written(NOW_MS + SECOND_MS, CONTROLS)


@pytest.mark.parametrize("between", [NO_IDS, BRIEF], ids=["took no ids", "allowed shorter delays alone"])
def test_a_chain_is_armed_again_behind_a_time_in_which_its_delay_topic(between: Source | Hindrance) -> None:
    record = OneRecord(DAILY)
    record.look()

    meanwhile = [record.look(NOW_MS + each * SECOND_MS, between) for each in (1, 2)]
    after = [record.look(NOW_MS + each * SECOND_MS) for each in (3, 4)]

    assert [plan.message for plan in (*meanwhile, *after)] == [None, None, written(NOW_MS + 3_000, CONTROLS), None]
    assert record.ready() == ("True", "Written")


def test_what_waits_is_believed_to_wait_on_while_kafka_is_away() -> None:
    record = OneRecord(DAILY)
    record.look()
    record.look(NOW_MS + SECOND_MS, AWAY)

    assert record.look(NOW_MS + 2 * SECOND_MS).message is None


def test_a_record_that_recurs_less_often_than_its_delay_topic_allows_is_not_written_and_says_so() -> None:
    record = OneRecord(DAILY)

    plan = record.look(source=BRIEF)

    assert plan.message is None
    assert record.ready() == ("False", "BeyondMaxDelay")
    assert (record.status or {})["conditions"][0]["message"] == (
        "spec.cron: its time 2026-11-25T09:00:00.000Z is 24h after the one before; the DelayTopic shop/reminders allows"
        " at most 12h (schedule.maxDelay): nothing is written until it is put right"
    )


def test_an_edit_to_times_that_are_not_allowed_cancels_once_what_recurs_by_the_rule_before_it() -> None:
    record = OneRecord({**DAILY, "cron": "0 * * * *"})
    record.look(source=BRIEF)
    record.spec, record.generation = DAILY, 3

    plans = [record.look(NOW_MS + each * SECOND_MS, BRIEF) for each in (1, 2)]
    refused = record.ready()
    allowed = record.look(NOW_MS + 3 * SECOND_MS)

    assert [plan.message for plan in plans] == [written(NOW_MS + SECOND_MS, CANCEL, None), None]
    assert refused == ("False", "BeyondMaxDelay")
    assert allowed.message == written(NOW_MS + 3 * SECOND_MS, CONTROLS)


def test_a_first_time_that_is_too_far_away_is_told_once_and_written_when_it_is_near() -> None:
    record = OneRecord({**DAILY, "from": instant(NINE_MS + 5 * 86_400_000)})
    near_ms = NINE_MS + 4 * 86_400_000
    brief = replace(SOURCE, settings=wanted(schedule={"ids": "ByHeader", "maxDelay": "24h"}).settings)

    plans = [record.look(at_ms, brief) for at_ms in (NOW_MS, NOW_MS + 60_000, near_ms)]

    assert [(plan.message is not None, plan.status is not None) for plan in plans] == [
        (False, True),
        (False, False),
        (True, True),
    ]


def test_a_record_that_recurs_too_seldom_by_now_is_cancelled_with_its_object() -> None:
    record = OneRecord(CANCELLED_AT_LAST, finalizers=(FINALIZER,))
    record.look()
    record.look(NOW_MS + SECOND_MS, BRIEF)
    record.is_going = True

    plan = record.look(NOW_MS + 2 * SECOND_MS, BRIEF)

    assert plan == RecurringPlan(message=written(NOW_MS + 2_000, CANCEL, None), is_free=True)


def test_a_suspended_record_is_cancelled_once_and_written_again_when_it_is_resumed() -> None:
    record = OneRecord(DAILY)
    record.look()
    record.spec = {**DAILY, "suspend": True, "suspendNote": "until Monday"}
    plans = [record.look(NOW_MS + SECOND_MS), record.look(NOW_MS + 2 * SECOND_MS)]
    suspended = record.ready()
    record.spec = DAILY
    resumed = record.look(NOW_MS + 3 * SECOND_MS)

    assert [plan.message for plan in plans] == [written(NOW_MS + SECOND_MS, CANCEL, None), None]
    assert suspended == ("False", "Suspended")
    assert resumed.message == written(NOW_MS + 3 * SECOND_MS, CONTROLS)


def test_of_a_record_that_was_suspended_from_the_first_nothing_is_written() -> None:
    record = OneRecord({**DAILY, "suspend": True})

    assert record.look().message is None
    assert record.ready() == ("False", "Suspended")


def test_behind_its_end_a_record_is_left_to_its_last_delivery() -> None:
    record = OneRecord({**DAILY, "until": "2026-11-24T09:00:00Z"})
    record.look()

    ended = record.look(NINE_MS + SECOND_MS)

    assert ended.message is None
    assert record.ready() == ("True", "Ended")


def test_a_rule_that_has_ended_before_it_was_applied_cancels_the_one_before_it() -> None:
    record = OneRecord(DAILY)
    record.look()
    record.spec = {**DAILY, "until": "2026-11-20T09:00:00Z"}

    assert record.look(NOW_MS + SECOND_MS).message == written(NOW_MS + SECOND_MS, CANCEL, None)


@pytest.mark.parametrize(
    ("hindrance", "ready"),
    [(MISSING, ("False", "DelayTopicMissing")), (AWAY, ("Unknown", "KafkaUnreachable"))],
    ids=["the DelayTopic is missing", "Kafka is away"],
)
def test_nothing_is_written_and_the_condition_says_why_while(hindrance: Hindrance, ready: tuple[str, str]) -> None:
    record = OneRecord(DAILY)

    plan = record.look(source=hindrance)

    assert (plan.message, plan.next_at_ms) == (None, NOW_MS + 60_000)
    assert record.ready() == ready


def test_what_was_written_is_still_known_when_kafka_is_back() -> None:
    record = OneRecord(DAILY)
    record.look()
    record.look(NOW_MS + SECOND_MS, AWAY)

    assert record.look(NOW_MS + 2 * SECOND_MS).message is None
    assert record.ready() == ("True", "Written")


def test_a_rule_that_the_schema_lets_through_and_no_relay_reads_is_refused() -> None:
    record = OneRecord({**DAILY, "cron": "61 9 * * *"})

    plan = record.look()

    assert plan.message is None
    assert record.ready() == ("False", "InvalidSpec")
    assert "Stalled" in {each["type"] for each in (record.status or {})["conditions"]}


@pytest.mark.parametrize(
    ("policy", "finalizers", "held"),
    [("Cancel", (), True), ("Cancel", (FINALIZER,), None), ("Keep", (FINALIZER,), False), ("Keep", (), None)],
)
def test_only_a_record_that_is_cancelled_with_its_object_has_a_finalizer(
    policy: str, finalizers: tuple[str, ...], held: bool | None
) -> None:
    assert OneRecord({**DAILY, "deletionPolicy": policy}, finalizers=finalizers).look().is_held is held


CANCELLED_AT_LAST = {**DAILY, "deletionPolicy": "Cancel"}


def test_a_deleted_object_is_let_go_once_its_record_is_cancelled() -> None:
    record = OneRecord(CANCELLED_AT_LAST, finalizers=(FINALIZER,))
    record.look()
    record.is_going = True

    plan = record.look(NOW_MS + SECOND_MS)

    assert plan == RecurringPlan(message=written(NOW_MS + SECOND_MS, CANCEL, None), is_free=True)


def test_a_deleted_object_waits_for_a_delay_topic_that_takes_cancels() -> None:
    record = OneRecord(CANCELLED_AT_LAST, finalizers=(FINALIZER,))
    record.look()
    record.is_going = True

    waits, goes = record.look(NOW_MS + SECOND_MS, NO_IDS), record.look(NOW_MS + 2 * SECOND_MS)

    assert (waits.message, waits.is_free) == (None, False)
    assert goes == RecurringPlan(message=written(NOW_MS + 2 * SECOND_MS, CANCEL, None), is_free=True)


def test_a_deleted_object_waits_for_a_kafka_that_is_away() -> None:
    record = OneRecord(CANCELLED_AT_LAST, finalizers=(FINALIZER,))
    record.look()
    record.is_going = True

    plan = record.look(NOW_MS + SECOND_MS, AWAY)

    assert (plan.message, plan.is_free, plan.next_at_ms) == (None, False, NOW_MS + SECOND_MS + 60_000)


@pytest.mark.parametrize(
    ("spec", "source"),
    [(CANCELLED_AT_LAST, MISSING), (DAILY, AWAY)],
    ids=["the DelayTopic went first", "the policy is Keep by now"],
)
def test_a_deleted_object_hangs_on_nothing_where(spec: dict[str, Any], source: Hindrance) -> None:
    record = OneRecord(CANCELLED_AT_LAST, finalizers=(FINALIZER,))
    record.look()
    record.spec, record.is_going = spec, True

    assert record.look(NOW_MS + SECOND_MS, source) == RecurringPlan(is_free=True)


def test_of_an_object_that_is_gone_nothing_is_left_to_do() -> None:
    assert plan_recurring(RecurringObservation(NOW_MS, None)) == RecurringPlan()
