"""The settings of the embedded broker: a production broker's, but for what only makes sense with three nodes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

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
        # After a SIGKILL the controller turns the new broker away until the old one's session is over (9 s by default).
        "broker.session.timeout.ms": "3000",
        "broker.heartbeat.interval.ms": "500",
        "group.initial.rebalance.delay.ms": "0",
        "auto.create.topics.enable": "false",
        "log.cleaner.dedupe.buffer.size": "16777216",  # 128 MiB by default, of a heap of 768
        **(overrides or {}),
    }


def properties_text(settings: Mapping[str, str]) -> str:
    """A Java properties file; backslashes doubled as that format asks."""
    lines = (f"{key}={value}".replace("\\", "\\\\") for key, value in settings.items())
    return "\n".join(lines) + "\n"
