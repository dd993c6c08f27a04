"""Settings of the Kafka clients, each with the measurement or the rule behind it."""

from __future__ import annotations

from collections.abc import Mapping

from delaytopic_api.values import Compression

Settings = dict[str, str | int | float | bool]

FETCH_QUEUE_BYTES_KIB = 16_384
SOURCE_QUEUE_MESSAGES = 64
"""The client fetches on below this. It does not count headers among the bytes in its queue, so only the number bounds
what they take there. More is no faster (64 or 20,000: 560,000 to 800,000 records of 200 bytes a second)."""
FETCH_BYTES = 2 << 20
"""The size of one answer, which is more than the queue is waiting for."""
TRANSACTION_TIMEOUT_MS = 30_000
LARGEST_REQUEST_BYTES = 64 << 20
LARGEST_BATCH_BYTES = 512 << 10
NO_CODEC = "none"
CODECS = frozenset({"gzip", "snappy", "lz4", "zstd"})
BEST_CODEC = "zstd"
"""The codec where nobody has named one and something has to become small."""
PROBE_TIMEOUT_MS = 4_000
METADATA_REFRESH_MS = 10_000
"""Partitions that are added to a topic are found after this time; by default, after five minutes only."""
HEARTBEAT_MS = 500
"""A member hears of a rebalance with the answer to a heartbeat: every half second costs the group's coordinator little,
and others have what a relay lost 0.3 s sooner than with one a second.
"""


def consumer_settings(
    connection: Settings, group_id: str, session_timeout_ms: int, client_id: str, member_name: str | None = None
) -> Settings:
    """Return the settings of the source topic's consumer.

    With a name, a relay that starts again under it gets its shards back at once (KIP-345). Without one, the shards of a
    relay that was killed wait for the end of its session.

    `fetch.queue.backoff.ms` defaults to a second, during which a full queue is not refilled.
    The classic protocol with cooperative-sticky fails over in the session timeout that we choose.
    An offset that the source no longer has must be seen, not skipped.
    """
    static = {} if member_name is None else {"group.instance.id": member_name}
    return {
        **connection,
        **static,
        "client.id": client_id,
        "group.id": group_id,
        "group.protocol": "classic",
        "partition.assignment.strategy": "cooperative-sticky",
        "session.timeout.ms": session_timeout_ms,
        "heartbeat.interval.ms": min(HEARTBEAT_MS, session_timeout_ms // 3),
        "max.poll.interval.ms": max(120_000, session_timeout_ms),
        "isolation.level": "read_committed",
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "auto.offset.reset": "error",
        "topic.metadata.refresh.interval.ms": METADATA_REFRESH_MS,
        "enable.partition.eof": True,
        "fetch.queue.backoff.ms": 2,
        "fetch.wait.max.ms": 100,
        "queued.min.messages": SOURCE_QUEUE_MESSAGES,
        "queued.max.messages.kbytes": FETCH_QUEUE_BYTES_KIB,
        "fetch.max.bytes": FETCH_BYTES,
        "check.crcs": False,
    }


def examiner_settings(connection: Settings, group_id: str, client_id: str, *, alone: bool) -> Settings:
    """Return the settings of a consumer that reads on trial what the source topic's would, and never joins the group.

    With `alone` it fetches one batch at a time: a broker returns the first whole, however little was asked for.
    """
    alike: Settings = {
        "queued.min.messages": SOURCE_QUEUE_MESSAGES,
        "queued.max.messages.kbytes": FETCH_QUEUE_BYTES_KIB,
        "fetch.max.bytes": FETCH_BYTES,
    }
    return {
        **connection,
        "client.id": client_id,
        "group.id": group_id,
        "isolation.level": "read_committed",
        "enable.auto.commit": False,
        "auto.offset.reset": "error",
        "enable.partition.eof": True,
        "fetch.queue.backoff.ms": 2,
        "fetch.wait.max.ms": 100,
        "check.crcs": False,
        **({"queued.min.messages": 1, "fetch.message.max.bytes": 1} if alone else alike),
    }


def bucket_reader_settings(connection: Settings, group_id: str, client_id: str) -> Settings:
    """Return the settings of the bucket topics' reader, which is assigned partitions and joins no group.

    What takes part in a recovery is read to its end, and the end is told only after the longest wait.
    Where an offset is gone it begins where the topic begins: segments are numbered, so nothing is missed unnoticed.
    """
    return {
        **connection,
        "client.id": client_id,
        "group.id": group_id,
        "isolation.level": "read_committed",
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "auto.offset.reset": "earliest",
        "topic.metadata.refresh.interval.ms": METADATA_REFRESH_MS,
        "enable.partition.eof": True,
        "fetch.queue.backoff.ms": 2,
        "fetch.wait.max.ms": 20,
        "fetch.message.max.bytes": 1 << 20,
        "queued.min.messages": 100,
        "queued.max.messages.kbytes": FETCH_QUEUE_BYTES_KIB,
        "check.crcs": False,
    }


def codec_of(compression: Compression, source: Mapping[str, str]) -> str:
    """Return the codec that the target's producer begins with; `source` are the settings of the source topic.

    Auto follows the source where its topic names a codec: there the broker compresses whatever comes. Otherwise nothing
    tells what producers do, and to compress what came uncompressed would cost time that nobody has asked for.
    """
    if compression is not Compression.AUTO:
        return compression.value.lower()
    named = source.get("compression.type", "")
    return named if named in CODECS else NO_CODEC


def producer_settings(
    connection: Settings, client_id: str, transactional_id: str | None, batch_bytes: int, codec: str = NO_CODEC
) -> Settings:
    """Return the settings of the producer for target, dead-letter and bucket topics.

    Idempotence keeps the order across retries. Only failures are reported, so that a good record costs
    no call. A batch must not exceed what the topic takes: the broker would refuse all of it.
    A topic that is gone stays so: made by asking for it, it would have none of the settings that it needs.
    Partitions are chosen as the Java client does. The codec is that of all topics: a client has one for what it sends.
    """
    settings: Settings = {
        **connection,
        "client.id": client_id,
        "enable.idempotence": True,
        "acks": "all",
        "linger.ms": 1,
        "partitioner": "murmur2_random",
        "compression.type": codec,
        "batch.size": min(batch_bytes, LARGEST_BATCH_BYTES),
        "message.max.bytes": LARGEST_REQUEST_BYTES,
        "queue.buffering.max.messages": 200_000,
        "queue.buffering.max.kbytes": 128 << 10,
        "delivery.report.only.error": True,
        "topic.metadata.refresh.interval.ms": METADATA_REFRESH_MS,
        "allow.auto.create.topics": False,
        "message.timeout.ms": TRANSACTION_TIMEOUT_MS,
    }
    if transactional_id is not None:
        settings["transactional.id"] = transactional_id
        settings["transaction.timeout.ms"] = TRANSACTION_TIMEOUT_MS
    return settings


def probe_settings(connection: Settings, client_id: str) -> Settings:
    """Return the settings of the producer of probes, whose append time is a second clock: each goes at once."""
    return {
        **connection,
        "client.id": client_id,
        "acks": "all",
        "linger.ms": 0,
        "retries": 0,
        "message.timeout.ms": PROBE_TIMEOUT_MS,
        "topic.metadata.refresh.interval.ms": METADATA_REFRESH_MS,
        "allow.auto.create.topics": False,
    }
