"""An admin client that stays quiet while a broker is not there yet."""

from __future__ import annotations

import logging

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

QUIET = logging.getLogger("delaytopic_cli.embedded.kafka")
QUIET.addHandler(logging.NullHandler())
QUIET.propagate = False


def admin_client(bootstrap_servers: str) -> AdminClient:
    """An AdminClient that retries quickly and does not write connection errors on standard error."""
    return AdminClient(
        {"bootstrap.servers": bootstrap_servers, "reconnect.backoff.ms": 20, "reconnect.backoff.max.ms": 200},
        logger=QUIET,
    )


def broker_answers(bootstrap_servers: str, *, timeout_seconds: float = 2.0) -> bool:
    """Whether a broker describes its cluster within the timeout."""
    try:
        return bool(admin_client(bootstrap_servers).list_topics(timeout=timeout_seconds).brokers)
    except KafkaException:
        return False


def all_partitions_lead(bootstrap_servers: str, *, timeout_seconds: float = 2.0) -> bool:
    """Whether a broker answers and every partition of the cluster has a leader: nothing is still coming up."""
    try:
        metadata = admin_client(bootstrap_servers).list_topics(timeout=timeout_seconds)
    except KafkaException:
        return False
    leaders = [partition.leader for topic in metadata.topics.values() for partition in topic.partitions.values()]
    return bool(metadata.brokers) and all(leader >= 0 for leader in leaders)
