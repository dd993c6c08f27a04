"""The settings of the relays' client library with which the audit asks and reads Kafka."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from delaytopic_api.relay import KafkaClient
from delaytopic_relay.errors import ConfigurationError
from delaytopic_relay.kafka.connection import connection_settings
from delaytopic_slo.errors import SettingsError

READER: Final = {
    "group.id": "delaytopic-slo",  # required by the client; nothing is committed and no group joined
    "isolation.level": "read_committed",
    "enable.auto.commit": False,
    "auto.offset.reset": "error",  # expired records have to be seen, not skipped
    "enable.partition.eof": True,
    "fetch.queue.backoff.ms": 10,  # by default a full queue stands still for a second
    "queued.max.messages.kbytes": 65_536,
    "queued.min.messages": 50_000,
    "check.crcs": False,
}
"""What the reading of ranges relies on: no setting of the caller's may change it."""


def client_settings(client: KafkaClient, further: Mapping[str, str]) -> dict[str, Any]:
    """What reaches Kafka as a relay would; `further` are settings as after -X, which win.

    Raises SettingsError for a file that cannot be read.
    """
    try:
        return {**connection_settings(client), **further}
    except ConfigurationError as error:
        raise SettingsError(str(error)) from error


def consumer_settings(reaching: Mapping[str, Any]) -> dict[str, Any]:
    """Of a consumer that reads planned ranges; `reaching` are those that reach Kafka."""
    return {**reaching, **READER}
