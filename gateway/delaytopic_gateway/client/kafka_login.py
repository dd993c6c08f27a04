"""Edge: the login to Kafka in a file, as the gateway's Secret holds it."""

from __future__ import annotations

from pathlib import Path

from delaytopic_api.loading import parse_yaml, validate
from delaytopic_api.relay import KafkaClient
from delaytopic_process.errors import InputError
from delaytopic_relay.errors import ConfigurationError
from delaytopic_relay.kafka import connection_settings


def kafka_settings(file: Path) -> dict[str, str]:
    """Return the settings of a Kafka client with the login in a file. Raises `InputError` and `InvalidDocument`."""
    try:
        contents = [each for each in parse_yaml(file.read_text(encoding="utf-8"), str(file)) if each is not None]
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"--kafka-config: {file} cannot be read: {error}") from error
    if len(contents) != 1 or not isinstance(contents[0], dict):
        raise InputError(f"--kafka-config: {file} has to hold one document with bootstrapServers")
    try:
        settings = connection_settings(validate(KafkaClient, contents[0], str(file)))
    except ConfigurationError as error:
        raise InputError(f"--kafka-config: {error}") from error
    return {name: str(value) for name, value in settings.items()}
