"""Redeliveries whose fate is known: markers as clients of kafka-mq-go write them, and what relays make of them.

The truth is written by hand, to the last fault; that relays write in this way a relay shows in the end.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.harness.names import unique
from tests.harness.shared_servers import KafkaAddress, RedisAddress
from tests.support.audit.delay_topics import HOUR_MS, AuditedTopic, Headers
from tests.support.relay import markers
from tests.support.relay.process import wait_for
from tests.support.relay.route import LOG_APPEND_TIME, PARTITIONS, Route, Servers

from delaytopic_api.records import RECEIPT, RESTATED, Receipt
from delaytopic_audit.model.report import Report, Verdict
from delaytopic_audit.pipeline.gathering import current

# Each day the tables tell what puts a schedule off, and simulated relays put off.
pytestmark = [pytest.mark.integration, pytest.mark.nightly]

QUEUE, PAYLOAD = b"queue", b"payload"
EACH = 3
MINUTE_MS = 60_000
TIMEOUT_MS = 10 * MINUTE_MS
PUT_OFF_MS = TIMEOUT_MS // 2
"""By so much a message is due later when it is kept alive half a timeout after its start."""
GRACE_MS = 65_000
Found = dict[str, set[int]]


@dataclass(eq=False)
class Marked:
    """A marker, and what is to be found of it. Its offset is its place among all."""

    append_ms: int
    value: bytes
    due_ms: int = 0
    stands_for: Marked | None = None
    rank: Marked | None = None
    by_relay: Headers = field(default_factory=list)
    found: set[str] = field(default_factory=set)
    arrivals: list[int] = field(default_factory=list)
    offset: int = -1

    def headers(self, source: str) -> Headers:
        if self.stands_for is None or self.rank is None:
            return self.by_relay
        due = b"%d" % self.due_ms if self.due_ms else b""
        return [(RESTATED, b"%b:0:%d:%d:%b" % (due, self.stands_for.offset, self.rank.offset, source.encode()))]


class Truth:
    """The markers of one partition, of each case a few."""

    def __init__(self, base_ms: int) -> None:
        self.markers: list[Marked] = []
        self.healed: list[Marked] = []
        """Put off so late that an audit before called them lost."""
        self._messages = 0
        cases = (
            *(self._delivered, self._lost, self._early, self._late, self._twice, self._ended, self._ended_in_vain),
            *(self._put_off, self._put_off_twice, self._put_off_and_lost, self._lost_when_put_off),
            *(self._put_off_in_vain, self._delivered_and_put_off, self._put_off_too_little, self._put_off_by_itself),
            *(self._ended_on_its_way, self._ended_when_put_off, self._put_off_late),
        )
        for number in range(EACH):
            for place, case in enumerate(cases):
                case(base_ms + HOUR_MS + number * 3 * MINUTE_MS + place * 7_001)
        self.markers.sort(key=lambda marker: marker.append_ms)
        for offset, marker in enumerate(self.markers):
            marker.offset = offset

    def expected(self) -> Found:
        found: defaultdict[str, set[int]] = defaultdict(set)
        for marker in self.markers:
            for finding in marker.found:
                found[finding].add(marker.offset)
        return dict(found)

    # -- what is written

    def _mark(self, marker: Marked, *found: str) -> Marked:
        marker.found |= {*found}
        self.markers.append(marker)
        return marker

    def _start(self, due_ms: int, *found: str) -> Marked:
        self._messages += 1
        value = markers.start(3, self._messages, TIMEOUT_MS, QUEUE, PAYLOAD)
        return self._mark(Marked(due_ms - TIMEOUT_MS, value, due_ms), *found)

    def _kept_alive(self, at_ms: int) -> Marked:
        return self._mark(Marked(at_ms, markers.keep_alive(3, self._messages, TIMEOUT_MS), at_ms + TIMEOUT_MS))

    def _end(self, at_ms: int, **by_relay: object) -> Marked:
        marker = Marked(at_ms, markers.end(3, self._messages))
        for name, value in by_relay.items():
            setattr(marker, name, value)
        return self._mark(marker)

    def _again(self, former: Marked, rank: Marked, due_ms: int, at_ms: int, *found: str) -> Marked:
        return self._mark(Marked(at_ms, former.value, due_ms, former, rank), *found)

    def _arrives(self, marker: Marked, late_ms: int = 1) -> None:
        at_ms = max(marker.due_ms, marker.append_ms) + late_ms
        marker.arrivals.append(at_ms)
        self._end(at_ms, by_relay=[("delay-ended", b"redelivered")])

    def _started_and_kept_alive(self, due_ms: int, *found: str) -> tuple[Marked, Marked]:
        return self._start(due_ms, *found), self._kept_alive(due_ms - PUT_OFF_MS)

    # -- the cases

    def _delivered(self, due_ms: int) -> None:
        self._arrives(self._start(due_ms))

    def _lost(self, due_ms: int) -> None:
        self._start(due_ms, "lost")

    def _early(self, due_ms: int) -> None:
        self._arrives(self._start(due_ms, "early"), -1_000)

    def _late(self, due_ms: int) -> None:
        self._arrives(self._start(due_ms, "late"), 6_000)

    def _twice(self, due_ms: int) -> None:
        marker = self._start(due_ms, "duplicated")
        self._arrives(marker)
        self._arrives(marker, 2)

    def _ended(self, due_ms: int) -> None:
        self._start(due_ms, "cancelled")
        self._end(due_ms - GRACE_MS)

    def _ended_in_vain(self, due_ms: int) -> None:
        marker = self._start(due_ms, "unwanted")
        self._end(due_ms - GRACE_MS)
        self._arrives(marker)

    def _put_off(self, due_ms: int) -> None:
        first, kept = self._started_and_kept_alive(due_ms, "replaced")
        self._arrives(self._again(first, kept, kept.due_ms, due_ms + 5))

    def _put_off_twice(self, due_ms: int) -> None:
        first, kept = self._started_and_kept_alive(due_ms, "replaced")
        second = self._again(first, kept, kept.due_ms, due_ms + 5, "replaced")
        again = self._kept_alive(kept.due_ms - 2 * MINUTE_MS)
        self._arrives(self._again(second, again, again.due_ms, kept.due_ms + 5))

    def _put_off_and_lost(self, due_ms: int) -> None:
        first, kept = self._started_and_kept_alive(due_ms, "replaced")
        self._again(first, kept, kept.due_ms, due_ms + 5, "lost")

    def _lost_when_put_off(self, due_ms: int) -> None:
        self._started_and_kept_alive(due_ms, "lost")

    def _put_off_in_vain(self, due_ms: int) -> None:
        self._arrives(self._started_and_kept_alive(due_ms, "unwanted")[0])

    def _delivered_and_put_off(self, due_ms: int) -> None:
        first, kept = self._started_and_kept_alive(due_ms, "unwanted")
        self._arrives(self._again(first, kept, kept.due_ms, due_ms + 5))
        self._arrives(first)

    def _put_off_too_little(self, due_ms: int) -> None:
        first, kept = self._started_and_kept_alive(due_ms, "lost")
        self._arrives(self._again(first, kept, kept.due_ms - 1, due_ms + 5, "unwanted"))

    def _put_off_by_itself(self, due_ms: int) -> None:
        first = self._start(due_ms, "lost")
        self._arrives(self._again(first, first, due_ms + PUT_OFF_MS, due_ms + 5))

    def _ended_on_its_way(self, due_ms: int) -> None:
        first, kept = self._started_and_kept_alive(due_ms, "replaced")
        self._end(due_ms + 3)
        again = self._again(first, kept, kept.due_ms, due_ms + 5, "cancelled")
        self._end(due_ms + 7, stands_for=again, rank=kept)

    def _ended_when_put_off(self, due_ms: int) -> None:
        first, kept = self._started_and_kept_alive(due_ms, "replaced")
        self._again(first, kept, kept.due_ms, due_ms + 5, "cancelled")
        self._end(kept.due_ms - 2 * MINUTE_MS)

    def _put_off_late(self, due_ms: int) -> None:
        """The relay was down, and has nothing delivered until both times had passed."""
        first, kept = self._started_and_kept_alive(due_ms, "replaced")
        self._arrives(self._again(first, kept, kept.due_ms, due_ms + HOUR_MS, "late"))
        self.healed.append(first)


@dataclass(frozen=True)
class Audited:
    """The truth, and the findings and reports of two audits."""

    truth: Truth
    found: list[Found]
    reports: list[Report]


@pytest.fixture(scope="module")
def audited(spark: SparkSession, kafka: KafkaAddress, tmp_path_factory: pytest.TempPathFactory) -> Audited:
    spec = {"schedule": {"redelivery": {}, "maxDelay": "12h"}}
    topic = AuditedTopic(unique("markers"), kafka.bootstrap_servers, tmp_path_factory.mktemp("markers"), spec).create(1)
    base_ms = (time.time_ns() // 1_000_000 // HOUR_MS - 12) * HOUR_MS
    truth, found, reports, from_ms = Truth(base_ms), list[Found](), list[Report](), 0
    for end_ms in (base_ms + HOUR_MS + 50 * MINUTE_MS, base_ms + 6 * HOUR_MS):
        produce(topic, truth, from_ms, end_ms)
        reports.append(topic.run(spark, end_ms))
        found.append(findings(topic, spark))
        from_ms = end_ms
    return Audited(truth, found, reports)


def produce(topic: AuditedTopic, truth: Truth, from_ms: int, end_ms: int) -> None:
    producer = topic.producer()
    for at_ms, name, key, value, headers in [*written(topic, truth), *delivered(topic, truth)]:
        if from_ms <= at_ms < end_ms:
            producer.produce(name, value, key, 0, timestamp=at_ms, headers=headers)
    assert producer.flush(60) == 0


def written(topic: AuditedTopic, truth: Truth) -> Iterator[tuple[int, str, bytes, bytes, Headers]]:
    for marker in truth.markers:
        yield marker.append_ms, topic.source, QUEUE, marker.value, marker.headers(topic.source)


def delivered(topic: AuditedTopic, truth: Truth) -> Iterator[tuple[int, str, bytes, bytes, Headers]]:
    for marker in truth.markers:
        for at_ms in marker.arrivals:
            receipt = Receipt(marker.due_ms, 0, marker.offset, at_ms - 1, topic.source).encode()
            yield at_ms, topic.target, QUEUE, PAYLOAD, [("redelivery-count", b"1"), (RECEIPT, receipt)]


def findings(topic: AuditedTopic, spark: SparkSession) -> Found:
    ledger = topic.ledger(spark)
    commit = ledger.last_commit()
    assert commit is not None
    found: Found = defaultdict(set)
    for row in current(ledger, commit, "findings").collect():
        found[row.finding].add(row.offset)
    return found


def test_the_audit_finds_what_became_of_each_message(audited: Audited) -> None:
    assert audited.found[-1] == audited.truth.expected()


def test_what_is_put_off_late_is_lost_until_it_is_there(audited: Audited) -> None:
    healed = {marker.offset for marker in audited.truth.healed}

    assert healed <= audited.found[0]["lost"]
    assert not healed & audited.found[-1]["lost"]


def test_the_report_counts_what_was_found(audited: Audited) -> None:
    counted = {each.finding: each.records for each in audited.reports[-1].findings}

    assert counted == {name: len(offsets) for name, offsets in audited.truth.expected().items()}


def test_the_audit_of_a_relay_that_puts_off_says_one_hundred_percent(
    spark: SparkSession, kafka: KafkaAddress, redis: RedisAddress, tmp_path: Path
) -> None:
    # Given messages that nobody ends, some of them kept alive, and messages that are ended
    spec: dict[str, Any] = {"schedule": {"redelivery": {}}}
    servers = Servers(kafka.bootstrap_servers, redis.url)
    route = Route(servers, tmp_path, unique("kept"), spec).create_topics(**LOG_APPEND_TIME)
    kinds = {"abandoned": range(20), "kept": range(20, 40), "ended": range(40, 60)}
    marks = [markers.start(0, each, 2_000, QUEUE, PAYLOAD) for messages in kinds.values() for each in messages]
    marks += [markers.keep_alive(0, each, 4_000) for each in kinds["kept"]]
    marks += [markers.end(0, each) for each in kinds["ended"]]
    try:
        relay = route.start_relay().wait_until_delivering(PARTITIONS)
        route.send([(QUEUE, value, []) for value in marks])
        wait_for(lambda: len(route.read(route.target)) == 40, relay.why)
    finally:
        route.stop_relays()

    # Then an audit of what the relay wrote finds each where it belongs
    topic = AuditedTopic(route.name, kafka.bootstrap_servers, tmp_path / "ledger", {**spec, "slo": {"lateness": "1m"}})
    topic.source, topic.target, topic.dead_letter, topic.other = (
        route.source,
        route.target,
        route.dead_letter,
        route.other,
    )
    report = topic.run(spark, time.time_ns() // 1_000_000 + 600_000, any_clock=False)
    assert report.verdict is Verdict.MET, report.reasons
    counts = report.counts
    assert counts is not None
    assert (counts.delivered, counts.replaced, counts.cancelled, counts.unknown) == (40, 20, 20, 0)
    assert [objective.attainment for objective in report.objectives] == ["100%"] * 4
