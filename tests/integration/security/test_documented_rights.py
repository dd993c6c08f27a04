"""The rights that docs/how-to/strimzi.md gives a class's user are enough, on a Kafka that allows nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # its public names, by an implicit re-export
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)
from tests.harness.names import unique
from tests.harness.shared_servers import RedisAddress
from tests.support.pages import yaml_texts
from tests.support.paths import ROOT
from tests.support.relay.process import wait_for
from tests.support.relay.records import Sent, produce
from tests.support.relay.route import PARTITIONS, Route, Servers
from tests.support.servers.secure_servers import PASSWORD, SCRAM, USERNAME, SecureKafka, by_password, secure_kafka
from tests.support.servers.tls import Certificates, make_certificates

from delaytopic_audit.errors import ReadingError
from delaytopic_audit.reading.facts import KafkaFacts
from delaytopic_operator.errors import KafkaUnavailable
from delaytopic_operator.kafka.admin import KafkaCluster, KafkaClusters
from delaytopic_operator.topics.actions import CreateTopic, DeleteTopic, GrowTopic, SetConfig

pytestmark = [pytest.mark.integration, pytest.mark.nightly]

PAGE = ROOT / "docs" / "how-to" / "strimzi.md"
TEAM = "shop."
"""The prefix of topics on the page."""
KINDS = {
    "topic": ResourceType.TOPIC,
    "group": ResourceType.GROUP,
    "transactionalId": ResourceType.TRANSACTIONAL_ID,
    "cluster": ResourceType.BROKER,
}
OPERATIONS = {"DescribeConfigs": AclOperation.DESCRIBE_CONFIGS, "AlterConfigs": AclOperation.ALTER_CONFIGS}


@pytest.fixture
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """Certificates of this test alone."""
    return make_certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
def strict_kafka(tmp_path_factory: pytest.TempPathFactory, certificates: Certificates) -> Iterator[SecureKafka]:
    """A Kafka of this test alone, which allows what an ACL allows and nothing else."""
    settings = {"allow.everyone.if.no.acl.found": "false"}
    with secure_kafka(tmp_path_factory.mktemp("strict"), certificates, settings) as kafka:
        yield kafka


def documented_acls() -> list[dict[str, Any]]:
    """Return those of the page's KafkaUser `delay`."""
    documents = [document for text in yaml_texts(PAGE) for document in yaml.safe_load_all(text)]
    [user] = [each for each in documents if each.get("kind") == "KafkaUser" and each["metadata"]["name"] == "delay"]
    acls: list[dict[str, Any]] = user["spec"]["authorization"]["acls"]
    return acls


def grant(kafka: SecureKafka, acls: list[dict[str, Any]], team: str) -> None:
    """Allow the user what Strimzi's User Operator would, with a prefix for the team's topics."""
    rules = [_rule(acl["resource"], operation, team) for acl in acls for operation in acl["operations"]]
    admin = AdminClient({"bootstrap.servers": kafka.plain})
    for done in admin.create_acls(rules).values():
        done.result(30)


def _rule(resource: dict[str, Any], operation: str, team: str) -> AclBinding:
    name = resource.get("name", "kafka-cluster")
    prefixed = resource.get("patternType") == "prefix"
    return AclBinding(
        KINDS[resource["type"]],
        team if name == TEAM else name,
        ResourcePatternType.PREFIXED if prefixed else ResourcePatternType.LITERAL,
        f"User:{USERNAME}",
        "*",
        OPERATIONS.get(operation) or AclOperation[operation.upper()],
        AclPermissionType.ALLOW,
    )


def test_relays_and_operator_need_no_more_rights_than_the_page_gives(
    strict_kafka: SecureKafka, certificates: Certificates, redis: RedisAddress, tmp_path: Path
) -> None:
    name = unique("shop")
    grant(strict_kafka, documented_acls(), f"{name}-")
    security = by_password(tmp_path, certificates, SCRAM)
    routes = [
        Route(
            Servers(strict_kafka.plain, redis.url),
            tmp_path,
            f"{name}-{backend.lower()}",
            {"kafka": {"bootstrapServers": strict_kafka.sasl, "security": security}, "backend": {"type": backend}},
        ).create_topics()
        for backend in ("RedisZset", "KafkaBuckets")
    ]
    operator = KafkaClusters().cluster(login(strict_kafka, certificates))
    try:
        for route in routes:
            deliver_through_a_takeover(route)
            look_after(operator, route)
    finally:
        for route in routes:
            route.stop_relays()


