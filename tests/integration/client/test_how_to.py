"""The program of the how-to on outcomes, as it is printed, beside what stands for a relay."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from threading import Event, Thread

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from tests.harness.names import unique
from tests.harness.shared_servers import KafkaAddress
from tests.support.paths import ROOT

from delaytopic_gateway.client.kafka_clients import headers_of
from delaytopic_gateway.client.topics import TopicPlan, create_topics

pytestmark = pytest.mark.integration

PAGE = ROOT / "docs/how-to/know-how-a-schedule-ended.md"


class Scribe:
    """Reads a source topic of one partition, and answers each cancel with the outcome of the record before it."""

    def __init__(self, servers: str, source: str, outcomes: str, ending: str) -> None:
        self._consumer = Consumer({"bootstrap.servers": servers, "group.id": source})
        self._consumer.assign([TopicPartition(source, 0, 0)])
        self._producer = Producer({"bootstrap.servers": servers})
        self._outcomes, self._ending = outcomes, ending
        self._ended = Event()
        self._thread = Thread(target=self._run)
        self.headers: list[dict[str, bytes]] = []

    def __enter__(self) -> Scribe:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        self._consumer.close()

    def _run(self) -> None:
        while not self._ended.is_set():
            message = self._consumer.poll(0.05)
            if message is None or message.error() is not None:
                continue
            headers = {name: value or b"" for name, value in headers_of(message)}
            self.headers.append(headers)
            if headers.get("deliver-action") == b"cancel":
                self._answer(message.topic() or "", message.offset() or 0)

    def _answer(self, source: str, offset: int) -> None:
        def place(number: int) -> dict[str, str | int]:
            return {"topic": source, "partition": 0, "offset": number}

        told = {"id": "order-17", "endedMs": time.time_ns() // 1_000_000}
        schedule = {"outcome": self._ending, "source": place(offset - 1), **told}
        if self._ending == "Cancelled":
            documents = [schedule | {"endedBy": place(offset)}]
        else:
            documents = [schedule | {"target": place(41)}, {"outcome": "NotPending", "source": place(offset), **told}]
        for document in documents:
            self._producer.produce(self._outcomes, json.dumps(document), b"order-17", partition=0)
        self._producer.flush(30)


@pytest.fixture
def topics(kafka: KafkaAddress) -> tuple[str, str, str]:
    source, outcomes = unique("source"), unique("outcomes")
    create_topics(kafka.bootstrap_servers, [TopicPlan(source), TopicPlan(outcomes)])
    return kafka.bootstrap_servers, source, outcomes


@pytest.mark.parametrize(
    ("ending", "said"),
    [
        ("Cancelled", r"not delivered: it was cancelled at [0-9]{13}\n"),
        ("Delivered", r"too late: Delivered at source-\S+:0:41\n"),
    ],
)
def test_the_program_says_whether_its_cancel_won(topics: tuple[str, str, str], ending: str, said: str) -> None:
    servers, source, outcomes = topics
    (program,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    environment = {**os.environ, "BROKERS": servers, "TOPIC": source, "OUTCOMES": outcomes}

    with Scribe(servers, source, outcomes, ending) as scribe:
        done = subprocess.run(
            [sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=60, check=False
        )

    assert (done.returncode, done.stderr) == (0, "")
    assert re.fullmatch(said, done.stdout)
    assert [each.get("deliver-requested-by") for each in scribe.headers] == [b"shop-desk"] * 2
