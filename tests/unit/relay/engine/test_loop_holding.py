"""A topic, or one partition of it, takes nothing: who waits, what becomes dead letters, and how it goes on."""

from __future__ import annotations

from collections import Counter

import pytest
from tests.support.relay.backlog.memory_store import MemoryBacklogStore
from tests.support.relay.in_world import (
    DEAD,
    SOURCE,
    TARGET,
    Relay,
    Setup,
    dead_offsets,
    delivered_offsets,
    deliveries,
    produce,
    produce_cancel,
    produce_nonsense,
    run_all,
    start,
)
from tests.support.relay.world import World

from delaytopic_api.records import parse_dead_letter
from delaytopic_api.relay import Outcome
from delaytopic_relay.delivery.reachability import Destination

OTHER, TOLD = "other", "told"
LONG_MS = 120_000
ONCE_MS = 6_000
"""The most that a bad topic may cost once, with the steps of a test."""
BOTH = pytest.mark.parametrize("transactional", [True, False])


def relay_of_two(world: World, *, transactional: bool = True) -> Relay:
    """A relay of two partitions that is at work."""
    setup = Setup(shards=(0, 1), transactional=transactional)
    relay = start(world, MemoryBacklogStore(), setup=setup)
    relay.run(1_000)
    return relay


def silence(world: World, topic: str, partition: int = 0, *, looks_well: bool = False) -> None:
    """It takes nothing until `heal`."""
    world.kafka.silence(Destination(topic, partition), 1 << 40, looks_well=looks_well)


def heal(world: World) -> None:
    world.kafka.end_silences()


def produce_to_other(world: World, after_ms: int, partition: int = 0) -> int:
    headers = [("deliver-to", OTHER.encode()), ("deliver-at", b"%d" % (world.now_ms + after_ms))]
    return world.produce(partition, b"k", b"v", [*headers])


def reasons(world: World) -> dict[int, str]:
    """The reason of each dead letter, by the offset of its record."""
    found = (parse_dead_letter(record.headers) for _, record in world.delivered if record.topic == DEAD)
    return {letter.offset: letter.reason for letter in found if letter is not None}


def sent_to(world: World, topic: str) -> int:
    return sum(record.topic == topic for _, record in world.delivered)


def latest_ms(world: World, partition: int, due_ms: list[int]) -> int:
    """Return the greatest lateness of a partition's records, which are due at these times, in their order."""
    sent = [each.sent_ms for each in deliveries(world) if each.partition == partition and not each.dead]
    return max(at_ms - due for at_ms, due in zip(sent, due_ms, strict=True))


# -- a partition of the target


@BOTH
def test_while_a_partition_of_the_target_takes_nothing_only_the_one_that_sends_there_waits(transactional: bool) -> None:
    world = World()
    relay = relay_of_two(world, transactional=transactional)
    silence(world, TARGET, 0)
    for after_ms in range(0, 60_000, 1_000):
        produce(world, after_ms, partition=0)
        produce(world, after_ms, partition=1)

    relay.run(70_000)

    assert delivered_offsets(world, 0) == []
    # Without transactions, what was sent beside the first that was lost arrives once more.
    assert Counter(delivered_offsets(world, 1)).keys() == {*range(60)}
    assert relay.events.counts["unanswered"] == 1


def test_those_that_wait_for_nothing_are_late_once_by_a_second_or_two() -> None:
    world = World()
    relay = relay_of_two(world)
    silence(world, TARGET, 0)
    due_ms = [world.now_ms + after_ms for after_ms in range(0, 60_000, 500)]
    for due in due_ms:
        produce(world, due - world.now_ms, partition=0)
        produce(world, due - world.now_ms, partition=1)

    relay.run(70_000)

    assert latest_ms(world, 1, due_ms) <= 2_000


