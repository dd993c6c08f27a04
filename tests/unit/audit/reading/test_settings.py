"""The relays' connection, TLS and SASL included, as the audit's own reader has it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from confluent_kafka import Consumer
from tests.unit.audit.messages import config_for, reading

from delaytopic_api.relay import KafkaClient
from delaytopic_audit.errors import SettingsError
from delaytopic_audit.reading.client import Reading, ReadingJob
from delaytopic_audit.reading.settings import client_settings, consumer_settings


def client(**security: str) -> KafkaClient:
    return KafkaClient.model_validate({"bootstrapServers": "k:9093", "security": security})


@pytest.fixture
def secret(tmp_path: Path) -> str:
    """A file with a password and a line's end."""
    file = tmp_path / "password"
    file.write_text('a "b" \\c\n', encoding="utf-8")
    return str(file)


def test_certificates_are_handed_over_as_files() -> None:
    files = {"caFile": "/tls/ca", "certificateFile": "/tls/certificate", "keyFile": "/tls/key"}

    assert client_settings(client(protocol="SSL", **files), {}) == {
        "bootstrap.servers": "k:9093",
        "reconnect.backoff.ms": 20,
        "reconnect.backoff.max.ms": 1_000,
        "socket.nagle.disable": True,
        "security.protocol": "SSL",
        "ssl.ca.location": "/tls/ca",
        "ssl.certificate.location": "/tls/certificate",
        "ssl.key.location": "/tls/key",
    }


@pytest.mark.parametrize("protocol", ["SASL_PLAINTEXT", "SASL_SSL"])
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_login_is_said_with_the_password_from_its_file(secret: str, protocol: str, mechanism: str) -> None:
    security = {"protocol": protocol, "mechanism": mechanism, "username": "auditor", "passwordFile": secret}

    settings = client_settings(client(**security), {})

    assert settings == {
        "bootstrap.servers": "k:9093",
        "reconnect.backoff.ms": 20,
        "reconnect.backoff.max.ms": 1_000,
        "socket.nagle.disable": True,
        "security.protocol": protocol,
        "sasl.mechanism": mechanism,
        "sasl.username": "auditor",
        "sasl.password": 'a "b" \\c',
    }
    Consumer(consumer_settings(settings)).close()  # every name and value is one that the client library takes


def test_further_settings_win_over_the_connection_and_none_over_what_the_reader_relies_on() -> None:
    further = {"ssl.ca.location": "/mine", "isolation.level": "read_uncommitted", "enable.partition.eof": "false"}

    settings = consumer_settings(client_settings(client(protocol="SSL", caFile="/tls/ca"), further))

    names = ("ssl.ca.location", "isolation.level", "enable.partition.eof", "auto.offset.reset", "enable.auto.commit")
    assert [settings[name] for name in names] == ["/mine", "read_committed", True, "error", False]


def test_a_file_that_cannot_be_read_names_its_field(tmp_path: Path) -> None:
    security = {"protocol": "SASL_SSL", "mechanism": "PLAIN", "username": "auditor"}

    with pytest.raises(SettingsError, match=r"kafka\.security\.passwordFile: .*missing cannot be read"):
        client_settings(client(**security, passwordFile=str(tmp_path / "missing")), {})


def test_workers_are_told_the_place_of_a_secret_and_not_the_secret(secret: str) -> None:
    login = client(protocol="SASL_SSL", mechanism="PLAIN", username="auditor", passwordFile=secret)
    config = config_for("a", "b", "a.dlq").model_copy(update={"kafka": login})
    own = Reading(number=1, config=config, ranges=[], generations=[reading(0, 5)])
    job = ReadingJob(client={"client.id": "x"}, readings=[own])

    text = job.text()

    assert ReadingJob.model_validate_json(text) == job
    assert json.dumps(secret) in text
    assert "c\\\\" not in text
