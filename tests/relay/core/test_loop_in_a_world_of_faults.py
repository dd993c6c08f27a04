"""The loop and the core, with crashes and zombies between any two effects, judged from the final logs."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from delaytopic_relay.addressing import Addressing, Partitioning
from delaytopic_relay.dialects.native import NativeDialect, NativePolicy
from delaytopic_relay.loop import Loop
from delaytopic_relay.pacing import Pace
from delaytopic_relay.receipts import whose_record
from delaytopic_relay.shelves.memory import MemoryShelf
from delaytopic_relay.shelving import Shelving
from delaytopic_relay.takeover import Takeover

from tests.support.quiet_journal import QuietJournal
from tests.support.world import Crash, World, WorldClock, WorldSource, WorldTarget

SHARDS = (0, 1)
MOSTLY_NEAR_MS = (-5_000, 0, 0, 1, 2_000, 9_000, 9_999, 10_000, 11_000, 20_000, 40_000, 150_000, 3_000_000)
TURNS = 400
QUIET_TURNS = 2_500


class FaultyShelf(MemoryShelf):
    """A memory shelf whose every call may be the last of the process."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self.world = world

    def put(self, *args: object) -> None:  # type: ignore[override]
        self.world.crash("before put")
        super().put(*args)  # type: ignore[arg-type]
        self.world.crash("after put")

    def drop(self, *args: object) -> None:  # type: ignore[override]
        self.world.crash("before drop")
        super().drop(*args)  # type: ignore[arg-type]
        self.world.crash("after drop")


def policy() -> NativePolicy:
    return NativePolicy(
        default_delay_ms=None,
        delay_ms=None,
        max_delay_ms=100_000_000,
        ids_enabled=True,
        target_topic="target",
        is_allowed=lambda topic: topic == "other",
    )


def relay(world: World, shelf: MemoryShelf, name: str, *, transactional: bool, rng: random.Random) -> Loop:
    clock, journal = WorldClock(world), QuietJournal()
    source = WorldSource(world, SHARDS, chunk=rng.choice([1, 3, 8]))
    target = WorldTarget(world, name if transactional else "")
    addressing = Addressing("source", "target", "dead", Partitioning.BY_KEY, 4, lambda topic: 1_000_000)
    loop = Loop(
        source=source,
        target=target,
        dialect=NativeDialect(policy()),
        addressing=addressing,
        shelving=Shelving(shelf, clock, journal),
        takeover=Takeover(source, target, shelf, name, 10_000, journal),
        pace=Pace(50, transactional),
        memory_bytes=rng.choice([3_000, 1 << 30]),
        clock=clock,
        journal=journal,
    )
    source.subscribe(loop)
    return loop


def produce_some(world: World, rng: random.Random) -> None:
    for _ in range(rng.choice([0, 0, 1, 3])):
        shard = rng.choice(SHARDS)
        due_ms = world.now_ms + rng.choice(MOSTLY_NEAR_MS)
        headers: list[tuple[str, bytes | None]] = [("deliver-at", b"%d" % due_ms)]
        if rng.random() < 0.1:
            headers = [("deliver-at", b"soon")]
        world.produce(shard, b"k", b"v", headers)


def run(seed: int, *, transactional: bool = True, rollback: bool = True) -> World:
    """One history: faults for a while, then quiet until everything due has left."""
    rng = random.Random(seed)
    world = World()
    crash_share = rng.choice([0, 0.002, 0.01, 0.05])

    def crash(point: str) -> None:
        if rng.random() < crash_share:
            raise Crash(point)

    world.crash = crash
    shelf = FaultyShelf(world)
    relays: list[Loop] = []
    snapshot = None
    for turn in range(TURNS + QUIET_TURNS):
        quiet = turn >= TURNS
        if quiet:
            world.crash = lambda point: None
            relays = [loop for loop in relays if loop._source.generation in (-1, world.generation)]  # type: ignore[attr-defined]
        else:
            produce_some(world, rng)
            if rollback and rng.random() < 0.01:
                snapshot = shelf.snapshot()
            if rollback and snapshot is not None and rng.random() < 0.004:
                shelf.restore(snapshot)
            if rollback and rng.random() < 0.002:
                shelf.wipe()
        world.now_ms += rng.choice([0, 10, 100, 1_000]) if not quiet else 2_000
        if not relays or (not quiet and rng.random() < 0.01):
            relays.append(relay(world, shelf, f"relay-{turn}", transactional=transactional, rng=rng))
        for loop in list(relays):
            try:
                loop.step()
            except Crash:
                relays.remove(loop)
    return world


def judge(world: World, *, transactional: bool) -> list[str]:
    """What is wrong with the final logs, promise by promise."""
    times: Counter[tuple[int, int]] = Counter()
    wrong: list[str] = []
    for sent_ms, record in world.delivered:
        shard, offset, dead = whose_record(record.headers)
        assert shard is not None and offset is not None
        times[shard, offset] += 1
        due = world.source[shard][offset].record_headers[0][1]  # type: ignore[index]
        if not dead and sent_ms < int(due or b""):
            wrong.append(f"early: {shard}:{offset}")
    for shard, log in world.source.items():
        wrong += [f"lost: {shard}:{offset}" for offset in range(len(log)) if times[shard, offset] == 0]
        if transactional:
            wrong += [f"twice: {shard}:{offset}" for offset in range(len(log)) if times[shard, offset] > 1]
    return wrong


@pytest.mark.parametrize("seed", range(150))
def test_exactly_once_nothing_is_lost_twice_or_early_through_crashes_zombies_and_a_rolled_back_shelf(seed: int) -> None:
    world = run(seed)

    assert judge(world, transactional=True) == []


@pytest.mark.parametrize("seed", range(50))
def test_at_least_once_nothing_is_lost_or_early_through_crashes_and_zombies(seed: int) -> None:
    world = run(seed, transactional=False)

    assert judge(world, transactional=False) == []
