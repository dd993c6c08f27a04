"""Outcomes that are told, and those that are not: truth injected, truth found, on a real Kafka."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.harness.names import unique
from tests.harness.shared_servers import KafkaAddress
from tests.support.audit.delay_topics import HOUR_MS, AuditedTopic, Headers, audit_of

from delaytopic_api.records import RECEIPT, DeadLetter, Receipt, dead_letter_headers
from delaytopic_api.relay import Ending, Outcome, RecordPlace
from delaytopic_api.values import Guarantee
from delaytopic_audit.model.report import Report, Verdict
from delaytopic_audit.pipeline.gathering import current
from delaytopic_audit.pipeline.ports import silent

pytestmark = [pytest.mark.integration, pytest.mark.takes_long("Spark audits DelayTopics, some of them three times")]

EACH, PARTITIONS = 3, 2
BASE_MS = (time.time_ns() // 1_000_000 // HOUR_MS - 12) * HOUR_MS
FAULTS = ("untold", "told-twice", "untrue")
Found = dict[tuple[str, str | None], set[tuple[int, int]]]


@dataclass
class World:
    """The topics of a DelayTopic with outcomes, record by record, and the findings that are expected of them."""

    topic: AuditedTopic
    base_ms: int
    records: list[tuple[int, str, int, Headers, bytes | None]] = field(default_factory=list)
    """Append time, topic, partition, headers and value of each."""
    ends: Counter[tuple[str, int]] = field(default_factory=Counter)
    found: Found = field(default_factory=lambda: defaultdict(set))
    ids: int = 0

    @property
    def outcomes(self) -> str:
        """Return the topic of outcomes."""
        return f"{self.topic.name}.outcomes"

    def ask(self, partition: int, headers: Headers, append_ms: int) -> RecordPlace:
        """Append a record to the source."""
        return self._append(append_ms, self.topic.source, partition, headers)

    def schedule(
        self, partition: int, due_ms: int, identity: bytes | None = None, ago_ms: int = HOUR_MS
    ) -> RecordPlace:
        """Append a schedule."""
        named: Headers = [] if identity is None else [("deliver-id", identity)]
        return self.ask(partition, [("deliver-at", b"%d" % due_ms), *named], due_ms - ago_ms)

    def cancel(self, partition: int, identity: bytes, append_ms: int) -> RecordPlace:
        """Append a cancel."""
        return self.ask(partition, [("deliver-id", identity), ("deliver-action", b"cancel")], append_ms)

    def deliver(self, source: RecordPlace, due_ms: int, late_ms: int = 5) -> RecordPlace:
        """Append a delivery."""
        receipt = Receipt(due_ms, source.partition, source.offset, due_ms + late_ms - 1, source.topic).encode()
        return self._append(due_ms + late_ms, self.topic.target, source.offset % 3, [(RECEIPT, receipt)])

    def refuse(self, source: RecordPlace, at_ms: int) -> RecordPlace:
        """Append a dead letter."""
        letter = DeadLetter("expired", "why", source.topic, source.partition, source.offset, at_ms)
        return self._append(at_ms, self.topic.dead_letter, 0, list(dead_letter_headers(letter)))

    def tell(self, ending: Ending, source: RecordPlace, at_ms: int, **more: Any) -> None:
        """Append an outcome."""
        outcome = Outcome(outcome=ending, source=source, ended_ms=at_ms, **more)
        text = outcome.model_dump_json(by_alias=True, exclude_none=True).encode()
        self._append(at_ms, self.outcomes, source.partition, [], text)

    def finds(self, finding: str, source: RecordPlace, said: Ending | None = None) -> None:
        """Remember what is to be found of a record."""
        self.found[finding, said].add((source.partition, source.offset))

    def name(self) -> bytes:
        """Return an id that nothing else has."""
        self.ids += 1
        return b"id-%d" % self.ids

    def produce(self, from_ms: int = 0, until_ms: int = 1 << 60) -> None:
        """Produce what was appended within a time."""
        producer = self.topic.producer()
        for append_ms, name, partition, headers, value in self.records:
            if from_ms <= append_ms < until_ms:
                producer.produce(name, value, b"k", partition, timestamp=append_ms, headers=headers)
                producer.poll(0)
        assert producer.flush(60) == 0

    def _append(
        self, append_ms: int, topic: str, partition: int, headers: Headers, value: bytes | None = b"v"
    ) -> RecordPlace:
        self.records.append((append_ms, topic, partition, headers, value))
        self.ends[topic, partition] += 1
        return RecordPlace(topic=topic, partition=partition, offset=self.ends[topic, partition] - 1)


Case = Callable[[World, int, int], None]


def delivered(world: World, partition: int, due_ms: int) -> None:
    """A schedule that is delivered, and told so."""
    source = world.schedule(partition, due_ms)
    target = world.deliver(source, due_ms)
    world.tell(Ending.DELIVERED, source, due_ms + 5, due_ms=due_ms, target=target)


def overdue(world: World, partition: int, due_ms: int) -> None:
    """A schedule that was due before it was produced."""
    source = world.schedule(partition, due_ms, ago_ms=-1_000)
    target = world.deliver(source, due_ms, 1_005)
    world.tell(Ending.DELIVERED, source, due_ms + 1_005, due_ms=due_ms, target=target)


def cancelled(world: World, partition: int, due_ms: int) -> None:
    """A schedule that is cancelled, and told so; and a second cancel, which meets nothing."""
    identity, at_ms = world.name(), due_ms - 1_800_000
    source = world.schedule(partition, due_ms, identity)
    by = world.cancel(partition, identity, at_ms)
    world.tell(Ending.CANCELLED, source, at_ms + 5, due_ms=due_ms, ended_by=by, id=identity.decode())
    world.finds("cancelled", source)
    late = world.cancel(partition, identity, at_ms + 10)
    world.tell(Ending.NOT_PENDING, late, at_ms + 15, id=identity.decode())


def replaced(world: World, partition: int, due_ms: int) -> None:
    """A schedule that is replaced, and told so."""
    identity, at_ms = world.name(), due_ms - 1_800_000
    source = world.schedule(partition, due_ms, identity)
    by = world.schedule(partition, due_ms + 60_000, identity, 1_860_000)
    world.tell(Ending.REPLACED, source, at_ms + 5, due_ms=due_ms, ended_by=by, id=identity.decode())
    target = world.deliver(by, due_ms + 60_000)
    world.tell(Ending.DELIVERED, by, due_ms + 60_005, due_ms=due_ms + 60_000, target=target, id=identity.decode())
    world.finds("replaced", source)


def dead_lettered(world: World, partition: int, due_ms: int) -> None:
    """A dead letter at its due time, and one of a record that nobody can read."""
    source = world.schedule(partition, due_ms)
    place = world.refuse(source, due_ms + 5)
    world.tell(Ending.DEAD_LETTERED, source, due_ms + 5, due_ms=due_ms, reason="expired", target=place)
    world.finds("dead-lettered", source)
    source = world.ask(partition, [("deliver-at", b"tomorrow")], due_ms)
    place = world.refuse(source, due_ms + 5)
    world.tell(Ending.DEAD_LETTERED, source, due_ms + 5, reason="malformed-header", target=place)
    world.finds("dead-lettered", source)


def cancelled_and_delivered(world: World, partition: int, due_ms: int) -> None:
    """An outcome `Cancelled` of what was delivered all the same."""
    identity, at_ms = world.name(), due_ms - 1_800_000
    source = world.schedule(partition, due_ms, identity)
    by = world.cancel(partition, identity, at_ms)
    world.tell(Ending.CANCELLED, source, at_ms + 5, due_ms=due_ms, ended_by=by)
    world.deliver(source, due_ms)
    world.finds("unwanted", source)
    world.finds("untrue", source, Ending.CANCELLED)


def replaced_and_delivered_in_a_race(world: World, partition: int, due_ms: int) -> None:
    """An outcome `Replaced` of what was delivered, as a command came when it was due."""
    identity = world.name()
    source = world.schedule(partition, due_ms, identity)
    by = world.schedule(partition, due_ms + 600_000, identity, 600_010)
    world.tell(Ending.REPLACED, source, due_ms - 5, due_ms=due_ms, ended_by=by)
    world.deliver(source, due_ms)
    target = world.deliver(by, due_ms + 600_000)
    world.tell(Ending.DELIVERED, by, due_ms + 600_005, due_ms=due_ms + 600_000, target=target)
    world.finds("untrue", source, Ending.REPLACED)


def told_twice(world: World, partition: int, due_ms: int) -> None:
    """Two outcomes of one schedule."""
    source = world.schedule(partition, due_ms)
    target = world.deliver(source, due_ms)
    for _ in range(2):
        world.tell(Ending.DELIVERED, source, due_ms + 5, due_ms=due_ms, target=target)
    world.finds("told-twice", source)


def delivered_elsewhere(world: World, partition: int, due_ms: int) -> None:
    """An outcome that names a place with another record."""
    source = world.schedule(partition, due_ms)
    target = world.deliver(source, due_ms)
    wrong = target.model_copy(update={"offset": target.offset + 1})
    world.tell(Ending.DELIVERED, source, due_ms + 5, due_ms=due_ms, target=wrong)
    world.finds("untrue", source, Ending.DELIVERED)


def told_and_lost(world: World, partition: int, due_ms: int) -> None:
    """An outcome `Delivered` of what arrived nowhere."""
    source = world.schedule(partition, due_ms)
    place = RecordPlace(topic=world.topic.target, partition=0, offset=0)
    world.tell(Ending.DELIVERED, source, due_ms + 5, due_ms=due_ms, target=place)
    world.finds("lost", source)
    world.finds("untrue", source, Ending.DELIVERED)


def cancelled_by_another_id(world: World, partition: int, due_ms: int) -> None:
    """An outcome that names the cancel of another id, which is told to be the end of this one."""
    identity, at_ms = world.name(), due_ms - 1_800_000
    source = world.schedule(partition, due_ms, identity)
    world.cancel(partition, identity, at_ms)
    by = world.cancel(partition, world.name(), at_ms)
    world.tell(Ending.CANCELLED, source, at_ms + 5, due_ms=due_ms, ended_by=by)
    world.finds("cancelled", source)
    world.finds("untrue", source, Ending.CANCELLED)


def replaced_by_a_cancel(world: World, partition: int, due_ms: int) -> None:
    """An outcome `Replaced` of what a cancel ended."""
    identity, at_ms = world.name(), due_ms - 1_800_000
    source = world.schedule(partition, due_ms, identity)
    by = world.cancel(partition, identity, at_ms)
    world.tell(Ending.REPLACED, source, at_ms + 5, due_ms=due_ms, ended_by=by)
    world.finds("cancelled", source)
    world.finds("untrue", source, Ending.REPLACED)


def no_dead_letter(world: World, partition: int, due_ms: int) -> None:
    """An outcome `DeadLettered` of what was delivered."""
    source = world.schedule(partition, due_ms)
    world.deliver(source, due_ms)
    world.tell(Ending.DEAD_LETTERED, source, due_ms + 5, due_ms=due_ms, reason="expired")
    world.finds("untrue", source, Ending.DEAD_LETTERED)


def nobody_asked(world: World, partition: int, due_ms: int) -> None:
    """An outcome of a place in the source at which nothing asks for anything."""
    source = world.cancel(partition, world.name(), due_ms)
    world.tell(Ending.DELIVERED, source, due_ms + 5, due_ms=due_ms)
    world.finds("untrue", source, Ending.DELIVERED)


def denied(world: World, partition: int, due_ms: int) -> None:
    """`NotPending` of a cancel that ended a schedule."""
    identity, at_ms = world.name(), due_ms - 1_800_000
    source = world.schedule(partition, due_ms, identity)
    by = world.cancel(partition, identity, at_ms)
    world.tell(Ending.CANCELLED, source, at_ms + 5, due_ms=due_ms, ended_by=by)
    world.tell(Ending.NOT_PENDING, by, at_ms + 5, id=identity.decode())
    world.finds("cancelled", source)
    world.finds("untrue", source, Ending.NOT_PENDING)


def untold(world: World, partition: int, due_ms: int) -> None:
    """Ends of each sort that nobody tells."""
    source = world.schedule(partition, due_ms)
    world.deliver(source, due_ms)
    world.finds("untold", source)
    identity, at_ms = world.name(), due_ms - 1_800_000
    source = world.schedule(partition, due_ms, identity)
    world.cancel(partition, identity, at_ms)
    world.finds("cancelled", source)
    world.finds("untold", source)
    source = world.schedule(partition, due_ms)
    world.refuse(source, due_ms + 5)
    world.finds("dead-lettered", source)
    world.finds("untold", source)


CASES: tuple[Case, ...] = (
    *(delivered, overdue, cancelled, replaced, dead_lettered, cancelled_and_delivered),
    *(replaced_and_delivered_in_a_race, told_twice, delivered_elsewhere, told_and_lost, cancelled_by_another_id),
    *(replaced_by_a_cancel, no_dead_letter, nobody_asked, denied, untold),
)


def world_of(kafka: KafkaAddress, folder: Path, **spec: Any) -> World:
    """Return an empty world, of which a record was delivered and told hours before all that is to be found."""
    name = unique("told")
    outcomes = {"topic": f"{name}.outcomes", **spec.pop("outcomes", {})}
    topic = AuditedTopic(name, kafka.bootstrap_servers, folder, {"outcomes": outcomes, **spec})
    topic.create(3).create_only(f"{name}.outcomes", PARTITIONS)
    world = World(topic, BASE_MS)
    delivered(world, 0, world.base_ms - 3 * HOUR_MS)
    return world


def filled(world: World, *cases: Case) -> World:
    """Return a world with some of each case in each partition, at times of their own, which is produced."""
    moments = (world.base_ms + number * 47_003 for number in range(10_000))
    for _ in range(EACH):
        for case in cases:
            for partition in range(PARTITIONS):
                case(world, partition, next(moments))
    world.produce()
    return world


@dataclass(frozen=True)
class Judged:
    """A world, and what an audit found of it; the reason of dead letters is no matter here."""

    world: World
    report: Report
    found: Found


def judged_at_once(spark: SparkSession, worlds: Mapping[str, World], now_ms: int) -> dict[str, Judged]:
    """Audit DelayTopics with one ledger: each has the verdict that it would have by itself, by fewer runs."""
    topics = [world.topic for world in worlds.values()]
    audit = audit_of(spark, topics)
    reports = audit.run(now_ms, silent)
    audit.done()
    ledger = topics[0].ledger(spark)
    commit = ledger.last_commit()
    assert commit is not None
    found: dict[int, Found] = {state.plan.number: defaultdict(set) for state in commit.states}
    for row in current(ledger, commit, "findings").collect():
        key = row.finding, row.reason if row.finding == "untrue" else None
        found[row.delay_topic][key].add((row.partition, row.offset))
    by_name = {state.plan.delay_topic: found[state.plan.number] for state in commit.states}
    judged = {}
    for about, world in worlds.items():
        name = f"tests/{world.topic.name}"
        report = reports[name]
        assert isinstance(report, Report)
        judged[about] = Judged(world, report, by_name[name])
    return judged


def attained(report: Report) -> dict[str, tuple[int, str]]:
    """Return how many were bad, and the verdict, by objective."""
    return {each.name: (each.bad, str(each.verdict)) for each in report.objectives}


@pytest.fixture(scope="module")
def judged(spark: SparkSession, kafka: KafkaAddress, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Judged]:
    """Worlds by what is special about them."""
    folder = tmp_path_factory.mktemp("ledger")
    without = world_of(kafka, folder)
    del without.topic.spec["outcomes"]
    some = world_of(kafka, folder, outcomes={"only": ["Replaced", "NotPending"]})
    repeating = world_of(kafka, folder, guarantee=str(Guarantee.AT_LEAST_ONCE))
    worlds = {
        "all outcomes": filled(world_of(kafka, folder), *CASES),
        "some outcomes": filled(some, delivered, untold),
        "no transactions": filled(repeating, delivered, told_twice, replaced_and_delivered_in_a_race),
        "no outcomes": filled(without, delivered, untold),
    }
    return judged_at_once(spark, worlds, BASE_MS + 6 * HOUR_MS)


def test_each_wrong_outcome_is_found_and_nothing_else_is(judged: dict[str, Judged]) -> None:
    world, report = judged["all outcomes"].world, judged["all outcomes"].report

    assert judged["all outcomes"].found == world.found
    faults = sum(len(places) for (finding, _), places in world.found.items() if finding in FAULTS)
    assert attained(report)["Told"] == (faults, "Missed")
    assert report.counts is not None
    assert report.counts.retold == len(world.found["told-twice", None])


def test_outcomes_that_are_left_out_are_not_missed(judged: dict[str, Judged]) -> None:
    report = judged["some outcomes"].report

    assert attained(report)["Told"] == (0, "Met")
    assert report.counts is not None
    assert report.counts.untold == 0


def test_what_a_relay_tells_again_without_transactions_is_counted_and_no_fault(judged: dict[str, Judged]) -> None:
    report = judged["no transactions"].report

    assert report.verdict is Verdict.MET
    assert attained(report)["Told"] == (0, "Met")
    assert report.counts is not None
    assert (report.counts.told_twice, report.counts.retold) == (0, EACH * PARTITIONS)


def test_a_delay_topic_without_outcomes_is_judged_without_them(judged: dict[str, Judged]) -> None:
    found = judged["no outcomes"]

    assert "Told" not in attained(found.report)
    assert not {finding for finding, _ in found.found} & set(FAULTS)


BETWEEN_MS = BASE_MS + HOUR_MS + 8
"""The time at which a late delivery was written without its outcome, and at which an audit learns of outcomes."""


def with_a_late_outcome(kafka: KafkaAddress, folder: Path) -> tuple[World, list[RecordPlace]]:
    """Return a world of which two records are late; one of them is told after `BETWEEN_MS`, the other one never."""
    world = world_of(kafka, folder)
    due_ms, late_ms = BASE_MS, HOUR_MS
    told, missing = world.schedule(0, due_ms), world.schedule(1, due_ms)
    target = world.deliver(told, due_ms, late_ms)
    world.deliver(missing, due_ms, late_ms)
    world.tell(Ending.DELIVERED, told, due_ms + late_ms + 10, due_ms=due_ms, target=target)
    return world, [told, missing]


def learned_of_later(kafka: KafkaAddress, folder: Path) -> tuple[World, RecordPlace]:
    """Return a world of which nothing is told; the only record that is due an hour after `BETWEEN_MS` or later."""
    world = world_of(kafka, folder)
    dues_ms = [BETWEEN_MS + after_ms for after_ms in (-1_800_000, 1_800_000, 5_400_000)]
    places = [world.schedule(0, due_ms) for due_ms in dues_ms]
    for place, due_ms in zip(places, dues_ms, strict=True):
        world.deliver(place, due_ms)
    return world, places[-1]


@dataclass(frozen=True)
class Runs:
    """Findings of three runs about worlds that go on, and the places of what is late, and of what comes last."""

    awaited: list[Found]
    late: list[RecordPlace]
    learned: list[Found]
    last: RecordPlace


@pytest.fixture(scope="module")
def runs(spark: SparkSession, kafka: KafkaAddress, tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """The second run is at the time of the first, and is the first one that knows the outcomes of one world."""
    folder = tmp_path_factory.mktemp("runs")
    (awaited, late), (learned, last) = with_a_late_outcome(kafka, folder), learned_of_later(kafka, folder)
    outcomes, worlds = learned.topic.spec.pop("outcomes"), {"awaited": awaited, "learned": learned}
    for world in worlds.values():
        world.produce(until_ms=BETWEEN_MS)
    judged = [judged_at_once(spark, worlds, BETWEEN_MS)]
    learned.topic.spec["outcomes"] = outcomes
    judged.append(judged_at_once(spark, worlds, BETWEEN_MS))
    for world in worlds.values():
        world.produce(from_ms=BETWEEN_MS)
    judged.append(judged_at_once(spark, worlds, BETWEEN_MS + 3 * HOUR_MS))
    found = {about: [each[about].found for each in judged] for about in worlds}
    return Runs(found["awaited"], late, found["learned"], last)


@pytest.mark.nightly
def test_an_outcome_that_comes_after_its_late_delivery_was_read_is_awaited_by_the_next_run(runs: Runs) -> None:
    told, missing = runs.late
    late: Found = {("late", None): {(0, told.offset), (1, missing.offset)}}

    assert runs.awaited == [late, late, {**late, ("untold", None): {(1, missing.offset)}}]


@pytest.mark.nightly
def test_outcomes_that_an_audit_learns_of_later_are_missed_from_an_hour_after_that_on(runs: Runs) -> None:
    assert runs.learned == [{}, {}, {("untold", None): {(0, runs.last.offset)}}]
