"""The reader on a real broker: transactions, control records, holes and odd headers, cut anywhere."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from pyspark.sql import DataFrame, SparkSession
from tests.harness.names import unique
from tests.harness.shared_servers import KafkaAddress
from tests.support.audit.delay_topics import AuditedTopic, Headers
from tests.support.relay.process import wait_for
from tests.unit.audit.messages import reading

from delaytopic_api.documents import member
from delaytopic_api.records import RECEIPT, DeadLetter, Receipt, dead_letter_headers
from delaytopic_api.relay import KafkaClient, RelayConfig, RelaySchedule
from delaytopic_api.values import Dialect
from delaytopic_audit.model.manifest import Range, Role
from delaytopic_audit.model.words import Kind
from delaytopic_audit.reading.client import RangeReader, Reading, ReadingJob, read_by_client
from delaytopic_audit.reading.facts import KafkaFacts
from delaytopic_audit.tables.schemas import EXTRACT

pytestmark = pytest.mark.integration
MakeTopic = Callable[..., AuditedTopic]

ODD: list[Headers | None] = [
    [("deliver-at", b"1795269686270"), ("deliver-at", b"1795269686271")],
    [("deliver-after", b"90s"), ("x", None), ("x", b""), ("", b"no name")],
    [("deliver-at", b"tomorrow")],
    [("deliver-id", b"a"), ("deliver-action", b"cancel")],
    [("deliver-id", bytes(range(256))), ("deliver-to", b"elsewhere")],
    [("ä", b"not ascii"), ("deliver-at\0x", b"1")],
    [],
    None,
]


def produce(
    topic: AuditedTopic, count: int, *, transaction: str | None = None, commit: bool = True, append_ms: int = 0
) -> None:
    """Produce records with odd headers to partition 0 of the source; in a transaction, if it has a name."""
    settings = {"bootstrap.servers": topic.bootstrap_servers, "enable.idempotence": True}
    producer = Producer({**settings, "transactional.id": transaction} if transaction else settings)
    if transaction:
        producer.init_transactions()
        producer.begin_transaction()
    for number in range(count):
        headers = ODD[number % len(ODD)]
        producer.produce(topic.source, b"v", b"%d" % (number % 2), 0, headers=headers, timestamp=append_ms)
    assert producer.flush(30) == 0
    if transaction:
        (producer.commit_transaction if commit else producer.abort_transaction)()


def config_of(topic: AuditedTopic) -> RelayConfig:
    return RelayConfig.model_validate(
        {
            "name": topic.name,
            "namespace": "tests",
            "groupId": "g",
            "source": {"topic": topic.source},
            "target": {"topic": topic.target},
            "deadLetter": {"topic": topic.dead_letter},
            "schedule": {"maxDelay": "87600h"},
            "precision": "1s",
            "guarantee": "ExactlyOnce",
            "backend": {"type": "KafkaBuckets", "id": "i"},
            "kafka": KafkaClient(bootstrap_servers=topic.bootstrap_servers).to_document(),
        }
    )


def of_source(topic: AuditedTopic, start: int, end: int) -> Range:
    return Range(topic=topic.source, role=Role.SOURCE, partition=0, start=start, end=end)


def reading_of(topic: AuditedTopic, ranges: list[Range]) -> Reading:
    return Reading(number=1, config=config_of(topic), ranges=ranges)


def job_of(topic: AuditedTopic, start: int, end: int) -> ReadingJob:
    return ReadingJob(client={}, readings=[reading_of(topic, [of_source(topic, start, end)])])


def offsets(topic: AuditedTopic, start: int, end: int) -> list[int]:
    """Return what the client's reader hands out."""
    reading = reading_of(topic, [of_source(topic, start, end)])
    reader = RangeReader({"bootstrap.servers": topic.bootstrap_servers}, [reading])
    return [row[2] for some in reader.rows() for rows in some.values() for row in rows]


def end_of(topic: AuditedTopic) -> int:
    facts = KafkaFacts({"bootstrap.servers": topic.bootstrap_servers})
    return facts.states([topic.source])[0][topic.source].partitions[0].end


def rows_of(frame: DataFrame) -> list[tuple[object, ...]]:
    return sorted((tuple(row) for row in frame.collect()), key=str)