def test_an_audit_needs_describe_on_the_group_to_learn_by_which_rules_records_were_read(
    strict_kafka: SecureKafka, certificates: Certificates, redis: RedisAddress, tmp_path: Path
) -> None:
    route = Route(Servers(strict_kafka.plain, redis.url), tmp_path, unique("shop")).create_topics()
    rights = {"type": "topic", "name": route.source}, {"type": "group", "name": route.config().group_id}
    topic, group = ({"resource": each, "operations": ["Describe"]} for each in rights)
    facts = KafkaFacts(login(strict_kafka, certificates))

    def asked() -> object:
        try:
            return facts.committed(route.config().group_id, route.source, range(PARTITIONS))
        except ReadingError as error:
            return str(error)

    grant(strict_kafka, [topic], "")
    wait_for(lambda: "Group authorization failed" in str(asked()), lambda: f"the answer is {asked()}")
    grant(strict_kafka, [group], "")
    wait_for(lambda: asked() == {}, lambda: f"the answer is {asked()}")


def login(kafka: SecureKafka, certificates: Certificates) -> dict[str, Any]:
    """Return the settings of a client that logs in."""
    return {
        "bootstrap.servers": kafka.sasl,
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": str(certificates.authority),
        "sasl.mechanism": SCRAM,
        "sasl.username": USERNAME,
        "sasl.password": PASSWORD,
    }


def deliver_through_a_takeover(route: Route) -> None:
    """Send what is due soon, later, wrong and cancelled; kill the relay while some of it waits."""
    first = route.start_relay().wait_until_delivering(PARTITIONS)
    records = [
        Sent(b"soon", b"1", [("deliver-after", b"200ms")]),
        Sent(b"later", b"2", [("deliver-after", b"10s")]),
        Sent(b"id", b"3", [("deliver-after", b"9s"), ("deliver-id", b"id")]),
        Sent(b"id", None, [("deliver-id", b"id"), ("deliver-action", b"cancel")]),
        Sent(b"wrong", b"4", [("deliver-at", b"tomorrow")]),
    ]
    soon, later, _, _, wrong = produce(route.servers.bootstrap_servers, route.source, records)
    wait_for(lambda: len(route.delivered()) >= 1 and len(route.dead_letters()) >= 1, first.why)
    first.kill()
    second = route.start_relay().wait_until_delivering(PARTITIONS)
    wait_for(lambda: len(route.delivered()) >= 2, second.why)

    assert sorted(record.source for record in route.delivered()) == sorted([soon, later])
    assert [letter.source for letter in route.dead_letters()] == [wrong]


def look_after(operator: KafkaCluster, route: Route) -> None:
    """Do what the operator does with Kafka, once."""
    group, name = f"delaytopic.tests.{route.name}", f"{route.name}.made"
    assert operator.offsets_retention_ms() is not None
    assert set(operator.committed(group, route.source)) == set(range(PARTITIONS))
    for action in (CreateTopic(name, 1, 1), GrowTopic(name, 2, 1), SetConfig(name, {"retention.ms": "60000"}, {})):
        operator.perform(action)
    assert operator.view([name], fresh=True).topics[name].partitions == 2
    operator.perform(DeleteTopic(name, None))
    route.stop_relays()  # by a kill, so that the group still has the relay that ran
    assert operator.remove_members(group, route.source, [route.relays[-1].name]) == [route.relays[-1].name]
    wait_for(lambda: deleted(operator, group))


def deleted(operator: KafkaCluster, group: str) -> bool:
    """Delete a group, if its coordinator knows already that nobody is in it."""
    try:
        return operator.delete_group(group)
    except KafkaUnavailable:
        return False
