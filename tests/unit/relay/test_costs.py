"""Costs of a record that no machine makes better or worse: each is counted, and a few percent more fail."""

from __future__ import annotations

import gc
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple, cast

import pytest
from tests.simulation.faults import Fault, What
from tests.simulation.history import History
from tests.simulation.plans import plan as histories
from tests.simulation.world.redis_server import RedisClient, RedisServer
from tests.simulation.world.store_client import Line
from tests.support.relay.backlog.memory_store import MemoryBacklogStore
from tests.support.relay.in_world import Relay, Setup, deliveries, start
from tests.support.relay.world import World, WorldGate

from delaytopic_api.records import Headers
from delaytopic_relay.backlog.redis.connection import Client, RedisConnection
from delaytopic_relay.backlog.redis.store import RedisBacklogStore
from delaytopic_relay.core.entries import SPEEDUPS

VALUE = bytes(200)
USER_HEADERS: Headers = [("content-type", b"application/json"), ("trace-id", bytes(16)), ("tenant", b"shop")]
KEY_BYTES = 10
SHARDS = (0, 1, 2)
ALL = Setup(shards=SHARDS)
RECORDS = 6_000
LEAD_MS, SPREAD_MS = 30_000, 20_000
IDLE_MS, REST_MS = 15_000, 2_000
TICK_MS = 5


class CountingClient:
    """Counts the requests that a client of Redis waits for, of which a pipeline is one, and the bytes of scripts."""

    def __init__(self, client: RedisClient, counts: Counter[str]) -> None:
        self._client = client
        self._counts = counts

    def __getattr__(self, name: str) -> Any:
        return self._counted(name, getattr(self._client, name))

    def pipeline(self, *, transaction: bool) -> Any:
        pipeline: Any = self._client.pipeline(transaction=transaction)
        pipeline.execute = self._counted("pipeline", pipeline.execute)
        return pipeline

    def _counted(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any) -> Any:
            self._counts[name] += 1
            self._counts["bytes"] += sum(len(each) for each in arguments if isinstance(each, bytes))
            return call(*arguments)

        return counted


class Costs(NamedTuple):
    """Requests to Redis and their bytes, and deliveries."""

    round_trips: Counter[str]
    delivered: int


def produce(world: World, number: int, due_ms: int) -> None:
    headers: Headers = [*USER_HEADERS, ("deliver-at", b"%d" % due_ms)]
    world.produce(number % len(SHARDS), b"%0*d" % (KEY_BYTES, number), VALUE, headers)


def user_bytes() -> int:
    """Return the bytes of a record that its application wrote."""
    return KEY_BYTES + len(VALUE) + size_of(USER_HEADERS)


def size_of(headers: Headers) -> int:
    return sum(len(name) + len(value or b"") for name, value in headers)


def counted_redis(world: World, counts: Counter[str]) -> RedisBacklogStore:
    line = Line(world.kafka, WorldGate(world), lambda: False, lambda: AssertionError("a Redis that is there"))
    client = cast(Client, CountingClient(RedisClient(RedisServer(), line), counts))
    return RedisBacklogStore(RedisConnection(client, "redis"), "shop.reminders")


