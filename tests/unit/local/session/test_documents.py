from __future__ import annotations

from pathlib import Path

import pytest

from delaytopic_api import InvalidDocument, Refused
from delaytopic_api.relay import KafkaClient, KafkaSecurity, OAuthClient, SaslMechanism, SecurityProtocol
from delaytopic_gateway.client.topics import TopicPlan
from delaytopic_local.session.documents import (
    BROKERS_CLOCK,
    check_addresses,
    checked_settings,
    kafka_client,
    known_topic,
    not_written,
    read_settings,
    relay_document,
    topic_plans,
)
from delaytopic_local.session.known_topics import KnownTopic
from delaytopic_local.verifier.reading import Rules, rules_of
from delaytopic_process.errors import InputError

HEAD = "apiVersion: delaytopic.dev/v1beta1\nkind: DelayTopic\nmetadata: {name: reminders, namespace: shop}\nspec:\n"
BACKEND = "  backend: {type: RedisZset}\n"
PLAIN = HEAD + "  source: {topic: a}\n  target: {topic: b, allowedTopics: ['shop.*']}\n" + BACKEND
WEEK_AND_MONTH_MS = (720 + 168) * 3_600_000


def file_with(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "topics.yaml"
    file.write_text(text, encoding="utf-8")
    return file


def test_two_topic_names_are_enough(tmp_path: Path) -> None:
    plans = topic_plans(read_settings(file_with(tmp_path, PLAIN)), on_own_cluster=False)

    assert plans == [
        TopicPlan("a", 4, {"retention.ms": str(WEEK_AND_MONTH_MS), **BROKERS_CLOCK}, 1),
        TopicPlan("b", 4, BROKERS_CLOCK, 1),
        TopicPlan("a.dlq", 1, {"max.message.bytes": str(1_048_588 + 65_536)}, 1),
    ]


def test_what_is_written_wins_and_big_records_have_room_in_the_dead_letter_topic(tmp_path: Path) -> None:
    text = HEAD + (
        "  source: {topic: a, partitions: 2, config: {max.message.bytes: '2000000'}}\n"
        "  target: {topic: b, partitions: 3, retention: 1h}\n"
        "  deadLetter: {topic: d, partitions: 5, replicationFactor: 2}\n" + BACKEND
    )

    plans = topic_plans(read_settings(file_with(tmp_path, text)), on_own_cluster=True)

    assert plans == [
        TopicPlan("a", 2, {"retention.ms": str(WEEK_AND_MONTH_MS), "max.message.bytes": "2000000"}, -1),
        TopicPlan("b", 3, {"retention.ms": "3600000"}, -1),
        TopicPlan("d", 5, {"max.message.bytes": "2065536"}, 2),
    ]


def test_topics_that_hold_more_than_records_of_the_source_stay_within_what_kafka_takes(tmp_path: Path) -> None:
    text = HEAD + (
        "  source: {topic: a, config: {max.message.bytes: '2147483647'}}\n  target: {topic: b}\n"
        "  backend: {type: KafkaBuckets}\n"
    )

    plans = topic_plans(read_settings(file_with(tmp_path, text)), on_own_cluster=True)

    of_the_backlog = {plan.config["max.message.bytes"] for plan in plans if ".delay." in plan.name}
    assert (plans[2].config["max.message.bytes"], of_the_backlog) == ("2147483647", {"2147483647"})


def test_a_fixed_delay_needs_the_brokers_time_on_any_cluster(tmp_path: Path) -> None:
    text = PLAIN + "  schedule: {fixedDelay: 30s}\n"

    source = topic_plans(read_settings(file_with(tmp_path, text)), on_own_cluster=True)[0]

    assert source.config["message.timestamp.type"] == "LogAppendTime"


def test_observed_topics_of_ones_own_cluster_are_left_alone(tmp_path: Path) -> None:
    text = HEAD + "  source: {topic: a, management: Observe}\n  target: {topic: b, management: Observe}\n" + BACKEND
    settings = read_settings(file_with(tmp_path, text))

    own, embedded = (topic_plans(settings, on_own_cluster=own) for own in (True, False))

    assert [plan.name for plan in own] == ["a.dlq"]
    assert [plan.name for plan in embedded] == ["a", "b", "a.dlq"]


def test_the_relays_document_names_servers_and_topics(tmp_path: Path) -> None:
    settings = read_settings(file_with(tmp_path, PLAIN))[0]

    kafka = KafkaClient(bootstrap_servers="127.0.0.1:9")
    document = relay_document(settings, kafka=kafka, redis_url="redis://127.0.0.1:8/0", http_port=7)

    assert document.to_document() | {"schedule": None, "limits": None} == {
        "apiVersion": "delaytopic.dev/v1beta1",
        "kind": "RelayConfig",
        "name": "reminders",
        "namespace": "shop",
        "groupId": "delaytopic.shop.reminders",
        "source": {"topic": "a"},
        "target": {"topic": "b", "allowedTopics": ["shop.*"], "partitioning": "ByKey", "compression": "Auto"},
        "deadLetter": {"topic": "a.dlq"},
        "schedule": None,
        "precision": "1s",
        "guarantee": "ExactlyOnce",
        "backend": {"type": "RedisZset", "id": "delaytopic.shop.reminders", "redis": {"url": "redis://127.0.0.1:8/0"}},
        "kafka": {"bootstrapServers": "127.0.0.1:9", "security": {"protocol": "PLAINTEXT"}},
        "suspend": "None",
        "http": {"host": "127.0.0.1", "port": 7, "pending": "Loopback"},
        "limits": None,
    }


def test_a_class_in_the_same_file_brings_its_defaults(tmp_path: Path) -> None:
    text = PLAIN.removesuffix(BACKEND) + (
        "---\napiVersion: delaytopic.dev/v1beta1\nkind: DelayClass\n"
        "metadata: {name: standard, annotations: {delaytopic.dev/is-default-class: 'true'}}\n"
        "spec: {connection: {bootstrapServers: 'k:9092'}, backend: {type: KafkaBuckets},\n"
        "  access: {sourceTopics: ['*'], targetTopics: ['*']}, defaults: {partitions: 7, precision: 2s}}\n"
    )

    settings = read_settings(file_with(tmp_path, text))[0]

    assert (settings.source.partitions, settings.precision.ms, str(settings.backend.type)) == (7, 2_000, "KafkaBuckets")


def test_a_class_that_is_not_in_the_file_is_missed(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="there is no DelayClass"):
        read_settings(file_with(tmp_path, PLAIN + "  delayClassName: gold\n"))


def test_a_wrong_field_is_named_with_file_and_path(tmp_path: Path) -> None:
    with pytest.raises(InvalidDocument, match=r"topics\.yaml: DelayTopic shop/reminders: spec\.precision: .*soon"):
        read_settings(file_with(tmp_path, PLAIN + "  precision: soon\n"))


def test_a_file_without_delay_topics_is_of_no_use(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no DelayTopic"):
        read_settings(file_with(tmp_path, "# nothing\n"))


def test_a_recurring_record_is_told_to_be_unwritten_with_a_command_like_it(tmp_path: Path) -> None:
    recurring = (
        "---\napiVersion: delaytopic.dev/v1beta1\nkind: RecurringRecord\nmetadata: {name: report, namespace: shop}\n"
        "spec: {delayTopic: %s, cron: 0 9 * * mon-fri, headers: {kind: a b}, value: tea}\n"
    )
    file = file_with(tmp_path, PLAIN + recurring % "reminders" + (recurring % "others").replace("report", "lost"))

    assert list(not_written(file, read_settings(file))) == [
        "RecurringRecord shop/report is not written, as no operator runs here; a command like it:",
        "  delaytopic send a --id report --cron '0 9 * * mon-fri' --value tea --header 'kind=a b'",
        f"RecurringRecord shop/lost is not written: {file} holds no DelayTopic shop/others",
    ]


def test_a_file_that_is_not_text_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "topics.yaml"
    file.write_bytes(b"\xff\xfe\x00")

    with pytest.raises(InputError, match="cannot be read"):
        read_settings(file)


def test_the_audits_rules_follow_from_the_document(tmp_path: Path) -> None:
    text = PLAIN + "  schedule: {defaultDelay: 5m, maxDelay: 24h, ids: Disabled}\n"

    rules = rules_of(read_settings(file_with(tmp_path, text))[0])

    assert rules == Rules(
        target="b",
        max_delay_ms=86_400_000,
        allowed_targets=("shop.*",),
        default_delay_ms=300_000,
        fixed_delay_ms=None,
        uses_ids=False,
    )


@pytest.mark.parametrize(
    ("servers", "redis", "line"),
    [
        ("foo", None, "--bootstrap-servers: is not a list of servers; write host:port, several separated by commas"),
        (None, "foo", '--redis-url: "foo" is not the URL of a Redis; write it like redis://host:6379/0 or'),
        (None, "redis://h?db=3", '--redis-url: "redis://h?db=3" has a query that nobody reads; write the database'),
        (None, "redis://u:secret@h?db=3", "--redis-url: has a query that nobody reads"),
        (None, "redis://u:secret@h", "--redis-url: must not hold credentials"),
    ],
)
def test_the_address_of_a_server_that_is_none_is_one_line(servers: str | None, redis: str | None, line: str) -> None:
    with pytest.raises(InputError) as caught:
        check_addresses(servers, redis)

    assert str(caught.value).startswith(line)
    assert "secret" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_senders_know_what_the_document_says(tmp_path: Path) -> None:
    text = PLAIN + "  schedule: {maxDelay: 1h, ids: Disabled}\n"

    assert known_topic(read_settings(file_with(tmp_path, text))[0]) == KnownTopic(
        "shop/reminders", "a", "b", "a.dlq", ("shop.*",), None, 3_600_000, takes_ids=False
    )


def test_settings_of_a_secured_kafka_become_those_of_relays_and_the_password_a_file_for_its_owner(
    tmp_path: Path,
) -> None:
    given = {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.username": "u", "sasl.password": "p"}

    security = kafka_client("k:9", checked_settings(given, own_cluster=True), tmp_path).security

    assert (security.protocol, security.mechanism, security.username) == (
        SecurityProtocol.SASL_SSL,
        SaslMechanism.PLAIN,
        "u",
    )
    file = Path(security.password_file or "")
    assert (file.read_text(encoding="utf-8"), file.stat().st_mode & 0o777) == ("p", 0o600)


TOKENS = {
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "OAUTHBEARER",
    "sasl.oauthbearer.method": "oidc",
    "sasl.oauthbearer.token.endpoint.url": "https://login.test/token",
    "sasl.oauthbearer.client.id": "id",
    "sasl.oauthbearer.client.secret": "s3cret",
    "https.ca.location": "/ca.pem",
}


def test_settings_of_a_kafka_with_tokens_become_those_of_relays_and_the_clients_id_and_secret_files_for_their_owner(
    tmp_path: Path,
) -> None:
    given = TOKENS | {"sasl.oauthbearer.scope": "kafka", "sasl.oauthbearer.extensions": "a=b=c, d=e"}

    security = kafka_client("k:9", checked_settings(given, own_cluster=True), tmp_path).security

    client_id, secret = tmp_path / "kafka-client-id", tmp_path / "kafka-client-secret"
    assert security == KafkaSecurity(
        protocol=SecurityProtocol.SASL_SSL,
        mechanism=SaslMechanism.OAUTHBEARER,
        oauth=OAuthClient(
            token_endpoint_url="https://login.test/token",
            client_id_file=str(client_id),
            client_secret_file=str(secret),
            scope="kafka",
            extensions={"a": "b=c", "d": "e"},
            ca_file="/ca.pem",
        ),
    )
    assert [(file.read_text(encoding="utf-8"), file.stat().st_mode & 0o777) for file in (client_id, secret)] == [
        ("id", 0o600),
        ("s3cret", 0o600),
    ]


@pytest.mark.parametrize(
    ("settings", "own_cluster", "line"),
    [
        (
            {name: value for name, value in TOKENS.items() if name != "sasl.oauthbearer.method"},
            True,
            "-X: relays get tokens by sasl.oauthbearer.method=oidc alone: add it",
        ),
        (
            {name: value for name, value in TOKENS.items() if name != "sasl.oauthbearer.client.id"},
            True,
            "-X: oauth.clientIdFile: ",
        ),
        ({"linger.ms": "5"}, True, "-X: relays do not know linger.ms; they know security.protocol, "),
        ({"security.protocol": "SSL"}, False, "-X is for a Kafka of yours: name it with --bootstrap-servers"),
        ({"security.protocol": "SASL_SSL"}, True, "-X: "),
        ({"security.protocol": "TLS"}, True, "-X: protocol: "),
    ],
)
def test_settings_that_relays_cannot_use_are_refused(
    settings: dict[str, str], own_cluster: bool, line: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError) as caught:
        kafka_client("k:9", checked_settings(settings, own_cluster=own_cluster), tmp_path)

    assert str(caught.value).startswith(line)
