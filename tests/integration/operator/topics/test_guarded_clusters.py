"""A real Kafka that lets nobody in without credentials, which come from Secrets and touch no file."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # its public names, by an implicit re-export
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from tests.harness.names import unique
from tests.harness.shared_servers import SharedKafka
from tests.support.operator.kafka_help import made
from tests.support.operator.topic_scenes import NAMESPACE_UID, wanted
from tests.support.servers.secure_servers import PASSWORD, USERNAME, SecureKafka, deny
from tests.support.servers.tls import Certificates

from delaytopic_api.documents import KafkaConnection
from delaytopic_operator.errors import KafkaNotAuthenticated, KafkaNotAuthorized
from delaytopic_operator.kafka.admin import KafkaCluster, KafkaClusters
from delaytopic_operator.kafka.credentials import kafka_settings
from delaytopic_operator.model.kafka_view import KafkaView
from delaytopic_operator.model.record import begin_record
from delaytopic_operator.model.secret_values import SecretValues
from delaytopic_operator.topics.actions import CreateTopic, SetConfig
from delaytopic_operator.topics.plan import plan_topics, topic_names

pytestmark = pytest.mark.integration


@pytest.fixture
def certificates(kafka: SharedKafka) -> Certificates:
    return kafka.certificates


@pytest.fixture
def guarded(kafka: SharedKafka) -> SecureKafka:
    return kafka.listeners


@pytest.fixture
def user(guarded: SecureKafka) -> str:
    """A user of this test alone, from whom rights to the whole cluster may be taken."""
    name = unique("user")
    added = UserScramCredentialUpsertion(
        name, ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096), PASSWORD.encode()
    )
    admin = AdminClient({"bootstrap.servers": guarded.plain})
    for done in admin.alter_user_scram_credentials([added]).values():
        done.result(30)
    return name


@pytest.fixture
def owner(guarded: SecureKafka) -> KafkaCluster:
    """A user with all rights."""
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


def by_password(servers: str, kind: str = "ScramSha512", user: str = USERNAME) -> KafkaConnection:
    return _connection(
        servers,
        type=kind,
        username=user,
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

    nothing = unique("nothing")
    assert cluster.view([nothing]).missing == {nothing}


def test_a_wrong_password_is_told(guarded: SecureKafka, certificates: Certificates) -> None:
    settings = kafka_settings(by_password(guarded.sasl), secrets(certificates, "wrong"))

    with pytest.raises(KafkaNotAuthenticated, match=r"does not let the operator in .*check authentication"):
        KafkaClusters().cluster(settings).view(["nothing"])


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
    names = {name: unique(name) for name in ("seen", "hidden", "nothing")}
    seen = made(owner, names["seen"])
    made(owner, names["hidden"])
    deny(guarded.plain, names["hidden"], AclOperation.ALL)
    cluster = KafkaClusters().cluster(kafka_settings(by_password(guarded.sasl), secrets(certificates)))

    view = cluster.view(list(names.values()))

    assert view == KafkaView({names["seen"]: seen}, frozenset({names["nothing"]}), frozenset({names["hidden"]}))


def test_a_right_that_is_missing_is_told_with_the_topic(
    guarded: SecureKafka, certificates: Certificates, owner: KafkaCluster, topic: str
) -> None:
    made(owner, topic)
    deny(guarded.plain, topic, AclOperation.ALTER_CONFIGS)
    cluster = KafkaClusters().cluster(kafka_settings(by_password(guarded.sasl), secrets(certificates)))

    with pytest.raises(KafkaNotAuthorized, match=f"may not set retention.ms of the topic {topic}: grant it the right"):
        cluster.perform(SetConfig(topic, {"retention.ms": "1000"}, {}))


def test_a_topic_that_may_not_be_made_is_told_by_name(
    guarded: SecureKafka, certificates: Certificates, user: str, topic: str
) -> None:
    # Whoever may make topics in the cluster needs no right to a single one.
    deny_to(user, guarded.plain, AclOperation.CREATE)
    deny_to(user, guarded.plain, AclOperation.CREATE, topic)
    connection = by_password(guarded.sasl, user=user)
    cluster = KafkaClusters().cluster(kafka_settings(connection, secrets(certificates)))

    with pytest.raises(KafkaNotAuthorized, match=f"may not create the topic {topic}"):
        cluster.perform(CreateTopic(topic, 1, 1))


def deny_to(user: str, bootstrap_servers: str, operation: AclOperation, topic: str | None = None) -> None:
    """Take a right to a topic, or to the cluster as a whole, from one user, and leave it to all others."""
    where = (ResourceType.BROKER, "kafka-cluster") if topic is None else (ResourceType.TOPIC, topic)
    resource = (*where, ResourcePatternType.LITERAL)
    rules = [
        # The first rule about a resource takes all rights to it from those whom no rule names.
        AclBinding(*resource, "User:*", "*", AclOperation.ALL, AclPermissionType.ALLOW),
        AclBinding(*resource, f"User:{user}", "*", operation, AclPermissionType.DENY),
    ]
    admin = AdminClient({"bootstrap.servers": bootstrap_servers})
    for done in admin.create_acls(rules).values():
        done.result(30)


def test_settings_that_may_not_be_read_leave_the_rest_to_see(
    guarded: SecureKafka, certificates: Certificates, owner: KafkaCluster, topic: str
) -> None:
    made(owner, topic, 2)
    deny(guarded.plain, topic, AclOperation.DESCRIBE_CONFIGS)
    cluster = KafkaClusters().cluster(kafka_settings(by_password(guarded.sasl), secrets(certificates)))

    facts = cluster.view([topic]).topics[topic]

    assert (facts.partitions, facts.config) == (2, None)


def test_where_settings_of_brokers_may_not_be_read_nothing_is_advised(
    guarded: SecureKafka, certificates: Certificates, owner: KafkaCluster, user: str
) -> None:
    deny_to(user, guarded.plain, AclOperation.DESCRIBE_CONFIGS)
    connection = by_password(guarded.sasl, user=user)
    cluster = KafkaClusters().cluster(kafka_settings(connection, secrets(certificates)))

    assert (cluster.offsets_retention_ms(), owner.offsets_retention_ms()) == (None, 604_800_000)


def test_a_route_waits_for_the_right_to_one_topic_and_names_it(
    guarded: SecureKafka, certificates: Certificates, topic: str
) -> None:
    route = wanted(source={"topic": f"{topic}.delayed"}, target={"topic": topic}, deadLetter={"topic": f"{topic}.dlq"})
    deny(guarded.plain, topic, AclOperation.ALL)
    cluster = KafkaClusters().cluster(kafka_settings(by_password(guarded.sasl), secrets(certificates)))
    record = begin_record(route.settings, NAMESPACE_UID)

    plan = plan_topics(route.settings, route.spec, cluster.view(topic_names(route.settings, record)), record)

    assert (plan.topics.reason, plan.stalled) == ("AuthorizationFailed", None)
    assert f"the target topic {topic}" in plan.topics.message
