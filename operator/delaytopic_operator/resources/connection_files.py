"""Connections that name files, made of those that name Secrets, and the Secrets to mount for that."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from delaytopic_api.documents import (
    Authentication,
    AuthenticationType,
    DelayClassSpec,
    KafkaConnection,
    OAuth,
    RedisConnection,
    Settings,
    Tls,
)
from delaytopic_api.errors import Problem, Refused
from delaytopic_api.relay import (
    KafkaClient,
    KafkaSecurity,
    OAuthClient,
    RedisClient,
    SaslMechanism,
    SecurityProtocol,
)
from delaytopic_api.values import BackendType

SECRETS_FOLDER: Final = "/etc/delaytopic/secrets"

_MECHANISMS: Final = {
    AuthenticationType.PLAIN: SaslMechanism.PLAIN,
    AuthenticationType.SCRAM_SHA_256: SaslMechanism.SCRAM_SHA_256,
    AuthenticationType.SCRAM_SHA_512: SaslMechanism.SCRAM_SHA_512,
    AuthenticationType.OAUTH_BEARER: SaslMechanism.OAUTHBEARER,
}


class SecretFile(NamedTuple):
    """One key of a Secret, mounted as a file."""

    secret: str
    key: str

    @property
    def path(self) -> str:
        """Return where a relay finds it."""
        return f"{SECRETS_FOLDER}/{self.secret}/{self.key}"


@dataclass(frozen=True, slots=True)
class ConnectionFiles:
    """The clients of a relay for Kafka and Redis, and the files that they need."""

    kafka: KafkaClient
    redis: RedisClient | None
    kafka_files: tuple[SecretFile, ...]
    redis_files: tuple[SecretFile, ...]
    signing_keys: SecretFile | None
    """The file with the keys that sign the backlog."""
    read_once: tuple[SecretFile, ...]
    """A relay reads these when it starts: after a change it has to start anew. It reads the others again for each
    connection."""

    @property
    def files(self) -> tuple[SecretFile, ...]:
        """All of them."""
        keys = (self.signing_keys,) if self.signing_keys else ()
        return _unique((*self.kafka_files, *self.redis_files, *keys))

    @property
    def secrets(self) -> tuple[str, ...]:
        """The names of the Secrets, sorted."""
        return tuple(sorted({file.secret for file in self.files}))


def connection_problems(settings: Settings) -> list[Problem]:
    """Return what of the connections a relay in a pod cannot use; the class's to change where there is one."""
    of_topic = f"DelayTopic {settings.namespace}/{settings.name}"
    subject = of_topic if settings.class_name is None else f"DelayClass {settings.class_name}"
    return [problem._replace(subject=subject) for problem in _problems(settings)]


def class_connection_problems(spec: DelayClassSpec) -> list[Problem]:
    """Return what of a class's connections a relay in a pod cannot use, whoever uses the class."""
    redis = spec.backend.redis
    tls = _tls_problems(spec.connection.tls, "spec.connection.tls")
    return [*tls, *(_redis_problems(redis) if redis is not None else ())]


def class_files(spec: DelayClassSpec) -> tuple[SecretFile, ...]:
    """The keys of Secrets that relays of a class may need."""
    redis, keys = spec.backend.redis, spec.backend.signing_key
    return _unique(
        (
            *_kafka_files(spec.connection),
            *(_redis_files(redis) if redis is not None else ()),
            *((SecretFile(keys.secret_name, keys.key),) if keys is not None else ()),
        )
    )


def connection_files(settings: Settings) -> ConnectionFiles:
    """The connections with files in the place of Secrets; raises `Refused` with all of `connection_problems`."""
    kafka, redis = settings.connection, settings.backend.redis
    problems = connection_problems(settings)
    if problems or kafka is None:
        raise Refused(problems)
    kafka_files = _kafka_files(kafka)
    secret = settings.backend.signing_key
    keys = SecretFile(secret.secret_name, secret.key) if secret else None
    url = _file(redis.url_secret.secret_name, redis.url_secret.key) if redis and redis.url_secret else ()
    return ConnectionFiles(
        kafka=_kafka_client(kafka),
        redis=_redis_client(redis) if redis else None,
        kafka_files=kafka_files,
        redis_files=_redis_files(redis) if redis else (),
        signing_keys=keys,
        read_once=_unique((*kafka_files, *url, *((keys,) if keys else ()))),
    )


def _problems(settings: Settings) -> Iterator[Problem]:
    kafka, redis = settings.connection, settings.backend.redis
    if kafka is None:
        yield Problem("spec.connection", "is required, as there is no DelayClass; or name one with delayClassName")
    else:
        yield from _tls_problems(kafka.tls, "spec.connection.tls")
    if redis is not None:
        yield from _redis_problems(redis)
    elif settings.backend.type is BackendType.REDIS_ZSET:
        yield Problem("spec.backend.redis", "is required for type RedisZset; use KafkaBuckets without a Redis")


