"""The audit of a DelayTopic that is edited while records wait: it judges each by the rules that it was read by."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import pytest
from pyspark.sql import SparkSession
from tests.harness.names import unique
from tests.harness.shared_servers import KafkaAddress, RedisAddress
from tests.support.audit.delay_topics import AuditedTopic
from tests.support.relay.process import wait_for
from tests.support.relay.records import REDIS, Sent, produce
from tests.support.relay.route import LOG_APPEND_TIME, ClientHeaders, Route, Servers

from delaytopic_audit.errors import ReadingError
from delaytopic_audit.model.report import Report, Verdict
from delaytopic_audit.reading.facts import KafkaFacts

# Each day records are read by the rules of their offset, and plans learn rules from what a group has committed.
pytestmark = [
    pytest.mark.integration,
    pytest.mark.nightly,
    pytest.mark.takes_long(
        "what waits has to be delivered at the time that it had before the edit, and Spark audits it"
    ),
]
PARTITIONS = 2
EACH = 10
BEFORE = {"maxDelay": "24h", "defaultDelay": "6s"}
AFTER = {"maxDelay": "2s", "defaultDelay": "1s"}
SIX_SECONDS: ClientHeaders = [("deliver-after", b"6s")]
"""Longer than the edited `maxDelay`."""


@dataclass
class Edited:
    """A DelayTopic of which all was delivered that was sent before and after an edit."""

    route: Route
    folder: Path

    def audit(
        self, spark: SparkSession, ledger: str, schedule: dict[str, str], *, in_ms: int = 900_000, **given: Any
    ) -> Report:
        """Audit so long from now with this schedule; each ledger knows what its own audits have learned."""
        spec = {"schedule": schedule, "slo": {"lateness": "1m"}}
        topic = AuditedTopic(self.route.name, self.route.servers.bootstrap_servers, self.folder / ledger, spec)
        return topic.run(spark, time.time_ns() // 1_000_000 + in_ms, any_clock=False, **given)


@pytest.fixture(scope="module")
def edited(
    spark: SparkSession, kafka: KafkaAddress, redis: RedisAddress, tmp_path_factory: pytest.TempPathFactory
) -> Edited:
    """An edit that makes what waits too long, and moves what has no header; audits before, as the relay forgets."""
    folder = tmp_path_factory.mktemp("edited")
    spec = {"backend": {"type": REDIS}, "schedule": BEFORE}
    route = Route(Servers(kafka.bootstrap_servers, redis.url), folder, unique("edited"), spec, PARTITIONS)
    edited = Edited(route.create_topics(**LOG_APPEND_TIME), folder)
    try:
        relay = route.start_relay().wait_until_delivering(PARTITIONS)
        assert edited.audit(spark, "early", BEFORE, in_ms=0).verdict is Verdict.MET

        send(route, SIX_SECONDS, [])
        sent = len(route.read(route.source))
        wait_for(lambda: relay.read() == sent, relay.why)
        assert relay.terminate() == 0
        route.spec["schedule"] = AFTER
        relay = route.start_relay().wait_until_delivering(PARTITIONS)
        send(route, SIX_SECONDS, [])
        wait_for(lambda: left(route) == Counter({route.target: 3 * EACH, route.dead_letter: EACH}), relay.why)
        wait_for(lambda: not any(shard["formerRules"] for shard in relay.status()["shards"]), relay.why)
    finally:
        route.stop_relays()
    return edited


def send(route: Route, *headers: ClientHeaders) -> None:
    """Send some records with each of these headers to each partition."""
    records = [Sent(b"k", b"v", each, number % PARTITIONS) for number in range(EACH) for each in headers]
    produce(route.servers.bootstrap_servers, route.source, records)


def left(route: Route) -> Counter[str]:
    return Counter({topic: len(route.read(topic)) for topic in (route.target, route.dead_letter)})


def doubts(report: Report) -> list[str]:
    """Return the notes of a report on the rules by which it judged."""
    return [note for note in report.notes if "judged wrongly" in note or "could not be learned" in note]


def test_the_audit_after_an_edit_has_no_finding_on_what_relays_read_by_the_rules_of_before(
    spark: SparkSession, edited: Edited
) -> None:
    report = edited.audit(spark, "early", AFTER)

    assert {each.finding: each.records for each in report.findings} == {"dead-lettered": EACH}
    assert report.verdict is Verdict.MET
    assert not doubts(report)


def test_an_audit_that_begins_after_relays_forgot_the_rules_says_which_verdicts_are_in_doubt(
    spark: SparkSession, edited: Edited
) -> None:
    report = edited.audit(spark, "late", AFTER)

    assert report.verdict is Verdict.MISSED
    assert [" have forgotten the rules " in note for note in doubts(report)] == [True] * PARTITIONS


def test_an_audit_that_cannot_read_the_group_goes_on_by_the_delay_topic_as_it_is_and_says_so(
    spark: SparkSession, edited: Edited, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_asked: object) -> NoReturn:
        raise ReadingError("Broker: Group authorization failed")

    monkeypatch.setattr(KafkaFacts, "committed", refuse)

    report = edited.audit(spark, "forbidden", BEFORE)

    [note] = doubts(report)
    assert report.counts is not None
    assert report.counts.asked == 4 * EACH
    assert "Broker: Group authorization failed" in note
