"""Partitions in front of a batch that cannot be read: by which relays end, or of which the client says so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from tests.support.relay.backlog.memory_store import MemoryBacklogStore
from tests.support.relay.in_world import Relay, Setup, delivered_offsets, produce, start
from tests.support.relay.world import World

from delaytopic_api.relay import ShardReason
from delaytopic_relay.core.progress import decode_progress
from delaytopic_relay.engine.unreadable import AGAIN_MS, Unreadable
from delaytopic_relay.errors import Unavailable
from delaytopic_relay.ports import BadBatch, Chunk, ReadAll, TooLarge

BACKENDS = {"redis": Setup(), "buckets": Setup(buckets=4), "queue": Setup(delay_ms=60_000)}
every = pytest.mark.parametrize("setup", BACKENDS.values(), ids=BACKENDS)
BAD = BadBatch(5, "no such codec")


@dataclass
class Trial:
    """An examiner that finds what it is told to, and remembers what it was asked."""

    find: Callable[[], TooLarge | None] = lambda: None
    asked: list[tuple[int, int, int]] = field(default_factory=list)

    def examine(self, partition: int, start: int, until: int) -> TooLarge | None:
        self.asked.append((partition, start, until))
        return self.find()

    def forget(self, partition: int) -> None:
        """Nothing is remembered."""


class Lives:
    """Relays of one group, one after another."""

    def __init__(self, setup: Setup, trial: Trial) -> None:
        self.world, self.store, self._count = World(), MemoryBacklogStore(), 0
        self._setup = setup._replace(examiner=trial)
        relay = self.begin()
        produce(self.world, 60_000)
        relay.run(500)
        relay.finish()

    def begin(self) -> Relay:
        """A relay that has joined the group."""
        self._count += 1
        return start(self.world, self.store, f"relay-{self._count}", self._setup)

    def die(self, times: int) -> None:
        """Let relays take over that end before they have read anything."""
        for _ in range(times):
            self.begin().step()

    @property
    def takeovers(self) -> int:
        return decode_progress(*self.world.committed[0]).takeovers


def found() -> TooLarge | None:
    return TooLarge(1, 8, 32 << 20)


def still_looking() -> TooLarge | None:
    raise Unavailable("a process of its own reads there first")


@every
def test_takeovers_are_counted_while_relays_end_before_they_have_read_anything(setup: Setup) -> None:
    lives = Lives(setup, Trial())
    produce(lives.world, 1_000)

    counts = []
    for _ in range(2):
        lives.die(1)
        counts.append(lives.takeovers)

    assert counts == [1, 2]


@every
def test_the_count_begins_anew_once_the_position_has_moved(setup: Setup) -> None:
    lives = Lives(setup, Trial())
    produce(lives.world, 1_000)
    lives.die(2)

    lives.begin().run(500)

    assert lives.takeovers == 0


@every
def test_a_relay_that_hands_over_is_not_counted(setup: Setup) -> None:
    lives = Lives(setup, Trial())
    produce(lives.world, 1_000)
    lives.die(1)
    relay = lives.begin()
    relay.step()
    before = lives.takeovers

    relay.finish()

    assert (before, lives.takeovers) == (2, 0)


def test_what_is_taken_over_again_by_the_same_relay_counts_once() -> None:
    lives = Lives(Setup(), Trial())
    produce(lives.world, 1_000)
    relay = lives.begin()
    relay.step()

    for _ in range(3):
        relay.loop._recover_again({0}, "test")
        relay.step()

    assert lives.takeovers == 1


def test_deliveries_do_not_hide_that_nothing_is_read() -> None:
    # Given what is due from the backlog, and a source that is never read
    lives = Lives(Setup(), Trial())
    produce(lives.world, 1_000)
    relay = lives.begin()
    relay.step()
    relay.source.paused.add(0)
    relay.source.resume = lambda partitions: None  # type: ignore[method-assign]

    relay.run(70_000, step_ms=1_000)

    assert (delivered_offsets(lives.world), lives.takeovers) == ([0], 1)


@every
def test_without_anything_to_read_no_takeover_counts(setup: Setup) -> None:
    lives = Lives(setup, Trial())
    lives.begin().run(70_000, step_ms=1_000)

    lives.die(5)

    assert lives.takeovers == 0


@every
def test_the_third_relay_has_the_source_examined_and_reads_on_where_nothing_is_found(setup: Setup) -> None:
    trial = Trial()
    lives = Lives(setup, trial)
    offset = produce(lives.world, 60_000)
    lives.die(2)
    before = [*trial.asked]

    lives.begin().run(130_000, step_ms=1_000)

    assert (before, [(partition, until) for partition, _, until in trial.asked]) == ([], [(0, 1)])
    assert lives.takeovers == 0
    assert delivered_offsets(lives.world)[-1:] == ([offset] if setup.delay_ms is None else [])


@every
def test_a_partition_stands_still_in_front_of_what_was_found_and_commits_nothing(setup: Setup) -> None:
    lives = Lives(setup, Trial(found))
    produce(lives.world, 1_000)
    lives.die(2)
    committed = dict(lives.world.committed)

    relay = lives.begin()
    relay.run(70_000, step_ms=1_000)

    [(partition, still)] = relay.loop.snapshot().still.items()
    assert (partition, still.reason, dict(lives.world.committed)) == (0, ShardReason.BATCH_UNREADABLE, committed)
    assert str(still) == (
        "relays have ended one after another as they read source[0] from offset 1 on: to unpack the batch of records "
        "up to offset 7 takes more than 32 MiB of memory, which is half of limits.memory. Nothing of the partition is "
        "delivered. Give relays more memory (spec.relay.resources.limits.memory; without an operator limits.memory), "
        "or skip these records: delete them by kafka-delete-records up to offset 8"
    )


def test_a_partition_waits_while_it_is_examined_and_others_go_on() -> None:
    trial = Trial(still_looking)
    lives = Lives(Setup(shards=(0, 1)), trial)
    produce(lives.world, 1_000)
    lives.die(2)
    other = produce(lives.world, 1_000, partition=1)

    relay = lives.begin()
    relay.run(5_000)

    assert (sorted(relay.loop.shards), delivered_offsets(lives.world, 1)) == ([1], [other])
    trial.find = lambda: None
    relay.run(5_000)
    assert sorted(relay.loop.shards) == [0, 1]


# -- what the client says


class Saying:
    """A source whose next batch in partition 0 is bad, as long as it is read."""

    def __init__(self, relay: Relay) -> None:
        self.bad: BadBatch | None = BAD
        self.asked = 0
        self._source, self._poll = relay.source, relay.source.poll
        relay.source.poll = self.poll  # type: ignore[method-assign]

    def poll(self, limit: int, timeout_ms: int, read: ReadAll) -> dict[int, Chunk]:
        if self.bad is None or 0 not in self._source.positions or 0 in self._source.paused:
            return self._poll(limit, timeout_ms, read)
        self.asked += 1
        position = self._source.positions.pop(0)
        batches = self._poll(limit, timeout_ms, read)
        self._source.positions[0] = position
        return {**batches, 0: Chunk([], bad=self.bad)}


def test_a_partition_with_a_bad_batch_delivers_what_was_read_and_is_read_again_now_and_then() -> None:
    world = World()
    first = produce(world, 30_000)
    relay = start(world, MemoryBacklogStore())
    relay.run(500)
    second = produce(world, 30_000)
    saying = Saying(relay)

    relay.run(40_000, step_ms=500)

    assert delivered_offsets(world) == [first]
    assert relay.loop.snapshot().still[0].reason is ShardReason.BATCH_UNREADABLE
    assert 7 <= saying.asked <= 12
    saying.bad = None
    relay.run(10_000, step_ms=500)
    assert (delivered_offsets(world), relay.loop.snapshot().still) == ([first, second], {})


def test_one_bad_answer_is_no_bad_batch() -> None:
    unreadable = Unreadable()

    first = unreadable.note(0, Chunk([], bad=BAD), 0)
    unreadable.note(0, Chunk([], end=6), 10)
    after_reading = unreadable.note(0, Chunk([], bad=BAD), 20)
    elsewhere = unreadable.note(0, Chunk([], bad=BAD._replace(offset=7)), 30)

    assert (first, after_reading, elsewhere, unreadable.still) == (None, None, None, {})


def test_a_bad_batch_is_named_and_not_read_for_some_seconds() -> None:
    unreadable = Unreadable()

    unreadable.note(3, Chunk([], bad=BAD), 0)
    still = unreadable.note(3, Chunk([], bad=BAD), 500)

    assert still is unreadable.still[3]
    assert str(still).startswith("the batch at offset 5 of partition 3 cannot be read: no such codec. It is damaged,")
    assert [unreadable.waits(3, now_ms) for now_ms in (500, 499 + AGAIN_MS, 500 + AGAIN_MS)] == [True, True, False]
