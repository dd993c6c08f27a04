"""A gateway as a process, with a topic of outcomes full of what no relay wrote, and thousands who wait for an end."""

from __future__ import annotations

import os
import select
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Final, NamedTuple

import pytest
from confluent_kafka import Producer, TopicPartition
from tests.harness.names import unique
from tests.harness.shared_servers import KafkaAddress
from tests.support.gateway.gateway_process import HEALTH_S, POD_BYTES, GatewayProcess, Settings, asked

from delaytopic_api.relay import Ending, Outcome, RecordPlace
from delaytopic_gateway.access.bounds.room import AWAITED_AT_ONCE
from delaytopic_gateway.client.topics import TopicPlan, admin_client, create_topics
from delaytopic_gateway.jobs import jobs_topic_plan
from delaytopic_gateway.kafka.endings import LONGEST_BYTES

pytestmark = [
    pytest.mark.integration,
    pytest.mark.alone,
    # Each day units bound who waits and what is read for them, and a gateway is attacked in other ways.
    pytest.mark.nightly,
    pytest.mark.skipif(not os.path.exists("/proc/self/task"), reason="the kernel has to tell what a process has"),
]

MANY: Final = 1_000_000
"""Records that no relay wrote."""
EXPIRED: Final = 500_000
"""Of them the first, which are deleted."""
LARGE: Final = 100
"""Documents of a MiB, in the form of outcomes."""
WAITING: Final = 2_000
TEAMS: Final = 6
READ_S: Final = 10.0
LAST_OFFSET: Final = (1 << 63) - 1
HEAD_BYTES: Final = 13
"""Of an answer, with its status."""


class Topic(NamedTuple):
    """A topic of outcomes with one partition."""

    name: str
    source: str
    end: int
    """The offset of the only outcome that a relay would have written for `order-17`, which is the last one."""

    def outcome(self, offset: int, name: str, reason: str | None = None) -> bytes:
        source = RecordPlace(topic=self.source, partition=0, offset=offset)
        ended = Outcome(outcome=Ending.DELIVERED, ended_ms=17, source=source, id=name, reason=reason)
        return ended.model_dump_json(by_alias=True).encode()


@pytest.fixture(scope="module")
def topic(kafka: KafkaAddress) -> Topic:
    """Holds a million records of strangers, large ones, many ends of one id, and the end of `order-17` at last."""
    found = Topic(unique("outcomes"), unique("source"), MANY + LARGE + 2_000)
    settings = {"max.message.bytes": str(2 << 20), "segment.bytes": str(4 << 20)}
    create_topics(kafka.bootstrap_servers, [TopicPlan(found.name, 1, settings), TopicPlan(found.source, 1)])
    producer = Producer(
        {
            "bootstrap.servers": kafka.bootstrap_servers,
            "linger.ms": 20,
            "message.max.bytes": 2 << 20,
            "queue.buffering.max.messages": 2 * MANY,
        }
    )
    for _ in range(MANY):
        producer.produce(found.name, b'{"offset": 7, "outcome"', b"order-17", 0)
    large = found.outcome(7, "order-17", "x" * (1 << 20))
    for _ in range(LARGE):
        producer.produce(found.name, large, b"order-17", 0)
    several = found.outcome(5, "several", "x" * (LONGEST_BYTES - 500))
    for _ in range(2_000):
        producer.produce(found.name, several, b"several", 0)
    producer.produce(found.name, found.outcome(7, "order-17"), b"order-17", 0)
    assert producer.flush(60) == 0
    admin, gone = admin_client(kafka.bootstrap_servers), TopicPartition(found.name, 0, EXPIRED)
    admin.delete_records([gone])[gone].result(30)
    return found


