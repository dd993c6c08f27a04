"""Tests of who owns a shard: graceful hand-overs, crashes, zombies, and where reading starts."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from tests.support.relay.backlog.memory_store import MemoryBacklogStore
from tests.support.relay.in_world import Setup, StrictTarget, delivered_offsets, produce, run_all, start
from tests.support.relay.world import Crash, World

from delaytopic_relay.core.progress import Progress, decode_progress
from delaytopic_relay.errors import KafkaUnavailable, TransactionAborted
from delaytopic_relay.ports import Committed


def owner(world: World, partition: int = 0) -> str:
    return decode_progress(*world.committed[partition]).owner


def crash_at(world: World, point: str) -> None:
    """The next time that this point is reached, the process dies."""

    def crash(reached: str) -> None:
        if reached == point:
            world.crash = lambda _: None
            raise Crash(point)

    world.crash = crash


def test_a_relay_at_work_is_named_in_what_it_commits() -> None:
    world = World()
    relay = start(world, MemoryBacklogStore(), "relay-1")

    relay.run(100)

    assert owner(world) == "relay-1"


def test_a_graceful_hand_over_names_no_owner_and_the_successor_fences_nobody() -> None:
    # Given a relay with work before it
    world, store = World(), MemoryBacklogStore()
    for after_ms in (1_000, 5_000, 60_000):
        produce(world, after_ms)
    first = start(world, store, "first")
    first.run(2_000)

    # When it stops, and another one starts
    first.loop.finish()
    between = owner(world)
    second = start(world, store, "second")
    second.run(61_000)

    assert (between, second.events.counts["fenced"], owner(world)) == ("", 0, "second")
    assert delivered_offsets(world) == [0, 1, 2]


def test_a_graceful_stop_commits_what_is_due_until_then() -> None:
    # Given a record that was sent in a tick that is still open
    world = World()
    relay = start(world, MemoryBacklogStore())
    relay.run(1_000)
    produce(world, 0)
    relay.run(10, step_ms=10)

    relay.loop.finish()

    assert delivered_offsets(world) == [0]


def test_a_successor_fences_a_crashed_owner() -> None:
    world, store = World(), MemoryBacklogStore()
    produce(world, 1_000)
    crashed = start(world, store, "crashed")
    crashed.run(500)
    epoch = world.epochs["crashed"]

    successor = start(world, store, "successor")
    successor.run(2_000)

    assert (successor.events.counts["fenced"], world.epochs["crashed"]) == (1, epoch + 1)
    assert delivered_offsets(world) == [0]


def test_a_name_in_the_metadata_that_is_no_relay_of_the_group_is_not_fenced_and_nothing_else_changes() -> None:
    # Given committed metadata that names a producer of somebody else
    world, store = World(), MemoryBacklogStore()
    produce(world, 1_000)
    start(world, store, "payments").run(500)
    epoch = world.epochs["payments"]

    successor = start(world, store, "successor", Setup(strangers=["payments"]))
    successor.run(2_000)

    assert (successor.events.counts["fenced"], world.epochs["payments"]) == (0, epoch)
    where = "the metadata of the committed offset of partition 0 names 'payments', which is no relay of this group"
    assert successor.events.skipped == [(0, where)]
    assert delivered_offsets(world) == [0]


def test_a_successor_without_transactions_fences_nobody() -> None:
    world, store = World(), MemoryBacklogStore()
    setup = Setup(transactional=False)
    start(world, store, "crashed", setup).run(500)

    successor = start(world, store, "successor", setup)
    successor.run(500)

    assert successor.events.counts["fenced"] == 0


def test_without_transactions_a_crash_repeats_at_most_what_was_not_committed() -> None:
    # Given three committed deliveries and two that were sent and not yet committed
    world, store = World(), MemoryBacklogStore()
    setup = Setup(transactional=False)
    first = start(world, store, "first", setup)
    first.run(1_000)
    for _ in range(3):
        produce(world, 0)
    first.run(1_000)
    for _ in range(2):
        produce(world, 0)
    first.run(10, step_ms=10)

    start(world, store, "second", setup).run(1_000)

    assert delivered_offsets(world) == [0, 1, 2, 3, 4, 3, 4]


@pytest.mark.parametrize("point", ["before produce", "before commit", "after commit"])
def test_a_crash_anywhere_in_a_delivery_neither_loses_nor_repeats_it(point: str) -> None:
    world, store = World(), MemoryBacklogStore()
    first = start(world, store, "first")
    for _ in range(5):
        produce(world, 1_000)
    first.run(900)

    crash_at(world, point)
    with pytest.raises(Crash):
        first.run(1_000)
    start(world, store, "second").run(2_000)

    assert delivered_offsets(world) == [0, 1, 2, 3, 4]


def test_a_zombie_that_wakes_up_delivers_nothing() -> None:
    # Given a relay that was frozen with records in memory, and whose successor has delivered them
    world, store = World(), MemoryBacklogStore()
    for after_ms in (1_000, 2_000, 60_000):
        produce(world, after_ms)
    zombie = start(world, store, "zombie")
    zombie.run(500)
    successor = start(world, store, "successor")
    successor.run(5_000)

    run_all(world, [zombie, successor], 60_000)

    assert delivered_offsets(world) == [0, 1, 2]
    assert zombie.events.counts["aborted"] + zombie.events.counts["fenced"] > 0


def test_a_shard_that_is_revoked_is_committed_for_its_successor_and_the_others_stay() -> None:
    # Given a relay with two shards, whose records wait
    world = World()
    relay = start(world, MemoryBacklogStore(), "relay-1", Setup(shards=(0, 1)))
    for partition in (0, 1):
        produce(world, 1_000, partition)
    relay.run(500)

    relay.loop.revoked([0])
    relay.run(1_000)

    assert ((owner(world, 0), owner(world, 1)), [*relay.loop.shards]) == (("", "relay-1"), [1])
    assert (delivered_offsets(world, 0), delivered_offsets(world, 1)) == ([], [0])


class RefusingTarget(StrictTarget):
    """Commits of what was sent are refused while `refuses`, as while the group's generation changes."""

    refuses = False

    def commit(self, progress: Mapping[int, Progress], group: object) -> None:
        if self.refuses and self.sent:
            raise TransactionAborted("the generation is not valid")
        super().commit(progress, group)


