"""Relays whose configuration names nothing but files, at a Kafka and a Redis that let nobody else in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.support.relay.ends import exit_code, last_words, lines_of, wait_until_it_waits
from tests.support.relay.process import RelayProcess
from tests.support.relay.records import Sent, at, now_ms, produce
from tests.support.relay.route import PARTITIONS, Route
from tests.support.servers.secure_servers import PASSWORD, SCRAM, GuardedRoute, SecureKafka, SecureRedis, by_password
from tests.support.servers.tls import Certificates, make_certificates

pytestmark = pytest.mark.integration

RECORDS = 100
IN_THE_BACKLOG_MS = 3_500
"""Beyond the horizon of two seconds."""
MISCONFIGURED = 2
FEW = 20
"""Log lines about one cause: what is tried again and again is not told each time."""


def by_certificate(certificates: Certificates) -> dict[str, Any]:
    return {
        "protocol": "SSL",
        "caFile": str(certificates.authority),
        "certificateFile": str(certificates.client),
        "keyFile": str(certificates.client_key),
    }


def redis_by_files(directory: Path, certificates: Certificates, redis: SecureRedis) -> dict[str, Any]:
    (directory / "redis-url").write_text(f"{redis.url}\n")
    (directory / "redis-password").write_text(f"{redis.password}\n")
    return {
        "url": None,
        "urlFile": str(directory / "redis-url"),
        "caFile": str(certificates.authority),
        "certificateFile": str(certificates.client),
        "keyFile": str(certificates.client_key),
        "passwordFile": str(directory / "redis-password"),
    }


def deliver(route: Route, later_ms: int = 0) -> None:
    """Send half of the records for now and half for later; all arrive, once."""
    route.start_relay().wait_until_delivering(PARTITIONS)
    moment_ms = now_ms()
    records = [Sent(b"%d" % number, b"v", [at(moment_ms + number % 2 * later_ms)]) for number in range(RECORDS)]
    produce(route.servers.bootstrap_servers, route.source, records)
    verdict = route.settled_verdict()
    assert verdict.faults == {}
    assert verdict.delivered == RECORDS


def assert_no_secret_in(relay: RelayProcess, *secrets: str) -> None:
    log = relay.log_file.read_text()
    assert [secret for secret in secrets if secret in log] == []


def test_a_relay_delivers_through_scram_and_tls_and_a_redis_with_tls_client_certificates_and_a_password(
    guarded_route: GuardedRoute,
    guarded_kafka: SecureKafka,
    guarded_redis: SecureRedis,
    certificates: Certificates,
    tmp_path: Path,
) -> None:
    backend = {"redis": redis_by_files(tmp_path, certificates, guarded_redis)}
    route = guarded_route(guarded_kafka.sasl, by_password(tmp_path, certificates, SCRAM), backend=backend)

    deliver(route, later_ms=IN_THE_BACKLOG_MS)

    (relay,) = route.relays
    assert relay.terminate() == 0
    assert_no_secret_in(relay, PASSWORD, guarded_redis.password)
    assert PASSWORD not in relay.config.read_text()


@pytest.mark.nightly  # each day relays log in through SCRAM and TLS, and by certificates
def test_a_relay_delivers_through_plain_and_tls(
    guarded_route: GuardedRoute, guarded_kafka: SecureKafka, certificates: Certificates, tmp_path: Path
) -> None:
    deliver(guarded_route(guarded_kafka.sasl, by_password(tmp_path, certificates, "PLAIN")))


def test_a_relay_delivers_through_mutual_tls(
    guarded_route: GuardedRoute, guarded_kafka: SecureKafka, certificates: Certificates
) -> None:
    deliver(guarded_route(guarded_kafka.mutual, by_certificate(certificates)))


def test_a_relay_with_a_wrong_password_ends_and_says_where_to_look(
    guarded_route: GuardedRoute,
    guarded_kafka: SecureKafka,
    certificates: Certificates,
    tmp_path: Path,
) -> None:
    wrong = by_password(tmp_path, certificates, SCRAM, password="not-the-password")

    relay = guarded_route(guarded_kafka.sasl, wrong).start_relay()

    assert exit_code(relay) == MISCONFIGURED
    words = last_words(relay)
    assert "Kafka does not let this relay in" in words
    assert "kafka.security" in words
    assert "\n" not in words
    assert_no_secret_in(relay, "not-the-password")


def test_a_relay_that_does_not_trust_the_brokers_authority_says_so(
    guarded_route: GuardedRoute, guarded_kafka: SecureKafka, tmp_path: Path
) -> None:
    strangers = make_certificates(tmp_path)

    relay = guarded_route(guarded_kafka.sasl, by_password(tmp_path, strangers, SCRAM)).start_relay()

    assert exit_code(relay) == MISCONFIGURED
    words = last_words(relay)
    assert "certificate" in words
    assert "kafka.security" in words


@pytest.mark.nightly
@pytest.mark.takes_long("a relay asks Kafka for ten seconds before it says that it waits")
def test_a_relay_without_the_certificate_that_the_broker_asks_for_waits_and_its_log_says_why(
    guarded_route: GuardedRoute, guarded_kafka: SecureKafka, certificates: Certificates
) -> None:
    """In TLS 1.3 the refusal comes after the handshake: to the client it is one of many ends of a connection."""
    security = {"protocol": "SSL", "caFile": str(certificates.authority)}

    relay = guarded_route(guarded_kafka.mutual, security).start_relay()

    answer = wait_until_it_waits(relay, "Kafka does not answer")
    assert "kafka.bootstrapServers" in answer
    said = [line["text"] for line in lines_of(relay, "error") if line["event"] == "kafka client"]
    assert [text for text in said if "certificate required" not in text] == []
    assert 0 < len(said) <= FEW, f"{len(said)} lines about one cause"
    assert relay.terminate() == 0


def test_a_relay_that_does_not_trust_the_authority_of_redis_says_so(
    guarded_route: GuardedRoute,
    guarded_kafka: SecureKafka,
    guarded_redis: SecureRedis,
    certificates: Certificates,
    tmp_path: Path,
) -> None:
    fields = redis_by_files(tmp_path, certificates, guarded_redis)
    (tmp_path / "strangers").mkdir()
    fields["caFile"] = str(make_certificates(tmp_path / "strangers").authority)

    relay = guarded_route(guarded_kafka.mutual, by_certificate(certificates), backend={"redis": fields}).start_relay()

    assert exit_code(relay) == MISCONFIGURED
    assert "backend.redis.caFile" in last_words(relay)
