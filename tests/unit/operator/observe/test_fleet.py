"""Tests of what a fleet of relays says as a whole, from its Deployment, its pods and the relays' pages."""

from __future__ import annotations

from typing import Any

import pytest

from delaytopic_api import RelayStatus
from delaytopic_api.documents import ConditionStatus, ConditionType
from delaytopic_operator.model.conditions import FALSE, TRUE, UNKNOWN, Condition
from delaytopic_operator.observe.fleet import FleetFacts, RelayPage, availability, backlog, punctuality, quota_condition

NOW_MS = 1_795_269_686_000
AS_OF_MS = NOW_MS + 40
"""A page is read after the look has begun that it is a part of."""


def deployment(*, replicas: int = 2, generation: int = 1, **status: Any) -> dict[str, Any]:
    usual = {"observedGeneration": 1, "replicas": 2, "updatedReplicas": 2, "readyReplicas": 2}
    metadata = {"name": "relay", "generation": generation}
    return {"metadata": metadata, "spec": {"replicas": replicas}, "status": {**usual, **status}}


def page(*shards: dict[str, Any], as_of_ms: int = AS_OF_MS, **changes: Any) -> RelayPage:
    counts = ("deliveredTotal", "deadLetteredTotal", "supersededTotal", "cancelledTotal", "ingestLag")
    filled: list[dict[str, Any]] = [
        {"partition": number, "state": "Delivering", "committedOffset": 0, "position": 0, "overdue": 0, "ingestLag": 0}
        | {"pending": 0}
        | shard
        for number, shard in enumerate(shards)
    ]
    status = {
        "relay": "relay-1",
        "delayTopic": "shop/reminders",
        "startedAtMs": NOW_MS - 60_000,
        "asOfMs": as_of_ms,
        "state": "Running",
        "guarantee": "ExactlyOnce",
        "backend": "RedisZset",
        "speedups": True,
        **dict.fromkeys(counts, 0),
        "pending": sum(shard["pending"] for shard in filled),
        "overdue": sum(shard["overdue"] for shard in filled),
        "memoryBytes": 0,
        "shards": filled,
        **changes,
    }
    return RelayPage("relay-1", RelayStatus.model_validate(status))


def fleet(
    *pages: RelayPage, partitions: int | None = 2, pods: list[dict[str, Any]] | None = None, **of: Any
) -> FleetFacts:
    return FleetFacts(deployment(**of), pods or [], pages, partitions)


def test_a_delay_topic_that_has_used_up_its_share_of_redis_is_told_which_partitions_have_no_room() -> None:
    full = {"state": "Paused", "redisFull": True}

    found = quota_condition(fleet(page({}, full, full)))

    assert found is not None
    assert (found.type, found.status, found.reason) == (
        ConditionType.BACKEND_READY,
        ConditionStatus.TRUE,
        "RedisQuotaReached",
    )
    assert found.message.startswith("2 source partitions (the first: 1) have no room in Redis: ")
    assert quota_condition(fleet(page({}, {"state": "Paused"}))) is None


def waiting(reason: str, message: str) -> dict[str, Any]:
    state = {"waiting": {"reason": reason, "message": message}}
    return {"metadata": {"name": "relay-1"}, "status": {"containerStatuses": [{"state": state}]}}


@pytest.mark.parametrize(
    ("of", "sentence"),
    [
        ({}, None),
        ({"generation": 2}, "the relays are about to change"),
        ({"updatedReplicas": 1}, "1 of 2 relays have the new configuration"),
        ({"replicas": 3, "status_replicas": 3}, "2 of 3 relays have the new configuration"),
    ],
)
def test_a_rollout_is_told_until_all_pods_are_the_new_ones(of: dict[str, Any], sentence: str | None) -> None:
    of.pop("status_replicas", None)

    assert fleet(**of).rolling == sentence


def test_relays_that_are_about_to_end_are_part_of_a_rollout() -> None:
    found = FleetFacts({**deployment(), "status": {**deployment()["status"], "replicas": 3}}, [], [], 2)

    assert found.rolling == "1 relays are about to end"


def test_the_later_word_about_a_partition_counts() -> None:
    before = page({"pending": 9}, as_of_ms=AS_OF_MS - 1)
    after = page({"pending": 4}, {"pending": 1})

    assert [fleet(*pages).pending for pages in ((before, after), (after, before))] == [5, 5]


@pytest.mark.parametrize("state", ["Recovering", "Replaying", "Failed"])
def test_what_a_shard_does_not_know_yet_is_no_count(state: str) -> None:
    assert fleet(page({"pending": 3}, {"state": state})).pending is None


def test_nothing_is_known_while_a_partition_is_nobodys() -> None:
    assert fleet(page({"pending": 3})).pending is None
    assert fleet(page({"pending": 3}, {"pending": 1}), partitions=None).pending is None