def test_a_shard_that_is_revoked_after_an_aborted_tick_does_not_get_the_relay_fenced_that_had_it() -> None:
    # Given a relay whose tick with a record of each shard is refused
    world, store = World(), MemoryBacklogStore()
    relay = start(world, store, "relay-1", Setup(shards=(0, 1), target=RefusingTarget))
    relay.run(1_000)
    for partition in (0, 1):
        produce(world, 0, partition)
    assert isinstance(relay.target, RefusingTarget)
    relay.target.refuses = True
    while not relay.events.counts["aborted"]:
        world.now_ms += 10
        relay.loop.step()
    relay.target.refuses = False

    # When one of them goes to another relay before it is recovered
    relay.loop.revoked([0])
    relay.run(1_000)

    # Then its successor fences nobody, and delivers what the tick did not
    assert ((owner(world, 0), owner(world, 1)), delivered_offsets(world, 1)) == (("", "relay-1"), [0])
    successor = start(world, store, "relay-2", Setup(shards=(0,)))
    successor.run(1_000)
    assert (delivered_offsets(world, 0), successor.events.counts["fenced"]) == ([0], 0)


def test_a_shard_that_never_was_recovered_stays_its_former_owners() -> None:
    world, store = World(), MemoryBacklogStore()
    start(world, store, "relay-1", Setup(shards=(0, 1))).run(1_000)
    relay = start(world, store, "relay-2", Setup(shards=(0, 1)))

    relay.loop.revoked([0])

    assert (owner(world, 0), owner(world, 1)) == ("relay-1", "relay-1")


def test_shards_that_are_lost_in_an_open_tick_take_their_records_with_them() -> None:
    # Given a tick in which records of both shards were sent
    world = World()
    relay = start(world, MemoryBacklogStore(), setup=Setup(shards=(0, 1)))
    relay.run(1_000)
    for partition in (0, 1):
        produce(world, 0, partition)
    relay.run(10, step_ms=10)

    relay.loop.lost([0])
    relay.run(1_000)

    assert (delivered_offsets(world, 0), delivered_offsets(world, 1)) == ([], [0])
    assert relay.events.counts["aborted"] == 1


class UnreachableFence(StrictTarget):
    """The coordinator of a former owner's transactions does not answer at first."""

    refusals_left = 2

    def fence(self, owner: str) -> None:
        if self.refusals_left > 0:
            self.refusals_left -= 1
            raise KafkaUnavailable(f"transactions of {owner}: timed out")
        super().fence(owner)


def test_nothing_is_taken_over_before_the_former_owner_is_fenced() -> None:
    world, store = World(), MemoryBacklogStore()
    produce(world, 1_000)
    start(world, store, "crashed").run(500)

    successor = start(world, store, "successor", Setup(target=UnreachableFence))
    successor.run(900)
    before = (delivered_offsets(world), owner(world))
    successor.run(3_000)

    assert (before, (delivered_offsets(world), owner(world))) == (([], "crashed"), ([0], "successor"))


def test_an_offset_that_was_set_by_hand_is_where_reading_starts() -> None:
    # Given a group whose offset somebody set before the first start, to leave out what is below
    world = World()
    for _ in range(5):
        produce(world, 0)
    world.committed[0] = Committed(3, "")

    start(world, MemoryBacklogStore()).run(1_000)

    assert delivered_offsets(world) == [3, 4]


def test_progress_that_cannot_be_read_stops_its_shard_and_no_other() -> None:
    world = World()
    world.committed[0] = Committed(0, "2;somebody;else's")
    for partition in (0, 1):
        produce(world, 100, partition)
    relay = start(world, MemoryBacklogStore(), setup=Setup(shards=(0, 1)))

    relay.run(3_000)

    assert (delivered_offsets(world, 0), delivered_offsets(world, 1)) == ([], [0])
    assert {str(error)[:30] for error in relay.events.errors} == {"the metadata \"2;somebody;else's"[:30]}


def test_records_that_retention_removed_before_they_were_delivered_are_reported() -> None:
    world, store = World(), MemoryBacklogStore()
    for _ in range(6):
        produce(world, 5_000)
    start(world, store, "first").run(1_000)
    world.source[0].delete_before(4)
    reported: list[int] = []
    second = start(world, store, "second")
    second.events.recovered = lambda partition, cause, plan: reported.append(plan.missing_offsets)  # type: ignore[method-assign]

    second.run(500)

    assert reported == [4]


def test_a_graceful_hand_over_leaves_the_backlog_stating_where_the_successor_starts() -> None:
    # Given a far record whose put is the last thing before the stop
    world, store = World(), MemoryBacklogStore()
    relay = start(world, store, "first")
    relay.run(1_000)
    produce(world, 60_000)
    relay.run(10, step_ms=10)

    relay.loop.finish()

    version = store.version(0)
    assert version is not None
    assert (version.offset, world.committed[0].offset) == (1, 1)
