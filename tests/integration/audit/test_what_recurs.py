"""The audit of records that recur: each occurrence is a record of its own, and none of them is a finding."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.harness.names import unique
from tests.harness.shared_servers import KafkaAddress, RedisAddress
from tests.support.audit.delay_topics import AuditedTopic
from tests.support.relay.process import wait_for
from tests.support.relay.records import REDIS, Sent, produce
from tests.support.relay.route import LOG_APPEND_TIME, Route, Servers

from delaytopic_audit.model.report import Verdict

pytestmark = [
    pytest.mark.integration,
    pytest.mark.takes_long("records recur for some seconds, and Spark audits them"),
]
PARTITIONS = 2
EACH, TIMES = 10, 3
EVERY = [("deliver-every", b"1s"), ("deliver-count", b"%d" % TIMES)]
FOR_HOURS = [("deliver-every", b"1h")]
LATE = [("deliver-cron", b"0 0 1 1 *"), ("deliver-tz", b"Europe/Berlin"), ("deliver-until", b"2001-01-01T00:00:00Z")]
"""Nothing of it is left when it is read."""


def test_the_audit_judges_each_occurrence_and_finds_nothing_in_what_was_cancelled_on_its_way(
    spark: SparkSession, kafka: KafkaAddress, redis: RedisAddress, tmp_path: Path
) -> None:
    spec = {"backend": {"type": REDIS}, "schedule": {"maxDelay": "24h"}}
    route = Route(Servers(kafka.bootstrap_servers, redis.url), tmp_path, unique("recurs"), spec, PARTITIONS)
    route.create_topics(**LOG_APPEND_TIME)
    audited = AuditedTopic(
        route.name, kafka.bootstrap_servers, tmp_path / "ledger", {**spec, "slo": {"lateness": "1m"}}
    )
    try:
        relay = route.start_relay().wait_until_delivering(PARTITIONS)
        for kind, headers in (("a", EVERY), ("b", FOR_HOURS), ("c", LATE)):
            sent = [
                Sent(b"k", b"v", [("deliver-id", b"%s-%d" % (kind.encode(), n)), *headers], n % PARTITIONS)
                for n in range(EACH)
            ]
            produce(kafka.bootstrap_servers, route.source, sent)
        cancels: list[Sent] = [
            Sent(None, None, [("deliver-id", b"b-%d" % n), ("deliver-action", b"cancel")], n % PARTITIONS)
            for n in range(EACH)
        ]
        produce(kafka.bootstrap_servers, route.source, cancels)
        wait_for(lambda: len(route.read(route.target)) == EACH * TIMES, relay.why)
        wait_for(lambda: len(route.read(route.dead_letter)) == EACH, relay.why)
    finally:
        route.stop_relays()

    report = audited.run(spark, time.time_ns() // 1_000_000 + 900_000, any_clock=False)

    assert {each.finding: each.records for each in report.findings} == {
        "dead-lettered": EACH,
        "cancelled": EACH,
        "replaced": EACH,
    }
    assert report.verdict is Verdict.MET
    assert report.counts is not None
    assert report.counts.delivered == EACH * TIMES
