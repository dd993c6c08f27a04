"""Edge: the topic that keeps jobs, the view of it, and the transactions in which jobs and commands are written."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from hmac import compare_digest, digest
from typing import Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # public names, re-exported
    AdminClient,
    NewTopic,
    OffsetSpec,
)
from pydantic import ValidationError

from delaytopic_api.values import GATEWAY_TOPICS
from delaytopic_gateway.client.kafka_clients import (
    FENCED,
    FIRST_OFFSET,
    Refused,
    committed_reader,
    flush,
    headers_of,
    noting,
    producer,
    raised_by_the_client,
    transactional,
)
from delaytopic_gateway.client.new_records import OutgoingRecord
from delaytopic_gateway.client.topics import QUIET, TopicPlan
from delaytopic_gateway.errors import KafkaUnreachableError, TopicError
from delaytopic_gateway.jobs.job import Job, forgotten
from delaytopic_gateway.jobs.runner import CommandTooLarge, Fenced, InDoubt
from delaytopic_gateway.jobs.service import Jobs, SeenJob
from delaytopic_gateway.service.gateway import Gateway
from delaytopic_process.waiting import wait_until

JOBS_TOPIC: Final = f"{GATEWAY_TOPICS}jobs"
TOPIC_SETTINGS: Final = {"cleanup.policy": "compact,delete", "retention.ms": "2592000000"}
"""The last word on each job is kept, and ended jobs are forgotten after thirty days."""
TIMEOUT_S: Final = 30.0
TRANSACTION_MS: Final = 10_000
"""The time for which a killed gateway may hold up readers of a source partition, with what the broker takes to look."""
CLOSE_S: Final = 1.0
"""A question to a broker that does not answer is not waited for."""
APPEARS_S: Final = 10.0
LOOK_S: Final = 5.0
"""The interval at which the topic is looked for while there is none."""
SIGNATURE: Final = "delaytopic-signature"
"""The header with a job's signature."""


def jobs_topic_plan(name: str = JOBS_TOPIC, replication_factor: int = 1) -> TopicPlan:
    """Return the topic as it has to be."""
    return TopicPlan(name, 1, TOPIC_SETTINGS, replication_factor)


@contextmanager
def running_jobs(
    gateway: Gateway, settings: Mapping[str, str], topic: str, key: bytes, say: Callable[[str], None]
) -> Iterator[Jobs]:
    """Carry out the jobs of a gateway while the body runs; those left unfinished go on at the next start.

    `settings` are those of the Kafka client, `key` signs jobs; `say` gets lines for people.
    """
    log = KafkaJobLog(settings, topic, JobSigner(key, topic), say)
    jobs = Jobs(gateway, log, source_ends(settings), say)
    log.start()
    jobs.start()
    try:
        yield jobs
    finally:
        jobs.close()
        log.close()


class JobSigner:
    """Tells the jobs that gateways with one key wrote from all else that is in their topic. Pure."""

    def __init__(self, key: bytes, topic: str) -> None:
        """The signature is derived from the key, for this topic alone."""
        self._key = digest(key, b"delaytopic jobs in " + topic.encode(), "sha256")

    def sign(self, name: bytes, document: bytes) -> bytes:
        """Return the signature of a job's document, and of its name."""
        return digest(self._key, name + b"\0" + document, "sha256")

    def has_signed(self, message: Message) -> bool:
        """Tell whether a record is a job with its signature."""
        name, document = message.key(), message.value()
        signatures = [value or b"" for header, value in headers_of(message) if header == SIGNATURE]
        if name is None or document is None or len(signatures) != 1:
            return False
        return compare_digest(signatures[0], self.sign(name, document))


