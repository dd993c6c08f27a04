"""The topic of jobs on a real Kafka: who may write a job, and what is there when a transaction was not committed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType  # type: ignore[attr-defined]  # public names
from tests.harness.names import unique
from tests.harness.shared_servers import KafkaAddress
from tests.support.relay.route import read_topic

from delaytopic_gateway.client import kafka_clients
from delaytopic_gateway.client.new_records import OutgoingRecord
from delaytopic_gateway.client.topics import TopicPlan, create_topics
from delaytopic_gateway.errors import TopicError
from delaytopic_gateway.jobs.job import Action, Job, Part, Selector, State
from delaytopic_gateway.jobs.log import SIGNATURE, TOPIC_SETTINGS, JobSigner, KafkaJobLog, KafkaJobWriter, source_ends
from delaytopic_gateway.jobs.runner import CommandTooLarge, Fenced, InDoubt

pytestmark = pytest.mark.integration

KEY = "shop/reminders/one"
TOKEN = b"token"
MakeLog = Callable[[], KafkaJobLog]


@pytest.fixture
def topic() -> str:
    return unique("jobs")


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def make_log(kafka: KafkaAddress, topic: str, said: list[str]) -> Iterator[MakeLog]:
    made: list[KafkaJobLog] = []

    def make() -> KafkaJobLog:
        log = KafkaJobLog({"bootstrap.servers": kafka.bootstrap_servers}, topic, JobSigner(TOKEN, topic), said.append)
        log.start()
        made.append(log)
        return log

    yield make
    for log in made:
        log.close()


@pytest.fixture
def source(kafka: KafkaAddress) -> str:
    name = unique("source")
    create_topics(kafka.bootstrap_servers, [TopicPlan(name, 2, {"max.message.bytes": "100000"})])
    return name


def job(source: str, written: int = 0, state: State = State.RUNNING) -> Job:
    return Job(
        id="one",
        namespace="shop",
        name="reminders",
        source=source,
        action=Action.CANCEL,
        selector=Selector(key_prefix="k"),
        created_ms=1,
        updated_ms=2,
        skipped={},
        written=written,
        state=state,
        parts=(Part(partition=0, before_offset=5),),
    )


def jobs(log: KafkaJobLog) -> list[Job]:
    log.catch_up()
    return [seen.job for seen in log.jobs()]


def test_without_the_topic_there_are_no_jobs_and_it_is_made_when_it_is_needed(
    kafka: KafkaAddress, topic: str, make_log: MakeLog
) -> None:
    log = make_log()
    before = jobs(log)
    log.prepare()
    log.prepare()

    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    resource = ConfigResource(ResourceType.TOPIC, topic)
    config = admin.describe_configs([resource])[resource].result(30)
    assert (before, jobs(log)) == ([], [])
    assert {name: config[name].value for name in TOPIC_SETTINGS} == TOPIC_SETTINGS


def test_commands_and_the_job_are_there_together(kafka: KafkaAddress, source: str, make_log: MakeLog) -> None:
    log, other = make_log(), make_log()
    log.prepare()
    writer = log.open(KEY)
    writer.commit(job(source))
    commands = [OutgoingRecord(b"%d" % number, None, [("n", b"x")]) for number in range(3)]
    writer.commit(job(source, written=3), source, 1, commands)

    assert jobs(other) == jobs(log) == [job(source, written=3)]
    records = read_topic(kafka.bootstrap_servers, source)
    assert [(record.at.partition, record.key, record.value) for record in records] == [
        (1, b"0", None),
        (1, b"1", None),
        (1, b"2", None),
    ]
    assert source_ends({"bootstrap.servers": kafka.bootstrap_servers})(source) == {0: 0, 1: 4}


def test_who_opens_a_job_fences_the_one_before_with_what_it_has_not_committed(
    kafka: KafkaAddress, source: str, make_log: MakeLog
) -> None:
    log, other = make_log(), make_log()
    log.prepare()
    first = log.open(KEY)
    first.commit(job(source))

    second = other.open(KEY)
    with pytest.raises(Fenced):
        first.commit(job(source, written=1), source, 0, [OutgoingRecord(b"first", None, [])])
    second.commit(job(source, written=1), source, 0, [OutgoingRecord(b"second", None, [])])

    assert jobs(log) == [job(source, written=1)]
    assert [record.key for record in read_topic(kafka.bootstrap_servers, source)] == [b"second"]


def test_a_job_is_in_doubt_while_no_broker_answers(topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka_clients, "METADATA_TIMEOUT_SECONDS", 0.2)

    with pytest.raises(InDoubt, match="no Kafka broker answers"):
        KafkaJobWriter({"bootstrap.servers": "127.0.0.1:1"}, topic, JobSigner(TOKEN, topic), KEY)


def test_a_command_that_is_too_large_is_named_and_nothing_is_there(
    kafka: KafkaAddress, source: str, make_log: MakeLog
) -> None:
    log = make_log()
    log.prepare()
    writer = log.open(KEY)
    writer.commit(job(source))
    values = [b"v", b"v" * 70_000, b"v" * 120_000, b"v"]

    with pytest.raises(CommandTooLarge) as error:
        writer.commit(job(source, written=4), source, 0, [OutgoingRecord(b"k", value, []) for value in values])
    del values[error.value.number]
    nothing = jobs(log)
    writer.commit(job(source, written=3), source, 0, [OutgoingRecord(b"k", value, []) for value in values])

    assert (error.value.number, nothing) == (2, [job(source)])
    assert [len(record.value or b"") for record in read_topic(kafka.bootstrap_servers, source)] == [1, 70_000, 1]


def test_what_kafka_refuses_otherwise_leaves_the_job_to_be_written(
    kafka: KafkaAddress, source: str, make_log: MakeLog
) -> None:
    log = make_log()
    log.prepare()
    writer = log.open(KEY)

    with pytest.raises(TopicError):
        writer.commit(job(source), source, 7, [OutgoingRecord(b"k", None, [])])
    writer.commit(job(source, state=State.FAILED))

    assert jobs(log) == [job(source, state=State.FAILED)]


def document(source: str, **changes: Any) -> bytes:
    return job(source).model_copy(update=changes).model_dump_json(by_alias=True).encode()


def signed(topic: str, document: bytes, key: str = KEY, token: bytes = TOKEN) -> dict[str, bytes]:
    return {SIGNATURE: JobSigner(token, topic).sign(key.encode(), document)}


def test_no_job_is_believed_that_a_gateway_did_not_write(
    kafka: KafkaAddress, topic: str, source: str, make_log: MakeLog, said: list[str]
) -> None:
    log = make_log()
    log.prepare()
    forged, other = document(source, selector=Selector()), "another/key/one"
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    log.open(KEY).commit(job(source))
    for key, value, headers in (
        (KEY, forged, {}),
        (KEY, forged, signed(topic, document(source))),
        (KEY, forged, signed(topic, forged, token=b"another token")),
        (KEY, forged, signed("elsewhere", forged)),
        (other, forged, signed(topic, forged)),
        (KEY, None, {}),
        (KEY, b"no job", signed(topic, b"no job")),
    ):
        producer.produce(topic, value, key.encode(), headers=[*headers.items()])
    assert producer.flush(30) == 0

    assert jobs(log) == jobs(make_log()) == [job(source)]
    assert [line.partition(" was ")[0] for line in said if line.startswith("jobs: offset")][:4] == [
        # The first, second and fourth that were forged; offset 1 is the marker of a transaction.
        f"jobs: offset 2 of {topic}",
        f"jobs: offset 3 of {topic}",
        f"jobs: offset 5 of {topic}",
        f"jobs: offset 8 of {topic} is no job: 1 errors",
    ]


def test_what_a_gateway_wrote_of_a_job_begins_it_anew_for_nobody(
    kafka: KafkaAddress, topic: str, source: str, make_log: MakeLog
) -> None:
    log = make_log()
    log.prepare()
    writer = log.open(KEY)
    writer.commit(job(source))
    writer.commit(job(source, state=State.CANCELLED))
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    began = document(source)
    producer.produce(topic, began, KEY.encode(), headers=[*signed(topic, began).items()])
    assert producer.flush(30) == 0

    assert jobs(log) == [job(source, state=State.CANCELLED)]
