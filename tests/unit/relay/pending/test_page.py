"""Asking the loop from another thread, with a loop that turns when the test lets it."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event

import pytest
from tests.support.relay.backlog.memory_store import MemoryBacklogStore
from tests.support.relay.in_world import Relay, Setup, produce, start
from tests.support.relay.process import wait_for
from tests.support.relay.schedules import offsets
from tests.support.relay.statuses import relay_status
from tests.support.relay.world import World

from delaytopic_api.relay import (
    KafkaClient,
    RelayBackend,
    RelayConfig,
    RelayDeadLetter,
    RelaySchedule,
    RelaySource,
    RelayTarget,
)
from delaytopic_api.values import BackendType, Duration, Guarantee
from delaytopic_relay.errors import Unavailable
from delaytopic_relay.pending import page as listing_page
from delaytopic_relay.pending import page as listing_requests
from delaytopic_relay.pending.page import PendingPage, PendingRequests
from delaytopic_relay.pending.query import PendingQuery
from delaytopic_relay.pending.search import PendingResult
from delaytopic_relay.pending.snapshot import Copies

LONG_S = 30.0
CONFIG = RelayConfig(
    name="shop",
    namespace="team",
    group_id="delaytopic.team.shop",
    source=RelaySource(topic="source"),
    target=RelayTarget(topic="target"),
    dead_letter=RelayDeadLetter(topic="dead"),
    schedule=RelaySchedule(max_delay=Duration("1h")),
    precision=Duration("1s"),
    guarantee=Guarantee.EXACTLY_ONCE,
    backend=RelayBackend(type=BackendType.KAFKA_BUCKETS, id="delaytopic.team.shop"),
    kafka=KafkaClient(bootstrap_servers="localhost:9092"),
)


def relay_with(*shards: int) -> Relay:
    world = World()
    relay = start(world, MemoryBacklogStore(), setup=Setup(shards=shards))
    for partition in shards:
        produce(world, 5_000, partition)
    relay.run(2_000)
    return relay


@contextmanager
def asking(requests: PendingRequests, query: PendingQuery, patience_s: float = LONG_S) -> Iterator[Future[Copies]]:
    with ThreadPoolExecutor(1) as threads:
        answer = threads.submit(requests.ask, query, patience_s)
        wait_for(lambda: requests._open is not None or answer.done())
        yield answer


def test_the_loop_answers_between_two_turns() -> None:
    relay, requests = relay_with(0, 1), PendingRequests()

    with asking(requests, PendingQuery()) as answer:
        before = answer.done()
        requests.serve(relay.loop)

    assert not before
    assert {number: offsets(copy.schedules) for number, copy in answer.result().shards.items()} == {0: [0], 1: [0]}
    assert answer.result().waiting == {}


def test_only_the_partition_that_was_asked_for_is_copied() -> None:
    relay, requests = relay_with(0, 1), PendingRequests()

    with asking(requests, PendingQuery(partition=1)) as answer:
        requests.serve(relay.loop)
    with asking(requests, PendingQuery(partition=7)) as other:
        requests.serve(relay.loop)

    assert (set(answer.result().shards), set(other.result().shards)) == ({1}, set())


def test_a_turn_copies_only_so_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing_requests, "ENOUGH_FOR_A_TURN", 1)
    relay, requests = relay_with(0, 1, 2), PendingRequests()

    with asking(requests, PendingQuery()) as answer:
        turns = 0
        while not answer.done() and turns < 10:
            requests.serve(relay.loop)
            turns += 1
            if turns == 3:
                wait_for(answer.done)

    assert (turns, set(answer.result().shards)) == (3, {0, 1, 2})


def test_a_shard_with_something_on_its_way_to_the_backlog_is_copied_after_the_commit() -> None:
    relay, requests = relay_with(0), PendingRequests()
    far = produce(relay.world, 3_600_000)
    relay.run(50)
    assert relay.loop.shards[0].must_put

    with asking(requests, PendingQuery()) as answer:
        requests.serve(relay.loop)
        before = requests._open is not None and requests._open.answered.is_set()
        relay.run(1_000)
        requests.serve(relay.loop)

    assert not before
    (copy,) = answer.result().shards.values()
    assert (offsets(copy.schedules), copy.ingested, copy.stored.from_ms is not None) == ([0], far + 1, True)


def test_shards_that_wait_for_their_recovery_are_named() -> None:
    world = World()
    relay, requests = start(world, MemoryBacklogStore()), PendingRequests()
    relay.loop.assigned([0])

    with asking(requests, PendingQuery()) as answer:
        requests.serve(relay.loop)

    assert answer.result() == Copies({}, {0: "assigned"})


def test_a_shard_that_left_before_all_were_copied_is_not_in_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing_requests, "ENOUGH_FOR_A_TURN", 1)
    relay, requests = relay_with(0, 1), PendingRequests()

    with asking(requests, PendingQuery()) as answer:
        requests.serve(relay.loop)
        relay.loop.revoked([0])
        requests.serve(relay.loop)

    assert set(answer.result().shards) == {1}


def test_a_loop_that_does_not_turn_is_told_after_a_while() -> None:
    requests = PendingRequests()

    with pytest.raises(Unavailable, match="has not come to a point"):
        requests.ask(PendingQuery(), 0.01)


def test_listings_wait_for_each_other_and_not_for_ever() -> None:
    requests = PendingRequests()

    with requests.turn(), pytest.raises(Unavailable, match="other listings are under way"), requests.turn(0.01):
        pass

    with requests.turn(0):
        pass


def test_only_so_many_listings_wait_for_their_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing_requests, "MOST_ASKING", 1)
    requests = PendingRequests()

    with requests.turn(), pytest.raises(Unavailable, match=r"^1 listings are under way"), requests.turn(LONG_S):
        pass


def test_one_listing_is_put_together_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    # Given a page of which six lists are asked for at once
    under_way: list[int] = []
    most: list[int] = []

    def slow_listing(*_: object) -> PendingResult:
        under_way.append(1)
        # Whoever may come here meanwhile comes soon.
        Event().wait(0.02)
        most.append(len(under_way))
        under_way.pop()
        return PendingResult([])

    monkeypatch.setattr(listing_page, "list_pending", slow_listing)
    monkeypatch.setattr(PendingRequests, "ask", lambda *_: Copies({}, {}))
    page = PendingPage(CONFIG, relay_status)

    with ThreadPoolExecutor(6) as threads:
        lists = list(threads.map(page.answer, ["limit=1"] * 6))

    assert ([each.records for each in lists], most) == ([[]] * 6, [1] * 6)


def test_a_turn_in_which_nobody_asks_does_nothing() -> None:
    relay, requests = relay_with(0), PendingRequests()

    requests.serve(relay.loop)

    assert requests._open is None