@pytest.fixture(scope="module")
def redis_costs() -> Costs:
    """Records that a relay puts into Redis, and another delivers when all of them are due."""
    world, counts = World(), Counter[str]()
    store = counted_redis(world, counts)
    first = start(world, store, setup=ALL)
    for number in range(RECORDS):
        produce(world, number, world.now_ms + LEAD_MS + number * SPREAD_MS // RECORDS)
    first.run(IDLE_MS, step_ms=100)
    first.finish()
    world.now_ms += LEAD_MS + SPREAD_MS - IDLE_MS
    start(world, store, "successor", ALL).run(REST_MS, step_ms=100)
    return Costs(counts, len(deliveries(world)))


@pytest.mark.parametrize(
    ("request_", "most"),
    [
        # Each shard's tick is one script with all of its slices; so is what it drops after a commit.
        ("evalsha", 2.6),
        # A slice of a second has a hundred records of a shard; several thin slices come in one answer.
        ("pipeline", 2.6),
    ],
)
def test_round_trips_to_redis_are_a_few_for_a_thousand_records(redis_costs: Costs, request_: str, most: float) -> None:
    per_thousand = redis_costs.round_trips[request_] * 1_000 / redis_costs.delivered

    assert redis_costs.delivered == RECORDS
    assert per_thousand <= most


def test_an_idle_shard_asks_redis_once_a_second(redis_costs: Costs) -> None:
    # For the position of its backlog, to notice a server that lost something; and once when it is taken over.
    per_shard_and_second = redis_costs.round_trips["get"] * 1_000 / (IDLE_MS + REST_MS) / len(SHARDS)

    assert per_shard_and_second <= 1.3


def test_redis_is_sent_little_more_than_the_record(redis_costs: Costs) -> None:
    # An entry has the application's bytes, due time, offset and timestamp; keys and positions are those of a
    # script.
    per_record = redis_costs.round_trips["bytes"] / redis_costs.delivered

    assert per_record - user_bytes() <= 60


def steady(*, transactional: bool, seconds: int = 3, per_second: int = 1_000) -> Relay:
    """Let a thousand records a second come and leave a second later."""
    world = World()
    relay = start(world, MemoryBacklogStore(), setup=ALL._replace(transactional=transactional))
    relay.run(1_000, TICK_MS)
    relay.events.counts.clear()
    step = per_second * TICK_MS // 1_000
    for tick in range(seconds * 1_000 // TICK_MS):
        for number in range(tick * step, (tick + 1) * step):
            produce(world, number, world.now_ms + 1_000)
        relay.run(TICK_MS, TICK_MS)
    relay.run(1_500, TICK_MS)
    return relay


@pytest.mark.parametrize(("transactional", "most"), [(True, 36), (False, 3)])
def test_commits_are_as_many_as_the_precision_needs(transactional: bool, most: float) -> None:
    # A transaction collects for a third of the precision (16 ms), and waits for the last one's markers. Without
    # transactions a commit bounds only what a crash repeats: two a second.
    relay = steady(transactional=transactional)

    commits = relay.events.counts["commits"] / 3

    assert len(deliveries(relay.world)) == 3_000
    assert commits <= most


def test_a_delivery_has_one_header_more_than_was_sent_and_it_is_short() -> None:
    relay = steady(transactional=True, seconds=1)

    records = [record for _, record in relay.world.delivered]
    sizes = [len(r.key or b"") + len(r.value or b"") + size_of(r.headers) for r in records]

    assert {len(record.headers) for record in records} == {len(USER_HEADERS) + 1}
    assert max(sizes) - user_bytes() <= 52


def bucket_bytes(wait_ms: int) -> float:
    """Return the bytes that bucket topics take for each record that waits so long."""
    world, records = World(), 3_000
    relay = start(world, MemoryBacklogStore(), setup=ALL._replace(buckets=12))
    relay.run(1_000, 100)
    for number in range(records):
        produce(world, number, world.now_ms + wait_ms + number * 10)
    relay.run(wait_ms + records * 10 + 1_000, 250)
    assert len(deliveries(world)) == records
    stored = [sent for log in world.kafka.stored.values() for sent in log if sent is not None]
    return sum(len(sent.record.value or b"") for sent in stored) / records


@pytest.mark.parametrize(("wait_ms", "most"), [(30_000, 580), (300_000, 1_260)])
def test_bucket_topics_take_a_record_once_for_each_bucket_that_it_passes(wait_ms: int, most: float) -> None:
    assert bucket_bytes(wait_ms) <= most


def blocks() -> int:
    gc.collect()
    return sys.getallocatedblocks()


def test_a_record_that_waits_in_memory_is_a_few_objects() -> None:
    # The schedule, its list of headers, its due time and its offset; one more would fail.
    world, records = World(), 3_000
    relay = start(world, MemoryBacklogStore(), setup=ALL)
    relay.run(1_000)
    for number in range(records):
        produce(world, number, world.now_ms + 5_000 + number)
    before = blocks()

    relay.run(500)

    assert sum(shard.calendar.count for shard in cast(Any, relay.loop.shards.values())) == records
    assert (blocks() - before) / records <= 5.4


def test_a_delivery_allocates_a_few_objects_of_its_own() -> None:
    # The record, its list of headers and its receipt; the simulated Kafka adds the entry in its log. A packed record
    # leaves as it is, and the simulated Kafka makes its parts: key, value, and a name and a value for each header.
    world, records = World(), 3_000
    relay = start(world, MemoryBacklogStore(), setup=ALL)
    for number in range(records):
        produce(world, number, world.now_ms + 2_000)
    relay.run(1_000)
    before = blocks()

    relay.run(1_500)

    assert len(world.kafka.target) == records
    assert (blocks() - before) / records <= (18.1 if SPEEDUPS else 4.9)


SESSION_MS = 2_000
RESTARTED = histories.Arm(0, Fault("poll", 1, What.RESTART, length_ms=500))
GONE = histories.Arm(0, Fault("poll", 1, What.CRASH))


@pytest.mark.parametrize(
    ("action", "removes_gone_ms", "changes", "rebalances"),
    [
        # It takes the place of its former life, and nobody else hears of it.
        (RESTARTED, None, {"joined": 1, "replaced": 1}, 0),
        # One leaves, one comes, and the one that stays lets a shard go for it.
        (histories.Stop(0), None, {"joined": 1, "left": 1}, 3),
        # The operator takes the place of the dead one, and leaves it.
        (GONE, 500, {"joined": 2, "replaced": 1, "left": 1}, 3),
        # Without an operator the new one waits for the end of the dead one's session.
        (GONE, None, {"joined": 1, "evicted": 1}, 1),
    ],
)
def test_a_restart_changes_the_group_as_little_as_it_can(
    action: histories.Action, removes_gone_ms: int | None, changes: dict[str, int], rebalances: int
) -> None:
    setup = histories.Setup(shards=2, relays=2, session_ms=SESSION_MS, named=True, removes_gone_ms=removes_gone_ms)
    history = History(histories.Plan(setup, ()))
    history.do(histories.Pass(SESSION_MS))
    history.do(histories.Pass(SESSION_MS))
    group = history.kafka.group
    before, group.changes = group.generation, Counter()

    for each in (action, *[histories.Pass(SESSION_MS // 4)] * 20):
        history.do(each)

    assert (group.changes, group.generation - before) == (changes, rebalances)