@pytest.fixture(scope="module")
def transactional(kafka: KafkaAddress, tmp_path_factory: pytest.TempPathFactory) -> tuple[AuditedTopic, list[int]]:
    """A source with committed and aborted transactions, control records at its end, and its committed offsets."""
    folder = tmp_path_factory.mktemp("transactional")
    topic = AuditedTopic(unique("transactional"), kafka.bootstrap_servers, folder).create(1)
    produce(topic, 3)
    produce(topic, 4, transaction=f"{topic.name}-a")
    produce(topic, 3, transaction=f"{topic.name}-b", commit=False)
    produce(topic, 16)
    produce(topic, 2, transaction=f"{topic.name}-c")
    produce(topic, 2, transaction=f"{topic.name}-d", commit=False)
    # 3 plain, 4 and a marker, 3 aborted and a marker, 16 plain, 2 and a marker, 2 aborted and a marker
    return topic, [0, 1, 2, 3, 4, 5, 6, *range(12, 28), 28, 29]


def test_the_client_reads_exactly_the_committed_records_of_any_range(
    transactional: tuple[AuditedTopic, list[int]],
) -> None:
    topic, committed = transactional
    end = end_of(topic)

    assert end == 34
    # Before, at and after every control record and aborted record.
    for start, stop in [(0, cut) for cut in (1, 7, 8, 9, 11, 12, 31, 33, 34)] + [(cut, 34) for cut in (7, 10, 30, 33)]:
        assert offsets(topic, start, stop) == [offset for offset in committed if start <= offset < stop]


@pytest.mark.takes_long("a cold Spark takes its time for the first query")
@pytest.mark.parametrize("dialect", [Dialect.BLACK_BOX, Dialect.SCHEDULER])
def test_a_dialect_that_reads_values_is_read_by_what_they_say(
    spark: SparkSession, audited: MakeTopic, dialect: Dialect
) -> None:
    topic = audited(1)
    producer = topic.producer()
    headers: Headers = [("scheduler-epoch", b"1795269686"), ("scheduler-target-topic", topic.target.encode())]
    headers.append(("scheduler-target-key", b"k"))
    for value in (b"v", None, b'{"topic": "%b", "message": "now", "countdown": 1.5}' % topic.target.encode()):
        producer.produce(topic.source, value, b"id", 0, headers=headers)
    assert producer.flush(30) == 0
    job = job_of(topic, 0, 3)
    (own,) = job.readings
    schedule = RelaySchedule.model_validate(own.config.schedule.to_document() | member(dialect))
    edited = own.config.model_copy(update={"schedule": schedule})
    job = ReadingJob(client={}, readings=[own.model_copy(update={"config": edited})])

    kinds = Counter(row[EXTRACT.names.index("kind")] for row in rows_of(read_by_client(spark, job)))

    assert kinds[Kind.SCHEDULE] == (1 if dialect is Dialect.BLACK_BOX else 2)


@pytest.mark.takes_long("a cold Spark takes its time for the first query")
@pytest.mark.parametrize(
    ("latter", "wait_ms"),
    [(Dialect.NATIVE, 7_000), pytest.param(Dialect.BLACK_BOX, 9_000, marks=pytest.mark.nightly)],
)
def test_each_record_is_read_by_the_rules_of_its_offset(
    spark: SparkSession, audited: MakeTopic, latter: Dialect, wait_ms: int
) -> None:
    # Given rules with a default delay, others, and some of another version of the reader
    topic = audited(1)
    producer = topic.producer()
    for _ in range(4):
        producer.produce(topic.source, b'{"topic": "%b", "message": "m", "countdown": 9}' % topic.target.encode())
    assert producer.flush(30) == 0
    former = reading(0, 1, default_delay_ms=5_000)
    latter_rules = reading(0, 2, default_delay_ms=7_000, dialect=latter, allowed=("*",))
    own = reading_of(topic, [of_source(topic, 0, 4)])
    generations = [former, latter_rules, reading(0, 3, reader=9)]
    job = ReadingJob(client={}, readings=[own.model_copy(update={"generations": generations})])

    rows = [dict(zip(EXTRACT.names, row, strict=True)) for row in rows_of(read_by_client(spark, job))]

    assert {row["offset"]: (row["kind"], _wait_ms(row)) for row in rows} == {
        **dict.fromkeys((0, 1), (Kind.SCHEDULE, 5_000)),
        2: (Kind.SCHEDULE, wait_ms),
        3: (Kind.IGNORED, None),
    }


