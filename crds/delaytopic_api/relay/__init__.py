"""Documents between operator, relay and commands: configuration, status and pending records."""

from __future__ import annotations

from delaytopic_api.relay.config import (
    HttpServer,
    RelayBackend,
    RelayConfig,
    RelayDeadLetter,
    RelayHistory,
    RelayLimits,
    RelaySchedule,
    RelaySource,
    RelayTarget,
)
from delaytopic_api.relay.connection import KafkaClient, KafkaSecurity, RedisClient, SaslMechanism, SecurityProtocol
from delaytopic_api.relay.pending import (
    DEFAULT_LIMIT,
    LARGEST_ANSWER_BYTES,
    LONGEST_SHOWN_BYTES,
    MOST_LISTED,
    PendingContent,
    PendingHeader,
    PendingList,
    PendingRecord,
    PendingShard,
    text_or_base64,
)
from delaytopic_api.relay.status import (
    LATENESS_EDGES_MS,
    BucketStatus,
    Cursor,
    DueBin,
    RelayState,
    RelayStatus,
    ShardState,
    ShardStatus,
)

__all__ = [
    "DEFAULT_LIMIT",
    "LARGEST_ANSWER_BYTES",
    "LATENESS_EDGES_MS",
    "LONGEST_SHOWN_BYTES",
    "MOST_LISTED",
    "BucketStatus",
    "Cursor",
    "DueBin",
    "HttpServer",
    "KafkaClient",
    "KafkaSecurity",
    "PendingContent",
    "PendingHeader",
    "PendingList",
    "PendingRecord",
    "PendingShard",
    "RedisClient",
    "RelayBackend",
    "RelayConfig",
    "RelayDeadLetter",
    "RelayHistory",
    "RelayLimits",
    "RelaySchedule",
    "RelaySource",
    "RelayState",
    "RelayStatus",
    "RelayTarget",
    "SaslMechanism",
    "SecurityProtocol",
    "ShardState",
    "ShardStatus",
    "text_or_base64",
]
