"""The settings of a Kafka client, secrets inside, made of a connection and the Secrets that it names. Pure.

Nothing is written to files: the operator uses the credentials of many, and none of them may be left behind.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from delaytopic_api.documents import Authentication, AuthenticationType, KafkaConnection, OAuth
from delaytopic_operator.model.secret_values import SecretValues

MECHANISMS: Final = {
    AuthenticationType.SCRAM_SHA_512: "SCRAM-SHA-512",
    AuthenticationType.SCRAM_SHA_256: "SCRAM-SHA-256",
    AuthenticationType.PLAIN: "PLAIN",
    AuthenticationType.OAUTH_BEARER: "OAUTHBEARER",
}
PROTOCOLS: Final = {
    (False, False): "PLAINTEXT",
    (True, False): "SSL",
    (False, True): "SASL_PLAINTEXT",
    (True, True): "SASL_SSL",
}
"""The protocols, by whether the connection is encrypted, and whether a password or a token is sent."""


def kafka_secrets(connection: KafkaConnection) -> list[str]:
    """The names of the Secrets that the connection needs."""
    tls, authentication = connection.tls, connection.authentication
    named = [trusted.secret_name for trusted in tls.trusted_certificates] if tls else []
    if authentication is not None:
        oauth = authentication.oauth
        of_tokens = (oauth.credentials, oauth.trusted_certificate) if oauth is not None else ()
        parts = (authentication.password_secret, authentication.certificate_and_key, *of_tokens)
        named += [part.secret_name for part in parts if part is not None]
    return list(dict.fromkeys(named))


def kafka_settings(connection: KafkaConnection, secrets: SecretValues) -> dict[str, str]:
    """Return what librdkafka takes.

    Raises `SecretMissing`, naming the Secret and the key.
    """
    authentication = connection.authentication
    kind = authentication.type if authentication is not None else None
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
    if authentication.username is not None:
        yield "sasl.username", authentication.username
    if authentication.password_secret is not None:
        wanted = authentication.password_secret
        yield "sasl.password", secrets.text(wanted.secret_name, wanted.password)
    if authentication.certificate_and_key is not None:
        pair = authentication.certificate_and_key
        yield "ssl.certificate.pem", secrets.pem(pair.secret_name, pair.certificate, "CERTIFICATE")
        yield "ssl.key.pem", secrets.pem(pair.secret_name, pair.key, "PRIVATE KEY")
    if authentication.oauth is not None:
        yield from _tokens(authentication.oauth, secrets)


def _tokens(oauth: OAuth, secrets: SecretValues) -> Iterator[tuple[str, str]]:
    client, trusted = oauth.credentials, oauth.trusted_certificate
    yield "sasl.oauthbearer.method", "oidc"
    yield "sasl.oauthbearer.token.endpoint.url", oauth.token_endpoint_url
    yield "sasl.oauthbearer.client.id", secrets.text(client.secret_name, client.client_id)
    yield "sasl.oauthbearer.client.secret", secrets.text(client.secret_name, client.client_secret)
    if oauth.scope is not None:
        yield "sasl.oauthbearer.scope", oauth.scope
    if oauth.extensions:
        yield "sasl.oauthbearer.extensions", ",".join(f"{name}={value}" for name, value in oauth.extensions.items())
    if trusted is not None:
        yield "https.ca.pem", secrets.pem(trusted.secret_name, trusted.certificate, "CERTIFICATE")
