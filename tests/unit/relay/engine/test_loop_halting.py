"""Tests of partitions that are read no further, because of a record that the dialect's rules stop at."""

from __future__ import annotations

import pytest
from tests.support.relay import in_world
from tests.support.relay.backlog.memory_store import MemoryBacklogStore
from tests.support.relay.world import World

from delaytopic_api.values import OnBeyondMaxDelay, OnMalformed
from delaytopic_relay.dialects import Forms
from delaytopic_relay.dialects.cesium import CesiumDialect, CesiumRules
from delaytopic_relay.dialects.reading import RoutePolicy, TopicGlobs
from delaytopic_relay.dialects.writing import ReadBy

STRICT = CesiumRules(OnMalformed.STOP, OnBeyondMaxDelay.STOP)
NOW_MS = 1_795_269_600_000
BAD = [("cesium-delay-ms", b"soon"), ("cesium-delay-ms", b"3600001")]


def setup_for(rules: CesiumRules) -> in_world.Setup:
    """A relay of both partitions with the dialect Cesium."""
    dialect = CesiumDialect(RoutePolicy(in_world.TARGET, TopicGlobs([]), 3_600_000), rules)
    forms = Forms({int(ReadBy.CESIUM): dialect.write}, dialect.letter)
    return in_world.Setup(shards=(0, 1), dialect=dialect, forms=forms)


def produce(world: World, after_ms: int, shard: int = 0) -> int:
    """Append a record that is due so much later; its offset."""
    return world.produce(shard, b"k", b"v", [("cesium-delay-ms", b"%d" % after_ms)])


@pytest.mark.parametrize("bad", BAD)
def test_a_record_that_the_rules_stop_at_halts_its_partition_and_no_other(bad: tuple[str, bytes]) -> None:
    world = World(NOW_MS)
    before = produce(world, 2_000)
    stops_at = world.produce(0, b"k", b"v", [bad])
    produce(world, 0)
    elsewhere = [produce(world, 1_000, shard=1), produce(world, 0, shard=1)]
    relay = in_world.start(world, MemoryBacklogStore(), setup=setup_for(STRICT))

    relay.run(3_000)

    assert in_world.delivered_offsets(world, 0) == [before]
    assert sorted(in_world.delivered_offsets(world, 1)) == elsewhere
    assert in_world.dead_offsets(world) == []
    assert world.committed[0].offset == stops_at
    why = relay.loop.snapshot().unreadable[0]
    assert relay.events.halts == [(0, why)]
    assert f"is Stop, so this partition is read no further than offset {stops_at}: with" in why


def test_a_halted_partition_goes_on_with_other_rules() -> None:
    world, store = World(NOW_MS), MemoryBacklogStore()
    stops_at = world.produce(0, b"k", b"v", [BAD[0]])
    after = produce(world, 0)
    in_world.start(world, store, setup=setup_for(STRICT)).run(1_000)

    in_world.start(world, store, "successor", setup_for(CesiumRules())).run(1_000)

    assert (in_world.dead_offsets(world), in_world.delivered_offsets(world)) == ([stops_at], [after])


def test_a_record_that_was_passed_before_the_rules_changed_halts_nothing_when_it_is_read_again() -> None:
    # Given a bad record that became a dead letter, behind one that only memory holds, so that both are read again
    world, store = World(NOW_MS), MemoryBacklogStore()
    waits, bad = produce(world, 5_000), world.produce(0, b"k", b"v", [BAD[0]])
    in_world.start(world, store, setup=setup_for(CesiumRules())).run(1_000)

    successor = in_world.start(world, store, "successor", setup_for(STRICT))
    successor.run(6_000)

    assert (in_world.dead_offsets(world), in_world.delivered_offsets(world)) == ([bad], [waits])
    assert successor.events.halts == []
