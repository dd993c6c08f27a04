"""Addresses of Kafka and Redis, and the Secrets with their credentials, as DelayTopic and DelayClass share them."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Self

from pydantic import Field, model_validator

from delaytopic_api.documents.model import Model, exactly_one, require
from delaytopic_api.values.lists import as_map
from delaytopic_api.values.names import SecretKey, SecretName
from delaytopic_api.values.oauth import OAuthScope, SaslExtensions, TokenEndpointUrl
from delaytopic_api.values.urls import BootstrapServers, RedisServerUrl


class AuthenticationType(StrEnum):
    """The way in which a client proves its identity to Kafka."""

    SCRAM_SHA_512 = "ScramSha512"
    SCRAM_SHA_256 = "ScramSha256"
    PLAIN = "Plain"
    TLS = "TLS"
    OAUTH_BEARER = "OAuthBearer"


class TrustedCertificate(Model):
    """A certificate authority to trust."""

    secret_name: SecretName
    """The name of the Secret that holds it, such as `kafka-ca`."""
    certificate: SecretKey = "ca.crt"
    """The key inside the Secret, such as `ca.crt`."""


class CertificateAndKey(Model):
    """A client certificate with its private key."""

    secret_name: SecretName
    """The Secret that holds both, such as `kafka-client`."""
    certificate: SecretKey = "user.crt"
    """The certificate's key inside the Secret."""
    key: SecretKey = "user.key"
    """The private key's key inside the Secret."""


class PasswordSecret(Model):
    """A password in a Secret."""

    secret_name: SecretName
    """The Secret that holds it, such as `kafka-user`."""
    password: SecretKey = "password"
    """The key inside the Secret."""


class UrlSecret(Model):
    """A URL with credentials in a Secret."""

    secret_name: SecretName
    """The Secret that holds it, such as `kafka-user`."""
    key: SecretKey = "url"
    """The key inside the Secret."""


class SigningKeySecret(Model):
    """The keys by which relays sign what waits in the backend, in a Secret."""

    secret_name: SecretName
    """The Secret that holds them, such as `signing-keys`."""
    key: SecretKey = "keys"
    """The key inside the Secret: one signing key a line, each of at least 16 bytes. The first signs, all verify."""


class ClientCredentials(Model):
    """The id and the secret of an OAuth client, in a Secret."""

    secret_name: SecretName
    """The Secret that holds both, such as `kafka-client`."""
    client_id: SecretKey = "client-id"
    """The id's key inside the Secret."""
    client_secret: SecretKey = "client-secret"
    """The secret's key inside the Secret."""


class OAuth(Model):
    """The issuer of the tokens that clients show to Kafka, asked by the grant client_credentials."""

    token_endpoint_url: TokenEndpointUrl
    """The address that tokens come from, such as `https://login.example.com/oauth2/token`. They have to be JWTs
    with `sub` and `exp`."""
    credentials: ClientCredentials
    """The client's id and secret, sent to the issuer as HTTP Basic."""
    scope: OAuthScope | None = None
    """The scope to ask for, such as `kafka`; several are separated by blanks. Absent: what the issuer gives unasked."""
    extensions: SaslExtensions = {}
    """The SASL extensions to show beside each token, such as `logicalCluster: lkc-1`; up to 20."""
    trusted_certificate: TrustedCertificate | None = None
    """The certificate authority to trust of the issuer; absent: those of the operating system."""

    @model_validator(mode="after")
    def _rules(self) -> Self:
        encrypted = self.token_endpoint_url.startswith("https://")
        require(
            (
                encrypted or self.trusted_certificate is None,
                "trustedCertificate",
                "is for https://, and tokenEndpointUrl begins with http://",
            )
        )
        return self


class Tls(Model):
    """Encrypt the connection."""

    trusted_certificates: Annotated[
        list[TrustedCertificate], Field(max_length=10), as_map("secretName", "certificate")
    ] = []
    """The certificate authorities to trust. Absent: those of the operating system."""


class Authentication(Model):
    """The credentials with which the relays authenticate to Kafka."""

    type: AuthenticationType
    """The mechanism to log in by."""
    username: Annotated[str, Field(max_length=253)] | None = None
    """The name to log in by, such as `delaytopic`; only with ScramSha512, ScramSha256 and Plain, and required there."""
    password_secret: PasswordSecret | None = None
    """The Secret with the password, with ScramSha512, ScramSha256 and Plain."""
    certificate_and_key: CertificateAndKey | None = None
    """The Secret with the client's certificate and key, with TLS."""
    oauth: OAuth | None = None
    """The issuer of tokens and the client's credentials, with OAuthBearer."""

    @model_validator(mode="after")
    def _rules(self) -> Self:
        with_password = self.type not in (AuthenticationType.TLS, AuthenticationType.OAUTH_BEARER)
        wanted = {
            "username": with_password,
            "password_secret": with_password,
            "certificate_and_key": self.type is AuthenticationType.TLS,
            "oauth": self.type is AuthenticationType.OAUTH_BEARER,
        }
        fields = type(self).model_fields
        require(
            *(
                (
                    (getattr(self, name) is not None) == needed,
                    str(fields[name].alias),
                    f"is required for type {self.type}" if needed else f"is not for type {self.type}",
                )
                for name, needed in wanted.items()
            )
        )
        return self


class KafkaConnection(Model):
    """The connection of the relays to Kafka. Secrets are read from the namespace where the relays run."""

    bootstrap_servers: BootstrapServers
    """The brokers to ask first, separated by commas, such as `kafka-0:9092,kafka-1:9092`."""
    tls: Tls | None = None
    """The encryption of the connection. Absent: plain text, unless authentication is TLS."""
    authentication: Authentication | None = None
    """The way to log in. Absent: without."""


class RedisConnection(Model):
    """The connection of the relays to Redis."""

    url: RedisServerUrl | None = None
    """`redis://host:port/0` or, encrypted, `rediss://...`, without credentials and without a query; the number behind
    the last slash is the database. Absent: urlSecret has it."""
    url_secret: UrlSecret | None = None
    """The URL from a Secret, with credentials if need be; instead of url."""
    password_secret: PasswordSecret | None = None
    """The password, if url does not need to be secret."""
    tls: Tls | None = None
    """The certificate authority to trust, for `rediss://`."""

    @model_validator(mode="after")
    def _rules(self) -> Self:
        require(
            (exactly_one(url=self.url, url_secret=self.url_secret), "", "set exactly one of url and urlSecret"),
            (
                self.tls is None or self.url is None or self.url.startswith("rediss:"),
                "tls",
                "is for rediss://, and url begins with redis://",
            ),
        )
        return self
