"""Several DelayTopics of one ledger on a real Kafka: each has the verdict that it would have by itself."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # its public names, by an implicit re-export
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)
from pyspark.sql import SparkSession
from tests.harness.names import unique
from tests.harness.shared_servers import KafkaAddress
from tests.support.audit.delay_topics import DAY_MS, HOUR_MS, AuditedTopic, audit_of
from tests.support.audit.truth import Sent, Truth

from delaytopic_api.records import RECEIPT, Receipt
from delaytopic_audit.audit import Result
from delaytopic_audit.errors import ReadingError
from delaytopic_audit.ledger.ledger import Ledger
from delaytopic_audit.model.report import Report, Verdict
from delaytopic_audit.pipeline.ports import silent

pytestmark = pytest.mark.integration
MakeTopic = Callable[..., AuditedTopic]

BASE_MS = (time.time_ns() // 1_000_000 // HOUR_MS - 12) * HOUR_MS
END_MS = BASE_MS + 8 * HOUR_MS
HALF_MS = BASE_MS + HOUR_MS + 20 * 60_000


def records_of(topic: AuditedTopic, seed: int) -> list[Sent]:
    truth = Truth(topic, 0, seed, BASE_MS, each=10)
    return [*truth.asked(), *truth.outcomes()]


def produce(topic: AuditedTopic, records: Iterable[Sent]) -> None:
    producer = topic.producer()
    for sent in records:
        producer.produce(sent.topic, b"v", b"k", 0, timestamp=sent.append_ms, headers=sent.headers)
    assert producer.flush(60) == 0


def run(
    spark: SparkSession,
    folder: Path,
    topics: Iterable[AuditedTopic],
    now_ms: int,
    hear: Callable[[str], None] = silent,
    **given: Any,
) -> dict[str, Result]:
    """One audit of all of these, with one ledger; `hear` is told how it goes on."""
    audit = audit_of(spark, [replace(topic, folder=folder) for topic in topics], **given)
    results = audit.run(now_ms, hear)
    audit.done()
    return {name.removeprefix("tests/"): result for name, result in results.items()}


def told(result: Result) -> dict[str, Any]:
    """Return the document of a report, but for its times and the number of its run."""
    assert isinstance(result, Report)
    document = result.to_document()
    del document["generatedAtMs"], document["reading"]["run"]
    return document


def offsets(result: Result, finding: str) -> list[int]:
    assert isinstance(result, Report)
    return [each.offset for found in result.findings if found.finding == finding for each in found.listed]


OTHER_RULES = {"slo": {"lateness": "100ms", "thresholds": [{"lateness": "1m", "objective": "99%"}]}}


@pytest.mark.nightly  # each day four of one ledger have each its own outcomes found
def test_each_has_the_verdict_that_it_would_have_by_itself_whatever_the_others_are(
    spark: SparkSession, audited: MakeTopic, tmp_path: Path
) -> None:
    topics = (audited(1), audited(1, spec=OTHER_RULES))
    for seed, topic in enumerate(topics):
        produce(topic, records_of(topic, seed))

    together = run(spark, tmp_path / "together", topics, END_MS)
    apart = {topic.name: run(spark, tmp_path / topic.name, [topic], END_MS)[topic.name] for topic in topics}

    assert {name: told(result) for name, result in together.items()} == {
        name: told(result) for name, result in apart.items()
    }


@pytest.mark.nightly
def test_each_has_the_verdict_that_it_would_have_by_itself_when_one_comes_with_the_second_run(
    spark: SparkSession, audited: MakeTopic, tmp_path: Path
) -> None:
    # Given two with other rules, of which the second comes with the second run
    one, two = (audited(1), audited(1, spec=OTHER_RULES))
    records = {topic.name: records_of(topic, seed) for seed, topic in enumerate((one, two))}
    apart, together = dict[str, list[Result]](), list[dict[str, Result]]()
    earlier = {name: [sent for sent in its if sent.append_ms < HALF_MS] for name, its in records.items()}
    later = {name: [sent for sent in its if sent.append_ms >= HALF_MS] for name, its in records.items()}

    # When each is audited by itself, and both with one ledger
    for topic in (one, two):
        produce(topic, earlier[topic.name])
    together.append(run(spark, tmp_path / "together", [one], HALF_MS))
    apart[one.name] = [run(spark, tmp_path / "one", [one], HALF_MS)[one.name]]
    for topic in (one, two):
        produce(topic, later[topic.name])
    together.append(run(spark, tmp_path / "together", [two, one], END_MS))
    apart[one.name].append(run(spark, tmp_path / "one", [one], END_MS)[one.name])
    apart[two.name] = [run(spark, tmp_path / "two", [two], END_MS)[two.name]]

    # Then they say the same
    assert [told(results[one.name]) for results in together] == [told(each) for each in apart[one.name]]
    assert told(together[1][two.name]) == told(apart[two.name][0])


@dataclass(frozen=True)
class Together:
    """Two runs over DelayTopics of one ledger: one is sound, of two others something is gone, and two share a target.

    The source of `absent` comes after the first run, and offsets of `gone` go while that reads.
    """

    good: AuditedTopic
    absent: AuditedTopic
    gone: AuditedTopic
    sharing: list[AuditedTopic]
    first: dict[str, Result]
    second: dict[str, Result]


@pytest.fixture(scope="module")
def together(spark: SparkSession, kafka: KafkaAddress, tmp_path_factory: pytest.TempPathFactory) -> Together:
    folder = tmp_path_factory.mktemp("together")

    def make(**spec: Any) -> AuditedTopic:
        return AuditedTopic(unique("together"), kafka.bootstrap_servers, folder, spec)

    good, absent, gone, one = make().create(1), make(), make().create(1), make().create(1)
    two = make(target={"topic": one.target}).create(1)
    produce(good, records_of(good, 1))
    produce(gone, records_of(gone, 2))
    for topic in (one, two):
        due_ms = BASE_MS + HOUR_MS
        receipt = Receipt(due_ms, 0, 0, due_ms, topic.source).encode()
        produce(topic, [Sent(BASE_MS, topic.source, 0, [("deliver-at", b"%d" % due_ms)])])
        produce(topic, [Sent(due_ms, one.target, 0, [(RECEIPT, receipt)])])

    def delete_on_reading(line: str) -> None:
        if line.startswith("reading"):
            admin = AdminClient({"bootstrap.servers": gone.bootstrap_servers})
            for answer in admin.delete_records([TopicPartition(gone.source, 0, 5)]).values():
                answer.result(30)

    first = run(spark, folder, [good, absent, gone, one, two], END_MS, delete_on_reading)
    absent.create(1)
    produce(absent, records_of(absent, 3))
    return Together(good, absent, gone, [one, two], first, run(spark, folder, [good, absent], END_MS + 60_000))


@pytest.mark.takes_long("carries out two runs")
def test_what_cannot_be_judged_holds_up_nobody_and_is_judged_later(together: Together) -> None:
    good, absent = together.good.name, together.absent.name
    refused = together.first[absent]

    assert isinstance(refused, Report)
    assert (refused.verdict, refused.reasons[0]) == (
        Verdict.CANNOT_JUDGE,
        f"the source topic {together.absent.source} does not exist",
    )
    assert offsets(together.first[good], "lost")
    assert [offsets(together.second[each], "lost") != [] for each in (good, absent)] == [True, True]


def test_offsets_that_went_after_they_were_planned_are_no_matter_of_others(together: Together) -> None:
    error = together.first[together.gone.name]

    assert isinstance(error, ReadingError)
    assert f"{together.gone.source} partition 0: offset 0 is gone" in str(error)


def test_a_target_that_several_have_is_told_apart_by_its_receipts(together: Together) -> None:
    for topic in together.sharing:
        result = together.first[topic.name]
        assert isinstance(result, Report)
        assert result.counts is not None
        counts = result.counts
        assert (result.verdict, counts.asked, counts.delivered, counts.unknown) == (Verdict.MET, 1, 1, 0)


def test_records_that_nobody_vouches_for_refuse_their_delay_topic_alone(
    spark: SparkSession, audited: MakeTopic, tmp_path: Path
) -> None:
    doubtful, good = audited(1), audited(1, **{"message.timestamp.type": "LogAppendTime"})
    produce(doubtful, records_of(doubtful, 1))
    # Planned by then: only the records tell.
    for topic in (doubtful.source, doubtful.target, doubtful.other):
        set_brokers_clock(doubtful, topic)
    now_ms = time.time_ns() // 1_000_000

    results = run(spark, tmp_path / "ledger", [doubtful, good], now_ms, any_clock=False)

    refused, judged = results[doubtful.name], results[good.name]
    assert isinstance(refused, Report)
    assert isinstance(judged, Report)
    assert (refused.verdict, judged.verdict) == (Verdict.CANNOT_JUDGE, Verdict.MET)
    assert "carry CreateTime" in refused.reasons[0]
    state = Ledger(spark, str(tmp_path / "ledger")).last_commit()
    assert state is not None
    assert [each.plan.delay_topic for each in state.states] == [f"tests/{good.name}"]
    assert [each.delay_topic for each in state.refused] == [f"tests/{doubtful.name}"]


def set_brokers_clock(topic: AuditedTopic, name: str) -> None:
    """From now on the broker says when records of a topic were appended."""
    admin = AdminClient({"bootstrap.servers": topic.bootstrap_servers})
    entry = ConfigEntry("message.timestamp.type", "LogAppendTime", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, name, incremental_configs=[entry])
    for answer in admin.incremental_alter_configs([resource]).values():
        answer.result(30)


@pytest.mark.nightly
@pytest.mark.takes_long("carries out three runs")
def test_what_begins_anew_forgets_what_was_and_others_keep_theirs(
    spark: SparkSession, audited: MakeTopic, tmp_path: Path
) -> None:
    one, two = audited(1), audited(1)
    for seed, topic in enumerate((one, two)):
        produce(topic, records_of(topic, seed))
    folder = tmp_path / "ledger"

    first = run(spark, folder, [one, two], END_MS)
    anew = run(spark, folder, [one], END_MS, restart=True)
    last = run(spark, folder, [one, two], END_MS + 60_000)

    same = ("counts", "findings")
    assert {name: told(anew[one.name])[name] for name in same} == {name: told(first[one.name])[name] for name in same}
    assert {name: told(last[two.name])[name] for name in same} == {name: told(first[two.name])[name] for name in same}
    commit = Ledger(spark, str(folder)).last_commit()
    assert commit is not None
    assert {each.plan.delay_topic: each.plan.epoch for each in commit.states} == {
        f"tests/{one.name}": 2,
        f"tests/{two.name}": 1,
    }


@pytest.mark.nightly
@pytest.mark.takes_long("carries out three runs")
def test_what_was_not_audited_for_longer_than_it_is_remembered_leaves_the_ledger(
    spark: SparkSession, audited: MakeTopic, tmp_path: Path
) -> None:
    one, two = audited(1), audited(1)
    folder = tmp_path / "ledger"

    run(spark, folder, [one, two], END_MS, retention_ms=DAY_MS)
    run(spark, folder, [one], END_MS + DAY_MS // 2, retention_ms=DAY_MS)
    before = Ledger(spark, str(folder)).last_commit()
    run(spark, folder, [one], END_MS + DAY_MS + HOUR_MS, retention_ms=DAY_MS)
    after = Ledger(spark, str(folder)).last_commit()

    assert before is not None
    assert after is not None
    assert [[each.plan.delay_topic for each in commit.states] for commit in (before, after)] == [
        [f"tests/{one.name}", f"tests/{two.name}"],
        [f"tests/{one.name}"],
    ]
