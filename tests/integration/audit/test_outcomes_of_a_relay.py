"""The audit of what a real relay delivers, writes again and tells: nothing is wrong with it, and all that it tells is
true. What is taken away or falsified is found.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession
from tests.harness.names import unique
from tests.harness.shared_servers import KafkaAddress, RedisAddress
from tests.support.audit.delay_topics import HOUR_MS, AuditedTopic, Headers
from tests.support.relay.process import wait_for
from tests.support.relay.records import BUCKETS, REDIS, Sent, at, now_ms, produce
from tests.support.relay.route import LOG_APPEND_TIME, ClientHeaders, Route, Servers

from delaytopic_api.relay import Ending, Outcome
from delaytopic_audit.model.report import Report
from delaytopic_audit.model.words import FAULTS
from delaytopic_audit.pipeline.gathering import current
from delaytopic_gateway.client.raw_records import RawRecord

pytestmark = [
    pytest.mark.integration,
    pytest.mark.takes_long("a relay ends schedules in each way, and Spark audits it"),
]

EACH, OCCURRENCES, PARTITIONS = 10, 3, 2
LATE = [("deliver-cron", b"0 0 1 1 *"), ("deliver-tz", b"Europe/Berlin"), ("deliver-until", b"2001-01-01T00:00:00Z")]
"""Nothing of it is left when it is read."""
Found = dict[str, set[tuple[int, int]]]


def asked() -> Iterator[Sent]:
    """Yield schedules that end in each way there is, cancels of nothing, and records that recur.

    Some of these recur to their end, some are cancelled on their way, and of some nothing is left.
    """
    later = at(now_ms() + 1_800_000)
    cancel: ClientHeaders = [("deliver-action", b"cancel")]
    for number in range(EACH):
        key, ids = b"%d" % number, [("deliver-id", b"%c-%d" % (name, number)) for name in b"crnehl"]
        cancelled, replaced, nobody, every, hourly, late = ids
        yield Sent(key, b"plain", [at(now_ms() + 100 * number)])
        yield Sent(key, b"cancelled", [later, cancelled])
        yield Sent(key, None, [*cancel, cancelled])
        yield Sent(key, b"replaced", [later, replaced])
        yield Sent(key, b"instead", [at(now_ms() + 1_000), replaced])
        yield Sent(key, None, [*cancel, nobody])
        yield Sent(key, b"unreadable", [("deliver-at", b"soon")])
        yield Sent(key, b"recurs", [every, ("deliver-every", b"1s"), ("deliver-count", b"%d" % OCCURRENCES)])
        yield Sent(key, b"hourly", [hourly, ("deliver-every", b"1h")])
        yield Sent(key, b"over", [late, *LATE])
    for number in range(EACH):
        yield Sent(b"%d" % number, None, [*cancel, ("deliver-id", b"h-%d" % number)])


ENDS = {
    Ending.DELIVERED: EACH * (2 + OCCURRENCES),
    Ending.CANCELLED: EACH * 2,
    Ending.REPLACED: EACH,
    Ending.NOT_PENDING: EACH,
    Ending.DEAD_LETTERED: EACH * 2,
}


def outcome_of(record: RawRecord) -> Outcome:
    return Outcome.model_validate_json(record.value or b"")


@pytest.fixture(scope="module", params=[REDIS, pytest.param(BUCKETS, marks=pytest.mark.nightly)])
def route(
    request: pytest.FixtureRequest,
    kafka: KafkaAddress,
    redis: RedisAddress,
    tmp_path_factory: pytest.TempPathFactory,
) -> Route:
    """A DelayTopic of which all that was asked for has ended, and has been told."""
    spec = {"backend": {"type": request.param}, "outcomes": {}}
    servers, folder = Servers(kafka.bootstrap_servers, redis.url), tmp_path_factory.mktemp("route")
    route = Route(servers, folder, unique("telling"), spec, PARTITIONS).create_topics(**LOG_APPEND_TIME)
    try:
        relay = route.start_relay().wait_until_delivering(PARTITIONS)
        produce(kafka.bootstrap_servers, route.source, list(asked()))
        wait_for(lambda: Counter(outcome_of(each).outcome for each in route.read(route.outcomes)) == ENDS, relay.why)
    finally:
        route.stop_relays()
    return route


def audited(route: Route, spark: SparkSession, folder: Path, outcomes: str) -> tuple[Report, Found]:
    """Audit with a topic of outcomes; return the report, and where the faults are."""
    spec = {"slo": {"lateness": "1m"}, "outcomes": {"topic": outcomes}}
    topic = AuditedTopic(route.name, route.servers.bootstrap_servers, folder, spec)
    report = topic.run(spark, time.time_ns() // 1_000_000 + 2 * HOUR_MS)
    ledger = topic.ledger(spark)
    commit = ledger.last_commit()
    assert commit is not None
    found: Found = defaultdict(set)
    for row in current(ledger, commit, "findings").collect():
        found[row.finding].add((row.partition, row.offset))
    # How late a relay on a busy machine is, is no matter here.
    return report, {finding: places for finding, places in found.items() if finding in FAULTS and finding != "late"}


def copy_of(route: Route, name: str, records: Sequence[tuple[RawRecord, bytes | None]]) -> str:
    """Produce records of the topic of outcomes with other values to another topic, with their own times.

    The first one is two hours old: relays seem to tell for so long, and what is not told for an hour is missed.
    """
    topic = f"{route.outcomes}.{name}"
    AuditedTopic(route.name, route.servers.bootstrap_servers, Path()).create_only(topic, PARTITIONS)
    producer = Producer({"bootstrap.servers": route.servers.bootstrap_servers, "linger.ms": 5})
    for number, (record, value) in enumerate(records):
        headers: Headers = list(record.headers)
        at_ms = record.timestamp_ms - (2 * HOUR_MS if number == 0 else 0)
        producer.produce(topic, value, record.key, record.at.partition, timestamp=at_ms, headers=headers)
    assert producer.flush(30) == 0
    return topic


def test_the_audit_finds_nothing_wrong_with_what_a_relay_delivers_and_all_true_that_it_tells(
    spark: SparkSession, route: Route, tmp_path: Path
) -> None:
    told = copy_of(route, "copied", [(each, each.value) for each in route.read(route.outcomes)])

    report, found = audited(route, spark, tmp_path, told)

    assert found == {}
    assert {each.name: (each.bad, str(each.verdict)) for each in report.objectives}["Told"] == (0, "Met")
    assert report.counts is not None
    assert report.counts.delivered == ENDS[Ending.DELIVERED]
    assert report.counts.dead_lettered == ENDS[Ending.DEAD_LETTERED]
    assert report.counts.slots >= EACH * OCCURRENCES


@pytest.mark.nightly  # each day this is found among outcomes that no relay told
def test_an_outcome_that_is_taken_away_and_one_that_is_falsified_are_found_by_their_coordinates(
    spark: SparkSession, route: Route, tmp_path: Path
) -> None:
    records = route.read(route.outcomes)
    by_end = {outcome_of(each).outcome: each for each in records}
    taken, falsified = by_end[Ending.DELIVERED], by_end[Ending.CANCELLED]
    told = outcome_of(falsified)
    assert told.ended_by is not None
    wrong = told.model_copy(update={"ended_by": told.ended_by.model_copy(update={"offset": told.source.offset})})
    text = wrong.model_dump_json(by_alias=True, exclude_none=True).encode()
    kept = [(each, text if each is falsified else each.value) for each in records if each is not taken]

    report, found = audited(route, spark, tmp_path, copy_of(route, "tampered", kept))

    untold = outcome_of(taken).source
    assert found == {
        "untold": {(untold.partition, untold.offset)},
        "untrue": {(told.source.partition, told.source.offset)},
    }
    assert {each.name: (each.bad, str(each.verdict)) for each in report.objectives}["Told"] == (2, "Missed")
