"""Edge: chooses the backlog of a relay by its configuration. Nobody else asks which backend it is.

The room of a backend is imported when it is chosen: the client of Redis is a tenth of what a start imports.
"""

from __future__ import annotations

import os
from typing import Final

from delaytopic_api.relay import RelayConfig
from delaytopic_api.values import BackendType
from delaytopic_relay.backlog.fixed import FixedBacklog
from delaytopic_relay.backlog.protocol import Backlog
from delaytopic_relay.backlog.second_clock import BackendClock, TimeSource
from delaytopic_relay.backlog.signing import SegmentSigner
from delaytopic_relay.errors import ConfigurationError
from delaytopic_relay.kafka.settings import Settings
from delaytopic_relay.kafka.topics import TopicReader
from delaytopic_relay.ports import Clock, LoopEvents

SECOND_CLOCK: Final = "DELAYTOPIC_SECOND_CLOCK"
"""The environment variable that is 0 where the relay's clock is to be believed by itself: where a test moves it."""


def open_backlog(
    config: RelayConfig,
    topics: TopicReader,
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
        from delaytopic_relay.backlog.kafka.opening import open_buckets  # noqa: PLC0415

        return open_buckets(config, topics, relay, clock, events, signer, topic_mark)
    from delaytopic_relay.backlog.redis.opening import open_redis  # noqa: PLC0415

    return open_redis(config, relay, clock, events, signer, topic_mark)


def open_second_clock(config: RelayConfig, connection: Settings, relay: str, clock: Clock) -> BackendClock | None:
    """Return the backend's clock, also of a relay whose fixed delay stores nothing; None where it is switched off.

    It connects when it is asked for the first time. Raises `ConfigurationError`.
    """
    wanted = os.environ.get(SECOND_CLOCK, "1")
    if wanted not in {"0", "1"}:
        raise ConfigurationError(f"the environment variable {SECOND_CLOCK} is {wanted!r}: it may be 1 or 0")
    return BackendClock(_time_of(config, connection, relay), clock) if wanted == "1" else None


def _time_of(config: RelayConfig, connection: Settings, relay: str) -> TimeSource:
    if config.backend.type is BackendType.KAFKA_BUCKETS:
        from delaytopic_relay.backlog.kafka.opening import broker_time  # noqa: PLC0415

        return broker_time(config, connection, relay)
    from delaytopic_relay.backlog.redis.opening import redis_time  # noqa: PLC0415

    return redis_time(config)
