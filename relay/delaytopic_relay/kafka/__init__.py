"""Edge: source, target and topics on Kafka."""

from __future__ import annotations

from delaytopic_relay.kafka.connection import connection_settings

__all__ = ["connection_settings"]
