"""Records that are legal for Kafka and made to stop a relay: they cost others no time."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import Producer
from tests.harness.shared_servers import KafkaAddress
from tests.support.relay.process import RelayProcess, wait_for
from tests.support.relay.records import ONLY_BUCKETS, MakeRoute, Sent, at, now_ms, produce
from tests.support.relay.route import PARTITIONS, Route
from tests.support.relay.routes import STEADY

from delaytopic_api.records import parse_dead_letter
from delaytopic_relay.kafka.topics import MOST_KNOWN, TopicReader

pytestmark = pytest.mark.integration

MIB = 1 << 20
GOOD = 100
HOSTILE = 40
EMPTY_HEADERS = 99_999
"""And one to say when, in 200 kB. Of a record with more of them the client library hands over none."""
IDS = 30_000
"""Three times as many as a MiB has room for."""
YEAR_MS, MINUTE_MS = 31_536_000_000, 60_000
NAMES = 10_000
LATEST_MS = 10_000
"""On a machine with other work to do; asked one by one, the topics take a minute and more there."""
MOST_MEMORY = 300 * MIB
"""Of a process whose schedules may take 16 MiB. The container of a relay has 512 MiB by default."""


def memory_of(relay: RelayProcess) -> int:
    """The most that the process had resident, in bytes."""
    lines = Path(f"/proc/{relay.child.pid}/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM:"))


def totals(relay: RelayProcess) -> tuple[int, int]:
    """Return how many records were delivered, and how many dead-lettered."""
    status = relay.status()
    return status["deliveredTotal"], status["deadLetteredTotal"]


def reasons(route: Route) -> list[str]:
    """Return why records are on the dead-letter topic, in its order."""
    letters = [parse_dead_letter(record.headers) for record in route.read(route.dead_letter)]
    return [letter.reason for letter in letters if letter is not None]


def test_records_of_a_hundred_thousand_headers_become_dead_letters_and_the_relay_stays_small(
    make_route: MakeRoute,
) -> None:
    route = make_route(limits={"memory": "16Mi", **STEADY})
    hostile = Sent(b"k", b"v", [at(now_ms() + 1_500), *[("", b"")] * EMPTY_HEADERS])
    good = [Sent(b"%d" % number, b"good", [at(now_ms() + 1_500)]) for number in range(GOOD)]
    records = [*good[: GOOD // 2], *[hostile] * HOSTILE, *good[GOOD // 2 :]]
    produce(route.servers.bootstrap_servers, route.source, records)

    relay = route.start_relay().wait_until_delivering(PARTITIONS)
    wait_for(lambda: totals(relay) == (GOOD, HOSTILE), lambda: str(totals(relay)))

    assert (len(route.delivered()), reasons(route)) == (GOOD, ["too-many-headers"] * HOSTILE)
    assert memory_of(relay) < MOST_MEMORY, memory_of(relay) // MIB


def test_records_for_ten_thousand_topics_that_do_not_exist_keep_no_other_record_waiting(
    make_route: MakeRoute,
) -> None:
    route = make_route(target={"allowedTopics": ["*.other", "no.such.*"]}, limits=STEADY)
    relay = route.start_relay().wait_until_delivering(PARTITIONS)
    hostile = [Sent(b"%d" % number, b"v", [("deliver-to", b"no.such.%d" % number)]) for number in range(NAMES)]
    good = [Sent(b"%d" % number, b"good", [at(now_ms() + 1_000)]) for number in range(GOOD)]

    produce(route.servers.bootstrap_servers, route.source, [*hostile, *good])
    wait_for(lambda: totals(relay) == (GOOD, NAMES), lambda: str(totals(relay)))

    assert reasons(route) == ["unknown-target"] * NAMES
    assert max(record.sent_ms - record.due_ms for record in route.delivered()) < LATEST_MS


def test_of_topics_that_records_name_only_so_many_are_remembered(kafka: KafkaAddress) -> None:
    reader = TopicReader({"bootstrap.servers": kafka.bootstrap_servers}, [])

    for first in range(0, 2 * MOST_KNOWN, 1_000):
        reader.learn([f"no.such.{number}" for number in range(first, first + 1_000)])

    assert (len(reader), reader.limit("no.such.0")) == (MOST_KNOWN, None)


@ONLY_BUCKETS
@pytest.mark.takes_long("so many ids as fill the memory of a relay are taken in")
def test_ids_that_take_all_their_memory_are_refused_and_all_else_is_delivered(make_route: MakeRoute) -> None:
    route = make_route(limits={"memory": "16Mi", "idMemory": "1Mi", **STEADY})
    relay = route.start_relay().wait_until_delivering(PARTITIONS)
    far_ms = now_ms() + 1_800_000
    ids = [Sent(b"k", None, [at(far_ms), ("deliver-id", b"%d" % number)]) for number in range(IDS)]
    produce(route.servers.bootstrap_servers, route.source, ids)

    good = [Sent(b"k", b"good", [at(now_ms() + 100 * number)]) for number in range(GOOD)]
    withdrawn = [Sent(b"k", None, [("deliver-id", b"0"), ("deliver-action", b"cancel")])]
    produce(route.servers.bootstrap_servers, route.source, [*good, *withdrawn])
    wait_for(lambda: relay.status()["deliveredTotal"] == GOOD, lambda: str(relay.status()))

    status = relay.status()
    assert status["deadLetteredTotal"] + status["pending"] == IDS
    assert status["deadLetteredTotal"] > IDS // 2
    assert status["cancelledTotal"] == 1
    assert set(reasons(route)) == {"too-many-ids"}


def test_a_producer_whose_timestamps_are_ahead_gets_dead_letters_and_not_a_longer_delay(make_route: MakeRoute) -> None:
    route = make_route({"message.timestamp.after.max.ms": str((1 << 63) - 1)}, limits=STEADY)
    relay = route.start_relay().wait_until_delivering(PARTITIONS)

    producer = Producer({"bootstrap.servers": route.servers.bootstrap_servers})
    producer.produce(route.source, b"v", b"k", timestamp=now_ms() + YEAR_MS, headers=[("deliver-after", b"1000")])
    producer.produce(route.source, b"good", b"k", timestamp=now_ms() + MINUTE_MS, headers=[at(now_ms())])
    assert producer.flush(30) == 0
    wait_for(lambda: totals(relay) == (1, 1), lambda: str(totals(relay)))

    assert reasons(route) == ["beyond-max-delay"]