@BOTH
def test_what_has_waited_is_delivered_in_order_and_once_when_its_partition_answers_again(transactional: bool) -> None:
    world = World()
    relay = relay_of_two(world, transactional=transactional)
    silence(world, TARGET, 0)
    for after_ms in (3_000, 1_000, 2_000, 90_000):
        produce(world, after_ms, partition=0)
    relay.run(60_000)

    heal(world)
    relay.run(60_000)

    assert delivered_offsets(world, 0) == [1, 2, 0, 3]


def test_what_waits_is_not_committed_as_delivered_and_a_successor_delivers_it() -> None:
    world, store = World(), MemoryBacklogStore()
    relay = start(world, store, "first", Setup(shards=(0, 1)))
    relay.run(1_000)
    silence(world, TARGET, 0)
    for partition in (0, 1):
        for after_ms in range(0, 30_000, 1_000):
            produce(world, after_ms, partition=partition)
    relay.run(60_000)

    heal(world)
    start(world, store, "second", Setup(shards=(0, 1))).run(10_000)

    assert (delivered_offsets(world, 0), delivered_offsets(world, 1)) == ([*range(30)], [*range(30)])


def test_what_arrives_meanwhile_is_taken_in() -> None:
    world = World()
    relay = relay_of_two(world)
    silence(world, TARGET, 0)
    produce(world, 0, partition=0)
    relay.run(5_000)

    for after_ms in (0, 60_000, 3_000):
        produce(world, after_ms, partition=0)
    relay.run(20_000)

    assert relay.loop.shards[0].position == len(world.source[0].entries)
    assert relay.loop.shards[0].pending == 4


def test_a_record_of_before_what_was_delivered_last_stays_on_the_source_meanwhile() -> None:
    world = World()
    relay = relay_of_two(world)
    produce(world, 0, partition=0)
    relay.run(1_000)
    silence(world, TARGET, 0)
    produce(world, 0, partition=0)
    relay.run(5_000)
    late = produce(world, -60_000, partition=0)
    relay.run(20_000)

    heal(world)
    relay.run(20_000)

    assert sorted(delivered_offsets(world, 0)) == [0, 1, late]


def test_one_that_looks_well_and_takes_nothing_is_tried_less_and_less_often() -> None:
    world = World()
    relay = relay_of_two(world)
    silence(world, TARGET, 0, looks_well=True)
    for partition in (0, 1):
        for after_ms in range(0, 600_000, 5_000):
            produce(world, after_ms, partition=partition)

    relay.run(600_000, step_ms=200)
    failures = relay.events.counts["unanswered"]
    heal(world)
    relay.run(310_000, step_ms=200)

    assert 5 <= failures <= 15
    assert (delivered_offsets(world, 0), delivered_offsets(world, 1)) == ([*range(120)], [*range(120)])


# -- a further target


@BOTH
def test_records_for_a_further_target_that_takes_nothing_are_dead_letters_within_five_seconds_and_then_at_once(
    transactional: bool,
) -> None:
    world = World()
    relay = relay_of_two(world, transactional=transactional)
    silence(world, OTHER)

    first_due_ms = world.now_ms
    first = produce_to_other(world, 0)
    relay.run(ONCE_MS)
    later_due_ms = world.now_ms + 1_000
    later = produce_to_other(world, 1_000)
    relay.run(2_000)

    (first_ms, later_ms) = [each.sent_ms for each in deliveries(world) if each.dead]
    assert reasons(world) == {first: "target-unavailable", later: "target-unavailable"}
    assert (first_ms - first_due_ms <= 5_000, later_ms - later_due_ms <= 100) == (True, True)


@BOTH
def test_nothing_else_waits_for_it(transactional: bool) -> None:
    world = World()
    relay = relay_of_two(world, transactional=transactional)
    silence(world, OTHER)
    produce_to_other(world, 0)
    for partition in (0, 1):
        for after_ms in range(0, 20_000, 500):
            produce(world, after_ms, partition=partition)

    relay.run(LONG_MS)

    for partition, first in ((0, 1), (1, 0)):
        assert sorted({*delivered_offsets(world, partition)}) == [*range(first, first + 40)]
    assert dead_offsets(world) == [0]


