"""The settings of an embedded broker: a production broker's, but for what only makes sense with three nodes."""

from __future__ import annotations

import base64
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID

FIRST_NODE_ID = 1
COPIES = 3
"""The copies of a partition, where there are so many brokers."""


def cluster_id(identity: UUID) -> str:
    """Return a cluster id in Kafka's form: 16 bytes in URL-safe base64 without padding.

    Never with a leading hyphen, which Kafka's storage tool takes for an option.
    """
    text = base64.urlsafe_b64encode(identity.bytes).decode().rstrip("=")
    return f"A{text[1:]}" if text.startswith("-") else text


@dataclass(frozen=True, slots=True)
class ClusterNode:
    """One node of a KRaft cluster, of which each is broker and controller.

    `controllers` are the addresses (host:port) of all nodes' controllers, in the order of ids, which count from 1.
    """

    controllers: Sequence[str]
    id: int = FIRST_NODE_ID
    cluster_id: str = field(default_factory=lambda: cluster_id(uuid.uuid4()))

    @property
    def is_alone(self) -> bool:
        """True for the only node of its cluster."""
        return len(self.controllers) == 1

    @property
    def controller_port(self) -> int:
        """The port on which its own controller listens."""
        return int(self.controllers[self.id - FIRST_NODE_ID].rpartition(":")[2])

    @property
    def voters(self) -> str:
        """List them as `controller.quorum.voters` does."""
        return ",".join(f"{number}@{address}" for number, address in enumerate(self.controllers, FIRST_NODE_ID))


def broker_settings(
    data_directory: Path, node: ClusterNode, *, port: int, overrides: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return the server.properties of a node, on 127.0.0.1.

    `overrides` win over every line.
    """
    return {
        "process.roles": "broker,controller",
        "node.id": str(node.id),
        "controller.quorum.voters": node.voters,
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{node.controller_port}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "PLAINTEXT",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        "log.dirs": str(data_directory),
        "offsets.topic.num.partitions": "8",
        "transaction.state.log.num.partitions": "8",
        "auto.create.topics.enable": "false",
        "group.initial.rebalance.delay.ms": "0",
        "log.cleaner.dedupe.buffer.size": "16777216",  # 128 MiB by default, of a heap of 768
        **_copies(len(node.controllers)),
        # There is no other node to take over: a broker that was frozen for a while may go on where it was.
        **({"broker.session.timeout.ms": "60000"} if node.is_alone else {}),
        **(overrides or {}),
    }


def _copies(brokers: int) -> dict[str, str]:
    """Return the settings for three copies of each partition where there are as many brokers."""
    copies = min(COPIES, brokers)
    in_sync = str(max(1, copies - 1))
    return {
        "default.replication.factor": str(copies),
        **({"min.insync.replicas": in_sync} if copies > 1 else {}),
        "offsets.topic.replication.factor": str(copies),
        "transaction.state.log.replication.factor": str(copies),
        "transaction.state.log.min.isr": in_sync,
        "share.coordinator.state.topic.replication.factor": str(copies),
        "share.coordinator.state.topic.min.isr": in_sync,
    }


def fencing_settings(data_directory: Path, node: ClusterNode) -> dict[str, str]:
    """Return the server.properties of a lone controller: it soon declares its absent broker dead."""
    return {
        "process.roles": "controller",
        "node.id": str(node.id),
        "controller.quorum.voters": node.voters,
        "listeners": f"CONTROLLER://127.0.0.1:{node.controller_port}",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT",
        "log.dirs": str(data_directory),
        "broker.session.timeout.ms": "100",
        "broker.heartbeat.interval.ms": "50",
    }


def properties_text(settings: Mapping[str, str]) -> str:
    """Return a Java properties file; backslashes doubled as that format asks."""
    lines = (f"{key}={value}".replace("\\", "\\\\") for key, value in settings.items())
    return "\n".join(lines) + "\n"