class KafkaJobLog:
    """A `JobLog` in a topic of one partition, followed by a thread from `start` on."""

    def __init__(self, settings: Mapping[str, str], topic: str, signer: JobSigner, say: Callable[[str], None]) -> None:
        """`settings` are those of the Kafka client; `say` gets a line for what cannot be read."""
        self._settings = settings
        self.topic = topic
        self._signer = signer
        self._say = say
        self._foreign = 0
        self._seen: dict[str, SeenJob] = {}
        self._reached = 0
        self._moved = threading.Condition()
        self._closed = threading.Event()
        self._look = threading.Event()
        self._admin = AdminClient({**settings}, logger=QUIET)
        self._thread = threading.Thread(target=self._follow, name="jobs", daemon=True)

    def start(self) -> None:
        """Begin to follow the topic."""
        self._thread.start()

    def close(self) -> None:
        """End the thread."""
        self._closed.set()
        self._look.set()
        self._thread.join(CLOSE_S)

    # -- what there is

    def jobs(self) -> Sequence[SeenJob]:
        """See `JobLog.jobs`."""
        with self._moved:
            return [*self._seen.values()]

    def catch_up(self) -> None:
        """See `JobLog.catch_up`. Transactions that are open, of whichever job, are waited for."""
        if not self._reached and not self._exists():
            return
        end = self._end()
        self._look.set()
        with self._moved:
            if not self._moved.wait_for(lambda: self._reached >= end, TIMEOUT_S):
                raise KafkaUnreachableError(f"{self.topic} could not be read to its end in {TIMEOUT_S:.0f} s")

    def prepare(self) -> None:
        """See `JobLog.prepare`."""
        if self._exists():
            return
        topic = NewTopic(self.topic, 1, -1, config={**TOPIC_SETTINGS})
        try:
            self._admin.create_topics([topic], operation_timeout=TIMEOUT_S)[self.topic].result(TIMEOUT_S)
        except KafkaException as error:
            # One that is there and is not shown lacks the right to describe it, but for the moment in which it is made.
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS or not self._appears():
                raise KafkaUnreachableError(self._missing(error.args[0])) from error
        if not self._appears():
            raise KafkaUnreachableError(f"{self.topic} was made, and does not appear; try again")

    def _appears(self) -> bool:
        return wait_until(self._exists, timeout_seconds=APPEARS_S)

    def _missing(self, error: KafkaError) -> str:
        settings = ", ".join(f"{name}={value}" for name, value in TOPIC_SETTINGS.items())
        return (
            f"the gateway keeps jobs in the topic {self.topic}, which it does not see and could not make "
            f"({error.str()}): make it with 1 partition and {settings}, and give the gateway's user "
            f"{_rights(self.topic)}"
        )

    def _exists(self) -> bool:
        try:
            # Of all topics: brokers may make one that is asked for by its name.
            found = self._admin.list_topics(timeout=TIMEOUT_S).topics.get(self.topic)
        except KafkaException as error:
            raise KafkaUnreachableError(f"Kafka does not answer: {error.args[0].str()}") from error
        return found is not None and found.error is None

    def _end(self) -> int:
        place = TopicPartition(self.topic, 0)
        return _ends(self._admin, [place])[0]

    # -- following

    def _follow(self) -> None:
        while not self._closed.is_set():
            try:
                if self._exists():
                    self._read()
            except KafkaUnreachableError as error:
                self._say(f"jobs: {error}")
            self._look.wait(LOOK_S)
            self._look.clear()

    def _read(self) -> None:
        """Follow the topic until this is closed. Raises `KafkaUnreachableError`."""
        consumer: Consumer = committed_reader(self._settings, at_end_events=True)
        try:
            consumer.assign([TopicPartition(self.topic, 0, FIRST_OFFSET)])
            while not self._closed.is_set():
                self._take(consumer.consume(500, 0.05))
        finally:
            consumer.close()

    def _take(self, messages: Sequence[Message]) -> None:
        for message in messages:
            error = message.error()
            if error is not None and error.code() != KafkaError._PARTITION_EOF:
                if not error.retriable():
                    raise KafkaUnreachableError(f"{self.topic} cannot be read: {error.str()}")
                continue
            if error is None:
                self._note(message)
            with self._moved:
                self._reached = max(self._reached, (message.offset() or 0) + (error is None))
                self._moved.notify_all()

    def _note(self, message: Message) -> None:
        if not self._signer.has_signed(message):
            self._tell_of_foreign(message)
            return
        try:
            job = Job.model_validate_json(message.value() or b"")
        except ValidationError as error:
            self._say(f"jobs: offset {message.offset()} of {self.topic} is no job: {error.error_count()} errors")
            return
        known = self._seen.get(job.key)
        # Who may write here could repeat what a gateway wrote, and nothing follows the end of a job.
        if known is not None and known.job.is_over:
            self._tell_of_foreign(message)
            return
        with self._moved:
            self._seen[job.key] = SeenJob(job, time.monotonic())
            for key in forgotten([seen.job for seen in self._seen.values()], job):
                del self._seen[key]

    def _tell_of_foreign(self, message: Message) -> None:
        """Say so less and less often: who writes such records can write many."""
        self._foreign += 1
        if self._foreign.bit_count() == 1:
            self._say(
                f"jobs: offset {message.offset()} of {self.topic} was not written by a gateway with this token, and "
                f"does nothing; there are {self._foreign} of them: let nobody else write to this topic"
            )

    # -- writing

    def open(self, key: str) -> KafkaJobWriter:
        """See `JobLog.open`."""
        return KafkaJobWriter(self._settings, self.topic, self._signer, key)


