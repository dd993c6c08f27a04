"""From a connection and the Secrets that it names to the settings of a Kafka client, secrets inside. Pure.

Nothing is written to files: the operator uses the credentials of many, and none of them may be left behind.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from delaytopic_api.documents import Authentication, AuthenticationType, KafkaConnection
from delaytopic_operator.errors import NotSupported
from delaytopic_operator.model.secret_values import SecretValues

MECHANISMS: Final = {
    AuthenticationType.SCRAM_SHA_512: "SCRAM-SHA-512",
    AuthenticationType.SCRAM_SHA_256: "SCRAM-SHA-256",
    AuthenticationType.PLAIN: "PLAIN",
}
PROTOCOLS: Final = {
    (False, False): "PLAINTEXT",
    (True, False): "SSL",
    (False, True): "SASL_PLAINTEXT",
    (True, True): "SASL_SSL",
}
"""By whether the connection is encrypted, and whether a password is sent."""


def kafka_secrets(connection: KafkaConnection) -> list[str]:
    """The names of the Secrets that the connection needs."""
    tls, authentication = connection.tls, connection.authentication
    named = [trusted.secret_name for trusted in tls.trusted_certificates] if tls else []
    if authentication is not None:
        parts = (authentication.password_secret, authentication.certificate_and_key, authentication.oauth_secret)
        named += [part.secret_name for part in parts if part is not None]
    return list(dict.fromkeys(named))


def kafka_settings(connection: KafkaConnection, secrets: SecretValues) -> dict[str, str]:
    """Return what librdkafka takes.

    Raises `SecretMissing`, naming the Secret and the key, and `NotSupported`.
    """
    authentication = connection.authentication
    kind = authentication.type if authentication is not None else None
    if kind is AuthenticationType.OAUTH_BEARER:
        raise NotSupported("authentication.type OAuthBearer is not supported by this release; use ScramSha512 or TLS")
    encrypted = connection.tls is not None or kind is AuthenticationType.TLS
    return {
        "bootstrap.servers": connection.bootstrap_servers,
        "security.protocol": PROTOCOLS[encrypted, kind in MECHANISMS],
        **dict(_trust(connection, secrets)),
        **(dict(_identity(authentication, secrets)) if authentication is not None else {}),
    }


def _trust(connection: KafkaConnection, secrets: SecretValues) -> Iterator[tuple[str, str]]:
    trusted = connection.tls.trusted_certificates if connection.tls else []
    if trusted:
        authorities = [secrets.pem(one.secret_name, one.certificate, "CERTIFICATE") for one in trusted]
        yield "ssl.ca.pem", "\n".join(authorities)


def _identity(authentication: Authentication, secrets: SecretValues) -> Iterator[tuple[str, str]]:
    if authentication.type in MECHANISMS:
        yield "sasl.mechanism", MECHANISMS[authentication.type]
        yield "sasl.username", authentication.username or ""
    if authentication.password_secret is not None:
        wanted = authentication.password_secret
        yield "sasl.password", secrets.text(wanted.secret_name, wanted.password)
    if authentication.certificate_and_key is not None:
        pair = authentication.certificate_and_key
        yield "ssl.certificate.pem", secrets.pem(pair.secret_name, pair.certificate, "CERTIFICATE")
        yield "ssl.key.pem", secrets.pem(pair.secret_name, pair.key, "PRIVATE KEY")
