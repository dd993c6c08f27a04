"""A real Kafka that lets nobody in without credentials, which come from Secrets and touch no file."""

from __future__ import annotations

import base64
import time
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # its public names, by an implicit re-export
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)
from tests.operator.topics.kafka_help import made
from tests.operator.topics.topic_scenes import NAMESPACE_UID, wanted
from tests.support.secure_servers import PASSWORD, USERNAME, SecureKafka, deny, secure_kafka
from tests.support.tls import Certificates, make_certificates

from delaytopic_api.connection import KafkaConnection
from delaytopic_operator.errors import KafkaNotAuthenticated, KafkaNotAuthorized
from delaytopic_operator.kafka_admin import KafkaCluster, KafkaClusters
from delaytopic_operator.kafka_credentials import kafka_settings
from delaytopic_operator.kafka_view import KafkaView
from delaytopic_operator.route_record import begin_record
from delaytopic_operator.secret_values import SecretValues
from delaytopic_operator.topic_actions import CreateTopic, SetConfig
from delaytopic_operator.topic_plan import plan_topics, topic_names

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory, certificates: Certificates) -> Iterator[SecureKafka]:
    with secure_kafka(tmp_path_factory.mktemp("guarded"), certificates) as kafka:
        yield kafka


@pytest.fixture
def owner(guarded: SecureKafka) -> KafkaCluster:
    """Who may do everything."""
    return KafkaClusters().cluster({"bootstrap.servers": guarded.plain})


def secrets(certificates: Certificates, password: str = PASSWORD) -> SecretValues:
    held = {
        "ca": {"ca.crt": certificates.authority.read_text()},
        "other-ca": {"ca.crt": certificates.client.read_text()},
        "user": {"user.crt": certificates.client.read_text(), "user.key": certificates.client_key.read_text()},
        "password": {"password": f"{password}\n"},
    }
    documents = {
        name: {"data": {key: base64.b64encode(value.encode()).decode() for key, value in values.items()}}
        for name, values in held.items()
    }
    return SecretValues("shop", documents)


def by_password(servers: str, kind: str = "ScramSha512") -> KafkaConnection:
    return _connection(
        servers,
        type=kind,
        username=USERNAME,
        passwordSecret={"secretName": "password"},
    )


def by_certificate(servers: str) -> KafkaConnection:
    return _connection(servers, type="TLS", certificateAndKey={"secretName": "user"})


def _connection(servers: str, **authentication: Any) -> KafkaConnection:
    trusted = [{"secretName": "other-ca"}, {"secretName": "ca"}]
    return KafkaConnection.model_validate(
        {
            "bootstrapServers": servers,
            "tls": {"trustedCertificates": trusted},
            "authentication": authentication,
        }
    )


@pytest.mark.parametrize("kind", ["ScramSha512", "Plain", "TLS"])
def test_credentials_from_secrets_open_the_door(guarded: SecureKafka, certificates: Certificates, kind: str) -> None:
    by = by_certificate(guarded.mutual) if kind == "TLS" else by_password(guarded.sasl, kind)
    cluster = KafkaClusters().cluster(kafka_settings(by, secrets(certificates)))

    assert cluster.view(["nothing"]).missing == {"nothing"}


def test_a_wrong_password_is_told_at_once(guarded: SecureKafka, certificates: Certificates) -> None:
    settings = kafka_settings(by_password(guarded.sasl), secrets(certificates, "wrong"))
    cluster = KafkaClusters().cluster(settings)
    started_s = time.monotonic()

    with pytest.raises(KafkaNotAuthenticated, match=r"does not let the operator in .*check authentication"):
        cluster.view(["nothing"])

    assert time.monotonic() - started_s < 5


def test_a_broker_whose_certificate_is_not_trusted_is_not_talked_to(
    guarded: SecureKafka, certificates: Certificates
) -> None:
    by = by_password(guarded.sasl)
    settings = kafka_settings(by, secrets(certificates)) | {"ssl.ca.pem": certificates.client.read_text()}

    with pytest.raises(KafkaNotAuthenticated):
        KafkaClusters().cluster(settings).view(["nothing"])


def test_a_key_that_fits_no_certificate_is_told_before_anything_is_asked(
    guarded: SecureKafka, certificates: Certificates
) -> None:
    settings = kafka_settings(by_certificate(guarded.mutual), secrets(certificates))

    with pytest.raises(KafkaNotAuthenticated):
        KafkaClusters().cluster(settings | {"ssl.key.pem": certificates.server_key.read_text()})


