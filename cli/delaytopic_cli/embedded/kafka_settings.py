"""The settings of the embedded broker: a production broker's, but for what only makes sense with three nodes."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path
from uuid import UUID

NODE_ID = 1


def broker_settings(
    data_directory: Path, *, port: int, controller_port: int, overrides: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The server.properties of one KRaft node that is broker and controller, on 127.0.0.1.

    `overrides` win over every line.
    """
    return {
        "process.roles": "broker,controller",
        "node.id": str(NODE_ID),
        "controller.quorum.voters": f"{NODE_ID}@127.0.0.1:{controller_port}",
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "PLAINTEXT",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        "log.dirs": str(data_directory),
        "offsets.topic.replication.factor": "1",
        "offsets.topic.num.partitions": "8",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "transaction.state.log.num.partitions": "8",
        "share.coordinator.state.topic.replication.factor": "1",
        "share.coordinator.state.topic.min.isr": "1",
        "default.replication.factor": "1",
        "auto.create.topics.enable": "false",
        "group.initial.rebalance.delay.ms": "0",
        # There is no other node to take over: a broker that was frozen for a while may go on where it was.
        "broker.session.timeout.ms": "60000",
        "log.cleaner.dedupe.buffer.size": "16777216",  # 128 MiB by default, of a heap of 768
        **(overrides or {}),
    }


def fencing_settings(data_directory: Path, *, controller_port: int) -> dict[str, str]:
    """The server.properties of the same node as controller only, which soon declares its absent broker dead."""
    return {
        "process.roles": "controller",
        "node.id": str(NODE_ID),
        "controller.quorum.voters": f"{NODE_ID}@127.0.0.1:{controller_port}",
        "listeners": f"CONTROLLER://127.0.0.1:{controller_port}",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT",
        "log.dirs": str(data_directory),
        "broker.session.timeout.ms": "100",
        "broker.heartbeat.interval.ms": "50",
    }


def properties_text(settings: Mapping[str, str]) -> str:
    """A Java properties file; backslashes doubled as that format asks."""
    lines = (f"{key}={value}".replace("\\", "\\\\") for key, value in settings.items())
    return "\n".join(lines) + "\n"


def cluster_id(identity: UUID) -> str:
    """A cluster id in Kafka's form: 16 bytes in URL-safe base64 without padding.

    Never with a leading hyphen, which Kafka's storage tool takes for an option.
    """
    text = base64.urlsafe_b64encode(identity.bytes).decode().rstrip("=")
    return f"A{text[1:]}" if text.startswith("-") else text
