"""Edge: clients of Kafka for the commands: quiet, with clear errors, and partitioning as Java's producers do."""

from __future__ import annotations

import difflib
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Final, TypeVar, cast

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from delaytopic.settling import settled
from delaytopic_api.records import Headers
from delaytopic_gateway.client.topics import QUIET
from delaytopic_gateway.errors import KafkaUnreachableError, TopicError
from delaytopic_process.errors import InputError

METADATA_TIMEOUT_SECONDS = 10.0
FENCED: Final = frozenset({KafkaError._FENCED, KafkaError.INVALID_PRODUCER_EPOCH, KafkaError.PRODUCER_FENCED})
"""The codes that a producer gets whose transactional id another one has taken over."""
FIRST_OFFSET: Final = 0
"""The offset to read a topic from its first record on: also one that has lost its first ones, since readers begin with
the earliest where an offset is gone. For OFFSET_BEGINNING the client asks half a second after it met the brokers."""
_PURGED: Final = frozenset({KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT})
_FLUSH_SECONDS = 0.1
_REQUEST_BYTES = 64 << 10
"""The size of one request to a partition: a topic may allow no more than its largest record."""
_LARGEST_REQUEST_BYTES = 64 << 20
Settings = Mapping[str, str]
T = TypeVar("T")
Refused = list[tuple[T, KafkaError]]
"""The refusals of a batch by Kafka: each record by the name that its caller gave it, and the reason."""


def producer(settings: Settings, topic: str | None = None) -> Producer:
    """Return a producer whose retries never double a record, and that puts a key where Java's producers put it.

    It makes no topics, as brokers would for whoever asks for one. With a topic it is connected: one that has no
    connection yet when it needs a producer id, which is before its first record, asks again half a second later. Raises
    KafkaUnreachableError.
    """
    made = Producer(
        {
            "linger.ms": 5,
            "enable.idempotence": True,
            "partitioner": "murmur2_random",
            "allow.auto.create.topics": False,
            "queue.buffering.max.messages": 200_000,
            **settings,
        },
        logger=QUIET,
    )
    if topic is not None:
        try:
            made.list_topics(topic, METADATA_TIMEOUT_SECONDS)
        except KafkaException as error:
            raise unreachable(settings, error) from error
    return made


def transactional(transactional_id: str, timeout_ms: int) -> Settings:
    """Return the settings of a producer that writes in transactions whatever Kafka takes, each record for itself.

    `timeout_ms` is the time for which one that was killed may hold up readers.
    """
    return {
        "transactional.id": transactional_id,
        "transaction.timeout.ms": str(timeout_ms),
        "message.max.bytes": str(_LARGEST_REQUEST_BYTES),
        "batch.size": str(_REQUEST_BYTES),
    }


def noting(refused: Refused[T], name: T) -> Callable[[KafkaError | None, Any], None]:
    """Return the callback of a delivery that notes a refusal; what is thrown away behind another one is none."""

    def note(error: KafkaError | None, message: Any) -> None:
        if error is not None and error.code() not in _PURGED:
            refused.append((name, error))

    return note


def flush(producer: Producer, refused: Sequence[object], seconds: float) -> int:
    """Wait until all is acknowledged, something is refused or the time is over; return how many records are left.

    In a transaction what comes behind a refused record is not sent any more: a wait for it would last its whole time.
    """
    give_up_s = time.monotonic() + seconds
    while (left := producer.flush(_FLUSH_SECONDS)) and not refused and time.monotonic() < give_up_s:
        pass
    return left


@contextmanager
def raised_by_the_client() -> Iterator[None]:
    """Raise the `KafkaException` of the body, whichever way the client raises it.

    A fatal error is raised out of whichever call serves callbacks, as a mere cause if one is called after it.
    """
    try:
        yield
    except SystemError as error:
        if isinstance(error.__cause__, KafkaException):
            raise error.__cause__ from error
        raise


FRUGAL: Final = {
    "queued.max.messages.kbytes": "2048",
    "queued.min.messages": "1000",
    "fetch.max.bytes": "2097152",
    "fetch.message.max.bytes": "262144",
}
"""Settings of a reader that holds little ahead of who takes it; by itself the client holds 64 MiB.

Bytes alone are no bound: a record of twenty takes some hundred in the client's memory.
"""


def committed_reader(settings: Settings, *, at_end_events: bool = False) -> Consumer:
    """Return a consumer that sees committed records only, commits nothing and shares its group with nobody.

    `at_end_events`: it hands out an event whenever it has read a partition to its end.
    """
    return Consumer(
        {
            "group.id": f"delaytopic-cli-{uuid.uuid4()}",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "fetch.queue.backoff.ms": 5,
            "fetch.wait.max.ms": 50,
            "enable.partition.eof": at_end_events,
            **settings,
        },
        logger=QUIET,
    )


def bounds(consumer: Consumer, place: TopicPartition) -> tuple[int, int]:
    """Return the first offset of a partition and its end, as this consumer sees it. Raises `KafkaException`."""
    ask = partial(consumer.get_watermark_offsets, place, METADATA_TIMEOUT_SECONDS)
    first, end = settled(ask, METADATA_TIMEOUT_SECONDS)
    return first, end


def partitions_of(settings: Settings, topic: str) -> int:
    """Return the number of the topic's partitions.

    Raises InputError for a setting that the client does not know, KafkaUnreachableError when no broker answers, and
    TopicError when there is no such topic.
    """
    try:
        admin = AdminClient(dict(settings), logger=QUIET)
    except KafkaException as error:
        raise InputError(f"-X: the Kafka client refuses its settings: {error.args[0].str()}") from error
    try:
        topics = admin.list_topics(timeout=METADATA_TIMEOUT_SECONDS).topics
    except KafkaException as error:
        raise unreachable(settings, error) from error
    if topic not in topics:
        close = difflib.get_close_matches(topic, topics, n=3)
        hint = f"; did you mean {' or '.join(close)}?" if close else ""
        raise TopicError(f"there is no topic {topic} at {settings['bootstrap.servers']}{hint}")
    return len(topics[topic].partitions)


def assignment(topic: str, partitions: int, offset: int) -> list[TopicPartition]:
    """Return all partitions of a topic, each from the same offset (or FIRST_OFFSET, OFFSET_END)."""
    return [TopicPartition(topic, partition, offset) for partition in range(partitions)]


def headers_of(message: Message) -> Headers:
    """Return the headers of a consumed record, in order; the client hands out bytes only, whatever its types say."""
    return cast(Headers, message.headers() or [])


def unreachable(settings: Settings, error: KafkaException) -> KafkaUnreachableError:
    """Return the error for a broker that does not answer."""
    return KafkaUnreachableError(
        f"no Kafka broker answers at {settings['bootstrap.servers']} ({error.args[0].str()}); "
        "check the address, and -X for what a secured cluster needs"
    )
