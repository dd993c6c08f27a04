"""An admin client that stays quiet while a broker is not there yet."""

from __future__ import annotations

import logging

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

_QUIET = logging.getLogger("delaytopic_cli.embedded.kafka")
_QUIET.addHandler(logging.NullHandler())
_QUIET.propagate = False


def admin_client(bootstrap_servers: str) -> AdminClient:
    """An AdminClient that retries quickly and does not write connection errors on standard error."""
    return AdminClient(
        {"bootstrap.servers": bootstrap_servers, "reconnect.backoff.ms": 20, "reconnect.backoff.max.ms": 200},
        logger=_QUIET,
    )


def broker_answers(bootstrap_servers: str, *, timeout_seconds: float = 2.0) -> bool:
    """Whether a broker describes its cluster within the timeout."""
    try:
        return bool(admin_client(bootstrap_servers).list_topics(timeout=timeout_seconds).brokers)
    except KafkaException:
        return False
