"""Tests of when relays start anew: for a change of what they read when they start, and for nothing else."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from tests.support.operator.routes import INLINE, SCRAM, Route, route

from delaytopic_operator.resources import connection_files, secrets_version
from delaytopic_operator.resources.connection_files import SecretFile
from delaytopic_operator.resources.identity import APPLIED_HASH, CONFIG_HASH

PASSWORD = SecretFile("delay-scram", "password")


def secret(name: str = "delay-scram", **data: str) -> dict[str, Any]:
    encoded = {key: base64.b64encode(value.encode()).decode() for key, value in data.items()}
    return {"metadata": {"name": name, "uid": "u-1", "resourceVersion": "7"}, "data": encoded}


def config_hash(given: Route, secrets: str = "1") -> str:
    deployment = given.relay_objects(secrets_version=secrets)[-1]
    return str(deployment["spec"]["template"]["metadata"]["annotations"][CONFIG_HASH])


@pytest.mark.parametrize(
    "change",
    [
        {"precision": "2s"},
        {"suspend": "Delivery"},
        {"target": {"topic": "b", "allowedTopics": ["shop.*"]}},
        {"schedule": {"maxDelay": "24h"}},
        {"autoscaling": {"lookAhead": "5m"}},
        {"connection": {"bootstrapServers": "other:9092"}},
        {"relay": {"resources": {"limits": {"memory": "1Gi"}}}},
    ],
    ids=lambda change: str(*change),
)
def test_a_change_of_what_relays_are_told_starts_them_anew(change: dict[str, Any]) -> None:
    assert config_hash(route(**change)) != config_hash(route())


@pytest.mark.parametrize(
    "change",
    [
        {"relay": {"replicas": 7}},
        {"autoscaling": {"minReplicas": 3}},
        {"slo": {"lateness": "1m"}},
        {"deletionPolicy": "Retain"},
        {"source": {"topic": "shop.a", "partitions": 12}},
        {"metadata": {"labels": {"team": "checkout"}}},
    ],
    ids=lambda change: str(*change),
)
def test_a_change_of_anything_else_leaves_their_pods_as_they_are(change: dict[str, Any]) -> None:
    assert route(**change).pod() == route().pod()


def test_a_changed_secret_starts_them_anew() -> None:
    assert config_hash(route(), secrets="1") != config_hash(route(), secrets="2")


def test_of_a_secret_only_the_keys_that_are_read_count() -> None:
    before = secrets_version([PASSWORD], {"delay-scram": secret(password="a", other="b")})

    assert secrets_version([PASSWORD], {"delay-scram": secret(password="a", other="c")}) == before
    assert secrets_version([PASSWORD], {"delay-scram": secret(password="c", other="b")}) != before
    assert secrets_version([PASSWORD], {"delay-scram": secret(other="b")}) != before
    assert secrets_version([PASSWORD], {"delay-scram": None}) != before


def test_labels_of_a_secret_do_not_count() -> None:
    labelled = secret(password="a")
    labelled["metadata"] |= {"resourceVersion": "8", "labels": {"rotated": "no"}}

    versions = {secrets_version([PASSWORD], {"delay-scram": each}) for each in (secret(password="a"), labelled)}

    assert len(versions) == 1


def test_equal_passwords_cannot_be_told_from_pods() -> None:
    mine, other = secret(password="a"), secret(password="a")
    other["metadata"]["uid"] = "u-2"

    versions = {secrets_version([PASSWORD], {"delay-scram": each}) for each in (mine, other)}

    assert len(versions) == 2


def test_what_a_relay_reads_again_by_itself_starts_nothing_anew() -> None:
    redis = {"url": "rediss://redis:6379", "passwordSecret": {"secretName": "redis"}, "tls": {}}
    by_url = {"urlSecret": {"secretName": "redis"}}
    connection = INLINE | {"authentication": SCRAM}

    with_password = route(connection=connection, backend={"type": "RedisZset", "redis": redis})
    with_url = route(connection=connection, backend={"type": "RedisZset", "redis": by_url})

    assert connection_files(with_password.settings).read_once == (PASSWORD,)
    assert connection_files(with_url.settings).read_once == (PASSWORD, SecretFile("redis", "url"))


def test_a_field_that_is_wanted_no_longer_changes_what_a_document_says_of_itself() -> None:
    tainted = route(relay={"podTemplate": {"spec": {"tolerations": [{"key": "pool"}]}}}).relay_object("Deployment")

    assert tainted["metadata"]["annotations"] != route().relay_object("Deployment")["metadata"]["annotations"]
    assert set(tainted["metadata"]["annotations"]) == {APPLIED_HASH}
