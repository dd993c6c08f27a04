"""From a connection and the Secrets that it names to where a Redis is, and how to get in. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final
from urllib.parse import SplitResult, unquote, urlsplit

from delaytopic_api.documents import RedisConnection
from delaytopic_operator.errors import SecretMissing
from delaytopic_operator.model.secret_values import SecretValues

DEFAULT_PORT: Final = 6379
FORMS: Final = "redis://host[:port][/database] or rediss://host[:port][/database]"


@dataclass(frozen=True, slots=True)
class RedisTarget:
    """One Redis, or a node of a Redis Cluster; its text shows no credentials."""

    host: str
    port: int
    database: int
    tls: bool
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    authorities: str | None = field(default=None, repr=False)
    """Certificates to trust, in PEM; None: those of the operating system."""

    @property
    def where(self) -> str:
        """Return how sentences call it."""
        return f"Redis at {self.host}:{self.port}"


def redis_target(connection: RedisConnection, secrets: SecretValues) -> RedisTarget:
    """Return where it is. Raises `SecretMissing`, naming the Secret and the key; no part of a secret url is in it."""
    parts = _parts(connection, secrets)
    assert parts.hostname is not None  # _parts has looked
    password = unquote(parts.password) if parts.password else None
    if connection.password_secret is not None:
        wanted = connection.password_secret
        password = secrets.text(wanted.secret_name, wanted.password)
    trusted = connection.tls.trusted_certificates if connection.tls else []
    authorities = [secrets.pem(one.secret_name, one.certificate, "CERTIFICATE") for one in trusted]
    return RedisTarget(
        parts.hostname,
        parts.port or DEFAULT_PORT,
        int(parts.path.strip("/") or 0),
        parts.scheme == "rediss",
        unquote(parts.username) if parts.username else None,
        password,
        "\n".join(authorities) or None,
    )


def _parts(connection: RedisConnection, secrets: SecretValues) -> SplitResult:
    if connection.url_secret is None:
        return _split(connection.url or "", f"backend.redis.url is {connection.url}")
    wanted = connection.url_secret
    text = secrets.text(wanted.secret_name, wanted.key)
    return _split(text, f"the key {wanted.key} of the Secret {wanted.secret_name}")


def _split(text: str, what: str) -> SplitResult:
    try:
        parts = urlsplit(text.strip())
        usable = parts.scheme in ("redis", "rediss") and parts.hostname and (parts.port is None or parts.port > 0)
        usable = usable and (parts.path.strip("/") or "0").isdecimal()
    except ValueError:  # its text may hold a part of the password
        usable = False
    if not usable:
        raise SecretMissing(f"{what}: not the url of a Redis that the operator can reach; write it as {FORMS}")
    return parts
