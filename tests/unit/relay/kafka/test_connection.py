"""The settings of a relay's Kafka clients that get tokens."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer

from delaytopic_api.relay import KafkaClient
from delaytopic_relay.errors import ConfigurationError
from delaytopic_relay.kafka import connection_settings

URL = "https://login.test/token"


def client(directory: Path, *, secret: str = "s3cret\n", **oauth: Any) -> KafkaClient:
    (directory / "id").write_text("delay\n", encoding="utf-8")
    (directory / "secret").write_text(secret, encoding="utf-8")
    files = {"clientIdFile": str(directory / "id"), "clientSecretFile": str(directory / "secret")}
    security = {
        "protocol": "SASL_SSL",
        "mechanism": "OAUTHBEARER",
        "oauth": {"tokenEndpointUrl": URL, **files, **oauth},
    }
    return KafkaClient.model_validate({"bootstrapServers": "k:9093", "security": security})


def test_tokens_are_got_with_an_id_and_a_secret_from_files(tmp_path: Path) -> None:
    authority = tmp_path / "ca.pem"
    authority.touch()
    extensions = {"logicalCluster": "lkc-1", "identityPoolId": "pool=1"}

    settings = connection_settings(client(tmp_path, scope="kafka read", extensions=extensions, caFile=str(authority)))

    assert settings == {
        "bootstrap.servers": "k:9093",
        "reconnect.backoff.ms": 20,
        "reconnect.backoff.max.ms": 1_000,
        "socket.nagle.disable": True,
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.method": "oidc",
        "sasl.oauthbearer.token.endpoint.url": URL,
        "sasl.oauthbearer.client.id": "delay",
        "sasl.oauthbearer.client.secret": "s3cret",
        "sasl.oauthbearer.scope": "kafka read",
        "sasl.oauthbearer.extensions": "logicalCluster=lkc-1,identityPoolId=pool=1",
        "https.ca.location": str(authority),
    }
    Consumer({**settings, "group.id": "g"}).close()  # every name and value is one that the client library takes


@pytest.mark.parametrize(
    ("secret", "caught"),
    [("\n", "is empty; write the value into the Secret behind it"), (None, "cannot be read")],
    ids=["empty", "missing"],
)
def test_a_secret_that_is_not_there_names_its_field(secret: str | None, caught: str, tmp_path: Path) -> None:
    given = client(tmp_path, secret=secret or "")
    if secret is None:
        (tmp_path / "secret").unlink()

    with pytest.raises(ConfigurationError) as error:
        connection_settings(given)

    assert str(error.value).startswith(f"kafka.security.oauth.clientSecretFile: {tmp_path / 'secret'} {caught}")
