"""Jobs among many pending records, under load and with a gateway that is killed: nothing lost, twice or early.

A fifth of a million with each backend shows each night what a million does: lists of many pages, many transactions,
and a gateway that is killed in the middle of a job. The million itself, whose last record is due after sixteen
minutes, is a part of `make backlog`.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from confluent_kafka import Consumer, Message, Producer, TopicPartition
from tests.harness.names import unique
from tests.support.gateway.gateway_process import GatewayProcess, Settings
from tests.support.relay.process import RelayProcess, wait_for
from tests.support.relay.records import BUCKETS, REDIS, MakeRoute, now_ms
from tests.support.relay.route import PARTITIONS, ClientHeaders, Route

from delaytopic_gateway.client.kafka_clients import headers_of

pytestmark = [pytest.mark.integration, pytest.mark.alone]


class Size(NamedTuple):
    """The number of records, and their times."""

    pending: int
    each: int
    """Numbers of records that are moved, and that are cancelled."""
    ahead_ms: int
    """From the first record that is written on; by then both jobs are done."""
    spread_ms: int


NIGHT = Size(200_000, 20_000, 3 * 60_000, 60_000)
MILLION = Size(1_000_000, 100_000, 12 * 60_000, 3 * 60_000)
RATE = 1_000
"""Further records in a second, which wait for a second or two."""
MOVE_MS = 60_000
JOB_S = 300.0
LOAD = b"x" * 100
WAITS = pytest.mark.takes_long("its records wait for minutes")


class Arrived(NamedTuple):
    """The records that a reader of the target saw."""

    pending: Counter[int]
    load: Counter[bytes]
    early: int


@pytest.mark.parametrize(
    ("backend", "size"),
    [
        pytest.param(REDIS, NIGHT, marks=[pytest.mark.nightly, WAITS]),
        pytest.param(BUCKETS, NIGHT, marks=[pytest.mark.nightly, WAITS]),
        pytest.param(REDIS, MILLION, marks=[pytest.mark.backlog, WAITS], id="a million"),
    ],
    indirect=["backend"],
)
def test_a_tenth_is_moved_and_as_many_cancelled_while_the_rest_goes_on(
    make_route: MakeRoute, size: Size, tmp_path: Path
) -> None:
    # Given records that wait, and a relay that has read them
    route = make_route(schedule={"maxDelay": "48h"}, limits={"sessionTimeout": "45s"})
    relay = route.start_relay().wait_until_delivering(PARTITIONS)
    began_ms = now_ms()
    first_ms = began_ms + size.ahead_ms
    fill(route, size, first_ms)
    wait_for(lambda: relay.status()["ingestLag"] == 0 and relay.status()["pending"] == size.pending, relay.why, 600)
    print(f"\n{size.pending:,} wait after {(now_ms() - began_ms) / 1_000:.0f} s", end="; ")

    # When some are moved and some cancelled under load, and the gateway is killed in the middle of the first job
    gateway = gateway_of(route, relay, tmp_path).start()
    try:
        with route.traffic(RATE, (1_000, 2_000)):
            moved = carried_out(
                gateway, {"action": "Move", "moveBy": "1m", "selector": {"idPrefix": "move-"}}, kill_at=size.each // 3
            )
            dropped = carried_out(gateway, {"action": "Cancel", "selector": {"idPrefix": "drop-"}})
    finally:
        gateway.stop_whatever_happens()
    margin_s = (first_ms - now_ms()) / 1_000
    print(f"{margin_s:.0f} s before the first is due", end="; ")
    until_ms = first_ms + size.spread_ms + MOVE_MS
    wait_for(lambda: now_ms() > until_ms and not relay.status()["overdue"], relay.why, size.ahead_ms / 1_000 + 600)
    wait_for(lambda: relay.status()["pending"] == 0, relay.why, 600)

    # Then the counts are exact, and so is what arrived
    assert margin_s > 60, "the jobs have to be done before the first record is due"
    assert [counts(job) for job in (moved, dropped)] == [("Done", size.each, size.each, size.each, {})] * 2
    arrived = read_target(route, size, first_ms)
    assert arrived.early == 0
    assert arrived.pending == Counter(number for number in range(size.pending) if not is_dropped(number))
    load, commands = read_source(route)
    assert arrived.load == load
    assert commands == Counter(
        {name_of(number): 2 if is_moved(number) or is_dropped(number) else 1 for number in range(size.pending)}
    )
    assert route.read(route.dead_letter) == []


def is_moved(number: int) -> bool:
    return number % 10 == 0


def is_dropped(number: int) -> bool:
    return number % 10 == 1


def due_of(number: int, size: Size, first_ms: int) -> int:
    return first_ms + number * size.spread_ms // size.pending


def name_of(number: int) -> bytes:
    kind = b"move" if is_moved(number) else b"drop" if is_dropped(number) else b"stay"
    return b"%s-%07d" % (kind, number)


def fill(route: Route, size: Size, first_ms: int) -> None:
    """Write the records that wait."""
    settings = {"bootstrap.servers": route.servers.bootstrap_servers, "linger.ms": 20, "acks": "all"}
    producer = Producer({**settings, "queue.buffering.max.messages": 2 * size.pending, "enable.idempotence": True})
    for number in range(size.pending):
        name = name_of(number)
        headers: ClientHeaders = [("deliver-at", b"%d" % due_of(number, size, first_ms)), ("deliver-id", name)]
        producer.produce(route.source, name, b"%07d" % number, headers=headers)
        if number % 1_000 == 0:
            producer.poll(0)
    assert producer.flush(300) == 0


def gateway_of(route: Route, relay: RelayProcess, directory: Path) -> GatewayProcess:
    config = route.config()
    settings = Settings(
        config.namespace,
        route.name,
        route.source,
        route.target,
        route.dead_letter,
        config.schedule.max_delay.ms,
        route.servers.bootstrap_servers,
        unique("jobs"),
        [f"http://127.0.0.1:{relay.port()}"],
    )
    return GatewayProcess(settings, directory)


def carried_out(gateway: GatewayProcess, document: dict[str, Any], *, kill_at: int | None = None) -> dict[str, Any]:
    """Ask for a job, show how it goes on, and return what it says in the end.

    The gateway is killed when it has written `kill_at` commands.
    """
    began_s = time.monotonic()
    status, job = gateway.ask("POST", "/jobs", document)
    assert status == 202, job
    seen: list[tuple[float, dict[str, Any]]] = []

    def is_over() -> bool:
        found = gateway.job(job["id"])
        if not seen or found["updatedMs"] != seen[-1][1]["updatedMs"]:
            seen.append((time.monotonic() - began_s, found))
        return found["endedMs"] is not None

    if kill_at is not None:
        wait_for(lambda: is_over() or seen[-1][1]["written"] >= kill_at, gateway.why, JOB_S)
        gateway.kill()
        killed_s = time.monotonic() - began_s
        gateway.start()
        wait_for(lambda: gateway.ask("GET", f"/jobs/{job['id']}")[0] == 200, gateway.why)
        print(f"killed after {killed_s:.0f} s at {seen[-1][1]['written']:,}", end="; ")
    wait_for(is_over, lambda: f"{seen[-1]} {gateway.why()}", JOB_S)
    counted_s = next(at_s for at_s, found in seen if found["expected"] is not None)
    took_s, last = seen[-1]
    rate = last["written"] / (took_s - counted_s)
    print(f"{last['action']}: counted in {counted_s:.0f} s, {last['written']:,} written {took_s:.0f} s", end=" ")
    print(
        f"after it was asked for, {rate:,.0f}/s, {last['batches']} transactions, seen {len(seen)} times on its way",
        end="; ",
    )
    assert len(seen) > 3, "progress is shown"
    return last


def counts(job: dict[str, Any]) -> tuple[str, int, int, int, dict[str, int]]:
    return job["state"], job["expected"], job["matched"], job["written"], job["skipped"]


def read_target(route: Route, size: Size, first_ms: int) -> Arrived:
    """Read the target record by record."""
    pending, load, early = Counter[int](), Counter[bytes](), 0
    for message in messages_of(route, route.target):
        value, headers = message.value() or b"", given(message)
        if value == LOAD:
            load[headers["n"]] += 1
            due_ms = int(headers["delay-receipt"].split(b":")[0])
        else:
            number = int(value.partition(b"-")[2])
            pending[number] += 1
            due_ms = due_of(number, size, first_ms) + (MOVE_MS if is_moved(number) else 0)
        early += message.timestamp()[1] < due_ms
    return Arrived(pending, load, early)


def given(message: Message) -> dict[str, bytes]:
    """Return the headers that have a value."""
    return {name: value for name, value in headers_of(message) if value is not None}


def messages_of(route: Route, topic: str) -> Iterator[Message]:
    settings = {
        "bootstrap.servers": route.servers.bootstrap_servers,
        "group.id": "reader-from-outside",
        "isolation.level": "read_committed",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
    }
    with closing(Consumer(settings)) as consumer:
        consumer.assign([TopicPartition(topic, partition, 0) for partition in range(PARTITIONS)])
        left = set(range(PARTITIONS))
        while left:
            for message in consumer.consume(5_000, 0.1):
                if message.error() is not None:
                    left.discard(message.partition() or 0)
                else:
                    yield message


def read_source(route: Route) -> tuple[Counter[bytes], Counter[bytes]]:
    """Return the load by its numbers, and how many commands there are for each id."""
    load, commands = Counter[bytes](), Counter[bytes]()
    for message in messages_of(route, route.source):
        headers = given(message)
        if "n" in headers:
            load[headers["n"]] += 1
        else:
            commands[headers["deliver-id"]] += 1
    return load, commands
