"""Settings of the Kafka client, which is the relays'."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final

from delaytopic_api.relay import KafkaClient
from delaytopic_audit.errors import SettingsError
from delaytopic_relay.errors import ConfigurationError
from delaytopic_relay.kafka import connection_settings

# The library's own lines go nowhere: each thing that matters in them comes back as an error.
QUIET = logging.getLogger("delaytopic_audit.kafka")
QUIET.addHandler(logging.NullHandler())
QUIET.propagate = False

READER: Final = {
    "group.id": "delaytopic-audit",  # required by the client; nothing is committed and no group joined
    "isolation.level": "read_committed",
    "enable.auto.commit": False,
    "auto.offset.reset": "error",  # expired records have to be seen, not skipped
    "enable.partition.eof": True,
    "fetch.queue.backoff.ms": 10,  # by default a full queue stands still for a second
    "queued.max.messages.kbytes": 65_536,
    "queued.min.messages": 50_000,
    "check.crcs": False,
}
"""Settings that the reading of ranges relies on: no setting of the caller's may change them."""


def client_settings(client: KafkaClient, further: Mapping[str, str]) -> dict[str, Any]:
    """Return the settings that reach Kafka as a relay would; `further` are settings as after -X, which win.

    Raises SettingsError for a file that cannot be read.
    """
    try:
        return {**connection_settings(client), **further}
    except ConfigurationError as error:
        raise SettingsError(str(error)) from error


def consumer_settings(reaching: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a consumer of planned ranges; `reaching` are those that reach Kafka."""
    return {**reaching, **READER}
