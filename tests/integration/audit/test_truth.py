"""Truth injected, truth found: some seeds, each a source partition of one DelayTopic on a real Kafka."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

import pytest
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as sf
from tests.harness.names import unique
from tests.harness.shared_servers import KafkaAddress
from tests.support.audit.delay_topics import DAY_MS, HOUR_MS, AuditedTopic
from tests.support.audit.runs import report_of, state_of, with_rules
from tests.support.audit.truth import HOURS, TARGET_PARTITIONS, Sent, Truth

from delaytopic_audit.model.report import ObjectiveName, Report, Verdict
from delaytopic_audit.model.rules import Exclusion
from delaytopic_audit.pipeline.gathering import current

pytestmark = pytest.mark.integration

# The ends of runs: in the middle, towards the end, and hours after everything. Each day begins with the second.
RUNS_MS = (HOUR_MS + 20 * 60_000, 2 * HOUR_MS + 1, (HOURS + 5) * HOUR_MS)
EXCLUDED_MS = (HOUR_MS, HOUR_MS + 30 * 60_000)
"""From the first deadline on."""
Found = dict[str, set[tuple[int, int]]]


@dataclass(frozen=True)
class Audited:
    """The findings that were there, and those of each run; `each` is the number of records for each usual finding."""

    each: int
    truths: list[Truth]
    reports: list[Report]
    found: list[Found]
    excused: Report
    """The last one again, with an exclusion of `EXCLUDED_MS`."""
    excluded: Found
    """The findings of the last run that are due then."""


@pytest.fixture(
    scope="module",
    params=[
        pytest.param((2, 50, RUNS_MS[1:]), id="two seeds"),
        pytest.param((20, 200, RUNS_MS), id="twenty seeds", marks=pytest.mark.nightly),
    ],
)
def audited_truth(
    request: pytest.FixtureRequest, spark: SparkSession, kafka: KafkaAddress, tmp_path_factory: pytest.TempPathFactory
) -> Audited:
    seeds, each, ends_ms = request.param
    base_ms = (time.time_ns() // 1_000_000 // HOUR_MS - 12) * HOUR_MS
    topic = AuditedTopic(unique("truth"), kafka.bootstrap_servers, tmp_path_factory.mktemp("truth"))
    topic.create(max(seeds, TARGET_PARTITIONS))
    truths = [Truth(topic, seed, seed, base_ms, each) for seed in range(seeds)]
    records = [sent for truth in truths for sent in (*truth.asked(), *truth.outcomes())]
    reports, found, from_ms = [], [], 0
    for end_ms in (base_ms + length_ms for length_ms in ends_ms):
        _produce(topic, (sent for sent in records if from_ms <= sent.append_ms < end_ms))
        reports.append(topic.run(spark, end_ms))
        found.append(_findings(topic, spark))
        from_ms = end_ms
    start_ms, until_ms = (base_ms + length_ms for length_ms in EXCLUDED_MS)
    excused = _again(topic, spark, Exclusion(from_ms=start_ms, until_ms=until_ms, reason="upgrade"), end_ms)
    excluded = _findings(topic, spark, sf.col("deadline_ms").between(start_ms, until_ms - 1))
    return Audited(each, truths, reports, found, excused, excluded)


def _again(topic: AuditedTopic, spark: SparkSession, exclusion: Exclusion, now_ms: int) -> Report:
    """Return the last run's report with an exclusion that the run knew nothing of."""
    commit = topic.ledger(spark).last_commit()
    assert commit is not None
    rules = state_of(commit).plan.rules.model_copy(update={"exclusions": [exclusion]})
    return report_of(topic.ledger(spark), with_rules(commit, rules), DAY_MS, now_ms)


def _produce(topic: AuditedTopic, records: Iterable[Sent]) -> None:
    producer = topic.producer()
    for sent in records:
        producer.produce(sent.topic, b"v", b"k", sent.partition, timestamp=sent.append_ms, headers=sent.headers)
        producer.poll(0)
    assert producer.flush(60) == 0


def _findings(topic: AuditedTopic, spark: SparkSession, which: Column | None = None) -> Found:
    ledger = topic.ledger(spark)
    commit = ledger.last_commit()
    assert commit is not None
    found: Found = defaultdict(set)
    rows = current(ledger, commit, "findings")
    for row in (rows.filter(which) if which is not None else rows).collect():
        found[row.finding].add((row.partition, row.offset))
    return found


def test_the_audit_finds_exactly_what_was_injected_with_its_coordinates(audited_truth: Audited) -> None:
    expected: Found = defaultdict(set)
    for truth in audited_truth.truths:
        for name, places in truth.expected().items():
            expected[name] |= places

    assert audited_truth.found[-1] == expected
    enough = audited_truth.each * len(audited_truth.truths)
    assert all(
        len(expected[name]) >= enough for name in ("lost", "duplicated", "early", "late", "cancelled", "replaced")
    )


def test_the_report_counts_what_was_found(audited_truth: Audited) -> None:
    report, found = audited_truth.reports[-1], audited_truth.found[-1]

    assert report.verdict is Verdict.MISSED
    assert {each.finding: each.records for each in report.findings} == {
        name: len(places) for name, places in found.items() if places
    }


def test_faults_of_objectives_of_all_records_are_told_by_the_hour(audited_truth: Audited) -> None:
    report = audited_truth.reports[-1]

    by_objective: Counter[str] = Counter()
    for hour in report.faulty_hours:
        by_objective[hour.objective] += hour.records
    assert set(by_objective) == {"Complete", "Unique", "NotEarly"}
    assert by_objective == {each.name: each.bad for each in report.objectives if each.objective == "100%"}


def test_a_provisional_loss_is_healed_by_a_late_arrival_and_counts_as_late_from_then_on(audited_truth: Audited) -> None:
    *_, second, last = audited_truth.found

    healed = second["lost"] - last["lost"]

    assert healed
    assert healed <= last["late"]


def test_minutes_are_restated_when_more_arrives_after_they_were_graded(audited_truth: Audited) -> None:
    *_, second, last = audited_truth.found

    assert last["duplicated"] - second["duplicated"]
    reading = audited_truth.reports[-1].reading
    assert reading is not None
    assert reading.restated_minutes > 0


def test_an_exclusion_that_is_added_later_excuses_lateness_of_its_minutes_and_nothing_else(
    audited_truth: Audited,
) -> None:
    before, after, excluded = audited_truth.reports[-1], audited_truth.excused, audited_truth.excluded

    bad = sum(len(excluded[name]) for name in ("late", "lost", "misdirected"))
    assert bad
    assert [(each.reason, each.bad) for each in after.exclusions] == [("upgrade", bad)]
    was, now = ({each.name: each.bad for each in report.objectives} for report in (before, after))
    assert now == {**was, ObjectiveName.TIMELY: was[ObjectiveName.TIMELY] - bad}
    assert before.budget is not None
    assert after.budget is not None
    assert before.budget.spent - after.budget.spent == bad
    assert before.budget.total - after.budget.total == after.budget.excluded == after.exclusions[0].records
    assert (after.counts, after.findings) == (before.counts, before.findings)
