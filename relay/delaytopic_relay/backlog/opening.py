"""Edge: chooses the backlog of a relay by its configuration. Nobody else asks which backend it is."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import structlog

from delaytopic_api.relay import RelayConfig
from delaytopic_api.values import BackendType, ids_name
from delaytopic_relay.backlog.fixed import FixedBacklog
from delaytopic_relay.backlog.kafka.opening import open_buckets
from delaytopic_relay.backlog.kafka.time import ProbeTime
from delaytopic_relay.backlog.protocol import Backlog
from delaytopic_relay.backlog.redis.backlog import RedisBacklog
from delaytopic_relay.backlog.redis.connection import connect_redis
from delaytopic_relay.backlog.redis.manager import Writing
from delaytopic_relay.backlog.redis.preflight import check_redis
from delaytopic_relay.backlog.redis.reader import RedisPendingReader
from delaytopic_relay.backlog.redis.store import RedisBacklogStore
from delaytopic_relay.backlog.redis.time import RedisTime
from delaytopic_relay.backlog.second_clock import BackendClock
from delaytopic_relay.backlog.signing import SegmentSigner
from delaytopic_relay.errors import ConfigurationError
from delaytopic_relay.kafka.settings import Settings, probe_settings
from delaytopic_relay.ports import Clock, LoopEvents

SECOND_CLOCK: Final = "DELAYTOPIC_SECOND_CLOCK"
"""The environment variable that is 0 where the relay's clock is to be believed by itself: where a test moves it."""

log = structlog.get_logger()


def open_backlog(
    config: RelayConfig,
    connection: Settings,
    relay: str,
    clock: Clock,
    events: LoopEvents,
    signer: SegmentSigner,
    *,
    topic_mark: str,
    queue: bool,
) -> Backlog:
    """Open the backlog; raises `Unavailable` for what may come right by itself, and `ConfigurationError`.

    What it stores is of the source topic with this mark. A `queue` stores nothing: all records wait equally long.
    """
    if queue:
        return FixedBacklog(config.limits.horizon.ms)
    if config.backend.type is BackendType.KAFKA_BUCKETS:
        return open_buckets(config, connection, relay, clock, events, signer, topic_mark)
    return _open_redis(config, relay, clock, events, signer, topic_mark)


def open_second_clock(config: RelayConfig, connection: Settings, relay: str, clock: Clock) -> BackendClock | None:
    """Return the backend's clock, also of a relay whose fixed delay stores nothing; None where it is switched off.

    It connects when it is asked for the first time. Raises `ConfigurationError`.
    """
    wanted = os.environ.get(SECOND_CLOCK, "1")
    if wanted not in {"0", "1"}:
        raise ConfigurationError(f"the environment variable {SECOND_CLOCK} is {wanted!r}: it may be 1 or 0")
    if wanted == "0":
        return None
    if config.backend.type is BackendType.KAFKA_BUCKETS:
        return BackendClock(ProbeTime(probe_settings(connection, relay), ids_name(config.backend.id)), clock)
    assert config.backend.redis is not None
    return BackendClock(RedisTime(config.backend.redis), clock)


def _open_redis(
    config: RelayConfig, relay: str, clock: Clock, events: LoopEvents, signer: SegmentSigner, topic_mark: str
) -> RedisBacklog:
    settings, backend_id = config.backend.redis, config.backend.id
    assert settings is not None
    connection = connect_redis(settings)
    for warning in check_redis(connection):
        log.warning("redis setting", advice=warning)

    def open_reader() -> RedisPendingReader:
        return RedisPendingReader(connect_redis(settings), backend_id, signer, topic_mark)

    return RedisBacklog(
        RedisBacklogStore(connection, backend_id, topic_mark),
        relay,
        config.limits.horizon.ms,
        clock,
        events,
        open_reader,
        Writing(signer, ThreadPoolExecutor(1, "redis")),
        config.backend.max_redis_memory,
    )
