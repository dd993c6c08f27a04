"""One DelayTopic on real servers, for a test: its topics, its relays' configuration, its traffic, its verdict."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import yaml
from confluent_kafka import Consumer as KafkaConsumer
from confluent_kafka import Producer, TopicPartition
from tests.support.relay.process import RelayProcess, patient, wait_for

from delaytopic_api.relay import RelayConfig
from delaytopic_api.values import BackendType, bucket_topics
from delaytopic_gateway.client.raw_records import Coordinates, Headers, RawRecord
from delaytopic_gateway.client.topics import TopicPlan, create_topics
from delaytopic_local.verifier.reading import Rules, read_dead_letter, read_delivered, read_source
from delaytopic_local.verifier.verdict import DeadLetter, DeliveredRecord, Fate, Outage, SourceRecord, Verdict, verify
from delaytopic_relay.kafka.settings import Settings
from delaytopic_relay.kafka.topics import TopicReader

ClientHeaders = list[tuple[str, str | bytes | None]]

PARTITIONS = 4
LOG_APPEND_TIME = {"message.timestamp.type": "LogAppendTime"}
SESSION_TIMEOUT_S = 6
"""The shortest that a broker allows unless it is told otherwise."""


@dataclass
class Servers:
    """Addresses of Kafka and Redis, and how many brokers have a copy of each partition."""

    bootstrap_servers: str
    redis_url: str
    copies: int = 1


@dataclass
class Route:
    """Names, files and processes of one DelayTopic."""

    servers: Servers
    directory: Path
    name: str
    spec: dict[str, Any] = field(default_factory=dict)
    partitions: int = PARTITIONS
    relays: list[RelayProcess] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.source, self.target, self.dead_letter = (f"{self.name}.{part}" for part in ("source", "target", "dlq"))
        self.other, self.history = f"{self.name}.other", f"{self.name}.history"
        self.outcomes = f"{self.name}.outcomes"

    def create_topics(self, **source_settings: str) -> Route:
        """Source, target, another allowed target, dead letters, and what the backend needs."""
        config = self.config()
        buckets = bucket_topics(config.backend.id, config.limits.horizon.ms, config.schedule.max_delay.ms)
        plans = [
            TopicPlan(self.source, self.partitions, source_settings or {}),
            TopicPlan(self.target, self.partitions, LOG_APPEND_TIME),
            TopicPlan(self.other, self.partitions, LOG_APPEND_TIME),
            *([TopicPlan(self.history, self.partitions, {})] if config.history is not None else []),
            *([TopicPlan(self.outcomes, self.partitions, {})] if config.outcomes is not None else []),
            TopicPlan(self.dead_letter, 1, {"max.message.bytes": str((1 << 20) + (1 << 16))}),
            *(
                TopicPlan(topic.name, self.partitions, topic.config)
                for topic in buckets
                if config.backend.type is BackendType.KAFKA_BUCKETS
            ),
        ]
        copies = self.servers.copies
        create_topics(self.servers.bootstrap_servers, [replace(plan, replication_factor=copies) for plan in plans])
        return self

    def config(self) -> RelayConfig:
        """The relays' configuration document."""
        document = {
            "name": self.name,
            "namespace": "tests",
            "groupId": f"delaytopic.tests.{self.name}",
            "source": {"topic": self.source},
            "target": {"topic": self.target, "allowedTopics": [self.other]},
            "deadLetter": {"topic": self.dead_letter},
            "schedule": {"maxDelay": "720h"},
            "precision": "50ms",
            "guarantee": "ExactlyOnce",
            "backend": {
                "type": "RedisZset",
                "id": f"delaytopic.tests.{self.name}",
                "redis": {"url": self.servers.redis_url},
            },
            "kafka": {"bootstrapServers": self.servers.bootstrap_servers},
            "http": {"host": "127.0.0.1", "port": 0},
            "limits": {"horizon": "2s", "sessionTimeout": f"{SESSION_TIMEOUT_S}s"},
        }
        merged = _merged(document, self.spec)
        if "scheduler" in merged["schedule"]:
            merged["schedule"]["scheduler"] = {"history": {"topic": self.history}} | merged["schedule"]["scheduler"]
        if "outcomes" in merged:
            merged["outcomes"] = {"topic": self.outcomes} | merged["outcomes"]
        return RelayConfig.model_validate(merged)

    def topic_mark(self) -> str:
        """The mark of the source's topic id, which the backend's keys and segments have."""
        connection = Settings({"bootstrap.servers": self.servers.bootstrap_servers})
        return TopicReader(connection, []).source_topic(self.source).identity.topic

    def relay(self, name: str | None = None) -> RelayProcess:
        """A further relay, not yet started; with the name of another one, there are two of that name."""
        number = len(self.relays)
        path = self.directory / f"{self.name}-{number}.yaml"
        path.write_text(yaml.safe_dump(self.config().to_document()), encoding="utf-8")
        self.relays.append(RelayProcess(path, f"{self.name}-{number}"))
        self.relays[-1].name = name or self.relays[-1].name
        return self.relays[-1]

    def start_relay(self) -> RelayProcess:
        """A further relay, started."""
        return self.relay().start()

    def stop_relays(self) -> None:
        """For teardown."""
        for relay in self.relays:
            relay.stop_whatever_happens()

    # -- traffic

    def send(self, records: Sequence[tuple[bytes | None, bytes | None, ClientHeaders]]) -> None:
        """Produce (key, value, headers) to the source, and wait until they are there."""
        producer = Producer({"bootstrap.servers": self.servers.bootstrap_servers, "linger.ms": 1, "acks": "all"})
        for key, value, headers in records:
            producer.produce(self.source, value, key, headers=headers)
            producer.poll(0)
        assert producer.flush(30) == 0

    @contextmanager
    def traffic(self, rate: int, delays_ms: tuple[int, int], seed: int = 1) -> Iterator[None]:
        """Send records at a rate while the body runs, each with a delay between these bounds."""
        stop = threading.Event()
        failures: list[BaseException] = []
        thread = threading.Thread(target=self._produce_until, args=(stop, rate, delays_ms, seed, failures))
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()
        assert not failures, failures

    def _produce_until(
        self, stop: threading.Event, rate: int, delays_ms: tuple[int, int], seed: int, failures: list[BaseException]
    ) -> None:
        rng = random.Random(seed)
        settings = {"bootstrap.servers": self.servers.bootstrap_servers, "linger.ms": 1, "enable.idempotence": True}
        producer = Producer({**settings, "queue.buffering.max.messages": 1_000_000, "message.timeout.ms": 120_000})
        producer.list_topics(self.source, 30)  # so that the first records need not wait for a producer id
        sent, started_s = 0, time.monotonic()
        try:
            while not stop.wait(0.01):
                wanted = int((time.monotonic() - started_s) * rate)
                for number in range(sent, wanted):
                    due_ms = time.time_ns() // 1_000_000 + rng.randint(*delays_ms)
                    headers: ClientHeaders = [
                        ("deliver-at", b"%d" % due_ms),
                        ("n", b"%d" % number),
                    ]
                    producer.produce(self.source, b"x" * 100, b"%d" % (number % 997), headers=headers)
                sent = max(sent, wanted)
                producer.poll(0)
            assert producer.flush(120) == 0
        except BaseException as error:
            failures.append(error)

    # -- the verdict

    def rules(self) -> Rules:
        """Return what the specification says about records."""
        schedule = self.config().schedule
        return Rules(
            target=self.target,
            max_delay_ms=schedule.max_delay.ms,
            allowed_targets=(self.other,),
            default_delay_ms=schedule.default_delay.ms if schedule.default_delay is not None else None,
            fixed_delay_ms=schedule.fixed_delay.ms if schedule.fixed_delay is not None else None,
        )

    def read(self, topic: str, *, committed: bool = True) -> list[RawRecord]:
        """Everything on a topic, as a reader from outside sees it."""
        return read_topic(self.servers.bootstrap_servers, topic, committed=committed)

    def source_records(self) -> list[SourceRecord]:
        """Return what was asked for."""
        rules = self.rules()
        return [read_source(record, rules) for record in self.read(self.source)]

    def delivered(self) -> list[DeliveredRecord]:
        """Return what arrived."""
        return [read_delivered(record) for topic in (self.target, self.other) for record in self.read(topic)]

    def dead_letters(self) -> list[DeadLetter]:
        """Return what was refused."""
        return [read_dead_letter(record) for record in self.read(self.dead_letter)]

    def verdict(self, outages: Sequence[Outage] = ()) -> Verdict:
        """Judge everything up to now."""
        now_ms = time.time_ns() // 1_000_000
        return verify(self.source_records(), self.delivered(), self.dead_letters(), until_ms=now_ms, outages=outages)

    def settled_verdict(self, timeout_s: float = 60, outages: Sequence[Outage] = ()) -> Verdict:
        """Judge once nothing is pending or missing any more, or after the timeout."""
        verdicts: list[Verdict] = []

        def settled() -> bool:
            verdicts.append(self.verdict(outages))
            return not (verdicts[-1].lost or verdicts[-1].pending or verdicts[-1].dead_letters_missing)

        started_s = time.monotonic()
        self._wait_until_all_are_due(timeout_s)
        patient(settled, timeout_s - (time.monotonic() - started_s))
        return verdicts[-1]

    def _wait_until_all_are_due(self, timeout_s: float) -> None:
        """Until then nothing can be settled, unless a later command may withdraw it."""
        source = self.source_records()
        if all(record.schedule_id is None for record in source):
            due_ms = max((record.due_ms for record in source if record.fate is Fate.SCHEDULE), default=0)
            ahead_ms = due_ms - time.time_ns() // 1_000_000
            threading.Event().wait(min(max(ahead_ms / 1_000, 0), timeout_s))


