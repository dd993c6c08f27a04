"""Tests of the status while a topic that records go to does not answer."""

from __future__ import annotations

import pytest
from tests.support.relay.backlog.shards import redis_shard
from tests.support.relay.statuses import AS_OF_MS
from tests.unit.relay.telemetry.test_status_of_buckets import CONFIG

from delaytopic_api.relay import RelayState, RelayStatus, ShardReason, ShardState, UnansweredTopic
from delaytopic_relay.delivery.reachability import ANY, Destination, Trouble
from delaytopic_relay.engine.snapshot import LoopSnapshot
from delaytopic_relay.telemetry.metrics import RelayMetrics
from delaytopic_relay.telemetry.status import Counters, relay_status

OWN = Trouble(Destination("orders", 2), False, AS_OF_MS - 7_000, 0, "it has no leader")
FURTHER = Trouble(Destination("others", ANY), True, AS_OF_MS - 9_000, 0, "it does not exist")


def status_of(
    held: dict[int, Trouble], refused: dict[str, Trouble], waiting: dict[int, str] | None = None
) -> RelayStatus:
    """A relay of the partitions 0, 1 and 2, of which some wait to be recovered."""
    waiting = waiting or {}
    shards = {number: redis_shard() for number in range(3) if number not in waiting}
    snapshot = LoopSnapshot(RelayState.RUNNING, shards, waiting, held=held, refused=refused)
    return relay_status(CONFIG, "relay-0", 0, AS_OF_MS, Counters(), snapshot)


def test_a_partition_that_waits_for_a_topic_is_paused_and_says_for_what_and_since_when() -> None:
    shards = status_of({1: OWN}, {}).shards

    assert [(each.state, each.reason) for each in shards] == [
        (ShardState.DELIVERING, None),
        (ShardState.PAUSED, ShardReason.TARGET_UNAVAILABLE),
        (ShardState.DELIVERING, None),
    ]
    assert shards[1].message == (
        "it waits for a topic: orders[2] has not answered since 2026-11-21T13:59:53.000Z: it has no leader; "
        "it goes on by itself when that answers"
    )


def test_one_that_is_not_taken_over_meanwhile_says_the_same() -> None:
    (shard,) = [each for each in status_of({1: OWN}, {}, {1: "unanswered"}).shards if each.partition == 1]

    assert (shard.state, shard.reason) == (ShardState.RECOVERING, ShardReason.TARGET_UNAVAILABLE)
    assert shard.message is not None
    assert "orders[2]" in shard.message


@pytest.mark.parametrize("refused", [{}, {"others": FURTHER}])
def test_each_topic_that_does_not_answer_is_told_with_how_many_wait_for_it(refused: dict[str, Trouble]) -> None:
    told = status_of({0: OWN, 1: OWN}, refused).unanswered

    others = UnansweredTopic(topic="others", since_ms=AS_OF_MS - 9_000, message="it does not exist")
    assert told == [
        UnansweredTopic(topic="orders", partition=2, since_ms=AS_OF_MS - 7_000, waiting=2, message="it has no leader"),
        *([others] if refused else []),
    ]


def test_the_metric_names_topic_and_partition_and_is_0_for_what_nobody_waits_for() -> None:
    metrics = RelayMetrics("shop", "reminders")
    metrics.set_backlog(status_of({0: OWN, 1: OWN}, {"others": FURTHER}))

    page = metrics.render().decode()

    labels = 'delaytopic_name="reminders",delaytopic_namespace="shop"'
    name = "delaytopic_unanswered_topic_waiting_shards"
    assert f'{name}{{{labels},partition="2",topic="orders"}} 2.0' in page
    assert f'{name}{{{labels},partition="",topic="others"}} 0.0' in page
