"""From connections and Secrets to what clients take; what is missing is named, and nothing secret is shown."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from delaytopic_api.documents import KafkaConnection, RedisConnection
from delaytopic_operator.errors import SecretMissing
from delaytopic_operator.kafka.credentials import kafka_secrets, kafka_settings
from delaytopic_operator.model.secret_values import SecretValues
from delaytopic_operator.redis.client import RedisTarget, redis_target

CERTIFICATE = "-----BEGIN CERTIFICATE-----\nabc\n-----END CERTIFICATE-----"
KEY = "-----BEGIN PRIVATE KEY-----\nabc\n-----END PRIVATE KEY-----"


def holding(**secrets: dict[str, str]) -> SecretValues:
    documents: dict[str, dict[str, Any] | None] = {
        name: {"data": {key: base64.b64encode(value.encode()).decode() for key, value in values.items()}}
        for name, values in secrets.items()
    }
    return SecretValues("shop", {**documents, "absent": None})


def kafka(**fields: Any) -> KafkaConnection:
    return KafkaConnection.model_validate({"bootstrapServers": "kafka:9093", **fields})


def test_a_plain_connection_needs_no_secret() -> None:
    assert kafka_secrets(kafka()) == []
    assert kafka_settings(kafka(), holding()) == {"bootstrap.servers": "kafka:9093", "security.protocol": "PLAINTEXT"}


def test_a_password_over_tls() -> None:
    connection = kafka(
        tls={"trustedCertificates": [{"secretName": "ca"}, {"secretName": "ca", "certificate": "next.crt"}]},
        authentication={"type": "ScramSha512", "username": "relay", "passwordSecret": {"secretName": "user"}},
    )
    secrets = holding(ca={"ca.crt": CERTIFICATE, "next.crt": CERTIFICATE}, user={"password": "p\n"})

    assert kafka_secrets(connection) == ["ca", "user"]
    assert kafka_settings(connection, secrets) == {
        "bootstrap.servers": "kafka:9093",
        "security.protocol": "SASL_SSL",
        "ssl.ca.pem": f"{CERTIFICATE}\n{CERTIFICATE}",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "relay",
        "sasl.password": "p",
    }


def test_a_client_certificate_is_encrypted_even_where_tls_is_not_written() -> None:
    connection = kafka(authentication={"type": "TLS", "certificateAndKey": {"secretName": "user"}})
    secrets = holding(user={"user.crt": CERTIFICATE, "user.key": KEY})

    assert kafka_settings(connection, secrets) == {
        "bootstrap.servers": "kafka:9093",
        "security.protocol": "SSL",
        "ssl.certificate.pem": CERTIFICATE,
        "ssl.key.pem": KEY,
    }


def test_tokens_are_got_with_an_id_and_a_secret_from_a_secret() -> None:
    oauth = {
        "tokenEndpointUrl": "https://login.test/token",
        "credentials": {"secretName": "client", "clientId": "id"},
        "scope": "kafka",
        "extensions": {"logicalCluster": "lkc-1", "identityPoolId": "pool-1"},
        "trustedCertificate": {"secretName": "issuer"},
    }
    connection = kafka(tls={}, authentication={"type": "OAuthBearer", "oauth": oauth})
    secrets = holding(client={"id": "delay\n", "client-secret": "s"}, issuer={"ca.crt": CERTIFICATE})

    assert kafka_secrets(connection) == ["client", "issuer"]
    assert kafka_settings(connection, secrets) == {
        "bootstrap.servers": "kafka:9093",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.method": "oidc",
        "sasl.oauthbearer.token.endpoint.url": "https://login.test/token",
        "sasl.oauthbearer.client.id": "delay",
        "sasl.oauthbearer.client.secret": "s",
        "sasl.oauthbearer.scope": "kafka",
        "sasl.oauthbearer.extensions": "logicalCluster=lkc-1,identityPoolId=pool-1",
        "https.ca.pem": CERTIFICATE,
    }


@pytest.mark.parametrize(
    ("name", "key", "says"),
    [
        ("absent", "password", "the Secret shop/absent does not exist; create it with the key password"),
        ("user", "pass", "the key pass of the Secret shop/user is missing or empty; the Secret holds: empty, password"),
        ("user", "empty", "the key empty of the Secret shop/user is missing or empty"),
    ],
)
def test_what_is_missing_is_named(name: str, key: str, says: str) -> None:
    authentication = {"type": "Plain", "username": "u", "passwordSecret": {"secretName": name, "password": key}}

    with pytest.raises(SecretMissing) as raised:
        kafka_settings(kafka(authentication=authentication), holding(user={"password": "top secret", "empty": ""}))

    assert says in str(raised.value)
    assert "top secret" not in str(raised.value)


def test_a_certificate_that_is_none_is_named() -> None:
    connection = kafka(tls={"trustedCertificates": [{"secretName": "ca"}]})

    with pytest.raises(SecretMissing, match=r"the key ca.crt of the Secret shop/ca is no CERTIFICATE in PEM"):
        kafka_settings(connection, holding(ca={"ca.crt": KEY}))


@pytest.mark.parametrize("encoded", ["not base64!", base64.b64encode(b"\xff\xfe").decode()])
def test_a_value_that_is_no_text_is_named(encoded: str) -> None:
    secrets = SecretValues("shop", {"user": {"data": {"password": encoded}}})

    with pytest.raises(SecretMissing, match="the key password of the Secret shop/user is not text"):
        secrets.text("user", "password")


def redis(**fields: Any) -> RedisConnection:
    return RedisConnection.model_validate(fields)


def test_a_url_says_where_a_redis_is() -> None:
    assert redis_target(redis(url="redis://cache"), holding()) == RedisTarget("cache", 6379, 0, tls=False)
    assert redis_target(redis(url="rediss://cache:7000/3"), holding()) == RedisTarget("cache", 7000, 3, tls=True)


def test_a_secret_url_may_hold_the_credentials() -> None:
    connection = redis(urlSecret={"secretName": "redis"})

    target = redis_target(connection, holding(redis={"url": "redis://me:p%40ss@cache:7000\n"}))

    assert target == RedisTarget("cache", 7000, 0, tls=False, username="me", password="p@ss")
    assert "p@ss" not in repr(target)


def test_a_password_and_authorities_come_from_secrets_of_their_own() -> None:
    connection = redis(
        url="rediss://cache",
        passwordSecret={"secretName": "redis"},
        tls={"trustedCertificates": [{"secretName": "ca"}]},
    )

    target = redis_target(connection, holding(redis={"password": "p"}, ca={"ca.crt": CERTIFICATE}))

    assert target == RedisTarget("cache", 6379, 0, tls=True, password="p", authorities=CERTIFICATE)


@pytest.mark.parametrize("url", ["cache:6379", "redis://", "redis://:secret@cache:port", "redis://cache/zero"])
def test_a_secret_url_that_is_none_is_told_without_its_text(url: str) -> None:
    connection = redis(urlSecret={"secretName": "redis"})

    with pytest.raises(SecretMissing) as raised:
        redis_target(connection, holding(redis={"url": url}))

    assert str(raised.value) == (
        "the key url of the Secret redis is not the URL of a Redis; write it like redis://host:6379/0 or "
        "rediss://host:6380/0"
    )


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("redis://:secret@cache?db=3", "has a query that nobody reads; write the database behind the host: "),
        ("unix:///secret", "is the path of a socket, which no pod reaches; write it like redis://host:6379/0 or "),
    ],
)
def test_a_secret_url_that_relays_do_not_take_is_refused_by_the_operator(url: str, why: str) -> None:
    connection = redis(urlSecret={"secretName": "redis"})

    with pytest.raises(SecretMissing) as raised:
        redis_target(connection, holding(redis={"url": url}))

    assert str(raised.value).startswith(f"the key url of the Secret redis {why}")
    assert "secret" not in str(raised.value)
