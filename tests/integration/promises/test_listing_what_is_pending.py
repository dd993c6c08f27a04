"""GET /pending of real relays: the list is what arrives afterwards, and asking for it makes nothing late."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple
from urllib.parse import urlencode

import pytest
from tests.support.metrics_page import Series, histogram_between, quantile_bound, samples
from tests.support.relay.faults import pass_time
from tests.support.relay.process import RelayProcess, wait_for
from tests.support.relay.records import BOTH_BACKENDS, BUCKETS_NIGHTLY, MakeRoute, Sent, at, now_ms, produce
from tests.support.relay.route import LOG_APPEND_TIME, PARTITIONS, Route
from tests.support.relay.routes import STEADY

from delaytopic_api.relay import PendingContent, PendingHeader, PendingList

pytestmark = pytest.mark.integration

RATE = 500
SPREAD_MS = (500, 2_500)
"""Far fewer wait than a list may have, so that each list reads on into what waits for days."""
WHILE_S = 10
BACKLOG = 20_000
"""Records that wait for days, in one or two wide slices or buckets of each shard."""
DAY_MS = 86_400_000
ON_TIME_S = 0.5
"""Generous: the promise is `precision` while there is capacity."""
NOISE = 2.5
"""A step of the histogram."""


class Asked(NamedTuple):
    """One answer, and when it was asked for and came."""

    asked_ms: int
    answered_ms: int
    answer: PendingList


class Late(NamedTuple):
    """Within which time 99 of 100 records were delivered: before the questions, and meanwhile."""

    quiet_s: float
    asked_s: float


def pending(relay: RelayProcess, **parameters: int | str) -> PendingList:
    return PendingList.model_validate_json(relay.get(f"/pending?{urlencode(parameters)}"))


@contextmanager
def asking(relay: RelayProcess, **parameters: int) -> Iterator[list[Asked]]:
    """Ask again and again while the body runs."""
    stop = threading.Event()
    answers: list[Asked] = []
    failures: list[BaseException] = []

    def ask() -> None:
        try:
            while not stop.wait(0.2):
                asked_ms = now_ms()
                answer = pending(relay, **parameters)
                answers.append(Asked(asked_ms, now_ms(), answer))
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        yield answers
    finally:
        stop.set()
        thread.join()
    assert not failures, failures


def far_records(base_ms: int) -> list[Sent]:
    return [
        Sent(b"k%d" % number, b"v", [at(base_ms + 2 * DAY_MS + number * 100), ("n", b"far")])
        for number in range(BACKLOG)
    ]


@BOTH_BACKENDS
@pytest.mark.nightly
@pytest.mark.alone
def test_what_is_listed_while_the_relay_delivers_is_what_arrives_and_nothing_is_late(make_route: MakeRoute) -> None:
    route = make_route(schedule={"maxDelay": "72h"}, limits=STEADY)
    relay = route.start_relay().wait_until_delivering(PARTITIONS)
    produce(route.servers.bootstrap_servers, route.source, far_records(now_ms()))
    wait_for(lambda: relay.status()["pending"] >= BACKLOG)

    # When it delivers for a while, and as long while it is listed again and again
    answers: list[Asked] = []
    with route.traffic(RATE, SPREAD_MS):
        pass_time(WHILE_S)
        late = lateness_of(relay, answers)

    # Then each list is what was due next, and it is as much on time as before
    wait_for(lambda: relay.status()["pending"] == BACKLOG, relay.why)
    assert route.verdict().faults == {}
    check_answers(route, answers)
    assert late.asked_s <= max(ON_TIME_S, NOISE * late.quiet_s), late


def lateness_of(relay: RelayProcess, answers: list[Asked]) -> Late:
    """Measure how late it is for a while without questions, and for as long with them; adds their answers."""
    first = samples(relay)
    pass_time(WHILE_S)
    second = samples(relay)
    with asking(relay, limit=1_000) as given:
        pass_time(WHILE_S)
    assert len(given) >= WHILE_S // 2
    answers.extend(given)
    return Late(late_s(first, second), late_s(second, samples(relay)))


def late_s(before: Mapping[Series, float], after: Mapping[Series, float]) -> float:
    """Within which time 99 of 100 records were delivered that left in between."""
    return quantile_bound(histogram_between(before, after, "delaytopic_lateness_seconds"), 0.99)


def check_answers(route: Route, answers: list[Asked]) -> None:
    """Each list against what arrived in the end: whatever was certainly waiting is there, and in order."""
    sent = {
        (record.at.partition, record.at.offset): (record.due_ms, record.sent_ms) for record in route.source_records()
    }
    for asked_ms, answered_ms, answer in answers:
        found = [(each.due_ms, each.partition, each.offset) for each in answer.records]
        assert found == sorted(set(found))
        assert all(sent[partition, offset][0] == due_ms for due_ms, partition, offset in found)
        assert answer.limited, answer.message
        last = found[-1]
        assert last[0] > asked_ms + DAY_MS, "the list reaches what waits for days"
        # Taken in a second before the question, and due only after the answer.
        certain = {
            (due_ms, *place)
            for place, (due_ms, sent_ms) in sent.items()
            if sent_ms < asked_ms - 1_000 and answered_ms < due_ms and (due_ms, *place) <= last
        }
        assert certain <= set(found)
        assert min(due_ms for due_ms, _, _ in found) > asked_ms - 1_000, "what was delivered is not listed"


@BUCKETS_NIGHTLY
def test_replaced_and_cancelled_records_are_not_listed_near_and_far(make_route: MakeRoute) -> None:
    # The near ones are within the horizon for a minute, in memory; the far ones are in the backlog.
    route = make_route(schedule={"maxDelay": "72h"}, limits={"horizon": "2m"})
    relay = route.start_relay().wait_until_delivering(PARTITIONS)
    base_ms = now_ms()
    near_ms, far_ms = base_ms + 60_000, base_ms + 2 * DAY_MS
    commands = [
        Sent(b"k", b"v", [at(near_ms), ("deliver-id", b"postponed")], 0),
        Sent(b"k", b"v", [at(far_ms), ("deliver-id", b"postponed")], 0),
        Sent(b"k", b"v", [at(far_ms + 1), ("deliver-id", b"brought forward")], 0),
        Sent(b"k", b"v", [at(near_ms + 1), ("deliver-id", b"brought forward")], 0),
        Sent(b"k", b"v", [at(far_ms + 2), ("deliver-id", b"cancelled")], 0),
        Sent(b"k", None, [("deliver-id", b"cancelled"), ("deliver-action", b"cancel")], 0),
        Sent(None, None, [at(near_ms + 3), ("deliver-to", route.other.encode())], 1),
        Sent(b"\xff", b"secret", [at(near_ms + 4), ("own", b"secret")], 2),
    ]

    places = produce(route.servers.bootstrap_servers, route.source, commands)
    wait_for(lambda: sum(shard["position"] for shard in relay.status()["shards"]) == len(commands))
    text = relay.get("/pending")

    answer = PendingList.model_validate_json(text)
    assert [(each.due_ms, each.partition, each.offset) for each in answer.records] == [
        (near_ms + 1, 0, places[3].offset),
        (near_ms + 3, 1, 0),
        (near_ms + 4, 2, 0),
        (far_ms, 0, places[1].offset),
    ]
    assert [each.id for each in answer.records] == ["brought forward", None, None, "postponed"]
    assert [each.target for each in answer.records] == [route.target, route.other, route.target, route.target]
    assert [(each.key, each.key_base64, each.value_bytes) for each in answer.records] == [
        ("k", None, 1),
        (None, None, None),
        (None, "/w==", 6),
        ("k", None, 1),
    ]
    assert (answer.complete, answer.message, answer.source_partitions) == (True, None, PARTITIONS)
    assert "secret" not in text
    assert [each.due_ms for each in pending(relay, dueBefore=far_ms).records] == [near_ms + 1, near_ms + 3, near_ms + 4]
    assert [each.due_ms for each in pending(relay, partition=1).records] == [near_ms + 3]
    selections: list[dict[str, int | str]] = [
        {"id": "postponed"},
        {"id": "brought forward"},
        {"id": "cancelled"},
        {"idPrefix": "p"},
        {"keyBase64": "/w=="},
        {"after": f"{near_ms + 3}:1:0"},
        {"dueFrom": near_ms + 4, "dueBefore": far_ms},
    ]
    found = [pending(relay, **selection) for selection in selections]
    assert [(one.complete, [each.due_ms for each in one.records]) for one in found] == [
        (True, [far_ms]),
        (True, [near_ms + 1]),
        (True, []),
        (True, [far_ms]),
        (True, [near_ms + 4]),
        (True, [near_ms + 4, far_ms]),
        (True, [near_ms + 4]),
    ]
    (whole,) = pending(relay, partition=2, contents="true").records
    assert whole.content is not None
    produced_ms = whole.content.timestamp_ms
    assert produced_ms is not None
    assert base_ms <= produced_ms < near_ms
    assert whole.content == PendingContent(
        key_base64="/w==",
        value="secret",
        headers=[PendingHeader(name="deliver-at", value=str(near_ms + 4)), PendingHeader(name="own", value="secret")],
        timestamp_ms=produced_ms,
    )


def test_two_relays_list_each_its_own_partitions_and_say_so(make_route: MakeRoute) -> None:
    route = make_route(schedule={"maxDelay": "72h"}, limits=STEADY)
    first = route.start_relay().wait_until_delivering(PARTITIONS)
    second = route.start_relay()
    wait_for(lambda: sorted([*shards_of(first), *shards_of(second)]) == list(range(PARTITIONS)) and shards_of(second))
    due_ms = now_ms() + DAY_MS
    produce(
        route.servers.bootstrap_servers, route.source, [Sent(None, b"v", [at(due_ms)], n) for n in range(PARTITIONS)]
    )
    wait_for(lambda: first.status()["pending"] + second.status()["pending"] == PARTITIONS)

    answers = [pending(relay) for relay in (first, second)]

    for answer, relay in zip(answers, (first, second), strict=True):
        assert {each.partition for each in answer.records} == shards_of(relay)
        assert {shard.partition for shard in answer.shards if shard.listed} == shards_of(relay)
        assert {shard.message for shard in answer.shards if not shard.listed} == {
            "not with this relay: ask the others of its group"
        }
        assert answer.complete
    (elsewhere, *_) = shards_of(second)
    answer = pending(first, partition=elsewhere)
    assert (answer.complete, answer.records, answer.pending) == (False, [], 0)
    assert answer.message == "not with this relay: ask the others of its group"


def shards_of(relay: RelayProcess) -> set[int]:
    try:
        return relay.shards()
    except OSError:
        return set()


def test_records_of_a_fixed_delay_are_listed_too(make_route: MakeRoute) -> None:
    route = make_route(LOG_APPEND_TIME, schedule={"fixedDelay": "1h"}, limits={"horizon": "10m"})
    relay = route.start_relay().wait_until_delivering(PARTITIONS)
    base_ms = now_ms()
    produce(route.servers.bootstrap_servers, route.source, [Sent(b"k", b"v", [], 1), Sent(b"k", b"v", [], 1)])
    wait_for(lambda: relay.status()["pending"] == 2)

    answer = pending(relay)

    assert [(each.partition, each.offset) for each in answer.records] == [(1, 0), (1, 1)]
    assert base_ms + 3_599_000 <= answer.records[0].due_ms <= now_ms() + 3_600_000
    assert answer.complete
