"""The status of partitions that a producer's transaction keeps from being read further."""

from __future__ import annotations

from tests.support.relay.backlog.listings import AS_OF_MS
from tests.support.relay.backlog.shards import redis_shard
from tests.unit.relay.telemetry.test_status_of_stored import CONFIG

from delaytopic_api.relay import OpenTransaction as Told
from delaytopic_api.relay import RelayState, ShardStatus
from delaytopic_process.open_transactions import LASTS_MS, OpenTransaction
from delaytopic_relay.backlog.redis.shard import RedisShard
from delaytopic_relay.engine.snapshot import LoopSnapshot
from delaytopic_relay.telemetry.status import Counters, relay_status

FIRST = 7
"""The offset of the transaction's first record."""


def status_of(shard: RedisShard, age_ms: int | None) -> ShardStatus:
    """Partition 0, which ends at 12, with a transaction of that age or without."""
    since_ms = AS_OF_MS - (age_ms or 0)
    found = {0: OpenTransaction(FIRST, since_ms, held_back=5)} if age_ms is not None else {}
    snapshot = LoopSnapshot(RelayState.RUNNING, shards={0: shard}, ends={0: 12}, open_transactions=found)
    (status,) = relay_status(CONFIG, "relay-0", AS_OF_MS, AS_OF_MS, Counters(), snapshot).shards
    return status


def test_what_a_transaction_holds_back_is_no_lag_that_relays_could_lower() -> None:
    shard = redis_shard()
    shard.reached_end(4)

    assert (status_of(shard, None).ingest_lag, status_of(shard, 5_000).ingest_lag) == (8, FIRST - 4)


def test_a_transaction_is_named_with_its_place_from_when_on_and_what_is_behind_it() -> None:
    told = status_of(redis_shard(), 5_000).open_transaction

    assert told == Told(offset=FIRST, since_ms=AS_OF_MS - 5_000, held_back=5)


def test_the_message_tells_of_one_that_is_open_for_longer_than_usual() -> None:
    told = [status_of(redis_shard(), age_ms).message for age_ms in (LASTS_MS - 1, LASTS_MS)]

    assert told == [None, OpenTransaction(FIRST, AS_OF_MS - LASTS_MS, held_back=5).describe()]
