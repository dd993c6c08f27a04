"""The relays' connection, in the words of Java's Kafka client."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from delaytopic_api.relay import KafkaClient
from delaytopic_audit.errors import SettingsError
from delaytopic_audit.reading.settings import connector_settings

OAUTH = {"tokenEndpointUrl": "https://login.test/token", "clientIdFile": "/id", "clientSecretFile": "/secret"}


def client(**security: Any) -> KafkaClient:
    return KafkaClient.model_validate({"bootstrapServers": "k:9093", "security": security})


def test_a_plain_connection_reads_committed_records() -> None:
    assert connector_settings(client(), {"client.id": "x"}) == {
        "kafka.bootstrap.servers": "k:9093",
        "kafka.isolation.level": "read_committed",
        "kafka.security.protocol": "PLAINTEXT",
        "kafka.client.id": "x",
    }


def test_certificates_are_handed_over_as_pem(tmp_path: Path) -> None:
    files = {name: tmp_path / name for name in ("ca", "certificate", "key")}
    for name, file in files.items():
        file.write_text(f"PEM of {name}\n", encoding="utf-8")

    settings = connector_settings(
        client(protocol="SSL", **{f"{name}File": str(file) for name, file in files.items()}), {}
    )

    assert settings["kafka.ssl.truststore.certificates"] == "PEM of ca"
    assert settings["kafka.ssl.keystore.certificate.chain"] == "PEM of certificate"
    assert settings["kafka.ssl.keystore.key"] == "PEM of key"


def test_a_password_is_read_from_its_file_and_quoted(tmp_path: Path) -> None:
    (tmp_path / "password").write_text('a "b" \\c\n', encoding="utf-8")

    settings = connector_settings(
        client(
            protocol="SASL_SSL",
            mechanism="SCRAM-SHA-512",
            username="auditor",
            passwordFile=str(tmp_path / "password"),
        ),
        {},
    )

    assert settings["kafka.sasl.mechanism"] == "SCRAM-SHA-512"
    assert settings["kafka.sasl.jaas.config"] == (
        "org.apache.kafka.common.security.scram.ScramLoginModule required"
        ' username="auditor" password="a \\"b\\" \\\\c";'
    )


def test_what_cannot_be_read_or_said_names_its_field(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"kafka\.security\.caFile: .*missing cannot be read"):
        connector_settings(client(protocol="SSL", caFile=str(tmp_path / "missing")), {})
    with pytest.raises(SettingsError, match="OAUTHBEARER works with --reader client only"):
        connector_settings(client(protocol="SASL_SSL", mechanism="OAUTHBEARER", oauth=OAUTH), {})
