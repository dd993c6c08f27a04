"""Edge: the client settings that reach and authenticate to Kafka, from the configuration and the files it names."""

from __future__ import annotations

from pathlib import Path

from delaytopic_api.relay import KafkaClient, KafkaSecurity, OAuthClient
from delaytopic_process.kafka_tokens import with_authorities
from delaytopic_relay.errors import ConfigurationError
from delaytopic_relay.kafka.settings import Settings


def connection_settings(config: KafkaClient) -> Settings:
    """Settings common to consumer, producer and admin client; raises `ConfigurationError` for an unreadable file."""
    return {
        "bootstrap.servers": config.bootstrap_servers,
        # A client opens its first connections half of it apart, and a relay starts with five or six clients.
        "reconnect.backoff.ms": 20,
        "reconnect.backoff.max.ms": 1_000,
        # A small request would wait for the answer to the one before it, or for the broker's delayed ACK: 40 ms.
        "socket.nagle.disable": True,
        **_security_settings(config.security),
    }


def _security_settings(security: KafkaSecurity) -> Settings:
    username = _secret("usernameFile", security.username_file) or security.username
    settings: dict[str, str | None] = {
        "security.protocol": str(security.protocol),
        "ssl.ca.location": security.ca_file,
        "ssl.certificate.location": security.certificate_file,
        "ssl.key.location": security.key_file,
        "sasl.mechanism": str(security.mechanism) if security.mechanism is not None else None,
        "sasl.username": username,
        "sasl.password": _secret("passwordFile", security.password_file),
        **(_token_settings(security.oauth) if security.oauth is not None else {}),
    }
    given = {name: value for name, value in settings.items() if value is not None}
    return {**with_authorities(given)}


def _token_settings(oauth: OAuthClient) -> dict[str, str | None]:
    extensions = ",".join(f"{name}={value}" for name, value in oauth.extensions.items())
    return {
        "sasl.oauthbearer.method": "oidc",
        "sasl.oauthbearer.token.endpoint.url": oauth.token_endpoint_url,
        "sasl.oauthbearer.client.id": _filled_secret("oauth.clientIdFile", oauth.client_id_file),
        "sasl.oauthbearer.client.secret": _filled_secret("oauth.clientSecretFile", oauth.client_secret_file),
        "sasl.oauthbearer.scope": oauth.scope,
        "sasl.oauthbearer.extensions": extensions or None,
        "https.ca.location": oauth.ca_file,
    }


def _filled_secret(field: str, path: str) -> str:
    """The client library takes an empty one for a missing setting."""
    value = _secret(field, path)
    if not value:
        raise ConfigurationError(f"kafka.security.{field}: {path} is empty; write the value into the Secret behind it")
    return value


def _secret(field: str, path: str | None) -> str | None:
    if path is None:
        return None
    try:
        return Path(path).read_text(encoding="utf-8").rstrip("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(
            f"kafka.security.{field}: {path} cannot be read ({error}); mount the Secret there"
        ) from error
