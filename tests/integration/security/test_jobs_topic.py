"""A gateway whose Kafka user has no rights for jobs: it is told which, and nothing is written."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # public names, by an implicit re-export
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)
from tests.harness.names import unique
from tests.support.servers.secure_servers import SCRAM, USERNAME, SecureKafka, by_password, deny
from tests.support.servers.tls import Certificates

from delaytopic_api.relay import KafkaClient
from delaytopic_gateway.client.topics import create_topics
from delaytopic_gateway.errors import KafkaUnreachableError, TopicError
from delaytopic_gateway.jobs.log import JobSigner, KafkaJobLog, jobs_topic_plan
from delaytopic_relay.kafka import connection_settings

pytestmark = pytest.mark.integration


@pytest.fixture
def log(guarded_kafka: SecureKafka, certificates: Certificates, tmp_path: Path) -> KafkaJobLog:
    security = by_password(tmp_path, certificates, SCRAM)
    client = KafkaClient.model_validate({"bootstrapServers": guarded_kafka.sasl, "security": security})
    settings = {name: str(value) for name, value in connection_settings(client).items()}
    topic = unique("jobs")
    return KafkaJobLog(settings, topic, JobSigner(b"token", topic), print)


@pytest.mark.takes_long("a topic that was just made takes up to ten seconds to appear")
def test_a_topic_that_cannot_be_made_is_described(guarded_kafka: SecureKafka, log: KafkaJobLog) -> None:
    create_topics(guarded_kafka.plain, [jobs_topic_plan(log.topic)])
    deny(guarded_kafka.plain, log.topic, AclOperation.DESCRIBE)

    with pytest.raises(KafkaUnreachableError) as error:
        log.prepare()

    assert str(error.value) == (
        f"the gateway keeps jobs in the topic {log.topic}, which it does not see and could not make "
        f"(Topic '{log.topic}' already exists.): make it with 1 partition and cleanup.policy=compact,delete, "
        "retention.ms=2592000000, "
        f"and give the gateway's user READ and WRITE on it, and WRITE on transactional ids that begin with {log.topic}/"
    )


def test_a_transactional_id_that_is_not_allowed_is_named(guarded_kafka: SecureKafka, log: KafkaJobLog) -> None:
    create_topics(guarded_kafka.plain, [jobs_topic_plan(log.topic)])
    where = (ResourceType.TRANSACTIONAL_ID, f"{log.topic}/", ResourcePatternType.PREFIXED)
    rule = AclBinding(*where, f"User:{USERNAME}", "*", AclOperation.WRITE, AclPermissionType.DENY)
    admin = AdminClient({"bootstrap.servers": guarded_kafka.plain})
    for done in admin.create_acls([rule]).values():
        done.result(30)

    with pytest.raises(TopicError) as error:
        log.open("shop/reminders/one")

    assert str(error.value) == (
        "Kafka refused the job shop/reminders/one: the gateway's user needs READ and WRITE on it, and WRITE on "
        f"transactional ids that begin with {log.topic}/"
    )