def _redis_problems(redis: RedisConnection) -> Iterator[Problem]:
    path = "spec.backend.redis"
    yield from _tls_problems(redis.tls, f"{path}.tls")


def _tls_problems(tls: Tls | None, path: str) -> Iterator[Problem]:
    if tls is not None and len(tls.trusted_certificates) > 1:
        one = "put all certificates, one after the other, into one key of one Secret"
        yield Problem(f"{path}.trustedCertificates[1]", f"a relay reads one file of authorities: {one}")


def _kafka_client(kafka: KafkaConnection) -> KafkaClient:
    authentication = kafka.authentication
    mechanism = _MECHANISMS.get(authentication.type) if authentication else None
    encrypted = kafka.tls is not None or (authentication is not None and mechanism is None)
    paths = [file.path for file in _credentials(authentication)]
    certificate, key = paths if authentication and authentication.certificate_and_key else (None, None)
    oauth = authentication.oauth if authentication else None
    security = KafkaSecurity(
        protocol=_protocol(encrypted, mechanism is not None),
        ca_file=_only_path(_trusted(kafka.tls)),
        certificate_file=certificate,
        key_file=key,
        mechanism=mechanism,
        username=authentication.username if authentication else None,
        password_file=paths[0] if mechanism and oauth is None else None,
        oauth=_oauth_client(oauth) if oauth is not None else None,
    )
    return KafkaClient(bootstrap_servers=kafka.bootstrap_servers, security=security)


def _oauth_client(oauth: OAuth) -> OAuthClient:
    client_id, client_secret, *authority = _token_files(oauth)
    return OAuthClient(
        token_endpoint_url=oauth.token_endpoint_url,
        client_id_file=client_id.path,
        client_secret_file=client_secret.path,
        scope=oauth.scope,
        extensions=oauth.extensions,
        ca_file=_only_path(tuple(authority)),
    )


def _protocol(encrypted: bool, sasl: bool) -> SecurityProtocol:
    if sasl:
        return SecurityProtocol.SASL_SSL if encrypted else SecurityProtocol.SASL_PLAINTEXT
    return SecurityProtocol.SSL if encrypted else SecurityProtocol.PLAINTEXT


def _redis_client(redis: RedisConnection) -> RedisClient:
    url = redis.url_secret
    return RedisClient(
        url=redis.url,
        url_file=SecretFile(url.secret_name, url.key).path if url else None,
        ca_file=_only_path(_trusted(redis.tls)),
        password_file=_only_path(_redis_password(redis)),
    )


def _kafka_files(kafka: KafkaConnection) -> tuple[SecretFile, ...]:
    return _unique((*_trusted(kafka.tls), *_credentials(kafka.authentication)))


def _redis_files(redis: RedisConnection) -> tuple[SecretFile, ...]:
    url = _file(redis.url_secret.secret_name, redis.url_secret.key) if redis.url_secret else ()
    return _unique((*url, *_redis_password(redis), *_trusted(redis.tls)))


def _trusted(tls: Tls | None) -> tuple[SecretFile, ...]:
    return tuple(SecretFile(each.secret_name, each.certificate) for each in tls.trusted_certificates) if tls else ()


def _credentials(authentication: Authentication | None) -> tuple[SecretFile, ...]:
    """A password, or a certificate and its key, or what tokens are got with."""
    if authentication and authentication.oauth:
        return _token_files(authentication.oauth)
    if authentication and authentication.certificate_and_key:
        pair = authentication.certificate_and_key
        return SecretFile(pair.secret_name, pair.certificate), SecretFile(pair.secret_name, pair.key)
    if authentication and authentication.password_secret:
        return _file(authentication.password_secret.secret_name, authentication.password_secret.password)
    return ()


def _token_files(oauth: OAuth) -> tuple[SecretFile, ...]:
    """The client's id, its secret, and the issuer's authority where one is named."""
    client, trusted = oauth.credentials, oauth.trusted_certificate
    keys = (SecretFile(client.secret_name, client.client_id), SecretFile(client.secret_name, client.client_secret))
    return (*keys, SecretFile(trusted.secret_name, trusted.certificate)) if trusted is not None else keys


def _redis_password(redis: RedisConnection | None) -> tuple[SecretFile, ...]:
    secret = redis.password_secret if redis else None
    return _file(secret.secret_name, secret.password) if secret else ()


def _file(secret: str, key: str) -> tuple[SecretFile, ...]:
    return (SecretFile(secret, key),)


def _only_path(files: tuple[SecretFile, ...]) -> str | None:
    return files[0].path if files else None


def _unique(files: Iterable[SecretFile]) -> tuple[SecretFile, ...]:
    return tuple(dict.fromkeys(files))
