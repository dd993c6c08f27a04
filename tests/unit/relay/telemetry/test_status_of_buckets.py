"""Tests of what /status says of buckets, and of a backlog that moves."""

from __future__ import annotations

from tests.support.relay.backlog.shards import bucket_shard

from delaytopic_api.relay import BucketStatus, RelayConfig, RelayState, RelayStatus, ShardState
from delaytopic_relay.backlog.kafka.partition import BucketShard
from delaytopic_relay.backlog.kafka.ranges import BucketRules
from delaytopic_relay.core.commands import NOTHING_DELIVERED, Schedule
from delaytopic_relay.core.progress import Progress
from delaytopic_relay.engine.snapshot import LoopSnapshot
from delaytopic_relay.telemetry.status import Counters, relay_status

NOW_MS = 1_000_000
CONFIG = RelayConfig.model_validate(
    {
        "name": "reminders",
        "namespace": "shop",
        "groupId": "group",
        "source": {"topic": "source"},
        "target": {"topic": "target"},
        "deadLetter": {"topic": "dead"},
        "schedule": {"maxDelay": "1h"},
        "precision": "1s",
        "guarantee": "ExactlyOnce",
        "backend": {"type": "KafkaBuckets", "id": "shop"},
        "kafka": {"bootstrapServers": "kafka:9092"},
    }
)
RULES = BucketRules(horizon_ms=1_000, buckets=3, source_id=1, full_records=10)


def open_shard(position: int = 0) -> BucketShard:
    shard = bucket_shard(RULES, Progress(0, position, NOTHING_DELIVERED))
    shard.advance(NOW_MS)
    return shard


def status_of(shard: BucketShard, moving: frozenset[int] = frozenset()) -> RelayStatus:
    snapshot = LoopSnapshot(RelayState.RUNNING, {0: shard}, moving=moving)
    return relay_status(CONFIG, "relay-0", NOW_MS, NOW_MS, Counters(), snapshot)


def test_each_bucket_has_its_range_and_what_waits_in_it() -> None:
    shard = open_shard()
    shard.ingest([Schedule(NOW_MS + 2_500 + number, number, None, None, None) for number in range(11)], 11, {})
    shard.put_done(shard.put(), NOW_MS + 250)

    assert status_of(shard).shards[0].buckets == [
        BucketStatus(bucket=0, from_delay_ms=1_000, to_delay_ms=2_000, pending=0),
        BucketStatus(
            bucket=1,
            from_delay_ms=2_000,
            to_delay_ms=3_000,
            split=True,
            pending=11,
            next_due_ms=NOW_MS + 2_500,
            read_at_ms=NOW_MS + 1_750,
        ),
        BucketStatus(bucket=2, from_delay_ms=3_000, pending=0),
    ]


def test_what_is_due_comes_from_the_index_of_the_buckets() -> None:
    shard = open_shard()
    shard.ingest([Schedule(NOW_MS + 2_500 + number, number, None, None, None) for number in range(4)], 4, {})
    shard.put_done(shard.put(), NOW_MS)

    status = status_of(shard)

    assert (status.pending, status.next_due_ms) == (4, NOW_MS + 2_500)
    assert {each.up_to_ms - NOW_MS: each.records for each in status.due_histogram if each.records} == {5_000: 4}


def test_a_shard_that_reads_again_says_how_far_it_has_to_go() -> None:
    status = status_of(open_shard(position=40))

    assert (status.replay_lag, status.shards[0].replay_lag) == (40, 40)
    assert status.shards[0].state is ShardState.REPLAYING
    assert status.shards[0].message == "reads again what it lacks: 40 source offsets to go"


def test_a_backlog_that_comes_from_another_backend_is_called_so() -> None:
    status = status_of(open_shard(position=40), moving=frozenset({0}))

    assert status.shards[0].message == "the backlog moves here from another backend: 40 source offsets to go"