def test_the_backlog_is_that_of_all_relays_that_answer_and_as_old_as_the_oldest_answer() -> None:
    bins = [{"upToMs": AS_OF_MS + 1_000, "records": 2}, {"upToMs": AS_OF_MS + 600_000, "records": 5}]
    one = page({"pending": 7}, dueHistogram=bins, nextDueMs=NOW_MS + 900)
    two = page({"pending": 1, "overdue": 1}, as_of_ms=AS_OF_MS - 3_000, nextDueMs=NOW_MS - 5_000)
    silent = RelayPage("relay-3", None, "does not answer")

    found = backlog(fleet(one, two, silent), 600_000)

    assert found is not None
    assert found.to_document() == {
        "pending": 8,
        "overdue": 1,
        "dueWithinLookAhead": 7,
        "nextDue": "2026-11-21T14:01:21Z",
        "asOf": "2026-11-21T14:01:23Z",
    }


def test_the_backlog_leaves_out_what_was_withdrawn_and_what_is_pending_for_decisions_does_not() -> None:
    seen = fleet(page({"pending": 7, "withdrawn": 5}, {"pending": 2}, withdrawn=5))

    found = backlog(seen, 600_000)

    assert found is not None
    assert (found.pending, seen.pending, seen.withdrawn) == (4, 9, 5)


def test_without_an_answer_there_is_no_backlog_to_tell() -> None:
    assert backlog(fleet(RelayPage("relay-1", None, "does not answer")), 600_000) is None


EXCEEDED = "pods is forbidden: exceeded quota: none"


@pytest.mark.parametrize(
    ("found", "condition"),
    [
        (FleetFacts(None, [], [], None), (FALSE, "Creating", "the relays are being made")),
        (fleet(), (TRUE, "RelaysReady", "2 of 2 relays are ready")),
        (fleet(readyReplicas=1), (TRUE, "RelaysReady", "1 of 2 relays are ready")),
        (
            fleet(replicas=0),
            (TRUE, "ScaledToZero", "nothing is pending and nothing arrives: no relay is needed"),
        ),
        (fleet(readyReplicas=0), (FALSE, "MinimumReplicasUnavailable", "0 of 2 relays are ready")),
        (
            fleet(readyReplicas=0, pods=[waiting("ImagePullBackOff", "no such image")]),
            (FALSE, "ImagePull", "pod relay-1: no such image"),
        ),
        (
            fleet(readyReplicas=0, pods=[waiting("CrashLoopBackOff", "back-off 10s")]),
            (FALSE, "CrashLoop", "pod relay-1: back-off 10s"),
        ),
        (
            fleet(readyReplicas=0, pods=[waiting("CreateContainerConfigError", 'secret "redis" not found')]),
            (FALSE, "CreateContainerConfigError", 'pod relay-1: secret "redis" not found'),
        ),
        (
            fleet(readyReplicas=0, pods=[waiting("ContainerCreating", "")]),
            (FALSE, "MinimumReplicasUnavailable", "0 of 2 relays are ready"),
        ),
        (
            fleet(readyReplicas=0, conditions=[{"type": "ReplicaFailure", "status": "True", "message": EXCEEDED}]),
            (FALSE, "QuotaExceeded", EXCEEDED),
        ),
    ],
)
def test_relays_are_available_or_the_worst_that_is_the_matter_with_them_is_said(
    found: FleetFacts, condition: Any
) -> None:
    assert availability(found) == Condition(ConditionType.RELAY_AVAILABLE, *condition)


@pytest.mark.parametrize(
    ("pages", "condition"),
    [
        ([], (UNKNOWN, "NoData", "no relay answers")),
        (
            [page({"overdue": 3}, oldestOverdueMs=NOW_MS - 900)],
            (TRUE, "OnTime", "nothing is overdue by more than 1000 ms"),
        ),
        (
            [
                page({"overdue": 3}, oldestOverdueMs=NOW_MS - 1_001),
                page({"overdue": 1}, oldestOverdueMs=NOW_MS - 7_000),
            ],
            (FALSE, "Overdue", "4 records are overdue, the oldest by 7000 ms; precision is 1000 ms"),
        ),
        (
            [page({}, secondClock={"name": "Redis", "agrees": True, "aheadMs": 3})],
            (TRUE, "OnTime", "nothing is overdue by more than 1000 ms"),
        ),
        (
            [page({}, secondClock={"name": "Redis", "agrees": False, "message": "it has not answered yet"})],
            (TRUE, "OnTime", "nothing is overdue by more than 1000 ms"),
        ),
        (
            [page({}, secondClock={"name": "Redis", "agrees": False, "aheadMs": 9_000, "message": "9 s ahead"})],
            (FALSE, "ClocksDiffer", "relay relay-1: 9 s ahead"),
        ),
    ],
)
def test_delivery_is_on_time_while_nothing_is_overdue_by_more_than_precision(
    pages: list[RelayPage], condition: Any
) -> None:
    assert punctuality(fleet(*pages), 1_000, NOW_MS) == Condition(ConditionType.DELIVERING_ON_TIME, *condition)
