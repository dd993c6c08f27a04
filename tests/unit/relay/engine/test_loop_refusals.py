"""Tests that what Kafka refuses for good becomes a dead letter, and costs nobody else anything."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.simulation.world.refusing import SHRINKS, STAYS, TARGET_LIMIT
from tests.support.relay.backlog.memory_store import MemoryBacklogStore
from tests.support.relay.in_world import (
    Relay,
    Setup,
    dead_offsets,
    delivered_offsets,
    deliveries,
    produce,
    start,
)
from tests.support.relay.world import World

from delaytopic_api.records import DeadLetter, parse_dead_letter
from delaytopic_relay.core.commands import Record
from delaytopic_relay.delivery.batches import source_of
from delaytopic_relay.delivery.refusals import Refusal

ERROR = "target: Broker: Message size too large"


def refuses(offset: int, *, too_large: bool = True) -> Callable[[Record], Refusal | None]:
    """Refuse one source record on its way to the target."""

    def refuse(record: Record) -> Refusal | None:
        partition, of, dead = source_of(record.headers)
        return Refusal(ERROR, too_large, partition, of) if of == offset and not dead else None

    return refuse


def started(records: int = 5) -> tuple[World, Relay]:
    """A relay, and records that are all due in a second."""
    world = World()
    for _ in range(records):
        produce(world, 1_000, value=b"value")
    return world, start(world, MemoryBacklogStore())


def dead_letter(world: World) -> tuple[Record, DeadLetter | None]:
    """The only dead letter."""
    (record,) = (record for _, record in world.delivered if record.topic == "dead")
    return record, parse_dead_letter(record.headers)


@pytest.mark.parametrize("too_large", [True, False])
def test_a_refused_record_becomes_a_dead_letter_and_the_others_are_delivered_once(too_large: bool) -> None:
    world, relay = started()
    relay.target.refuse = refuses(2, too_large=too_large)

    relay.run(3_000)

    record, letter = dead_letter(world)
    reason = "too-large" if too_large else "refused-by-kafka"
    assert delivered_offsets(world) == [0, 1, 3, 4]
    assert record.value == b"value"
    assert letter == DeadLetter(reason, ERROR, "source", 0, 2, deliveries(world)[-1].sent_ms)


def test_a_refused_record_does_not_cost_the_others_their_time() -> None:
    world, relay = started()
    due_ms = world.now_ms + 1_000
    relay.target.refuse = refuses(2)

    relay.run(3_000, step_ms=10)

    assert max(delivery.sent_ms for delivery in deliveries(world)) <= due_ms + 100


def test_a_refusal_that_does_not_say_which_record_it_was_is_found_out_in_the_next_try() -> None:
    # Given a client that tells only that something was refused, until it is told to look closer
    world, relay = started()
    vague = [Refusal(ERROR, True)]
    exact = refuses(2)
    relay.target.refuse = lambda record: (exact(record) and vague.pop()) if vague else exact(record)

    relay.run(3_000)

    assert (delivered_offsets(world), dead_offsets(world)) == ([0, 1, 3, 4], [2])
    assert relay.events.counts["refused"] == 2


def test_when_the_dead_letter_is_refused_too_its_value_is_left_out() -> None:
    world, relay = started()
    exact = refuses(2)

    def refuse(record: Record) -> Refusal | None:
        if record.topic == "dead" and record.value is not None:
            return Refusal("dead: too large", True, 0, 2, dead_letter=True)
        return exact(record)

    relay.target.refuse = refuse
    relay.run(3_000)

    record, letter = dead_letter(world)
    assert (record.value, letter and letter.omitted_bytes) == (None, 5)
    assert delivered_offsets(world) == [0, 1, 3, 4]


def test_the_dead_letter_of_an_unreadable_record_may_be_refused_as_well() -> None:
    world = World()
    world.produce(0, b"k", b"value", [("deliver-at", b"soon")])
    produce(world, 1_000)
    relay = start(world, MemoryBacklogStore())
    relay.target.refuse = lambda record: (
        Refusal("dead: too large", True, 0, 0, dead_letter=True) if record.value == b"value" else None
    )

    relay.run(3_000)

    _, letter = dead_letter(world)
    assert (letter and letter.omitted_bytes, delivered_offsets(world)) == (5, [1])


def test_several_refused_records_are_all_dead_lettered() -> None:
    world, relay = started(records=20)
    bad = {3, 4, 11, 19}
    relay.target.refuse = lambda record: next(
        (refusal for offset in bad if (refusal := refuses(offset)(record)) is not None), None
    )

    relay.run(3_000)

    assert (delivered_offsets(world), dead_offsets(world)) == ([n for n in range(20) if n not in bad], sorted(bad))


def test_a_record_that_is_known_to_be_too_large_is_dead_lettered_without_a_second_try() -> None:
    # Given a record that is larger than the target's limit
    world = World()
    produce(world, 1_000, value=b"x" * (1 << 20))
    produce(world, 1_000)
    relay = start(world, MemoryBacklogStore())

    relay.run(2_000)

    assert (delivered_offsets(world), dead_offsets(world)) == ([1], [0])
    assert relay.events.counts["refused"] == 0


@pytest.mark.parametrize(("transactional", "given_up"), [(True, 1), (False, 0)])
def test_a_record_that_fits_only_compressed_is_delivered_and_so_are_the_others_once(
    transactional: bool, given_up: int
) -> None:
    world = World()
    for value in (b"before", SHRINKS, b"after", SHRINKS):
        produce(world, 1_000, value=value)
    setup = Setup(limit=lambda topic: TARGET_LIMIT, compresses=True, transactional=transactional)
    relay = start(world, MemoryBacklogStore(), setup=setup)

    relay.run(3_000)

    assert (delivered_offsets(world), dead_offsets(world)) == ([0, 1, 2, 3], [])
    assert relay.events.counts["producer-outdated"] == given_up


def test_a_record_that_kafka_finds_too_large_compressed_is_a_dead_letter_and_the_others_are_delivered_once() -> None:
    world = World()
    for value in (b"before", STAYS, b"after"):
        produce(world, 1_000, value=value)
    setup = Setup(limit=lambda topic: TARGET_LIMIT, compresses=True)
    relay = start(world, MemoryBacklogStore(), setup=setup)

    relay.run(3_000)

    _, letter = dead_letter(world)
    assert (delivered_offsets(world), dead_offsets(world)) == ([0, 2], [1])
    assert letter is not None
    assert (letter.reason, letter.omitted_bytes) == ("too-large", len(STAYS))


def test_a_refused_record_is_dead_lettered_once_even_if_the_relay_dies_meanwhile() -> None:
    # Given a relay that learned of the refusal and then died
    world, store = World(), MemoryBacklogStore()
    for _ in range(3):
        produce(world, 1_000)
    first = start(world, store, "first")
    first.target.refuse = refuses(1)
    first.run(1_100, step_ms=10)

    second = start(world, store, "second")
    second.target.refuse = refuses(1)
    second.run(3_000)
    first.run(1_000)

    assert sorted((delivery.offset, delivery.dead) for delivery in deliveries(world)) == [
        (0, False),
        (1, True),
        (2, False),
    ]


def test_after_a_refusal_was_settled_nothing_of_it_is_kept() -> None:
    # Given that what is kept makes every later record take the slow way, and grows
    world, relay = started()
    relay.target.refuse = refuses(2)
    relay.run(3_000)

    produce(world, 100)
    relay.run(1_000)

    assert relay.loop._writer.refusals.refused == {}


def test_what_was_refused_of_a_partition_that_has_left_is_tried_again_when_it_comes_back() -> None:
    # Given that its log may have been cut meanwhile, and another record be at that offset
    world, relay = started()
    relay.target.refuse = refuses(2)
    while not relay.loop._writer.refusals.refused:
        relay.run(50)

    relay.loop.lost([0])
    relay.target.refuse = lambda record: None
    relay.loop.assigned([0])
    relay.run(3_000)

    assert (delivered_offsets(world), dead_offsets(world)) == ([0, 1, 2, 3, 4], [])


def test_without_transactions_a_refused_record_costs_no_duplicates_of_the_others() -> None:
    # Given that nothing crashes
    world = World()
    for _ in range(5):
        produce(world, 1_000)
    relay = start(world, MemoryBacklogStore(), setup=Setup(transactional=False))
    relay.target.refuse = refuses(2)

    relay.run(3_000)

    assert (delivered_offsets(world), dead_offsets(world)) == ([0, 1, 3, 4], [2])