def test_once_it_takes_records_again_they_are_delivered() -> None:
    world = World()
    relay = relay_of_two(world)
    silence(world, OTHER)
    lost = produce_to_other(world, 0)
    relay.run(30_000)

    heal(world)
    relay.run(5_000)
    found = produce_to_other(world, 0)
    relay.run(5_000)

    assert (dead_offsets(world), delivered_offsets(world)) == ([lost], [found])


def test_one_that_is_back_within_its_five_seconds_loses_no_record() -> None:
    world = World()
    relay = relay_of_two(world)
    silence(world, OTHER)
    offset = produce_to_other(world, 0)
    relay.run(2_000)

    heal(world)
    relay.run(5_000)

    assert (dead_offsets(world), delivered_offsets(world)) == ([], [offset])


def test_a_partition_that_is_about_to_send_to_what_is_in_doubt_waits_without_trying() -> None:
    world = World()
    relay = relay_of_two(world)
    silence(world, OTHER)
    produce_to_other(world, 0, partition=0)
    produce_to_other(world, 1_000, partition=1)

    relay.run(LONG_MS)

    assert (dead_offsets(world, 0), dead_offsets(world, 1)) == ([0], [0])
    assert world.kafka.counts["path: not acknowledged"] == 1


# -- topics of its own


@BOTH
def test_while_the_dead_letter_topic_takes_nothing_only_those_with_a_bad_record_wait(transactional: bool) -> None:
    world = World()
    relay = relay_of_two(world, transactional=transactional)
    silence(world, DEAD)
    bad = produce_nonsense(world, partition=0)
    for partition in (0, 1):
        for after_ms in range(0, 20_000, 500):
            produce(world, after_ms, partition=partition)
    relay.run(LONG_MS)
    during = (dead_offsets(world), sorted({*delivered_offsets(world, 1)}))

    heal(world)
    relay.run(LONG_MS)

    assert during == ([], [*range(40)])
    assert dead_offsets(world) == [bad]
    assert sorted({*delivered_offsets(world, 0)}) == [*range(1, 41)]


@BOTH
def test_while_the_topic_of_outcomes_takes_nothing_only_those_with_something_to_tell_wait(transactional: bool) -> None:
    world = World()
    setup = Setup(shards=(0, 1), transactional=transactional, outcomes=TOLD)
    relay = start(world, MemoryBacklogStore(), setup=setup)
    relay.run(1_000)
    silence(world, TOLD, 0)
    for partition in (0, 1):
        for after_ms in range(0, 20_000, 500):
            produce(world, after_ms, partition=partition)
    relay.run(LONG_MS)
    during = {*told(world)}

    heal(world)
    relay.run(LONG_MS)

    assert during == {(1, offset) for offset in range(40)}
    assert {*told(world)} == {(partition, offset) for partition in (0, 1) for offset in range(40)}
    if transactional:
        assert len(told(world)) == 80


def test_cancels_are_not_read_while_nobody_can_be_told_of_them() -> None:
    world = World()
    relay = start(world, MemoryBacklogStore(), setup=Setup(shards=(0, 1), outcomes=TOLD))
    relay.run(1_000)
    silence(world, TOLD, 0)
    cancels = [produce_cancel(world, b"a")]
    relay.run(ONCE_MS)
    due_ms: list[int] = []
    for _ in range(20):
        cancels.append(produce_cancel(world, b"a"))
        due_ms.append(world.now_ms + 100)
        produce(world, 100, partition=1)
        relay.run(1_000)
    sent_ms = [each.sent_ms for each in deliveries(world) if each.partition == 1]

    heal(world)
    relay.run(LONG_MS)

    assert [sent - due <= 100 for sent, due in zip(sent_ms, due_ms, strict=True)] == [True] * 20
    assert sorted(place for place in told(world) if place[0] == 0) == [(0, offset) for offset in cancels]


