"""Relays are killed and frozen under load, and join and leave; an outside reader judges."""

from __future__ import annotations

import random
from itertools import product

import pytest
from tests.support.relay.faults import DELAYS_MS, RATE, assert_exact, assert_exact_but_for_repeats, pass_time
from tests.support.relay.process import RelayProcess, wait_for
from tests.support.relay.records import BOTH_BACKENDS, BUCKETS, BUCKETS_NIGHTLY, REDIS, MakeRoute
from tests.support.relay.route import PARTITIONS, Route

pytestmark = pytest.mark.integration


def replace(route: Route, relay: RelayProcess) -> RelayProcess:
    """Kill a relay, start another, and wait until that has taken over."""
    relay.kill()
    return route.start_relay().wait_until_delivering(PARTITIONS)


@pytest.mark.takes_long("a successor waits for the session of each relay that is killed")
@pytest.mark.parametrize(
    ("backend", "kills", "speedups"),
    [
        (REDIS, 3, True),  # bucket topics outlive a relay that is killed each day in the tests of handing over
        *(
            pytest.param(backend, 10, speedups, marks=pytest.mark.nightly)
            for backend, speedups in product((REDIS, BUCKETS), (True, False))
        ),
    ],
    indirect=["backend", "speedups"],
)
def test_p1_p2_p3_nothing_is_lost_twice_or_early_when_the_relay_is_killed_again_and_again_under_load(
    route: Route, kills: int, speedups: bool
) -> None:
    rng = random.Random(7)
    relay = route.start_relay().wait_until_delivering(PARTITIONS)

    with route.traffic(RATE, DELAYS_MS):
        for _ in range(kills):
            pass_time(rng.uniform(0.2, 2.0))
            relay = replace(route, relay)

    assert_exact(route.settled_verdict())
    assert [line["speedups"] for line in relay.log_lines() if line["event"] == "started"] == [speedups]


@BOTH_BACKENDS
@pytest.mark.nightly
def test_p1_p3_nothing_is_lost_or_early_with_at_least_once_and_duplicates_come_from_the_crash_alone(
    make_route: MakeRoute,
) -> None:
    route = make_route(guarantee="AtLeastOnce")
    relay = route.start_relay().wait_until_delivering(PARTITIONS)

    with route.traffic(RATE, DELAYS_MS):
        for _ in range(3):
            pass_time(2)
            relay = replace(route, relay)

    verdict = route.settled_verdict()
    assert_exact_but_for_repeats(verdict)
    assert len(verdict.twice) < 3 * RATE


@BUCKETS_NIGHTLY
@pytest.mark.takes_long("waits for the session of a frozen relay, and for it to join again")
def test_p2_a_frozen_relay_that_wakes_up_after_its_session_does_no_harm_and_takes_its_share_again(route: Route) -> None:
    frozen = route.start_relay().wait_until_delivering(PARTITIONS)

    with route.traffic(RATE, DELAYS_MS):
        wait_for(lambda: frozen.status()["deliveredTotal"] > RATE, frozen.why)
        frozen.freeze()
        successor = route.start_relay().wait_until_delivering(PARTITIONS)
        frozen.thaw()
        # It believes in its shards until it hears of the others; then each has half of them.
        wait_for(lambda: share_shards([frozen, successor]), frozen.why)

    assert_exact(route.settled_verdict())


@BOTH_BACKENDS
@pytest.mark.nightly
def test_p1_p2_p3_nothing_is_lost_twice_or_early_while_three_relays_join_and_leave(route: Route) -> None:
    first = route.start_relay().wait_until_delivering(PARTITIONS)

    with route.traffic(RATE, DELAYS_MS):
        second, third = route.start_relay(), route.start_relay()
        wait_for(lambda: share_shards([first, second, third]))
        pass_time(2)
        assert first.terminate() == 0
        wait_for(lambda: share_shards([second, third]))
        pass_time(2)
        fourth = route.start_relay()
        wait_for(lambda: share_shards([second, third, fourth]))
        assert second.terminate() == 0
        assert third.terminate() == 0
        fourth.wait_until_delivering(PARTITIONS)

    assert_exact(route.settled_verdict())


def share_shards(relays: list[RelayProcess]) -> bool:
    """Return whether each of them delivers for some shards, and each shard is delivered by one of them."""
    try:
        shards = [relay.shards() for relay in relays]
    except OSError:
        return False  # one does not answer yet
    return all(shards) and sorted(shard for some in shards for shard in some) == list(range(PARTITIONS))
