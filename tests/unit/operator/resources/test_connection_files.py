"""Connections that name Secrets, as a relay reads them from files."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.operator.routes import INLINE, SCRAM, route

from delaytopic_api.errors import Refused
from delaytopic_operator.resources import connection_files
from delaytopic_operator.resources.connection_files import SecretFile, connection_problems

ROOT = "/etc/delaytopic/secrets"
CA = {"trustedCertificates": [{"secretName": "ca"}]}
TLS_USER = {"type": "TLS", "certificateAndKey": {"secretName": "user", "certificate": "tls.crt", "key": "tls.key"}}
PLAIN = {"type": "Plain", "username": "delay", "passwordSecret": {"secretName": "plain", "password": "p"}}
OAUTH = {
    "type": "OAuthBearer",
    "oauth": {
        "tokenEndpointUrl": "https://login.test/token",
        "credentials": {"secretName": "client", "clientId": "id", "clientSecret": "secret"},
        "scope": "kafka",
        "extensions": {"logicalCluster": "lkc-1"},
        "trustedCertificate": {"secretName": "issuer"},
    },
}
TWO = {"trustedCertificates": [{"secretName": "old"}, {"secretName": "new"}]}

SECURITIES = [
    ({}, {"protocol": "PLAINTEXT"}),
    ({"tls": {}}, {"protocol": "SSL"}),
    ({"tls": CA}, {"protocol": "SSL", "caFile": f"{ROOT}/ca/ca.crt"}),
    (
        {"authentication": TLS_USER},
        {
            "protocol": "SSL",
            "certificateFile": f"{ROOT}/user/tls.crt",
            "keyFile": f"{ROOT}/user/tls.key",
        },
    ),
    (
        {"tls": CA, "authentication": SCRAM},
        {
            "protocol": "SASL_SSL",
            "caFile": f"{ROOT}/ca/ca.crt",
            "mechanism": "SCRAM-SHA-512",
            "username": "delay",
            "passwordFile": f"{ROOT}/delay-scram/password",
        },
    ),
    (
        {"authentication": SCRAM | {"type": "ScramSha256"}},
        {
            "protocol": "SASL_PLAINTEXT",
            "mechanism": "SCRAM-SHA-256",
            "username": "delay",
            "passwordFile": f"{ROOT}/delay-scram/password",
        },
    ),
    (
        {"authentication": PLAIN},
        {
            "protocol": "SASL_PLAINTEXT",
            "mechanism": "PLAIN",
            "username": "delay",
            "passwordFile": f"{ROOT}/plain/p",
        },
    ),
    (
        {"tls": CA, "authentication": OAUTH},
        {
            "protocol": "SASL_SSL",
            "caFile": f"{ROOT}/ca/ca.crt",
            "mechanism": "OAUTHBEARER",
            "oauth": {
                "tokenEndpointUrl": "https://login.test/token",
                "clientIdFile": f"{ROOT}/client/id",
                "clientSecretFile": f"{ROOT}/client/secret",
                "scope": "kafka",
                "extensions": {"logicalCluster": "lkc-1"},
                "caFile": f"{ROOT}/issuer/ca.crt",
            },
        },
    ),
]


@pytest.mark.parametrize(("connection", "security"), SECURITIES)
def test_every_way_to_reach_kafka_becomes_files(connection: dict[str, Any], security: dict[str, Any]) -> None:
    files = connection_files(route(connection=INLINE | connection).settings)

    assert files.kafka.to_document() == {"bootstrapServers": "kafka:9092", "security": security}
    fields = [*security.items(), *security.get("oauth", {}).items()]
    named = {value for field, value in fields if field.endswith("File")}
    assert {file.path for file in files.kafka_files} == named


def test_redis_with_its_url_in_a_secret() -> None:
    redis = {"urlSecret": {"secretName": "redis"}, "passwordSecret": {"secretName": "redis"}, "tls": CA}

    files = connection_files(route(backend={"type": "RedisZset", "redis": redis}).settings)

    assert files.redis is not None
    assert files.redis.to_document() == {
        "urlFile": f"{ROOT}/redis/url",
        "caFile": f"{ROOT}/ca/ca.crt",
        "passwordFile": f"{ROOT}/redis/password",
    }
    assert files.secrets == ("ca", "redis")


def test_of_each_secret_only_the_keys_that_are_read_are_mounted() -> None:
    given = route(
        connection=INLINE | {"tls": CA, "authentication": TLS_USER | {"certificateAndKey": {"secretName": "ca"}}}
    )

    secrets = [volume["secret"] for volume in given.pod()["spec"]["volumes"] if "secret" in volume]

    assert secrets == [
        {
            "secretName": "ca",
            "defaultMode": 0o444,
            "items": [{"key": key, "path": key} for key in ("ca.crt", "user.crt", "user.key")],
        }
    ]


def test_signing_keys_become_a_file_that_relays_read_when_they_start() -> None:
    backend = {"type": "KafkaBuckets", "signingKey": {"secretName": "signing"}}

    files = connection_files(route(backend=backend).settings)

    assert files.signing_keys is not None
    assert files.signing_keys.path == f"{ROOT}/signing/keys"
    assert (files.files, files.read_once) == ((files.signing_keys,), (files.signing_keys,))


@pytest.mark.parametrize("authentication", [SCRAM, OAUTH], ids=["a password", "tokens"])
def test_every_file_that_a_relay_is_told_of_is_mounted(authentication: dict[str, Any]) -> None:
    redis = {"urlSecret": {"secretName": "redis"}, "passwordSecret": {"secretName": "redis"}, "tls": CA}
    given = route(
        connection=INLINE | {"tls": CA, "authentication": authentication},
        backend={"type": "RedisZset", "redis": redis, "signingKey": {"secretName": "signing", "key": "two"}},
    )
    told = given.relay_object("ConfigMap")["data"]["relay.yaml"]

    volumes = {volume["name"]: volume.get("secret") for volume in given.pod()["spec"]["volumes"]}
    mounted = {
        f"{mount['mountPath']}/{item['path']}"
        for mount in given.container()["volumeMounts"]
        if (secret := volumes[mount["name"]])
        for item in secret["items"]
    }

    assert mounted == {word for word in told.split() if word.startswith(ROOT)}


REFUSED = [
    (
        {"connection": INLINE | {"tls": TWO}},
        "spec.connection.tls.trustedCertificates[1]: a relay reads one file of authorities: "
        "put all certificates, one after the other, into one key of one Secret",
    ),
    (
        {"backend": {"type": "RedisZset", "redis": {"url": "rediss://redis:6379", "tls": TWO}}},
        "spec.backend.redis.tls.trustedCertificates[1]: a relay reads one file of authorities: "
        "put all certificates, one after the other, into one key of one Secret",
    ),
    (
        {"backend": {"type": "RedisZset"}},
        "spec.backend.redis: is required for type RedisZset; use KafkaBuckets without a Redis",
    ),
    (
        {"connection": None},
        "spec.connection: is required, as there is no DelayClass; or name one with delayClassName",
    ),
]


@pytest.mark.parametrize(("spec", "line"), REFUSED)
def test_what_a_relay_in_a_pod_cannot_use_is_refused_with_what_to_change(spec: dict[str, Any], line: str) -> None:
    with pytest.raises(Refused) as refused:
        route(**spec).relay_objects()

    assert str(refused.value) == f"DelayTopic shop/order-reminders: {line}"


def test_what_is_wrong_with_a_class_is_said_of_the_class() -> None:
    connection = INLINE | {"tls": TWO}

    problems = connection_problems(route(of_class={"connection": connection}).settings)

    assert [problem.subject for problem in problems] == ["DelayClass standard"]


def test_a_secret_that_is_named_twice_is_mounted_once() -> None:
    redis = {"url": "redis://redis:6379", "passwordSecret": {"secretName": "delay-scram"}}
    given = route(connection=INLINE | {"authentication": SCRAM}, backend={"type": "RedisZset", "redis": redis})

    assert connection_files(given.settings).files == (SecretFile("delay-scram", "password"),)
