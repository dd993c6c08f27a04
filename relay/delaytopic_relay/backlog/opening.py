"""Edge: chooses the backlog of a relay by its configuration. Nobody else asks which backend it is."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import structlog

from delaytopic_api.relay import RelayConfig
from delaytopic_api.values import BackendType
from delaytopic_relay.backlog.fixed import FixedBacklog
from delaytopic_relay.backlog.kafka.opening import open_buckets
from delaytopic_relay.backlog.protocol import Backlog
from delaytopic_relay.backlog.redis.backlog import RedisBacklog
from delaytopic_relay.backlog.redis.connection import connect_redis
from delaytopic_relay.backlog.redis.manager import Writing
from delaytopic_relay.backlog.redis.preflight import check_redis
from delaytopic_relay.backlog.redis.reader import RedisPendingReader
from delaytopic_relay.backlog.redis.store import RedisBacklogStore
from delaytopic_relay.backlog.signing import SegmentSigner
from delaytopic_relay.kafka.settings import Settings
from delaytopic_relay.ports import Clock, LoopEvents

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
