"""One relay process, put together: clients, core, pages, and the order in which they start and stop."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import TypeVar, cast
from uuid import uuid4

import structlog

from delaytopic_api.relay import RelayConfig
from delaytopic_api.values import BackendType, Guarantee
from delaytopic_relay.backlog.kafka.manager import BucketShelving
from delaytopic_relay.backlog.kafka.opening import OpenBuckets, open_buckets
from delaytopic_relay.backlog.redis.connection import connect_redis
from delaytopic_relay.backlog.redis.manager import Shelving
from delaytopic_relay.backlog.redis.partition import share_bytes_of
from delaytopic_relay.backlog.redis.preflight import check_redis
from delaytopic_relay.backlog.redis.store import RedisShelf
from delaytopic_relay.backlog.signing_keys import signer_of
from delaytopic_relay.backlog.store import Shelf
from delaytopic_relay.clock import SystemClock
from delaytopic_relay.core.suspension import Suspension
from delaytopic_relay.delivery.outbound import Addressing, FurtherTargets
from delaytopic_relay.dialects import dialect_for
from delaytopic_relay.engine.loop import Loop
from delaytopic_relay.engine.loop_parts import Parts
from delaytopic_relay.engine.pacing import Pace
from delaytopic_relay.engine.ports import Target
from delaytopic_relay.engine.recovery import is_of_group, transactional_id
from delaytopic_relay.engine.takeover import Takeover
from delaytopic_relay.errors import ConfigurationError, Unavailable
from delaytopic_relay.kafka.connection import connection_settings
from delaytopic_relay.kafka.preflight import Topics, check_topics
from delaytopic_relay.kafka.settings import Settings, consumer_settings, producer_settings
from delaytopic_relay.kafka.source import KafkaSource
from delaytopic_relay.kafka.split_target import SplitTarget
from delaytopic_relay.kafka.target import KafkaTarget
from delaytopic_relay.kafka.topic_facts import TopicReader
from delaytopic_relay.kafka.topics import UNLIMITED_BYTES
from delaytopic_relay.telemetry.gc_control import GarbageCollector
from delaytopic_relay.telemetry.telemetry import Observer

RECEIPT_BYTES = 400
"""More than a receipt with the longest topic name takes in a record."""
WAIT_MS = 1_000

log = structlog.get_logger()

Stop = Callable[[], bool]
T = TypeVar("T")


class Service:
    """Runs one relay from its configuration."""

    def __init__(self, config: RelayConfig) -> None:
        self._config = config
        self._instance = f"{socket.gethostname()}-{os.getpid()}-{uuid4().hex[:8]}"
        self._connection = connection_settings(config.kafka)
        self._signer = signer_of(config.backend)
        self._clock = SystemClock()
        self._observer = Observer(config, self._instance, self._clock)

    def run(self, stop: Stop) -> None:
        """Wait for what has to be there, then work until `stop`; raises `ConfigurationError`.

        The pages come up first, so that a relay that waits can say what for. One that is told to stop while it
        waits says "stopped", too: who reads its log knows that nothing ended it.
        """
        with ExitStack() as stack:
            self._observer.start()
            stack.callback(self._observer.stop)
            self._serve(stack, stop)
        log.info("stopped", relay=self._instance)

    def _serve(self, stack: ExitStack, stop: Stop) -> None:
        topics = self._await(stop, self._topics)
        shelf = self._await(stop, self._shelf) if self._config.schedule.delay is None else None
        if topics is None or (shelf is None and self._config.schedule.delay is None):
            return
        if shelf is not None:
            stack.callback(shelf.close)
        loop = self._await(stop, partial(self._loop, topics, shelf))
        if loop is not None:
            self._work(loop, stop)

    def _await(self, stop: Stop, attempt: Callable[[], T]) -> T | None:
        """Repeat an attempt until it succeeds; None when asked to stop."""
        while not stop():
            try:
                return attempt()
            except Unavailable as error:
                self._observer.waiting_for(str(error))
                self._clock.sleep(WAIT_MS)
        return None

    def _work(self, loop: Loop, stop: Stop) -> None:
        log.info("started", relay=self._instance, group=self._config.group_id, guarantee=str(self._config.guarantee))
        collector = GarbageCollector(self._clock)
        loop.start()
        while not stop():
            loop.step()
            self._observer.turn(loop)
            collector.turn(loop.size)
        self._observer.draining()
        loop.finish()

    # -- parts

    @property
    def _topic_names(self) -> tuple[str, str, str]:
        config = self._config
        return config.source.topic, config.target.topic, config.dead_letter.topic

    def _topics(self) -> TopicReader:
        reader = TopicReader(self._connection, self._topic_names)
        finding = check_topics(self._config, Topics(*map(reader.read_anew, self._topic_names)))
        if finding is None:
            return reader
        raise Unavailable(finding.text) if finding.waits else ConfigurationError(finding.text)

    def _shelf(self) -> Shelf | OpenBuckets:
        backend = self._config.backend
        if backend.type is BackendType.KAFKA_BUCKETS:
            return open_buckets(self._config, self._connection, self._instance)
        assert backend.redis is not None
        connection = connect_redis(backend.redis)
        for warning in check_redis(connection):
            log.warning("redis setting", advice=warning)
        return RedisShelf(connection, backend.id)

    def _target(self, topics: TopicReader, shelf: Shelf | OpenBuckets | None) -> Target:
        """Transactions carry deliveries with ExactlyOnce, and what bucket topics hold with either guarantee."""
        stored_bytes = shelf.largest_batch_bytes if isinstance(shelf, OpenBuckets) else UNLIMITED_BYTES
        settings, topic = partial(self._producer_settings, topics, stored_bytes), self._config.source.topic
        transactional = self._config.guarantee is Guarantee.EXACTLY_ONCE
        owner = transactional_id(self._config.group_id, self._instance)
        if transactional or not isinstance(shelf, OpenBuckets):
            return KafkaTarget(settings, topic, owner if transactional else None)
        return SplitTarget(KafkaTarget(settings, topic, None), KafkaTarget(settings, topic, owner))

    def _loop(self, topics: TopicReader, shelf: Shelf | OpenBuckets | None) -> Loop:
        config, clock, observer = self._config, self._clock, self._observer
        transactional = config.guarantee is Guarantee.EXACTLY_ONCE
        pace = Pace(config.precision.ms, transactional)
        source = KafkaSource(self._consumer_settings(), self._connection, config.source.topic)
        target = self._target(topics, shelf)
        facts = topics.read(config.source.topic)
        observer.pending.source_partitions = facts.partitions if facts is not None else 0
        kept = self._kept(shelf)
        opened = kept if isinstance(kept, BucketShelving) else cast("Shelf | None", shelf)
        may_be_fenced = partial(is_of_group, group_id=config.group_id)
        takeover = Takeover(
            source, target, opened, self._instance, config.limits.horizon.ms, observer, may_be_fenced, self._signer
        )
        partitions = facts.partitions if facts is not None else 1
        takeover.share_bytes = share_bytes_of(config.backend.max_redis_memory, partitions)
        return Loop(
            Parts(
                source=source,
                target=target,
                dialect=dialect_for(config),
                addressing=self._addressing(topics),
                shelving=kept,
                takeover=takeover,
                pace=pace,
                memory_bytes=config.limits.memory.value,
                clock=clock,
                journal=observer,
                suspension=Suspension.of(config.suspend),
                max_delay_ms=config.schedule.max_delay.ms,
                id_bytes=config.limits.id_memory.value,
                learn=topics.learn if config.target.allowed else None,
            )
        )

    def _kept(self, shelf: Shelf | OpenBuckets | None) -> Shelving | BucketShelving | None:
        if isinstance(shelf, OpenBuckets):
            return shelf.shelving(self._clock, self._observer)
        return Shelving(shelf, self._clock, self._observer, self._signer) if shelf is not None else None

    def _consumer_settings(self) -> Settings:
        limits = self._config.limits
        return consumer_settings(self._connection, self._config.group_id, limits.session_timeout.ms, self._instance)

    def _producer_settings(self, topics: TopicReader, stored_bytes: int, owner: str | None) -> Settings:
        names = (self._config.target.topic, self._config.dead_letter.topic)
        limits = [limit for limit in map(topics.limit, names) if limit is not None]
        return producer_settings(self._connection, self._instance, owner, min(*limits, stored_bytes))

    def _addressing(self, topics: TopicReader) -> Addressing:
        config = self._config
        target = topics.read(config.target.topic)
        if target is None:
            raise Unavailable(f"target.topic: the topic {config.target.topic} does not exist any more")
        addressing = Addressing(
            config.source.topic,
            config.target.topic,
            config.dead_letter.topic,
            config.target.partitioning,
            target.partitions,
            topics.limit,
            FurtherTargets(config.target.allowed, config.backend.id),
        )
        addressing.certain_bytes = max(0, target.largest_batch_bytes // 2 - RECEIPT_BYTES)
        return addressing
