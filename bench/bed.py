"""Shared parts of a run's cases: the servers, a directory for logs, and fresh topics."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from shutil import disk_usage
from tempfile import TemporaryDirectory

from redis import Redis

from bench.machine import available_bytes
from bench.records import PARTITIONS
from delaytopic_api.relay import RedisClient, RelayBackend, RelayConfig
from delaytopic_api.values import BackendType, bucket_topics
from delaytopic_gateway.client.topics import TopicPlan, create_topics, delete_topics
from delaytopic_local.servers.kafka_server import KafkaServer
from delaytopic_local.servers.redis_server import RedisServer

KAFKA_SETTINGS = {
    # A relay's start is not measured, so there is no use in waiting for other members of its group.
    "group.initial.rebalance.delay.ms": "0",
    # What a case leaves behind is deleted before the next one: after the usual minute it would be in its way.
    "log.segment.delete.delay.ms": "500",
}
SHARED_MEMORY = Path("/dev/shm")
ROOM_BYTES = 12 << 30
"""Data takes up to 8 GiB of it, the processes two, and a machine needs some for itself."""
HEAP_MIB = 1_024
JVM_OPTIONS = (
    f"-Xms{HEAP_MIB}m",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-XX:+AlwaysPreTouch",
)
"""Options as those of Kafka's own scripts. The heap is touched before, as that of a broker is which has run for a
while: a page that is touched for the first time takes 3 us of a virtual machine, and a heap that grows stops all of it
for that."""
LOG_APPEND_TIME = {"message.timestamp.type": "LogAppendTime"}


@dataclass(frozen=True, slots=True)
class Bed:
    """The servers that everything runs on."""

    bootstrap_servers: str
    redis_url: str
    directory: Path
    data: str
    """The place of the servers' data: `in memory` or `on disk`."""

    def create(self, *topics: str) -> None:
        """Create topics, timed by the broker."""
        create_topics(self.bootstrap_servers, [TopicPlan(topic, PARTITIONS, LOG_APPEND_TIME) for topic in topics])

    def create_buckets(self, config: RelayConfig) -> list[str]:
        """Create the topics that the relay's backend needs, if any, and return their names."""
        if config.backend.type is not BackendType.KAFKA_BUCKETS:
            return []
        topics = bucket_topics(config.backend.id, config.limits.horizon.ms, config.schedule.max_delay.ms)
        create_topics(self.bootstrap_servers, [TopicPlan(each.name, PARTITIONS, each.config) for each in topics])
        return [each.name for each in topics]

    def forget_backlogs(self) -> None:
        """Empty Redis, so that millions of records make room."""
        with Redis.from_url(self.redis_url) as client:
            client.flushall(asynchronous=True)

    def backlog_bytes(self, buckets: Sequence[str]) -> int:
        """Return the size of a backlog: of these topics on the broker's disk, or of all that Redis holds."""
        if not buckets:
            with Redis.from_url(self.redis_url) as client:
                return int(client.info("memory")["used_memory"])
        partitions = [place for name in buckets for place in self.directory.glob(f"kafka/data/{name}-[0-9]*")]
        return sum(file.stat().st_size for place in partitions for file in place.glob("*.log"))

    def backend(self, name: str, kind: BackendType = BackendType.REDIS_ZSET) -> RelayBackend:
        """Return the backend of what is not due soon."""
        return RelayBackend(type=kind, id=f"delaytopic.bench.{name}", redis=RedisClient(url=self.redis_url))

    def delete(self, *topics: str) -> None:
        """Delete topics, so that their pages make room."""
        delete_topics(self.bootstrap_servers, topics)


def in_memory(place: Path = SHARED_MEMORY, room_bytes: int = ROOM_BYTES) -> Path | None:
    """Return a file system in memory that takes all that a run writes; None where there is none, or not enough room.

    A disk stops the broker for 40 to 150 ms now and then, which would be most of what is late.
    """
    if not place.is_dir():
        return None
    return place if min(disk_usage(place).free, available_bytes()) >= room_bytes else None


@contextmanager
def embedded_bed() -> Iterator[Bed]:
    """Start a Kafka and a Redis for one run, in a directory that goes with them."""
    with ExitStack() as stack:
        memory = in_memory()
        place = TemporaryDirectory(prefix="delaytopic-bench-", dir=memory, ignore_cleanup_errors=True)
        directory = Path(stack.enter_context(place))
        kafka = stack.enter_context(
            KafkaServer(directory / "kafka", settings=KAFKA_SETTINGS, heap_mib=HEAP_MIB, jvm_options=JVM_OPTIONS)
        )
        redis = stack.enter_context(RedisServer(directory / "redis"))
        yield Bed(kafka.bootstrap_servers, redis.url, directory, "in memory" if memory is not None else "on disk")
