"""What is known of a topic."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

UNLIMITED_BYTES = 1 << 62


class TopicFacts(NamedTuple):
    """One topic; settings are empty where the relay may not read them."""

    name: str
    partitions: int
    settings: Mapping[str, str]

    @property
    def largest_batch_bytes(self) -> int:
        """`max.message.bytes`."""
        return int(self.settings.get("max.message.bytes", UNLIMITED_BYTES))