def read_topic(bootstrap_servers: str, topic: str, *, committed: bool = True) -> list[RawRecord]:
    """All records of a topic from its beginning to its end as of now."""
    consumer = KafkaConsumer(
        {
            "bootstrap.servers": bootstrap_servers,
            "group.id": "reader-from-outside",
            "isolation.level": "read_committed" if committed else "read_uncommitted",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
            "fetch.queue.backoff.ms": 2,
            "fetch.wait.max.ms": 20,  # the end of a partition is told only after the longest wait
        }
    )
    partitions = list(consumer.list_topics(topic, timeout=30).topics[topic].partitions)
    consumer.assign([TopicPartition(topic, partition, 0) for partition in partitions])
    records: list[RawRecord] = []
    open_partitions = set(partitions)

    def all_read() -> bool:
        for message in consumer.consume(5_000, 0.05):
            if message.error() is not None:
                open_partitions.discard(message.partition() or 0)
                continue
            at = Coordinates(topic, message.partition() or 0, message.offset() or 0)
            headers = cast(Headers, tuple(message.headers() or ()))
            records.append(RawRecord(at, message.timestamp()[1], message.key(), message.value(), headers))
        return not open_partitions

    wait_for(all_read, lambda: f"{topic} could not be read to its end")
    consumer.close()
    return records


def _merged(document: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    merged = dict(document)
    for name, value in changes.items():
        both = isinstance(value, dict) and isinstance(merged.get(name), dict)
        merged[name] = _merged(merged[name], value) if both else value
    return merged
