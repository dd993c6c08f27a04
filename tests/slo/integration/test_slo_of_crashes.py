"""The audit of a relay that is killed under load: every record arrived once; and not when one is taken or added."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession
from tests.slo.delay_topics import AuditedTopic, Headers
from tests.support.route import LOG_APPEND_TIME, PARTITIONS, Route, Servers

from delaytopic_cli.audit_reading import RawRecord
from delaytopic_cli.embedded.kafka_server import KafkaServer
from delaytopic_cli.embedded.redis_server import RedisServer
from delaytopic_slo.report_model import FindingList, Report, Verdict

pytestmark = pytest.mark.integration
Tamper = Callable[[list[RawRecord]], list[RawRecord]]


@pytest.fixture(scope="module")
def route(kafka: KafkaServer, redis: RedisServer, tmp_path_factory: pytest.TempPathFactory) -> Route:
    """A source and a target after a relay was killed twice under load."""
    servers = Servers(kafka.bootstrap_servers, redis.url)
    route = Route(servers, tmp_path_factory.mktemp("route"), "crashed").create_topics(**LOG_APPEND_TIME)
    relay = route.start_relay().wait_until_delivering(PARTITIONS)
    with route.traffic(1_000, (0, 4_000)):
        for _ in range(2):
            threading.Event().wait(1.5)
            relay.kill()
            relay = route.start_relay().wait_until_delivering(PARTITIONS)
    route.settled_verdict()
    route.stop_relays()
    return route


def audited(route: Route, spark: SparkSession, folder: Path, target: str, *, any_clock: bool = False) -> Report:
    topic = AuditedTopic(route.name, route.servers.bootstrap_servers, folder, {"slo": {"lateness": "1m"}})
    topic.source, topic.target, topic.dead_letter, topic.other = route.source, target, route.dead_letter, route.other
    return topic.run(spark, time.time_ns() // 1_000_000 + 600_000, any_clock=any_clock)


def tampered_copy(route: Route, name: str, tamper: Tamper) -> str:
    """The target once more, with its records' own times, but for what was done to them."""
    topic = AuditedTopic(route.name, route.servers.bootstrap_servers, Path())
    topic.create_only(name, PARTITIONS)
    producer = Producer({"bootstrap.servers": route.servers.bootstrap_servers, "linger.ms": 5})
    for record in tamper(route.read(route.target)):
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
    _, partition, offset, _ = (dict(record.headers)["delay-receipt"] or b"").split(b":", 3)
    return int(partition), int(offset)


def test_the_audit_of_a_relay_killed_under_load_says_one_hundred_percent(
    spark: SparkSession, route: Route, tmp_path: Path
) -> None:
    report = audited(route, spark, tmp_path, route.target)

    assert report.verdict is Verdict.MET, report.reasons
    assert [objective.attainment for objective in report.objectives] == ["100%"] * 4
    assert report.counts is not None
    assert report.counts.delivered == len(route.read(route.source)) > 2_000


def test_a_record_that_is_taken_from_the_target_is_found_by_its_coordinates(
    spark: SparkSession, route: Route, tmp_path: Path
) -> None:
    taken = route.read(route.target)[777]
    target = tampered_copy(route, "crashed.taken", lambda records: [r for r in records if r.at != taken.at])

    report = audited(route, spark, tmp_path, target, any_clock=True)

    assert report.verdict is Verdict.MISSED
    assert listed(report) == {"lost": [source_of(taken)]}


def test_a_record_that_is_doubled_in_the_target_is_found_by_its_coordinates(
    spark: SparkSession, route: Route, tmp_path: Path
) -> None:
    doubled = route.read(route.target)[555]
    target = tampered_copy(route, "crashed.doubled", lambda records: [*records, doubled])

    report = audited(route, spark, tmp_path, target, any_clock=True)

    assert report.verdict is Verdict.MISSED
    assert listed(report) == {"duplicated": [source_of(doubled)]}
