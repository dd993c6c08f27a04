"""A relay's connections to Kafka and Redis: addresses, and files that hold secrets."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Self

from pydantic import Field, model_validator

from delaytopic_api.documents.model import at_most_one, both_or_none, exactly_one, require
from delaytopic_api.relay.model import RelayModel
from delaytopic_api.values.oauth import OAuthScope, SaslExtensions, TokenEndpointUrl
from delaytopic_api.values.urls import BootstrapServers, RedisUrl

FilePath = Annotated[str, Field(min_length=1, max_length=4096)]


class SecurityProtocol(StrEnum):
    """Kafka's names for encryption and authentication."""

    PLAINTEXT = "PLAINTEXT"
    SSL = "SSL"
    SASL_PLAINTEXT = "SASL_PLAINTEXT"
    SASL_SSL = "SASL_SSL"


class SaslMechanism(StrEnum):
    """Kafka's names for ways to authenticate."""

    PLAIN = "PLAIN"
    SCRAM_SHA_256 = "SCRAM-SHA-256"
    SCRAM_SHA_512 = "SCRAM-SHA-512"
    OAUTHBEARER = "OAUTHBEARER"


class OAuthClient(RelayModel):
    """The issuer of the tokens that clients show to Kafka, asked by the grant client_credentials."""

    token_endpoint_url: TokenEndpointUrl
    """The address that tokens come from, such as `https://login.example.com/oauth2/token`. They have to be JWTs with
    `sub` and `exp`."""
    client_id_file: FilePath
    """A file that holds the client's id."""
    client_secret_file: FilePath
    """A file that holds the client's secret."""
    scope: OAuthScope | None = None
    """The scope to ask for, such as `kafka`; several are separated by blanks. Absent: what the issuer gives unasked."""
    extensions: SaslExtensions = {}
    """SASL extensions to show beside each token, such as `logicalCluster: lkc-1`; up to 20."""
    ca_file: FilePath | None = None
    """Certificate authorities to trust of the issuer (PEM); absent: those of the operating system."""


class KafkaSecurity(RelayModel):
    """Encryption and authentication."""

    protocol: SecurityProtocol = SecurityProtocol.PLAINTEXT
    """PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL."""
    ca_file: FilePath | None = None
    """Certificate authorities to trust (PEM); absent: those of the operating system."""
    certificate_file: FilePath | None = None
    """The client's certificate (PEM)."""
    key_file: FilePath | None = None
    """The client's private key (PEM)."""
    mechanism: SaslMechanism | None = None
    """The mechanism of SASL."""
    username: str | None = None
    """The user of PLAIN and SCRAM."""
    username_file: FilePath | None = None
    """A file that holds the user name, instead of username."""
    password_file: FilePath | None = None
    """A file that holds the password."""
    oauth: OAuthClient | None = None
    """The client of OAUTHBEARER."""

    @model_validator(mode="after")
    def _rules(self) -> Self:
        sasl = self.protocol in (SecurityProtocol.SASL_PLAINTEXT, SecurityProtocol.SASL_SSL)
        by_token = self.mechanism is SaslMechanism.OAUTHBEARER
        by_password = sasl and self.mechanism is not None and not by_token
        usernames = {"username": self.username, "username_file": self.username_file}
        needed = "is required for PLAIN and SCRAM"
        require(
            (not sasl or self.mechanism is not None, "mechanism", f"is required for {self.protocol}"),
            (sasl or self.mechanism is None, "mechanism", f"is not for {self.protocol}"),
            (at_most_one(**usernames), "usernameFile", "set username or usernameFile, not both"),
            (not by_password or any(usernames.values()), "username", f"{needed}, or usernameFile"),
            (not by_password or self.password_file is not None, "passwordFile", needed),
            (not by_token or self.oauth is not None, "oauth", "is required for OAUTHBEARER"),
            (by_token or self.oauth is None, "oauth", "is only for OAUTHBEARER"),
            (both_or_none(self.certificate_file, self.key_file), "keyFile", "goes together with certificateFile"),
        )
        return self


class KafkaClient(RelayModel):
    """The connection to Kafka."""

    bootstrap_servers: BootstrapServers
    """Brokers to ask first, `host:port`, separated by commas."""
    security: KafkaSecurity = KafkaSecurity()
    """Encryption and authentication."""


class RedisClient(RelayModel):
    """The connection to Redis."""

    url: RedisUrl | None = None
    """`redis://`, `rediss://` or `unix://`, without credentials."""
    url_file: FilePath | None = None
    """A file that holds the URL, which may then hold credentials; instead of url."""
    ca_file: FilePath | None = None
    """Certificate authorities to trust (PEM)."""
    certificate_file: FilePath | None = None
    """The client's certificate (PEM)."""
    key_file: FilePath | None = None
    """The client's private key (PEM)."""
    username_file: FilePath | None = None
    """A file that holds the user name."""
    password_file: FilePath | None = None
    """A file that holds the password."""

    @model_validator(mode="after")
    def _rules(self) -> Self:
        require(
            (exactly_one(url=self.url, url_file=self.url_file), "", "set exactly one of url and urlFile"),
            (both_or_none(self.certificate_file, self.key_file), "keyFile", "goes together with certificateFile"),
        )
        return self
