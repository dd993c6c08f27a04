"""The status of shards whose schedules wait in Redis: what is not counted yet, and what has used up its share."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
import yaml
from tests.support.relay.backlog.listings import AS_OF_MS
from tests.support.relay.backlog.shards import redis_shard, unlisted_shard
from tests.support.relay.schedules import schedule

from delaytopic_api.loading import load_relay_config
from delaytopic_api.relay import RelayState, RelayStatus, SecondClockStatus, ShardReason, ShardState
from delaytopic_relay.backlog.redis.shard import RedisShard
from delaytopic_relay.backlog.store import END_MS, Page, Slice
from delaytopic_relay.core.commands import DueKey
from delaytopic_relay.core.done import Ahead
from delaytopic_relay.core.progress import Progress
from delaytopic_relay.core.second_clock import ClockState
from delaytopic_relay.engine.snapshot import LoopSnapshot
from delaytopic_relay.errors import StandsStill
from delaytopic_relay.telemetry.status import Counters, relay_status

CONFIG = load_relay_config(
    yaml.safe_dump(
        {
            "apiVersion": "delaytopic.dev/v1beta1",
            "kind": "RelayConfig",
            "name": "reminders",
            "namespace": "shop",
            "groupId": "delaytopic.shop.reminders",
            "source": {"topic": "source"},
            "target": {"topic": "target"},
            "deadLetter": {"topic": "dead"},
            "schedule": {"maxDelay": "720h"},
            "precision": "1s",
            "guarantee": "ExactlyOnce",
            "backend": {"type": "RedisZset", "id": "delaytopic.shop.reminders", "redis": {"url": "redis://redis:6379"}},
            "kafka": {"bootstrapServers": "kafka:9092"},
        }
    )
)


def status_of(
    shard: RedisShard, paused: frozenset[int] = frozenset(), still: Mapping[int, StandsStill] | None = None
) -> RelayStatus:
    snapshot = LoopSnapshot(RelayState.RUNNING, shards={0: shard}, paused=paused, still=still or {})
    return relay_status(CONFIG, "relay-0", AS_OF_MS, AS_OF_MS, Counters(), snapshot)


def a_shard(share_bytes: int = 1_000) -> RedisShard:
    return unlisted_shard(share_bytes=share_bytes)


def test_until_the_whole_schedule_is_read_the_shard_does_not_claim_to_know_what_is_pending() -> None:
    shard, slice_ = a_shard(), Slice(AS_OF_MS + 60_000, 1_000)
    shard.listed(Page({slice_: 7}, slice_.end_ms))
    (before,) = status_of(shard).shards
    shard.listed(Page({}, END_MS))
    (after,) = status_of(shard).shards

    assert (before.state, before.message) == (ShardState.RECOVERING, "what waits in the backend is being counted")
    assert (after.state, after.message, after.pending) == (ShardState.DELIVERING, None, 7)


def test_a_shard_that_is_not_read_on_until_a_person_has_looked_says_why_while_it_delivers() -> None:
    shard = a_shard()
    shard.listed(Page({}, END_MS))
    why = StandsStill(ShardReason.BATCH_UNREADABLE, "the batch at offset 5 cannot be read")

    (found,) = status_of(shard, frozenset([0]), {0: why}).shards

    assert (found.state, found.reason, found.message) == (ShardState.FAILED, "BatchUnreadable", str(why))


def test_a_shard_that_has_used_up_its_share_says_how_much_that_is() -> None:
    shard = a_shard()
    shard.listed(Page({}, END_MS))
    shard.note_stored(1_100)

    (found,) = status_of(shard, paused=frozenset({0})).shards

    assert (found.state, found.redis_bytes, found.redis_full) == (ShardState.PAUSED, 1_100, True)
    assert found.message == (
        "reading pauses: what waits takes 1100 bytes of Redis, and its share is 1000 (limits.maxRedisMemory, or else "
        "as much as Redis has left); it goes on when a quarter of that is free"
    )


def test_a_shard_that_a_full_redis_has_refused_something_says_so_and_delivers() -> None:
    shard = a_shard()
    shard.listed(Page({}, END_MS))
    shard.renew_admission_limits(AS_OF_MS, ids_share=0)
    shard.ingest([schedule(AS_OF_MS + 600_000, 5)], 6, {})
    put = shard.put(AS_OF_MS)
    shard.note_refusal(put, put.expected, (), AS_OF_MS)

    (found,) = status_of(shard).shards

    assert (found.state, found.redis_full, found.pending) == (ShardState.DELIVERING, True, 1)
    assert found.message is not None
    assert found.message.startswith("Redis is full: ")


def ahead_by(ahead_ms: int | None, *, believed: bool) -> ClockState:
    return ClockState("Redis", believed, ahead_ms, None)


def test_a_shard_whose_relay_holds_delivery_says_that_it_is_the_clock() -> None:
    clock = ahead_by(3_600_000, believed=False)
    shard = a_shard()
    shard.listed(Page({}, END_MS))
    snapshot = LoopSnapshot(RelayState.RUNNING, shards={0: shard}, paused=frozenset({0}), clock=clock)

    found = relay_status(CONFIG, "relay-0", AS_OF_MS, AS_OF_MS, Counters(), snapshot)

    assert found.second_clock == SecondClockStatus(
        name="Redis", agrees=False, ahead_ms=3_600_000, message=clock.message
    )
    assert found.shards[0].message == clock.message


@pytest.mark.parametrize(
    ("suspended", "message"),
    [
        (
            False,
            "reading pauses for 9000 ms: the clock of a relay that delivered here was ahead by that, or this one is "
            "behind, and the next record is due before what was delivered already; have a time server set the clocks",
        ),
        (True, "reading pauses: delivery is suspended, and the next record would have to leave at once"),
    ],
)
def test_a_shard_that_waits_for_the_clock_to_pass_its_cursor_names_the_clock_and_not_the_memory(
    message: str, *, suspended: bool
) -> None:
    shard = redis_shard(Progress(5, 5, DueKey(AS_OF_MS + 9_000, 1)))
    waits = frozenset({0})
    snapshot = LoopSnapshot(RelayState.RUNNING, shards={0: shard}, paused=waits, deferring=waits, suspended=suspended)

    (found,) = relay_status(CONFIG, "relay-0", AS_OF_MS, AS_OF_MS, Counters(), snapshot).shards

    assert (found.state, found.message) == (ShardState.PAUSED, message)


def test_a_shard_whose_cursor_went_back_says_what_left_early() -> None:
    shard = redis_shard(Progress(5, 5, DueKey(AS_OF_MS, -1), ahead=Ahead(5, DueKey(AS_OF_MS + 9_000, 1))))

    (found,) = status_of(shard).shards

    assert found.message == (
        f"the clock of a relay that delivered here was ahead: of the offsets below 5, what is due up to "
        f"{AS_OF_MS + 9_000} was delivered before its time; what comes is delivered in time"
    )