def test_one_topic_that_may_not_be_seen_does_not_hide_the_others(
    guarded: SecureKafka, certificates: Certificates, owner: KafkaCluster
) -> None:
    seen = made(owner, "seen")
    made(owner, "hidden")
    deny(guarded.plain, "hidden", AclOperation.ALL)
    cluster = KafkaClusters().cluster(kafka_settings(by_password(guarded.sasl), secrets(certificates)))

    view = cluster.view(["seen", "hidden", "nothing"])

    assert view == KafkaView({"seen": seen}, frozenset({"nothing"}), frozenset({"hidden"}))


def test_a_right_that_is_missing_is_told_with_the_topic(
    guarded: SecureKafka, certificates: Certificates, owner: KafkaCluster
) -> None:
    made(owner, "fixed")
    deny(guarded.plain, "fixed", AclOperation.ALTER_CONFIGS)
    cluster = KafkaClusters().cluster(kafka_settings(by_password(guarded.sasl), secrets(certificates)))

    with pytest.raises(KafkaNotAuthorized, match=r"may not set retention.ms of the topic fixed: grant it the right"):
        cluster.perform(SetConfig("fixed", {"retention.ms": "1000"}, {}))


def test_a_topic_that_may_not_be_made_is_told_by_name(guarded: SecureKafka, certificates: Certificates) -> None:
    deny(guarded.plain, "never", AclOperation.CREATE)
    deny_making_any(guarded.plain)
    cluster = KafkaClusters().cluster(kafka_settings(by_password(guarded.sasl), secrets(certificates)))

    with pytest.raises(KafkaNotAuthorized, match="may not create the topic never"):
        cluster.perform(CreateTopic("never", 1, 1))


def deny_making_any(bootstrap_servers: str) -> None:
    """Whoever may make topics in the cluster needs no right to a single one."""
    where = (ResourceType.BROKER, "kafka-cluster", ResourcePatternType.LITERAL)
    rule = AclBinding(*where, f"User:{USERNAME}", "*", AclOperation.CREATE, AclPermissionType.DENY)
    admin = AdminClient({"bootstrap.servers": bootstrap_servers})
    for done in admin.create_acls([rule]).values():
        done.result(30)


def test_settings_that_may_not_be_read_leave_the_rest_to_see(
    guarded: SecureKafka, certificates: Certificates, owner: KafkaCluster
) -> None:
    made(owner, "opaque", 2)
    deny(guarded.plain, "opaque", AclOperation.DESCRIBE_CONFIGS)
    cluster = KafkaClusters().cluster(kafka_settings(by_password(guarded.sasl), secrets(certificates)))

    facts = cluster.view(["opaque"]).topics["opaque"]

    assert (facts.partitions, facts.config) == (2, None)


def test_where_settings_of_brokers_may_not_be_read_nothing_is_advised(
    guarded: SecureKafka, certificates: Certificates, owner: KafkaCluster
) -> None:
    deny_looking_at_brokers(guarded.plain)
    cluster = KafkaClusters().cluster(kafka_settings(by_password(guarded.sasl), secrets(certificates)))

    assert (cluster.offsets_retention_ms(), owner.offsets_retention_ms()) == (None, 604_800_000)


def deny_looking_at_brokers(bootstrap_servers: str) -> None:
    """To the user, as most users may not."""
    where = (ResourceType.BROKER, "kafka-cluster", ResourcePatternType.LITERAL)
    rule = AclBinding(*where, f"User:{USERNAME}", "*", AclOperation.DESCRIBE_CONFIGS, AclPermissionType.DENY)
    admin = AdminClient({"bootstrap.servers": bootstrap_servers})
    for done in admin.create_acls([rule]).values():
        done.result(30)


def test_a_route_waits_for_the_right_to_one_topic_and_names_it(
    guarded: SecureKafka, certificates: Certificates
) -> None:
    route = wanted(
        source={"topic": "waiting.delayed"}, target={"topic": "waiting"}, deadLetter={"topic": "waiting.dlq"}
    )
    deny(guarded.plain, "waiting", AclOperation.ALL)
    cluster = KafkaClusters().cluster(kafka_settings(by_password(guarded.sasl), secrets(certificates)))
    record = begin_record(route.settings, NAMESPACE_UID)

    plan = plan_topics(route.settings, route.spec, cluster.view(topic_names(route.settings, record)), record)

    assert (plan.topics.reason, plan.stalled) == ("AuthorizationFailed", None)
    assert "the target topic waiting" in plan.topics.message
