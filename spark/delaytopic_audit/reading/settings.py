"""Settings of both Kafka clients: the relays' library, and Java's behind the official connector."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from delaytopic_api.relay import KafkaClient, KafkaSecurity, SaslMechanism
from delaytopic_audit.errors import SettingsError
from delaytopic_relay.errors import ConfigurationError
from delaytopic_relay.kafka import connection_settings

# The library's own lines go nowhere: each thing that matters in them comes back as an error.
QUIET = logging.getLogger("delaytopic_audit.kafka")
QUIET.addHandler(logging.NullHandler())
QUIET.propagate = False

_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
_SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
READER: Final = {
    "group.id": "delaytopic-audit",  # required by the client; nothing is committed and no group joined
    "isolation.level": "read_committed",
    "enable.auto.commit": False,
    "auto.offset.reset": "error",  # expired records have to be seen, not skipped
    "enable.partition.eof": True,
    "fetch.queue.backoff.ms": 10,  # by default a full queue stands still for a second
    "queued.max.messages.kbytes": 65_536,
    "queued.min.messages": 50_000,
    "check.crcs": False,
}
"""Settings that the reading of ranges relies on: no setting of the caller's may change them."""


def client_settings(client: KafkaClient, further: Mapping[str, str]) -> dict[str, Any]:
    """Return the settings that reach Kafka as a relay would; `further` are settings as after -X, which win.

    Raises SettingsError for a file that cannot be read.
    """
    try:
        return {**connection_settings(client), **further}
    except ConfigurationError as error:
        raise SettingsError(str(error)) from error


def consumer_settings(reaching: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a consumer of planned ranges; `reaching` are those that reach Kafka."""
    return {**reaching, **READER}


def connector_settings(client: KafkaClient, further: dict[str, str]) -> dict[str, str]:
    """Return options for `spark.read.format("kafka")`; raises SettingsError for a file that cannot be read.

    `further` are settings that the user gave for the relays' client library: most have the same name in Java's.
    """
    settings = {
        "bootstrap.servers": client.bootstrap_servers,
        "isolation.level": "read_committed",
        "security.protocol": str(client.security.protocol),
        **_tls(client.security),
        **_login(client.security),
        **further,
    }
    return {f"kafka.{name}": value for name, value in settings.items()}


def _tls(security: KafkaSecurity) -> dict[str, str]:
    settings: dict[str, str] = {}
    if security.ca_file is not None:
        settings |= {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": _text("caFile", security.ca_file)}
    if security.certificate_file is not None and security.key_file is not None:
        settings |= {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.certificate.chain": _text("certificateFile", security.certificate_file),
            "ssl.keystore.key": _text("keyFile", security.key_file),
        }
    return settings


def _login(security: KafkaSecurity) -> dict[str, str]:
    if security.mechanism is None:
        return {}
    if security.mechanism is SaslMechanism.OAUTHBEARER:
        raise SettingsError("kafka.security.mechanism: OAUTHBEARER works with --reader client only")
    module = _PLAIN if security.mechanism is SaslMechanism.PLAIN else _SCRAM
    username = security.username or _text("usernameFile", security.username_file)
    password = _text("passwordFile", security.password_file)
    login = f"{module} required username={_quoted(username)} password={_quoted(password)};"
    return {"sasl.mechanism": str(security.mechanism), "sasl.jaas.config": login}


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _text(field: str, path: str | None) -> str:
    try:
        return Path(path or "").read_text(encoding="utf-8").rstrip("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"kafka.security.{field}: {path} cannot be read ({error})") from error
