"""Edge: clients of Kafka for the commands: quiet, with clear errors, and partitioning as Java's producers do."""

from __future__ import annotations

import difflib
import uuid
from collections.abc import Mapping
from typing import cast

from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from delaytopic_api.records import Headers
from delaytopic_cli.embedded.topics import QUIET
from delaytopic_cli.errors import InputError, KafkaUnreachableError, TopicError

METADATA_TIMEOUT_SECONDS = 10.0
Settings = Mapping[str, str]


def producer(settings: Settings) -> Producer:
    """Return a producer whose retries never double a record, and that puts a key where Java's producers put it."""
    return Producer(
        {
            "linger.ms": 5,
            "enable.idempotence": True,
            "partitioner": "murmur2_random",
            "queue.buffering.max.messages": 200_000,
            **settings,
        },
        logger=QUIET,
    )


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
    """Return all partitions of a topic, each from the same offset (or OFFSET_BEGINNING, OFFSET_END)."""
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
