"""Tests of a relay in doubt about itself: commits without an answer, failed hand-overs, a spent producer."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from tests.support.relay.backlog.memory_store import MemoryBacklogStore
from tests.support.relay.in_world import Setup, StrictTarget, delivered_offsets, produce, start
from tests.support.relay.world import World

from delaytopic_relay.core.progress import Progress
from delaytopic_relay.delivery.refusals import Refusal
from delaytopic_relay.errors import CommitUnknown, KafkaUnavailable


class DoubtfulTarget(StrictTarget):
    """The next commits do what they say, or not, but nobody hears of it."""

    def __init__(self, world: World, owner: str) -> None:
        super().__init__(world, owner)
        self.doubts: list[bool] = []

    def commit(self, progress: Mapping[int, Progress], group: object) -> None:
        if not self.sent or not self.doubts:
            super().commit(progress, group)
            return
        if self.doubts.pop(0):
            super().commit(progress, group)
        raise CommitUnknown("no answer")


@pytest.mark.parametrize("happened", [True, False])
def test_a_commit_of_unknown_outcome_is_looked_up_and_nothing_is_lost_or_repeated(happened: bool) -> None:
    world = World()
    for after_ms in (1_000, 1_000, 1_500):
        produce(world, after_ms)
    relay = start(world, MemoryBacklogStore(), setup=Setup(target=DoubtfulTarget))
    assert isinstance(relay.target, DoubtfulTarget)
    relay.target.doubts = [happened, happened]

    relay.run(4_000)

    assert (delivered_offsets(world), relay.events.counts["commit-unknown"]) == ([0, 1, 2], 2)


class SlowToReplaceTarget(DoubtfulTarget):
    """A target whose new producer gets no answer from the transaction coordinator at first."""

    refusals_left = 3

    def replace(self) -> None:
        if hasattr(self, "doubts") and self.refusals_left > 0:
            self.refusals_left -= 1
            raise KafkaUnavailable("transactions of relay: timed out")
        super().replace()


def test_a_coordinator_that_does_not_answer_when_the_producer_is_replaced_is_asked_again() -> None:
    world = World()
    for after_ms in (1_000, 1_500):
        produce(world, after_ms)
    relay = start(world, MemoryBacklogStore(), setup=Setup(target=SlowToReplaceTarget))
    assert isinstance(relay.target, SlowToReplaceTarget)
    relay.target.doubts = [False]

    relay.run(10_000)

    assert delivered_offsets(world) == [0, 1]


def test_when_the_commit_for_one_revoked_shard_failed_the_next_one_commits_nothing_of_that_tick() -> None:
    # Given a tick with records of both shards, of which Kafka refuses one without saying which
    world, store = World(), MemoryBacklogStore()
    relay = start(world, store, "first", Setup(shards=(0, 1)))
    relay.run(1_000)
    relay.target.refuse = lambda record: Refusal("too large", True) if record.value == b"bad" else None
    produce(world, 0, partition=0)
    produce(world, 0, partition=1, value=b"bad")
    relay.run(10, step_ms=10)

    # When both are revoked one after the other, before the relay can start over
    relay.loop.revoked([0])
    relay.loop.revoked([1])
    start(world, store, "second", Setup(shards=(0, 1))).run(1_000)

    # Then the successor delivers both, once
    assert (delivered_offsets(world, 0), delivered_offsets(world, 1)) == ([0], [0])


def test_a_stop_in_the_middle_of_a_commit_of_unknown_outcome_commits_nothing_more() -> None:
    world, store = World(), MemoryBacklogStore()
    relay = start(world, store, "first", Setup(target=DoubtfulTarget))
    assert isinstance(relay.target, DoubtfulTarget)
    relay.run(1_000)
    produce(world, 0)
    relay.run(10, step_ms=10)

    relay.target.doubts = [True]
    relay.loop.finish()
    start(world, store, "second").run(1_000)

    assert delivered_offsets(world) == [0]
