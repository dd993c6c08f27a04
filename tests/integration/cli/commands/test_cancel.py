"""`delaytopic cancel` on a real Kafka with real relays, of ids whose producer partitions otherwise than Java's."""

from __future__ import annotations

import json

import pytest
from confluent_kafka import Producer
from tests.support.metrics_page import samples, value_of
from tests.support.relay.process import RelayProcess, wait_for
from tests.support.relay.records import BUCKETS_NIGHTLY, MakeRoute, now_ms
from tests.support.relay.route import PARTITIONS, Route
from tests.support.relay.routes import STEADY

from delaytopic_cli.__main__ import run
from delaytopic_gateway.client.relay_listing import ask_relay, relay_status

pytestmark = pytest.mark.integration

HOUR_MS = 3_600_000
IDS = [f"order-{number}" for number in range(10)]


def schedule(route: Route, names: list[str], due_ms: int) -> set[int]:
    """Send schedules as a plain producer of librdkafka does, by CRC32 of the key; return their partitions."""
    producer = Producer({"bootstrap.servers": route.servers.bootstrap_servers})
    partitions: set[int] = set()
    for name in names:
        producer.produce(
            route.source,
            b"tea",
            name.encode(),
            headers=[("deliver-id", name.encode()), ("deliver-at", b"%d" % due_ms)],
            on_delivery=lambda _, message: partitions.add(message.partition() or 0),
        )
    assert producer.flush(30) == 0
    return partitions


def page_of(relay: RelayProcess) -> str:
    return f"http://127.0.0.1:{relay.port()}"


def pending(relay: RelayProcess) -> list[str]:
    document = ask_relay(page_of(relay), {}).document
    assert document is not None
    return sorted(record.id or "" for record in document.records)


@BUCKETS_NIGHTLY
def test_ten_ids_of_a_producer_that_partitions_by_crc32_are_cancelled(
    make_route: MakeRoute, capsys: pytest.CaptureFixture[str]
) -> None:
    # Given ids in the partitions that librdkafka chooses for them, and one more
    route = make_route(schedule={"maxDelay": "12h"}, limits=STEADY)
    relay = route.start_relay().wait_until_delivering(PARTITIONS)
    partitions = schedule(route, [*IDS, "stays"], now_ms() + HOUR_MS)
    wait_for(lambda: len(pending(relay)) == 11, relay.why)

    # When they are cancelled
    servers = ["-b", route.servers.bootstrap_servers, "--relay", page_of(relay)]
    code = run(["cancel", route.source, *IDS, "-o", "json", *servers])

    # Then none of them waits
    assert len(partitions) > 1
    outcomes = [(each["id"], each["outcome"]) for each in json.loads(capsys.readouterr().out)["ids"]]
    assert (code, outcomes) == (0, [(name, "Cancelled") for name in IDS])
    assert pending(relay) == ["stays"]
    # And each was found in its own partition
    assert len(route.read(route.source)) == 21


def test_an_id_that_is_nowhere_is_told_and_nothing_is_written(
    make_route: MakeRoute, capsys: pytest.CaptureFixture[str]
) -> None:
    route = make_route(schedule={"maxDelay": "12h"}, limits=STEADY)
    relay = route.start_relay().wait_until_delivering(PARTITIONS)
    schedule(route, ["stays"], now_ms() + HOUR_MS)
    servers = ["-b", route.servers.bootstrap_servers, "--relay", page_of(relay)]

    code = run(["cancel", f"tests/{route.name}", "gone", "-o", "text", *servers])

    assert (code, capsys.readouterr().out) == (7, "gone: nothing with this id was pending\n")
    assert len(route.read(route.source)) == 1


def test_ids_that_no_relay_has_read_yet_are_cancelled_in_all_partitions(
    make_route: MakeRoute, capsys: pytest.CaptureFixture[str]
) -> None:
    # Given schedules, and no relay to ask
    route = make_route(schedule={"maxDelay": "12h"}, limits=STEADY)
    schedule(route, [*IDS, "stays"], now_ms() + HOUR_MS)

    # When they are cancelled
    code = run(["cancel", route.source, *IDS, "-o", "json", "-b", route.servers.bootstrap_servers])

    # Then it is said that nobody has read that
    assert code == 8
    assert {each["outcome"] for each in json.loads(capsys.readouterr().out)["ids"]} == {"Unread"}
    # And a relay that comes later has none of them: beside its partition, a cancel finds nothing
    relay = route.start_relay().wait_until_delivering(PARTITIONS)
    wait_for(lambda: sum(shard.position for shard in relay_status(page_of(relay)).shards) == 51, relay.why)
    assert pending(relay) == ["stays"]
    assert value_of(samples(relay), "delaytopic_cancels_too_late_total") == 30


def test_a_cancel_right_behind_its_schedule_finds_it(make_route: MakeRoute, capsys: pytest.CaptureFixture[str]) -> None:
    route = make_route(schedule={"maxDelay": "12h"}, limits=STEADY)
    relay = route.start_relay().wait_until_delivering(PARTITIONS)
    servers = ["-b", route.servers.bootstrap_servers, "--relay", page_of(relay)]
    schedule(route, ["a"], now_ms() + HOUR_MS)

    code = run(["cancel", route.source, "a", "-o", "text", *servers])

    assert (code, capsys.readouterr().out) == (0, "a: cancelled\n")
    assert pending(relay) == []
