"""The well-known design, a process of its own: what waits is in a sorted set of Redis, which is polled.

    python -m bench.processes.redis_design --bootstrap-servers HOST:PORT --redis-url URL --source TOPIC --target TOPIC
                               --group ID [--as-described]

Each record gets a key of its own, and a member of a sorted set with its due time. What is due is read by score,
produced, and removed once it is acknowledged: at least once. As it is described, one poll a second takes ten records.
Without that, it polls all the time and takes all there are. Either way requests go in pipelines, and the clients have
the settings of the relay, so that nothing but the design differs. Runs until SIGTERM.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from typing import Any

import msgspec
from confluent_kafka import Consumer, Message, Producer
from redis import Redis

from delaytopic_api.records import DELIVER_AT
from delaytopic_api.relay import KafkaClient
from delaytopic_process.stop_flag import StopFlag
from delaytopic_relay.kafka import connection_settings
from delaytopic_relay.kafka.settings import consumer_settings, producer_settings

POLL_LIMIT = 1_000
POLL_SECONDS = 0.005
TIMEOUT_SECONDS = 30.0
BATCH_BYTES = 1 << 20
SESSION_MS = 6_000
AS_DESCRIBED = 10, 1.0
"""The records of a poll, and the seconds between two."""
AT_ONCE = 1_000, 0.0
"""The most in one answer: more would keep Redis from everything else."""

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder().decode


class RedisDesign:
    """One relay of this design, for one topic."""

    def __init__(self, options: argparse.Namespace, stop: StopFlag) -> None:
        connection = connection_settings(KafkaClient(bootstrap_servers=options.bootstrap_servers))
        settings = consumer_settings(connection, options.group, SESSION_MS, "redis-design", "redis-design")
        self._consumer = Consumer({**settings, "auto.offset.reset": "earliest", "enable.partition.eof": False})
        self._consumer.subscribe([options.source])
        self._producer = Producer(producer_settings(connection, "redis-design", None, BATCH_BYTES))
        self._redis: Any = Redis.from_url(options.redis_url)
        self._target = options.target
        self._due = f"{options.group}:due"
        self._prefix = f"{options.group}:"
        self._limit, self._pause_s = AS_DESCRIBED if options.as_described else AT_ONCE
        self._stop = stop

    def run(self) -> None:
        """Take in and poll in turn until stopped."""
        next_poll_s = time.monotonic()
        while not self._stop.is_set:
            self._take_in(self._consumer.consume(POLL_LIMIT, POLL_SECONDS))
            if time.monotonic() >= next_poll_s:
                next_poll_s += self._pause_s
                self._deliver_due()
        # A static member that is merely closed stays in the group until its session ends.
        self._consumer.unsubscribe()
        self._consumer.close()

    def _take_in(self, messages: Sequence[Message]) -> None:
        """Put records into Redis, and commit when they are there: a crash repeats them under the same names."""
        taken = [message for message in messages if message.error() is None]
        if not taken:
            return
        payloads, due = {}, {}
        for message in taken:
            headers = message.headers() or []
            name = f"{message.partition()}:{message.offset()}"
            payloads[self._prefix + name] = _encode([message.key(), message.value(), headers])
            due[name] = int(dict(headers).get(DELIVER_AT) or 0)
        with self._redis.pipeline(transaction=False) as pipeline:
            pipeline.mset(payloads)
            pipeline.zadd(self._due, due, nx=True)
            pipeline.execute()
        positions = [at for at in self._consumer.position(self._consumer.assignment()) if at.offset >= 0]
        self._consumer.commit(offsets=positions, asynchronous=True)

    def _deliver_due(self) -> None:
        """Take up to as many as one poll may; without a pause, all there are."""
        until_ms = int(time.time() * 1_000)
        while not self._stop.is_set:
            names = self._redis.zrangebyscore(self._due, "-inf", until_ms, 0, self._limit)
            if names:
                self._deliver([name.decode() for name in names])
            if self._pause_s or len(names) < self._limit:
                return

    def _deliver(self, names: Sequence[str]) -> None:
        keys = [self._prefix + name for name in names]
        for payload in self._redis.mget(keys):
            if payload is not None:
                self._produce(*_decode(payload))
        if left := self._producer.flush(TIMEOUT_SECONDS):
            raise SystemExit(f"{left} records were not acknowledged")
        with self._redis.pipeline(transaction=False) as pipeline:
            pipeline.zrem(self._due, *names)
            pipeline.delete(*keys)
            pipeline.execute()

    def _produce(self, key: bytes | None, value: bytes | None, headers: list[Sequence[Any]]) -> None:
        self._producer.produce(self._target, value, key, -1, None, None, 0, [(name, text) for name, text in headers])


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the arguments and relay until stopped."""
    parser = argparse.ArgumentParser(prog="python -m bench.processes.redis_design", description="Poll a sorted set.")
    for name in ("--bootstrap-servers", "--redis-url", "--source", "--target", "--group"):
        parser.add_argument(name, required=True)
    parser.add_argument("--as-described", action="store_true")
    RedisDesign(parser.parse_args(arguments), StopFlag()).run()


if __name__ == "__main__":
    main()
