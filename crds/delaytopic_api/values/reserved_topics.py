"""Topics that no document and no record may name, whatever a class allows. Pure."""

from __future__ import annotations

import re
from typing import Final

GATEWAY_TOPICS: Final = "delaytopic.gateway."
"""The beginning of the names of gateways' topics."""
RESERVED: Final = "__.*|delaytopic[._].+[._]delay[._](ids|[0-9]+)|delaytopic[._]gateway[._].+"
"""Kafka's own, those of the KafkaBuckets backend, which belong to one backlog each, and those of gateways. Dots and
underscores are one for Kafka, see `unified`."""
WHY: Final = (
    "is reserved: topics that begin with __ are Kafka's own, delaytopic.*.delay.* those of a backlog, "
    "delaytopic.gateway.* those of gateways"
)


def is_reserved(topic: str) -> bool:
    """Tell topics that nobody may name."""
    return re.fullmatch(RESERVED, topic, re.DOTALL) is not None