def _wait_ms(row: dict[str, Any]) -> int | None:
    return None if row["due_ms"] is None else row["due_ms"] - row["append_ms"]


@pytest.mark.takes_long("a cold Spark takes its time for the first query")
def test_all_topics_of_a_delay_topic_are_read(spark: SparkSession, audited: MakeTopic) -> None:
    topic, letter = audited(1), DeadLetter("expired", "why", f"{unique('audited')}.source", 0, 1, 5)
    produce(topic, 3)
    producer = topic.producer()
    receipt = Receipt(1_795_269_686_270, 0, 1, 1_795_269_686_271, topic.source).encode()
    for value in (receipt, receipt + b"x", b"nonsense", None):
        receipts: Headers = [("x", b"y"), (RECEIPT, value)]
        producer.produce(topic.target, b"v", headers=receipts, partition=0)
    for source in (topic.source, letter.topic):
        headers: Headers = list(dead_letter_headers(letter._replace(topic=source)))
        producer.produce(topic.dead_letter, b"v", headers=headers, partition=0)
    assert producer.flush(30) == 0
    ends = {(topic.source, Role.SOURCE): 3, (topic.target, Role.TARGET): 4, (topic.dead_letter, Role.DEAD_LETTER): 2}
    ranges = [Range(topic=name, role=role, partition=0, start=0, end=end) for (name, role), end in ends.items()]
    job = ReadingJob(client={}, readings=[reading_of(topic, ranges)])

    kinds = Counter(row[EXTRACT.names.index("kind")] for row in rows_of(read_by_client(spark, job)))

    assert kinds == {Kind.SCHEDULE: 2, Kind.REJECT: 1, Kind.DELIVERED: 1, Kind.FOREIGN: 4, Kind.DEAD_LETTER: 1}


def test_a_topic_with_compacted_holes_is_read_to_its_end(audited: MakeTopic) -> None:
    topic = audited(1, **{"cleanup.policy": "compact", "segment.ms": "100", "min.cleanable.dirty.ratio": "0.01"})
    now_ms = time.time_ns() // 1_000_000
    produce(topic, 8, append_ms=now_ms - 2_000)
    produce(topic, 8, append_ms=now_ms - 1_000)  # closes the first segment
    produce(topic, 1, append_ms=now_ms)  # and the second: both are compacted now, and nothing is after that
    compacted = [14, 15, 16]  # the last of each of the two keys, and the segment that is open

    wait_for(lambda: offsets(topic, 0, 17) == compacted, lambda: f"there are {offsets(topic, 0, 17)}")


def test_the_end_of_a_range_is_before_a_transaction_that_is_still_open(audited: MakeTopic) -> None:
    topic = audited(1)
    produce(topic, 5)
    producer = Producer({"bootstrap.servers": topic.bootstrap_servers, "transactional.id": f"{topic.name}-open"})
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce(topic.source, b"undecided", partition=0)
    assert producer.flush(30) == 0
    produce(topic, 5)

    assert end_of(topic) == 5

    producer.abort_transaction()
    wait_for(lambda: end_of(topic) == 12)
    assert offsets(topic, 0, 12) == [0, 1, 2, 3, 4, 6, 7, 8, 9, 10]


def test_what_a_group_has_not_committed_is_not_there(audited: MakeTopic) -> None:
    topic = audited(2)
    facts = KafkaFacts({"bootstrap.servers": topic.bootstrap_servers})

    assert facts.committed(f"delaytopic.tests.{topic.name}", topic.source, range(2)) == {}


def test_offsets_that_expired_are_a_row_with_the_reason(spark: SparkSession, audited: MakeTopic) -> None:
    topic = audited(1)
    produce(topic, 10)
    expire(topic, 4)

    (row,) = read_by_client(spark, job_of(topic, 0, 10)).collect()

    assert (row.kind, row.partition) == (Kind.UNREAD, 0)
    assert row.reason.startswith(f"{topic.source} partition 0: offset 0 is gone")


def expire(topic: AuditedTopic, before: int) -> None:
    """As retention would."""
    admin = AdminClient({"bootstrap.servers": topic.bootstrap_servers})
    answers = admin.delete_records([TopicPartition(topic.source, 0, before)])
    assert [answer.result(30).low_watermark for answer in answers.values()] == [before]