class KafkaJobWriter:
    """A `JobWriter`: a producer with a transactional id of the job's own."""

    def __init__(self, settings: Mapping[str, str], topic: str, signer: JobSigner, key: str) -> None:
        """Fence whoever had the job. Raises `TopicError`, `Fenced`, `InDoubt`."""
        self._topic = topic
        self._signer = signer
        self._key = key
        own = transactional(f"{topic}/{key}", TRANSACTION_MS)
        try:
            self._producer: Producer = producer({**settings, **own}, topic)
            self._producer.init_transactions(TIMEOUT_S)
        except KafkaUnreachableError as error:
            raise InDoubt(f"{error}") from error
        except KafkaException as error:
            raise self._translated(error.args[0]) from error

    def commit(self, job: Job, topic: str = "", partition: int = 0, commands: Sequence[OutgoingRecord] = ()) -> None:
        """See `JobWriter.commit`."""
        refused: Refused[int] = []
        try:
            with raised_by_the_client():
                self._producer.begin_transaction()
                for number, command in enumerate(commands):
                    self._produce(topic, partition, command, noting(refused, number))
                self._produce(self._topic, 0, self._signed(job), noting(refused, -1))
                left = flush(self._producer, refused, TIMEOUT_S)
                if refused:
                    raise self._refusal(refused, commands)
                if left:
                    raise InDoubt(f"Kafka did not acknowledge a batch of {self._key} in {TIMEOUT_S:.0f} s")
                self._producer.commit_transaction(TIMEOUT_S)
        except KafkaException as error:
            self._abort()
            raise self._translated(error.args[0]) from error
        except BaseException:
            self._abort()
            raise

    def close(self) -> None:
        """See `JobWriter.close`."""
        self._abort()
        self._producer.purge()

    def _signed(self, job: Job) -> OutgoingRecord:
        name, document = self._key.encode(), job.model_dump_json(by_alias=True).encode()
        return OutgoingRecord(name, document, [(SIGNATURE, self._signer.sign(name, document))])

    def _produce(self, topic: str, partition: int, record: OutgoingRecord, note: Callable[..., None]) -> None:
        self._producer.produce(topic, record.value, record.key, partition, on_delivery=note, headers=[*record.headers])

    def _abort(self) -> None:
        with suppress(KafkaException, SystemError):
            self._producer.abort_transaction(TIMEOUT_S)

    def _refusal(self, refused: Sequence[tuple[int, KafkaError]], commands: Sequence[OutgoingRecord]) -> Exception:
        _, error = refused[0]
        too_large = [number for number, each in refused if each.code() == KafkaError.MSG_SIZE_TOO_LARGE and number >= 0]
        if too_large:
            # Several may have shared a request. The largest is the one that can be at fault.
            return CommandTooLarge(max(too_large, key=lambda number: len(commands[number].value or b"")))
        return self._translated(error)

    def _translated(self, error: KafkaError) -> Exception:
        if error.code() == KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED:
            return TopicError(f"Kafka refused the job {self._key}: the gateway's user needs {_rights(self._topic)}")
        if error.code() in FENCED or error.fatal():
            return Fenced(f"the job {self._key} was taken over")
        if error.retriable() or error.code() in (KafkaError._TIMED_OUT, KafkaError._TRANSPORT):
            return InDoubt(f"Kafka does not answer: {error.str()}")
        return TopicError(f"Kafka refused a batch of {self._key}: {error.str()}")


def _rights(topic: str) -> str:
    return f"READ and WRITE on it, and WRITE on transactional ids that begin with {topic}/"


def source_ends(settings: Mapping[str, str]) -> Callable[[str], dict[int, int]]:
    """Return what tells the offset behind the last record of each partition of a topic, open transactions included.

    It raises `TopicError` and `KafkaUnreachableError`.
    """
    admin = AdminClient({**settings}, logger=QUIET)
    known: dict[str, list[TopicPartition]] = {}

    def ends(topic: str) -> dict[int, int]:
        if topic not in known:
            known[topic] = _places(admin, topic)
        found = _ends(admin, known[topic])
        return {place.partition: end for place, end in zip(known[topic], found, strict=True)}

    return ends


def _places(admin: AdminClient, topic: str) -> list[TopicPartition]:
    try:
        found = admin.list_topics(timeout=TIMEOUT_S).topics.get(topic)
    except KafkaException as error:
        raise KafkaUnreachableError(f"Kafka does not answer: {error.args[0].str()}") from error
    if found is None or found.error is not None:
        raise TopicError(f"there is no topic {topic}, or the gateway's user may not see it")
    return [TopicPartition(topic, partition) for partition in sorted(found.partitions)]


def _ends(admin: AdminClient, places: Sequence[TopicPartition]) -> list[int]:
    latest = {place: OffsetSpec.latest() for place in places}  # type: ignore[no-untyped-call]
    try:
        found = admin.list_offsets(latest, request_timeout=TIMEOUT_S)
        return [found[place].result().offset for place in places]
    except KafkaException as error:
        raise KafkaUnreachableError(f"Kafka does not tell the end of a topic: {error.args[0].str()}") from error
