"""Clients that show tokens of an issuer to a Kafka that verifies them."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.harness.names import unique
from tests.harness.shared_servers import RedisAddress
from tests.support.relay.ends import exit_code, last_words, lines_of, wait_until_it_waits
from tests.support.relay.process import wait_for
from tests.support.relay.records import Sent, at, now_ms, produce
from tests.support.relay.route import PARTITIONS, Route, Servers, read_topic
from tests.support.servers.issuer import CLIENT_ID, CLIENT_SECRET, Answer, Issuer
from tests.support.servers.oauth_kafka import SCOPE, OAuthKafka, by_token, oauth_kafka
from tests.support.servers.secure_servers import GuardedRoute
from tests.support.servers.tls import make_certificates

from delaytopic_api.documents import API_VERSION, KafkaConnection
from delaytopic_audit.model.manifest import Range, Role
from delaytopic_audit.reading.client import Reading, ReadingJob, batches
from delaytopic_audit.reading.facts import KafkaFacts
from delaytopic_audit.reading.settings import client_settings
from delaytopic_gateway.client.kafka_login import kafka_settings as settings_of_the_gateway
from delaytopic_gateway.client.topics import TopicPlan, admin_client, create_topics, partitions_by_topic
from delaytopic_local.servers.process import ManagedProcess
from delaytopic_operator.errors import KafkaNotAuthenticated, KafkaUnavailable
from delaytopic_operator.kafka.admin import KafkaClusters
from delaytopic_operator.kafka.credentials import kafka_settings
from delaytopic_operator.model.secret_values import SecretValues

pytestmark = pytest.mark.integration

RECORDS = 40
LATER_MS = 3_500
"""Beyond the horizon of two seconds."""
SHORT_S = 8
MISCONFIGURED = 2
OVERLOADED = Answer(503, "<html>busy</html>", "text/html")
NOT_FOUND = Answer(404, "<html>no such\npage</html>", "text/html")


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OAuthKafka]:
    directory = tmp_path_factory.mktemp("oauth")
    with Issuer(directory, make_certificates(directory)) as issuer, oauth_kafka(directory, issuer) as kafka:
        yield kafka


@pytest.fixture
def kafka(running: OAuthKafka) -> OAuthKafka:
    """The broker of this module, and its issuer as it was first."""
    issuer = running.issuer
    issuer.lifetime_s, issuer.audience, issuer.answer, issuer.unheard = 3_600, "kafka", None, 0
    issuer.scopes.clear()
    return running


@pytest.fixture
def guarded_route(kafka: OAuthKafka, redis: RedisAddress, tmp_path: Path) -> Iterator[GuardedRoute]:
    routes: list[Route] = []

    def make(listener: str, security: dict[str, Any], **spec: Any) -> Route:
        reached = {"bootstrapServers": listener, "security": security}
        servers = Servers(kafka.plain, redis.url)
        routes.append(Route(servers, tmp_path, unique("oauth"), {"kafka": reached, **spec}))
        return routes[-1].create_topics()

    yield make
    for route in routes:
        route.stop_relays()


def send_some(route: Route, later_ms: int = 0) -> None:
    moment_ms = now_ms()
    produce(
        route.servers.bootstrap_servers,
        route.source,
        [Sent(b"%d" % number, b"v", [at(moment_ms + number % 2 * later_ms)]) for number in range(RECORDS)],
    )


def assert_delivered(route: Route, records: int) -> None:
    verdict = route.settled_verdict()
    assert (verdict.faults, verdict.delivered) == ({}, records)


def test_a_relay_delivers_with_tokens_and_tells_nobody_its_secret(
    guarded_route: GuardedRoute, kafka: OAuthKafka, tmp_path: Path
) -> None:
    route = guarded_route(kafka.guarded, by_token(tmp_path, kafka.issuer))
    relay = route.start_relay().wait_until_delivering(PARTITIONS)

    send_some(route, LATER_MS)

    assert_delivered(route, RECORDS)
    assert {*kafka.issuer.scopes} == {SCOPE}
    assert relay.terminate() == 0
    written = relay.log_file.read_text() + relay.config.read_text()
    assert [word for word in (CLIENT_ID, CLIENT_SECRET) if word in written] == []


@pytest.mark.nightly
def test_a_relay_delivers_with_tokens_and_a_backlog_in_kafka(
    guarded_route: GuardedRoute, kafka: OAuthKafka, tmp_path: Path
) -> None:
    route = guarded_route(
        kafka.guarded, by_token(tmp_path, kafka.issuer), backend={"type": "KafkaBuckets", "redis": None}
    )
    route.start_relay().wait_until_delivering(PARTITIONS)

    send_some(route, LATER_MS)

    assert_delivered(route, RECORDS)


@pytest.mark.takes_long(f"tokens live for {SHORT_S} s")
def test_a_relay_gets_another_token_before_one_ends_and_goes_on(
    guarded_route: GuardedRoute, kafka: OAuthKafka, tmp_path: Path
) -> None:
    kafka.issuer.lifetime_s = SHORT_S
    route = guarded_route(kafka.guarded, by_token(tmp_path, kafka.issuer))
    relay = route.start_relay().wait_until_delivering(PARTITIONS)
    send_some(route)
    assert_delivered(route, RECORDS)

    first = len(kafka.issuer.scopes)
    wait_for(lambda: len(kafka.issuer.scopes) >= 3 * first, relay.why)
    send_some(route)

    assert_delivered(route, 2 * RECORDS)
    assert relay.terminate() == 0


@pytest.mark.nightly
@pytest.mark.takes_long(f"tokens live for {SHORT_S} s, and a client asks an issuer again after ten")
def test_a_relay_outlives_an_issuer_that_is_away_for_longer_than_a_token_lives(
    guarded_route: GuardedRoute, kafka: OAuthKafka, tmp_path: Path
) -> None:
    kafka.issuer.lifetime_s = SHORT_S
    route = guarded_route(kafka.guarded, by_token(tmp_path, kafka.issuer))
    relay = route.start_relay().wait_until_delivering(PARTITIONS)
    kafka.issuer.answer = NOT_FOUND
    given = len(kafka.issuer.scopes)
    wait_for(lambda: kafka.issuer.unheard >= 2 * given, relay.why)  # each client has asked twice, ten seconds apart

    kafka.issuer.answer = None
    send_some(route)

    assert_delivered(route, RECORDS)
    assert relay.terminate() == 0


def test_a_relay_with_a_wrong_secret_ends_and_names_the_field(
    guarded_route: GuardedRoute, kafka: OAuthKafka, tmp_path: Path
) -> None:
    relay = guarded_route(kafka.guarded, by_token(tmp_path, kafka.issuer, secret="not-the-secret")).start_relay()

    assert exit_code(relay) == MISCONFIGURED
    assert last_words(relay) == (
        "the OAuth issuer gives this relay no token (invalid_client: Invalid client or Invalid client credentials); "
        "check kafka.security.oauth.clientIdFile and kafka.security.oauth.clientSecretFile: the relay ends, and asks "
        "again when it is started again"
    )
    assert "not-the-secret" not in relay.log_file.read_text()


def test_a_relay_that_does_not_trust_the_issuers_authority_ends_and_names_the_field(
    guarded_route: GuardedRoute, kafka: OAuthKafka, tmp_path: Path
) -> None:
    strangers = make_certificates(tmp_path)
    security = by_token(tmp_path, kafka.issuer, caFile=str(strangers.authority))

    relay = guarded_route(kafka.guarded, security).start_relay()

    assert exit_code(relay) == MISCONFIGURED
    words = last_words(relay)
    assert words.startswith("the OAuth issuer gives this relay no token (SSL certificate ")
    assert "check kafka.security.oauth.caFile: the relay ends" in words


@pytest.mark.nightly  # each day one with a wrong secret ends, and says where to look
def test_a_relay_whose_tokens_are_for_others_ends_and_says_that_kafka_refuses_it(
    guarded_route: GuardedRoute, kafka: OAuthKafka, tmp_path: Path
) -> None:
    kafka.issuer.audience = "others"

    relay = guarded_route(kafka.guarded, by_token(tmp_path, kafka.issuer)).start_relay()

    assert exit_code(relay) == MISCONFIGURED
    words = last_words(relay)
    assert words.startswith("Kafka does not let this relay in (")
    assert "invalid_token" in words


@pytest.mark.nightly
def test_a_relay_with_no_authorities_at_all_ends_and_says_what_it_cannot_use(
    guarded_route: GuardedRoute, kafka: OAuthKafka, tmp_path: Path
) -> None:
    security = by_token(tmp_path, kafka.issuer, caFile="/no/such/file")

    relay = guarded_route(kafka.guarded, security).start_relay()

    assert exit_code(relay) == MISCONFIGURED
    assert last_words(relay).startswith("kafka.security cannot be used: ")


def test_a_relay_waits_for_an_issuer_that_is_away_says_so_and_starts_when_it_is_there(
    guarded_route: GuardedRoute, kafka: OAuthKafka, tmp_path: Path
) -> None:
    kafka.issuer.answer = NOT_FOUND
    relay = guarded_route(kafka.guarded, by_token(tmp_path, kafka.issuer)).start_relay()

    answer = wait_until_it_waits(relay, "the OAuth issuer gives this relay no token")
    kafka.issuer.answer = None
    relay.wait_until_delivering(PARTITIONS)

    assert "it is asked again until it does, check kafka.security.oauth.tokenEndpointUrl and the network" in answer
    assert [line for line in lines_of(relay, "warning") if line["event"] == "waiting"] != []


@pytest.mark.nightly  # each day the operator meets such an issuer
@pytest.mark.takes_long("a relay asks Kafka for ten seconds before it says that it waits")
def test_a_relay_whose_issuer_is_overloaded_waits_and_names_the_issuer_among_what_to_look_at(
    guarded_route: GuardedRoute, kafka: OAuthKafka, tmp_path: Path
) -> None:
    """The client library asks an issuer that says so for most of a minute before it tells of it."""
    kafka.issuer.answer = OVERLOADED
    relay = guarded_route(kafka.guarded, by_token(tmp_path, kafka.issuer)).start_relay()

    answer = wait_until_it_waits(relay, "Kafka does not answer")

    assert "and the network, and the issuer at kafka.security.oauth.tokenEndpointUrl" in answer


# -- the operator


def connection_of(kafka: OAuthKafka) -> KafkaConnection:
    oauth = {
        "tokenEndpointUrl": kafka.issuer.token_url,
        "credentials": {"secretName": "client"},
        "scope": SCOPE,
        "trustedCertificate": {"secretName": "ca"},
    }
    return KafkaConnection.model_validate(
        {
            "bootstrapServers": kafka.guarded,
            "tls": {"trustedCertificates": [{"secretName": "ca"}]},
            "authentication": {"type": "OAuthBearer", "oauth": oauth},
        }
    )


def settings_of_the_operator(kafka: OAuthKafka, secret: str = CLIENT_SECRET) -> dict[str, str]:
    values = {
        "client": {"client-id": CLIENT_ID, "client-secret": secret},
        "ca": {"ca.crt": kafka.issuer.certificates.authority.read_text()},
    }
    documents = {
        name: {"data": {key: base64.b64encode(value.encode()).decode() for key, value in held.items()}}
        for name, held in values.items()
    }
    return kafka_settings(connection_of(kafka), SecretValues("shop", documents))


def test_the_operator_sees_topics_with_tokens(kafka: OAuthKafka) -> None:
    topic = unique("seen")
    create_topics(kafka.plain, [TopicPlan(topic, 2, {})])

    view = KafkaClusters().cluster(settings_of_the_operator(kafka)).view([topic])

    assert view.topics[topic].partitions == 2


def test_the_operator_says_of_a_wrong_secret_which_field_and_that_it_asks_again(kafka: OAuthKafka) -> None:
    clusters = KafkaClusters()
    expected = (
        "the OAuth issuer gives the operator no token (invalid_client: Invalid client or Invalid client credentials); "
        "it is asked again, check authentication.oauth.credentials and the Secret that it names of the connection"
    )

    for _ in range(2):  # the client library tells of it once
        with pytest.raises(KafkaNotAuthenticated) as refused:
            clusters.cluster(settings_of_the_operator(kafka, "not-the-secret")).view(["any"], fresh=True)
        assert str(refused.value) == expected


def test_the_operator_names_an_issuer_that_is_overloaded_among_what_to_look_at(kafka: OAuthKafka) -> None:
    kafka.issuer.answer = OVERLOADED
    cluster = KafkaClusters(timeout_s=1).cluster(settings_of_the_operator(kafka))

    for _ in range(2):  # it is left alone for a while, and then the message is another one
        with pytest.raises(
            KafkaUnavailable, match=r"the brokers, and the issuer at authentication\.oauth\.tokenEndpointUrl$"
        ):
            cluster.view(["any"], fresh=True)


@pytest.mark.nightly  # each day a relay meets such an issuer
@pytest.mark.takes_long("a client asks an issuer again after ten seconds")
def test_the_operator_waits_for_an_issuer_that_is_away_and_goes_on_when_it_is_there(kafka: OAuthKafka) -> None:
    kafka.issuer.answer = NOT_FOUND
    cluster = KafkaClusters().cluster(settings_of_the_operator(kafka))
    with pytest.raises(KafkaUnavailable, match=r"authentication\.oauth\.tokenEndpointUrl of the connection$"):
        cluster.view(["any"], fresh=True)

    kafka.issuer.answer = None

    def answers() -> bool:
        try:
            return cluster.view(["any"], fresh=True).missing == {"any"}
        except KafkaUnavailable:
            return False

    wait_for(answers)


# -- audits and commands


def test_an_audit_reads_with_tokens(guarded_route: GuardedRoute, kafka: OAuthKafka, tmp_path: Path) -> None:
    route = guarded_route(kafka.guarded, by_token(tmp_path, kafka.issuer))
    send_some(route)
    config = route.config()

    (state,) = KafkaFacts(client_settings(config.kafka, {})).states([route.source])[0].values()
    ranges = [
        Range(topic=route.source, role=Role.SOURCE, partition=partition, start=0, end=offsets.end)
        for partition, offsets in state.partitions.items()
    ]

    job = ReadingJob(client={}, readings=[Reading(number=1, config=config, ranges=ranges)])
    assert sum(batch.num_rows for batch in batches(job)) == RECORDS


def test_the_gateway_logs_in_with_tokens(kafka: OAuthKafka, tmp_path: Path) -> None:
    topic = unique("gateway")
    create_topics(kafka.plain, [TopicPlan(topic, 1, {})])
    file = tmp_path / "kafka.yaml"
    file.write_text(
        json.dumps({"bootstrapServers": kafka.guarded, "security": by_token(tmp_path, kafka.issuer)}), encoding="utf-8"
    )

    settings = settings_of_the_gateway(file)

    assert partitions_by_topic(admin_client(kafka.guarded, settings), kafka.guarded)[topic] == 1


def options_of(kafka: OAuthKafka) -> list[str]:
    """For a command, which finds the authority of the issuer among those of the system: see `trusting`."""
    settings = {
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": str(kafka.issuer.certificates.authority),
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.method": "oidc",
        "sasl.oauthbearer.token.endpoint.url": kafka.issuer.token_url,
        "sasl.oauthbearer.client.id": CLIENT_ID,
        "sasl.oauthbearer.client.secret": CLIENT_SECRET,
    }
    return ["-b", kafka.guarded, *(word for name, value in settings.items() for word in ("-X", f"{name}={value}"))]


def trusting(kafka: OAuthKafka) -> dict[str, str]:
    """Return the environment of a system that trusts the issuer."""
    return {"SSL_CERT_FILE": str(kafka.issuer.certificates.authority)}


def test_a_command_sends_with_tokens(kafka: OAuthKafka) -> None:
    topic = unique("sent")
    create_topics(kafka.plain, [TopicPlan(topic, 1, {})])
    command = [sys.executable, "-m", "delaytopic_cli", "send", topic, *options_of(kafka), "--value", "v"]

    done = subprocess.run(command, env={**os.environ, **trusting(kafka)}, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (0, "")
    assert [record.value for record in read_topic(kafka.plain, topic)] == [b"v"]


@pytest.mark.nightly  # each day relays and a command come with tokens
def test_delaytopic_local_makes_topics_and_runs_relays_with_tokens(kafka: OAuthKafka, tmp_path: Path) -> None:
    source, target, file = unique("local-source"), unique("local-target"), tmp_path / "topics.yaml"
    spec = {"source": {"topic": source}, "target": {"topic": target}, "backend": {"type": "KafkaBuckets"}}
    metadata = {"name": "reminders", "namespace": "shop"}
    document = {"apiVersion": API_VERSION, "kind": "DelayTopic", "metadata": metadata, "spec": spec}
    file.write_text(json.dumps(document), encoding="utf-8")
    arguments = ["local", "-f", str(file), "--data", str(tmp_path / "data"), *options_of(kafka)]
    local = ManagedProcess(
        "local",
        [sys.executable, "-m", "delaytopic_cli", *arguments],
        log_file=tmp_path / "local.log",
        environment={**trusting(kafka), "XDG_STATE_HOME": str(tmp_path / "state")},
    )

    def topics() -> dict[str, int]:
        assert local.is_running(), local.log_tail()
        return partitions_by_topic(admin_client(kafka.plain), kafka.plain)

    local.start()
    try:
        wait_for(lambda: source in topics() and target in topics(), local.log_tail)
        produce(kafka.plain, source, [Sent(b"k", b"v")])
        wait_for(lambda: [record.value for record in read_topic(kafka.plain, target)] == [b"v"], local.log_tail)
    finally:
        local.stop(grace_seconds=30)
