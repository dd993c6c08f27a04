"""Edge: from the configuration to a Redis that is as it has to be."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import structlog

from delaytopic_api.relay import RelayConfig
from delaytopic_relay.backlog.redis.backlog import RedisBacklog
from delaytopic_relay.backlog.redis.connection import connect_redis
from delaytopic_relay.backlog.redis.manager import Writing
from delaytopic_relay.backlog.redis.preflight import check_redis
from delaytopic_relay.backlog.redis.reader import RedisPendingReader
from delaytopic_relay.backlog.redis.store import RedisBacklogStore
from delaytopic_relay.backlog.redis.time import RedisTime
from delaytopic_relay.backlog.signing import SegmentSigner
from delaytopic_relay.ports import Clock, LoopEvents

log = structlog.get_logger()


def open_redis(
    config: RelayConfig, relay: str, clock: Clock, events: LoopEvents, signer: SegmentSigner, topic_mark: str
) -> RedisBacklog:
    """Open Redis; raises `Unavailable` for what may come right by itself, and `ConfigurationError`."""
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


def redis_time(config: RelayConfig) -> RedisTime:
    """Return the clock of Redis."""
    assert config.backend.redis is not None
    return RedisTime(config.backend.redis)