def told(world: World) -> list[tuple[int, int]]:
    """The source places that outcomes are of."""
    found = (Outcome.model_validate_json(each.value or b"") for _, each in world.delivered if each.topic == TOLD)
    return [(each.source.partition, each.source.offset) for each in found]


def test_nothing_is_read_meanwhile_that_might_need_it() -> None:
    world = World()
    relay = relay_of_two(world)
    silence(world, DEAD)
    produce_nonsense(world, partition=0)
    relay.run(5_000)
    for _ in range(3):
        produce_nonsense(world, partition=0)

    relay.run(60_000)

    assert relay.events.counts["unanswered"] == 1


def test_while_a_bucket_topic_takes_nothing_only_those_are_away_that_store_there() -> None:
    world = World()
    relay = start(world, MemoryBacklogStore(), setup=Setup(shards=(0, 1), buckets=3))
    relay.run(1_000)
    for bucket in range(3):
        silence(world, f"{SOURCE}.delay.{bucket}", 0)
    for partition in (0, 1):
        for after_ms in (0, 15_000, 40_000):
            produce(world, after_ms, partition=partition)
    relay.run(LONG_MS)
    during = (sorted(relay.loop.shards), delivered_offsets(world, 1))

    heal(world)
    relay.run(LONG_MS)

    assert during == ([1], [0, 1, 2])
    assert delivered_offsets(world, 0) == [0, 1, 2]


# -- nobody to blame


def test_while_the_cluster_does_not_answer_at_all_nobody_is_held_and_all_is_tried_again() -> None:
    world = World()
    world.kafka.look_at = lambda topics: dict  # type: ignore[method-assign]
    relay = relay_of_two(world)
    for partition in (0, 1):
        silence(world, TARGET, partition)
        produce(world, 0, partition=partition)

    relay.run(20_000)
    held = dict(relay.loop.snapshot().held)
    heal(world)
    relay.run(5_000)

    assert held == {}
    assert (delivered_offsets(world, 0), delivered_offsets(world, 1)) == ([0], [0])


# -- the producer's name


def test_a_transaction_with_a_partition_that_takes_nothing_costs_the_producer_its_id_and_no_time() -> None:
    world = World()
    relay = relay_of_two(world)
    silence(world, TARGET, 0)
    produce(world, 0, partition=0)
    produce(world, 0, partition=1)

    relay.run(10_000)

    assert relay.target.owner == "relay~2"
    assert delivered_offsets(world, 1) == [0]


def test_a_successor_does_not_wait_for_a_transaction_that_cannot_end() -> None:
    world, store = World(), MemoryBacklogStore()
    first = start(world, store, "first", Setup(shards=(0, 1)))
    first.run(1_000)
    silence(world, TARGET, 0)
    produce(world, 0, partition=0)
    produce(world, 0, partition=1)
    for _ in range(2):
        world.now_ms += 50
        first.step()  # it has given up the transaction, and is killed

    second = start(world, store, "second", Setup(shards=(0, 1)))
    run_all(world, [second], 10_000)

    assert delivered_offsets(world, 1) == [0]


# -- what a page shows


def test_the_snapshot_names_who_waits_for_what() -> None:
    world = World()
    relay = relay_of_two(world)
    silence(world, TARGET, 1)
    produce(world, 0, partition=1)
    relay.run(2_000)

    (held,) = relay.loop.snapshot().held.items()

    assert (held[0], held[1].destination) == (1, Destination(TARGET, 1))


# -- memory


def test_what_waits_leaves_the_others_half_of_the_memory() -> None:
    world = World()
    setup = Setup(shards=(0, 1), memory_bytes=40_000, chunk=5, delay_ms=1_000)
    relay = start(world, MemoryBacklogStore(), setup=setup)
    relay.run(1_000)
    silence(world, TARGET, 0)
    for _ in range(200):
        world.produce(0, b"k", b"v" * 1_000)
        world.produce(1, b"k", b"v" * 1_000)

    relay.run(60_000)

    assert relay.loop.snapshot().paused == {0}
    assert delivered_offsets(world, 1) == [*range(200)]
