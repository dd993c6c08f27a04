"""The audit of a relay that is killed under load: every record arrived once; and not when one is taken or added."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession
from tests.harness.names import unique
from tests.harness.shared_servers import KafkaAddress, RedisAddress
from tests.support.audit.delay_topics import AuditedTopic, Headers
from tests.support.relay.process import wait_for
from tests.support.relay.route import LOG_APPEND_TIME, PARTITIONS, Route, Servers

from delaytopic_api.records import Receipt
from delaytopic_audit.model.report import FindingList, Report, Verdict
from delaytopic_gateway.client.raw_records import RawRecord

# Each day what a relay delivers is audited, relays are killed, and what is lost or doubled is found among records that
# no relay made.
pytestmark = [pytest.mark.integration, pytest.mark.nightly]
RECORDS = 2_000
"""The last is due four seconds after the first."""


@pytest.fixture(scope="module")
def route(kafka: KafkaAddress, redis: RedisAddress, tmp_path_factory: pytest.TempPathFactory) -> Route:
    """A source and a target after a relay was killed in the middle of what it delivered."""
    servers = Servers(kafka.bootstrap_servers, redis.url)
    spec = {"limits": {"sessionTimeout": "2s"}}
    route = Route(servers, tmp_path_factory.mktemp("route"), unique("crashed"), spec).create_topics(**LOG_APPEND_TIME)
    try:
        relay = route.start_relay().wait_until_delivering(PARTITIONS)
        now_ms = time.time_ns() // 1_000_000
        route.send([(b"%d" % n, b"x", [("deliver-at", b"%d" % (now_ms + 2 * n))]) for n in range(RECORDS)])
        wait_for(lambda: len(route.read(route.target)) > 100)
        relay.kill()
        route.start_relay()
        route.settled_verdict()
    finally:
        route.stop_relays()
    return route


def audited(route: Route, spark: SparkSession, folder: Path, target: str, *, any_clock: bool = False) -> Report:
    topic = AuditedTopic(route.name, route.servers.bootstrap_servers, folder, {"slo": {"lateness": "1m"}})
    topic.source, topic.target, topic.dead_letter, topic.other = route.source, target, route.dead_letter, route.other
    return topic.run(spark, time.time_ns() // 1_000_000 + 600_000, any_clock=any_clock)


def copy_of(route: Route, name: str, records: list[RawRecord]) -> str:
    """Produce records of the target to another topic, with their own times."""
    topic = AuditedTopic(route.name, route.servers.bootstrap_servers, Path())
    topic.create_only(name, PARTITIONS)
    producer = Producer({"bootstrap.servers": route.servers.bootstrap_servers, "linger.ms": 5})
    for record in records:
        headers: Headers = list(record.headers)
        partition = record.at.partition
        producer.produce(name, record.value, record.key, partition, timestamp=record.timestamp_ms, headers=headers)
        producer.poll(0)
    assert producer.flush(30) == 0
    return name


def listed(report: Report) -> dict[str, list[tuple[int, int]]]:
    """Coordinates of faults by finding."""

    def places(found: FindingList) -> list[tuple[int, int]]:
        return [(each.partition, each.offset) for each in found.listed]

    return {found.finding: places(found) for found in report.findings}


def source_of(record: RawRecord) -> tuple[int, int]:
    receipt = Receipt.parse(dict(record.headers)["delay-receipt"])
    return receipt.partition, receipt.offset


@pytest.mark.takes_long("a relay is killed under load and recovers, and then Spark audits it")
def test_the_audit_of_a_relay_killed_under_load_says_one_hundred_percent(
    spark: SparkSession, route: Route, tmp_path: Path
) -> None:
    report = audited(route, spark, tmp_path, route.target)

    assert report.verdict is Verdict.MET, report.reasons
    assert [objective.attainment for objective in report.objectives] == ["100%"] * 4
    assert report.counts is not None
    assert report.counts.delivered == RECORDS


def test_records_that_are_taken_from_the_target_or_doubled_in_it_are_found_by_their_coordinates(
    spark: SparkSession, route: Route, tmp_path: Path
) -> None:
    records = route.read(route.target)
    taken, doubled = records[777], records[555]
    tampered = [*(record for record in records if record.at != taken.at), doubled]
    target = copy_of(route, f"{route.name}.tampered", tampered)

    report = audited(route, spark, tmp_path, target, any_clock=True)

    assert report.verdict is Verdict.MISSED
    assert listed(report) == {"lost": [source_of(taken)], "duplicated": [source_of(doubled)]}
