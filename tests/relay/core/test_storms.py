"""The loop and the core, with crashes and zombies between any two effects, judged from the final logs."""

from __future__ import annotations

import random

import pytest
from tests.support.relay_in_world import produce, produce_cancel, produce_nonsense
from tests.support.storm import REFUSED, SHARDS, History, Storm
from tests.support.verdicts import Verdicts
from tests.support.world import World

from delaytopic_api.headers import Headers

MOSTLY_NEAR_MS = (-5_000, 0, 0, 1, 2_000, 9_000, 9_999, 10_000, 11_000, 20_000, 40_000, 150_000, 3_000_000)
NAMES = (b"a", b"b", b"c")


def produce_plain(world: World, rng: random.Random) -> None:
    """Records without ids, one in ten for the dead-letter topic."""
    for _ in range(rng.choice([0, 0, 1, 3])):
        shard = rng.choice(SHARDS)
        if rng.random() < 0.1:
            produce_nonsense(world, shard)
        else:
            produce(world, rng.choice(MOSTLY_NEAR_MS), shard, value=REFUSED if rng.random() < 0.01 else b"v")


def produce_named(world: World, rng: random.Random) -> None:
    """Records of few ids, so that they are replaced and cancelled all the time, also while they are delivered."""
    for _ in range(rng.choice([0, 0, 1, 3])):
        shard, name = rng.choice(SHARDS), rng.choice([*NAMES, b"%d" % rng.randrange(100), None])
        if name is not None and rng.random() < 0.25:
            produce_cancel(world, name, shard)
        else:
            produce(world, rng.choice(MOSTLY_NEAR_MS), shard, name)


def produce_fixed(world: World, rng: random.Random) -> None:
    """Records of a DelayTopic that delays all alike."""
    for _ in range(rng.choice([0, 0, 1, 3])):
        headers: Headers | None = [("deliver-at", b"5")] if rng.random() < 0.1 else None
        world.produce(rng.choice(SHARDS), b"k", REFUSED if rng.random() < 0.01 else b"v", headers)


PLAIN = Storm(produce_plain)
NAMED = Storm(produce_named)
FIXED = Storm(produce_fixed, delay_ms=30_000)


def with_doubts(storm: Storm) -> Storm:
    """Shelf and Kafka leave calls unanswered, relays stop gracefully, and shards come and go in between."""
    return storm._replace(shelf_away_share=0.02, doubt_share=0.02, hand_over_share=0.01, rebalance_share=0.01)


def wrong_exactly_once(history: History) -> list[str]:
    """What no history may show with transactions."""
    verdicts = Verdicts(history)
    return [*wrong_at_least_once(history), *verdicts.twice(), *verdicts.not_withdrawn()]


def wrong_at_least_once(history: History) -> list[str]:
    """What no history may show, whatever the guarantee."""
    verdicts = Verdicts(history)
    return [*verdicts.lost(), *verdicts.early(), *verdicts.misplaced()]


@pytest.mark.parametrize("seed", range(16))
def test_exactly_once_nothing_is_lost_twice_or_early_through_crashes_zombies_and_a_rolled_back_shelf(seed: int) -> None:
    history = History(seed, PLAIN).run()

    assert wrong_exactly_once(history) == []


@pytest.mark.parametrize("seed", range(16))
def test_exactly_once_holds_when_shelf_and_kafka_leave_calls_unanswered(seed: int) -> None:
    history = History(seed, with_doubts(PLAIN)).run()

    assert wrong_exactly_once(history) == []


@pytest.mark.parametrize("seed", range(16))
def test_exactly_once_holds_when_the_clocks_of_relays_are_wrong(seed: int) -> None:
    history = History(seed, with_doubts(PLAIN)._replace(most_skew_ms=20_000)).run()

    assert wrong_exactly_once(history) == []


@pytest.mark.parametrize("seed", range(16))
def test_at_least_once_nothing_is_lost_or_early_through_crashes_and_zombies(seed: int) -> None:
    history = History(seed, PLAIN._replace(transactional=False)).run()

    assert wrong_at_least_once(history) == []


@pytest.mark.parametrize("seed", range(16))
def test_of_an_id_the_latest_command_wins_through_crashes_zombies_and_a_rolled_back_shelf(seed: int) -> None:
    history = History(seed, NAMED).run()

    assert wrong_exactly_once(history) == []


@pytest.mark.parametrize("seed", range(16))
def test_of_an_id_the_latest_command_wins_when_shelf_and_kafka_leave_calls_unanswered(seed: int) -> None:
    history = History(seed, with_doubts(NAMED)).run()

    assert wrong_exactly_once(history) == []


@pytest.mark.parametrize("seed", range(16))
def test_a_fixed_delay_loses_repeats_and_hurries_nothing_through_crashes_and_zombies(seed: int) -> None:
    history = History(seed, with_doubts(FIXED)).run()

    assert wrong_exactly_once(history) == []


@pytest.mark.parametrize("seed", range(8))
def test_a_fixed_delay_at_least_once_loses_and_hurries_nothing(seed: int) -> None:
    history = History(seed, FIXED._replace(transactional=False)).run()

    assert wrong_at_least_once(history) == []
