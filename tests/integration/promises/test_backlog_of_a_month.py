"""A million records that wait for up to a month: how soon a restarted relay delivers, and what they cost."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest
import redis as redis_client
from confluent_kafka import Producer
from tests.support.relay.process import RelayProcess, wait_for
from tests.support.relay.records import BOTH_BACKENDS, REDIS, MakeRoute, Sent, at, now_ms, produce
from tests.support.relay.route import PARTITIONS, Route

from delaytopic_local.servers.kafka_server import KafkaServer
from delaytopic_local.servers.redis_server import RedisServer

pytestmark = [pytest.mark.integration, pytest.mark.backlog, BOTH_BACKENDS]

PENDING = 1_000_000
DAY_MS = 86_400_000
MONTH_MS = 30 * DAY_MS
MOST_SECONDS = 5.0
MOST_MEMORY = 512 << 20
"""Of the whole process: 256 MiB for schedules, and what Python and the clients take."""
VALUE = b"x" * 100


@pytest.fixture
def kafka(own_kafka: KafkaServer) -> KafkaServer:
    """A broker of the test alone, whose files are counted."""
    return own_kafka


@pytest.fixture
def redis(own_redis: RedisServer) -> RedisServer:
    """A Redis of the test alone, whose memory is measured."""
    return own_redis


def test_a_relay_that_is_restarted_with_a_million_pending_delivers_within_five_seconds(
    make_route: MakeRoute, kafka: KafkaServer, backend: str
) -> None:
    # Given a million records that a relay has put in the backlog, due within thirty days
    route = make_route(schedule={"maxDelay": "720h"}, limits={"horizon": "10s"})
    before = backlog_bytes(route, kafka)
    produce_backlog(route)
    started_s = time.monotonic()
    relay = route.start_relay().wait_until_delivering(PARTITIONS)
    wait_for(lambda: ingested(relay), relay.why, 300)
    took_s = time.monotonic() - started_s
    filling_memory = memory_of(relay)
    stored = backlog_bytes(route, kafka) - before
    assert relay.terminate() == 0

    # When it starts again, and something is due
    produce(route.servers.bootstrap_servers, route.source, [Sent(b"k", b"due", [at(now_ms())], 0)])
    restarted_ms = now_ms()
    relay = route.start_relay()
    wait_for(route.delivered, relay.why)
    seconds = (route.delivered()[0].timestamp_ms - restarted_ms) / 1_000

    # Then that is delivered in time, and the million is known without being read
    relay.wait_until_delivering(PARTITIONS)
    print(f"\n{backend}: {PENDING:,} taken in within {took_s:.1f} s of the start ({PENDING / took_s:,.0f}/s);", end=" ")
    print(f"restart to first delivery {seconds:.2f} s;", end=" ")
    print(f"{stored / PENDING:.0f} bytes there for each of {len(VALUE) + 10} bytes of key and value;", end=" ")
    print(f"memory {filling_memory >> 20} MiB at most while filling, {memory_of(relay) >> 20} MiB after the restart")
    assert seconds < MOST_SECONDS
    wait_for(lambda: relay.status()["pending"] == PENDING, relay.why)
    assert filling_memory < MOST_MEMORY
    assert memory_of(relay) < MOST_MEMORY
    assert relay.status()["nextDueMs"] > now_ms()


def produce_backlog(route: Route) -> None:
    """Delays from an hour to thirty days, evenly spread."""
    rng = random.Random(1)
    settings = {"bootstrap.servers": route.servers.bootstrap_servers, "linger.ms": 20, "acks": "all"}
    producer = Producer({**settings, "queue.buffering.max.messages": 2 * PENDING})
    base_ms = now_ms()
    for number in range(PENDING):
        due_ms = base_ms + rng.randint(3_600_000, MONTH_MS - 600_000)
        producer.produce(route.source, VALUE, b"%010d" % number, headers=[("deliver-at", b"%d" % due_ms)])
        if number % 1_000 == 0:
            producer.poll(0)
    assert producer.flush(120) == 0


def ingested(relay: RelayProcess) -> bool:
    """Return whether everything is in the backlog, and committed."""
    status = relay.status()
    committed = sum(shard["committedOffset"] for shard in status["shards"])
    return bool(status["pending"] == committed == PENDING)


def memory_of(relay: RelayProcess) -> int:
    """The most that the process had resident, in bytes."""
    lines = Path(f"/proc/{relay.child.pid}/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM:"))


def backlog_bytes(route: Route, kafka: KafkaServer) -> int:
    """Return what the backend holds: the records of all bucket topics on disk, or what Redis has in memory."""
    if route.config().backend.type == REDIS:
        client = redis_client.Redis.from_url(route.servers.redis_url)
        return int(client.info("memory")["used_memory"])
    folders = kafka.directory.rglob(f"{route.config().backend.id}.delay.*")
    return sum(file.stat().st_size for folder in folders for file in folder.glob("*.log"))