@pytest.fixture
def gateway(
    kafka: KafkaAddress, topic: Topic, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[GatewayProcess]:
    # As in the chart.
    monkeypatch.setenv("MALLOC_ARENA_MAX", "2")
    jobs = unique("jobs")
    create_topics(kafka.bootstrap_servers, [jobs_topic_plan(jobs)])
    settings = Settings(
        namespace="shop",
        name="reminders",
        source=topic.source,
        target="t",
        dead_letter="d",
        max_delay_ms=1 << 50,
        bootstrap_servers=kafka.bootstrap_servers,
        jobs_topic=jobs,
        relay_urls=[],
        is_shared=True,
        read_s=READ_S,
        outcomes=topic.name,
    )
    process = GatewayProcess(settings, tmp_path)
    try:
        yield process.start()
    finally:
        process.stop_whatever_happens()


def ask(gateway: GatewayProcess, number: int, path: str) -> socket.socket:
    """Send a question, and return the connection with the answer to come."""
    host, _, port = gateway.url.removeprefix("http://").partition(":")
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    client.settimeout(60)
    client.connect((host, int(port)))
    lines = f"GET {gateway.base}{path} HTTP/1.1", "Host: localhost", f"user: team {number % TEAMS}"
    client.sendall("\r\n".join([*lines, "Connection: close", "", ""]).encode())
    return client


def wait_for_an_end(gateway: GatewayProcess, numbers: range, end: int) -> Counter[str]:
    """Ask many times at once for ends that do not come; return how often each status was answered."""
    starts = 0, EXPIRED, MANY, end, LAST_OFFSET
    with ExitStack() as stack:
        clients = [
            stack.enter_context(closing(ask(gateway, each, f"/outcomes/0:9?from={starts[each % 5]}&wait=5s")))
            for each in numbers
        ]
        return Counter(client.recv(HEAD_BYTES).decode().partition(" ")[2].strip() for client in clients)


def read_slowly(gateway: GatewayProcess, number: int) -> None:
    """Ask for all ends of an id and read none of them, until the gateway hangs up."""
    with closing(ask(gateway, number, "/outcomes?id=several")) as client:
        end = select.poll()
        end.register(client, select.POLLRDHUP)
        assert end.poll(120_000), "the gateway does not hang up"


def threads_of(gateway: GatewayProcess) -> Counter[str]:
    """Return how many threads the process has, by their names: each client of Kafka has a `rdk:main`."""
    found: Counter[str] = Counter()
    for comm in Path(f"/proc/{gateway.child.pid}/task").glob("*/comm"):
        try:
            found[comm.read_text(encoding="utf-8").strip()] += 1
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has ended meanwhile
    return found


def test_thousands_who_wait_take_bounded_memory_threads_and_readers_and_others_are_answered(
    gateway: GatewayProcess, topic: Topic, record_property: Callable[[str, object], None]
) -> None:
    before = threads_of(gateway)
    with ThreadPoolExecutor(30) as pool:
        under_way = [pool.submit(wait_for_an_end, gateway, range(each, WAITING, 20), topic.end) for each in range(20)]
        slow = [pool.submit(read_slowly, gateway, each) for each in range(10)]
        waits_s, most, readers = list[float](), 0, 0
        while not (all(each.done() for each in under_way) and all(each.done() for each in slow)):
            waits_s.append(asked(f"{gateway.probes}/healthz"))
            threads = threads_of(gateway)
            most, readers = max(most, threads.total()), max(readers, threads["rdk:main"])
            threading.Event().wait(0.05)
        statuses = sum((each.result() for each in under_way), Counter[str]())
        for each in slow:
            each.result()

    record_property("memory", f"{gateway.most_bytes() >> 20} MiB")
    record_property(
        "threads", f"{most}, {before.total()} before; clients of Kafka: {readers}, {before['rdk:main']} before"
    )
    record_property("healthz", f"{max(waits_s):.2f} s at the most, of {len(waits_s)}")
    record_property("answers", dict(statuses))
    # One client for what is asked beside reading.
    assert readers <= before["rdk:main"] + AWAITED_AT_ONCE + 1
    assert gateway.most_bytes() < POD_BYTES
    assert max(waits_s) < HEALTH_S
    assert {*statuses} == {"202", "503"}
    assert statuses.total() == WAITING
    # And whoever comes after them is answered.
    status, outcome = gateway.ask("GET", f"/outcomes/0:7?from={topic.end}")
    assert (status, outcome["outcome"]) == (200, "Delivered")


def test_what_is_long_or_no_outcome_is_passed_over_and_what_is_gone_is_told(
    gateway: GatewayProcess, topic: Topic
) -> None:
    began_s, address = time.monotonic(), "/outcomes/0:7?from=0"
    status, document = gateway.ask("GET", address)

    assert (status, document["expired"]) == (202, EXPIRED)
    asked_times = 1
    while status == 202:
        status, document = gateway.ask("GET", document["next"].removeprefix(gateway.base))
        asked_times += 1
    assert (status, document["outcome"], document["reason"]) == (200, "Delivered", None)
    # Each question reads a part of the half million.
    assert asked_times > 10
    assert time.monotonic() - began_s < 60


def test_a_list_of_the_ends_of_an_id_has_as_many_as_find_room(gateway: GatewayProcess) -> None:
    status, page = gateway.ask("GET", "/outcomes?id=several")

    assert (status, page["complete"]) == (200, False)
    assert 100 < len(page["outcomes"]) < 200
    assert gateway.ask("GET", "/outcomes?id=several&partition=2147483647")[0] == 404
    assert gateway.ask("GET", f"/outcomes/0:7?from={LAST_OFFSET + 1}")[0] == 400
    assert gateway.ask("GET", "/outcomes/999999999:999999999999999999")[0] == 404
