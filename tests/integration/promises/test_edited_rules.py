"""A DelayTopic is edited while records wait: each keeps the rules that it was read by, and leaves once, on real parts.

Both ways of an edit: the relay stops, its configuration is edited, and it starts again; or a relay with the edited
configuration comes beside the former one, which goes then, as in a rollout.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import redis as redis_client
from tests.harness.shared_servers import KafkaAddress
from tests.support.relay.process import RelayProcess, patient, wait_for
from tests.support.relay.records import BUCKETS, REDIS, MakeRoute, Sent, now_ms, produce
from tests.support.relay.route import LOG_APPEND_TIME, ClientHeaders, Route, Servers
from tests.support.relay.routes import making_routes

from delaytopic_api.records import RECEIPT, Receipt, parse_dead_letter
from delaytopic_local.servers.redis_server import RedisServer

pytestmark = pytest.mark.integration

PARTITIONS = 2
WAIT_MS = 6_000
"""Longer than it takes to edit: what is sent before waits until after."""
EACH = 20
Spec = Mapping[str, Any]
Edit = Callable[[Route, RelayProcess], RelayProcess]


class Arrival(NamedTuple):
    """A record that left: on the target, due so long after its timestamp, or as a dead letter with this reason."""

    after_ms: int | None
    reason: str = ""


FORBIDDEN = Arrival(None, "forbidden-target")


class Kind(NamedTuple):
    """A kind of records: the headers that they have, and how each of them is to arrive."""

    headers: ClientHeaders
    arrives: Arrival


class Case(NamedTuple):
    """The rules before and after an edit, and records of before and of after it."""

    before: Spec
    after: Spec
    waiting: Mapping[str, Kind]
    later: Mapping[str, Kind]
    settings: Mapping[str, str] = {}


LATER: ClientHeaders = [("deliver-after", b"%d" % WAIT_MS)]
ALL_AT_ONCE = Case(
    before={"schedule": {"maxDelay": "24h", "defaultDelay": f"{WAIT_MS}ms"}},
    after={
        "schedule": {"maxDelay": "2s", "defaultDelay": "1s", "ids": "Disabled"},
        "target": {"allowedTopics": []},
    },
    waiting={
        "maxDelay": Kind(LATER, Arrival(WAIT_MS)),
        "defaultDelay": Kind([], Arrival(WAIT_MS)),
        "ids": Kind([*LATER, ("deliver-id", b"%(n)d")], Arrival(WAIT_MS)),
        "target.allowedTopics": Kind([*LATER, ("deliver-to", b"%(other)s")], FORBIDDEN),
    },
    later={
        "maxDelay": Kind(LATER, Arrival(None, "beyond-max-delay")),
        "defaultDelay": Kind([], Arrival(1_000)),
        "ids": Kind([("deliver-id", b"%(n)d")], Arrival(None, "unsupported")),
        "target.allowedTopics": Kind([("deliver-to", b"%(other)s")], FORBIDDEN),
    },
)
TO_A_FIXED_DELAY = Case(
    before={},
    after={"schedule": {"fixedDelay": "1s", "ids": "Disabled"}},
    waiting={"delay": Kind(LATER, Arrival(WAIT_MS))},
    later={"delay": Kind([], Arrival(1_000)), "headers": Kind(LATER, Arrival(None, "contradictory-headers"))},
    settings=LOG_APPEND_TIME,
)
TO_HEADERS = Case(
    before={"schedule": {"fixedDelay": f"{WAIT_MS}ms", "ids": "Disabled"}},
    after={"schedule": {"fixedDelay": None, "ids": "ByHeader"}},
    waiting={"delay": Kind([], Arrival(WAIT_MS))},
    later={"delay": Kind([], Arrival(0)), "headers": Kind([("deliver-after", b"1s")], Arrival(1_000))},
    settings=LOG_APPEND_TIME,
)
TO_ANOTHER_FIXED_DELAY = Case(
    before={"schedule": {"fixedDelay": f"{WAIT_MS}ms", "ids": "Disabled"}},
    after={"schedule": {"fixedDelay": "1s"}},
    waiting={"delay": Kind([], Arrival(WAIT_MS))},
    later={"delay": Kind([], Arrival(1_000))},
    settings=LOG_APPEND_TIME,
)
CASES = {
    "headers": ALL_AT_ONCE,
    "to a fixed delay": TO_A_FIXED_DELAY,
    "to headers": TO_HEADERS,
    "to another fixed delay": TO_ANOTHER_FIXED_DELAY,
}


def restarted(route: Route, relay: RelayProcess) -> RelayProcess:
    """The relay stops, and starts again with what the configuration says by then."""
    assert relay.terminate() == 0
    return route.start_relay().wait_until_delivering(PARTITIONS)


def rolled_out(route: Route, relay: RelayProcess) -> RelayProcess:
    """A relay with the edited configuration comes first, and has a part of the partitions; then the former one goes."""
    successor = route.start_relay()
    wait_for(successor.shards, successor.why)
    assert relay.terminate() == 0
    return successor.wait_until_delivering(PARTITIONS)


WAYS: Mapping[str, Edit] = {"restarted": restarted, "rolled out": rolled_out}
EVERY_DAY = {
    (REDIS, "headers", "rolled out"),
    (BUCKETS, "to a fixed delay", "restarted"),
}
"""Each way and each backend once; the simulation makes all edits with both backends."""


@pytest.fixture(scope="module")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """A Redis of this file, which a test flushes."""
    with RedisServer(tmp_path_factory.mktemp("redis")) as server:
        yield server


@pytest.fixture
def make(backend: str, kafka: KafkaAddress, redis: RedisServer, tmp_path: Path) -> Iterator[MakeRoute]:
    """Makes a DelayTopic of the backend."""
    with making_routes(Servers(kafka.bootstrap_servers, redis.url), tmp_path, backend) as making:
        yield making


def send(route: Route, kinds: Mapping[str, Kind], first: int) -> dict[int, Arrival]:
    """Send some records of each kind to each partition; how each of them is to arrive, by its number."""
    records: list[Sent] = []
    expected: dict[int, Arrival] = {}
    for kind in kinds.values():
        for _ in range(EACH):
            number = first + len(records)
            words = {b"n": number, b"other": route.other.encode()}
            headers = [(name, value % words if isinstance(value, bytes) else value) for name, value in kind.headers]
            records.append(Sent(b"k", b"v", [*headers, ("n", b"%d" % number)], number % PARTITIONS))
            expected[number] = kind.arrives
    produce(route.servers.bootstrap_servers, route.source, records)
    return expected


def arrivals(route: Route, ended_ms: int) -> dict[int, list[Arrival]]:
    """Return each arrival of each record; nothing is early.

    A relay of before the edit, which ended at this time, may send what only the edit forbids: that is as good.
    """
    sent_ms = {record.at: record.timestamp_ms for record in route.read(route.source)}
    found: dict[int, list[Arrival]] = defaultdict(list)
    for topic in (route.target, route.other):
        for record in route.read(topic):
            receipt = Receipt.parse(record.headers[-1][1])
            at = next(each for each in sent_ms if each[1:] == (receipt.partition, receipt.offset))
            assert record.headers[-1][0] == RECEIPT
            assert receipt.sent_ms >= receipt.due_ms
            before = topic == route.other and receipt.sent_ms <= ended_ms
            found[number_of(record.headers)].append(FORBIDDEN if before else Arrival(receipt.due_ms - sent_ms[at]))
    for record in route.read(route.dead_letter):
        letter = parse_dead_letter(list(record.headers))
        assert letter is not None
        found[number_of(record.headers)].append(Arrival(None, letter.reason))
    return found


def number_of(headers: Sequence[tuple[str, bytes | None]]) -> int:
    return int(next(value or b"" for name, value in headers if name == "n"))


def settled(route: Route, expected: Mapping[int, Arrival], ended_ms: int = 0) -> dict[int, list[Arrival]]:
    """Return the arrivals, once all records have arrived."""
    patient(lambda: arrivals(route, ended_ms).keys() >= expected.keys(), 60)
    return arrivals(route, ended_ms)


@pytest.mark.takes_long("what waits has to be delivered at the time that it had before the edit")
@pytest.mark.parametrize(
    ("backend", "name", "way"),
    [
        pytest.param(*each, marks=[] if each in EVERY_DAY else [pytest.mark.nightly])
        for each in product((REDIS, BUCKETS), CASES, WAYS)
    ],
    indirect=["backend"],
)
def test_p1_p2_p3_an_edit_neither_loses_nor_doubles_nor_moves_what_waits(make: MakeRoute, name: str, way: str) -> None:
    case = CASES[name]
    route = make(dict(case.settings), partitions=PARTITIONS, limits={"horizon": "2s"}, **case.before)
    relay = route.start_relay().wait_until_delivering(PARTITIONS)

    expected = send(route, case.waiting, 0)
    sent = len(route.read(route.source))
    wait_for(lambda: relay.read() == sent, relay.why)
    for part, settings in case.after.items():
        route.spec[part] = {**route.spec.get(part, {}), **settings}
    relay = WAYS[way](route, relay)
    ended_ms = now_ms()
    expected |= send(route, case.later, 1_000)

    assert settled(route, expected, ended_ms) == {number: [arrival] for number, arrival in expected.items()}


@pytest.mark.nightly  # each day simulated Redis are wiped after edits
@pytest.mark.takes_long("what waits has to be delivered at the time that it had before the edit")
def test_p1_p2_what_was_read_by_former_rules_is_read_by_them_again_when_redis_is_flushed(
    kafka: KafkaAddress, redis: RedisServer, tmp_path: Path
) -> None:
    # Given records that wait in Redis alone, so that the committed offset has passed them, and an edit
    with making_routes(Servers(kafka.bootstrap_servers, redis.url), tmp_path, REDIS) as making:
        route = making(partitions=PARTITIONS, limits={"horizon": "1s"}, schedule={"defaultDelay": "30s"})
        relay = route.start_relay().wait_until_delivering(PARTITIONS)
        expected = send(route, {"defaultDelay": Kind([], Arrival(30_000))}, 0)
        wait_for(lambda: sum(shard["committedOffset"] for shard in relay.status()["shards"]) == EACH, relay.why)
        route.spec["schedule"] = {"maxDelay": "2s", "defaultDelay": "1s"}
        relay = restarted(route, relay)
        expected |= send(route, {"defaultDelay": Kind([], Arrival(1_000))}, 1_000)
        wait_for(lambda: sum(shard["committedOffset"] for shard in relay.status()["shards"]) == 2 * EACH, relay.why)
        former = [rules for shard in relay.status()["shards"] for rules in shard["formerRules"]]

        # When Redis is flushed
        with redis_client.Redis.from_url(redis.url) as client:
            client.flushall()

        # Then all is delivered by the rules that it was read by
        assert settled(route, expected) == {number: [arrival] for number, arrival in expected.items()}
        assert [rules["defaultDelayMs"] for rules in former] == [30_000] * PARTITIONS
