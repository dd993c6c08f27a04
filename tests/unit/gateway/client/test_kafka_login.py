"""The login to Kafka in a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from delaytopic_api import InvalidDocument
from delaytopic_gateway.client.kafka_login import kafka_settings
from delaytopic_process.errors import InputError


def test_the_login_to_kafka_is_read_as_relays_read_theirs(tmp_path: Path) -> None:
    password, file = tmp_path / "password", tmp_path / "kafka.yaml"
    password.write_text("secret\n", encoding="utf-8")
    file.write_text(
        "bootstrapServers: kafka:9093\n"
        "security: {protocol: SASL_SSL, mechanism: SCRAM-SHA-512, username: gateway, "
        f"passwordFile: {password}, caFile: /ca.crt}}\n",
        encoding="utf-8",
    )

    assert kafka_settings(file) == {
        "bootstrap.servers": "kafka:9093",
        "reconnect.backoff.ms": "20",
        "reconnect.backoff.max.ms": "1000",
        "socket.nagle.disable": "True",
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": "/ca.crt",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "gateway",
        "sasl.password": "secret",
    }


def test_json_will_do(tmp_path: Path) -> None:
    file = tmp_path / "kafka.json"
    file.write_text('{"bootstrapServers": "kafka:9092"}', encoding="utf-8")

    assert kafka_settings(file)["bootstrap.servers"] == "kafka:9092"


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("", InputError, "one document"),
        ("a: 1\n---\nb: 2\n", InputError, "one document"),
        ("bootstrap.servers: kafka:9092\n", InvalidDocument, "bootstrapServers"),
        (
            "bootstrapServers: kafka:9092\nsecurity: {protocol: SASL_SSL, mechanism: PLAIN, username: u, "
            "passwordFile: /not/there}\n",
            InputError,
            "passwordFile: /not/there cannot be read",
        ),
    ],
    ids=["empty", "two documents", "other words", "no password"],
)
def test_a_login_that_cannot_be_used_is_refused_by_name(
    tmp_path: Path, text: str, error: type[Exception], message: str
) -> None:
    file = tmp_path / "kafka.yaml"
    file.write_text(text, encoding="utf-8")

    with pytest.raises(error, match=message):
        kafka_settings(file)
