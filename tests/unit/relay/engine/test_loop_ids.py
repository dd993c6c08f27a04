from __future__ import annotations

import pytest
from tests.support.relay.backlog.memory_store import MemoryBacklogStore
from tests.support.relay.in_world import Relay, Setup, delivered_offsets, produce, produce_cancel, start
from tests.support.relay.world import World

A = b"a"
NEAR_MS, FAR_MS = 5_000, 60_000
BOTH = pytest.mark.parametrize("after_ms", [pytest.param(NEAR_MS, id="near"), pytest.param(FAR_MS, id="far")])


def id_counts(relay: Relay) -> dict[str, int]:
    """Return what the journal says became of schedules with ids."""
    return {kind: relay.events.counts[kind] for kind in ("sent", "superseded", "cancelled", "too_late")}


def counted(sent: int = 0, superseded: int = 0, cancelled: int = 0, too_late: int = 0) -> dict[str, int]:
    return {"sent": sent, "superseded": superseded, "cancelled": cancelled, "too_late": too_late}


def started() -> tuple[World, Relay]:
    """A relay with nothing to do yet."""
    world = World()
    relay = start(world, MemoryBacklogStore())
    relay.run(1_000)
    return world, relay


@BOTH
@pytest.mark.parametrize("by_ms", [-2_000, 0, 2_000, FAR_MS])
def test_of_two_schedules_with_an_id_only_the_later_is_delivered(after_ms: int, by_ms: int) -> None:
    # Given a schedule
    world, relay = started()
    produce(world, after_ms, name=A)
    relay.run(1_000)

    # When another one with its id is due earlier, at the same time, or later
    newer = produce(world, after_ms - 1_000 + by_ms, name=A)
    relay.run(2 * FAR_MS + NEAR_MS)

    # Then it is delivered alone
    assert (delivered_offsets(world), id_counts(relay)) == ([newer], counted(sent=1, superseded=1))


@BOTH
def test_a_cancelled_schedule_is_not_delivered(after_ms: int) -> None:
    world, relay = started()
    produce(world, after_ms, name=A)
    relay.run(1_000)

    produce_cancel(world, A)
    relay.run(2 * FAR_MS)

    assert (delivered_offsets(world), id_counts(relay)) == ([], counted(cancelled=1))


@BOTH
def test_a_cancel_in_the_same_read_as_its_schedule_counts(after_ms: int) -> None:
    world, relay = started()

    produce(world, after_ms, name=A)
    produce_cancel(world, A)
    relay.run(2 * FAR_MS)

    assert (delivered_offsets(world), id_counts(relay)) == ([], counted(cancelled=1))


@BOTH
def test_a_cancel_that_comes_after_the_delivery_is_too_late(after_ms: int) -> None:
    world, relay = started()
    produce(world, after_ms, name=A)
    relay.run(after_ms + 1_000)

    produce_cancel(world, A)
    relay.run(1_000)

    assert (delivered_offsets(world), id_counts(relay)) == ([0], counted(sent=1, too_late=1))


def test_a_cancel_that_comes_after_the_delivery_of_a_replacement_is_too_late() -> None:
    # Given a far schedule whose nearer replacement was delivered
    world, relay = started()
    produce(world, FAR_MS, name=A)
    newer = produce(world, NEAR_MS, name=A)
    relay.run(NEAR_MS + 1_000)

    produce_cancel(world, A)
    relay.run(2 * FAR_MS)

    assert (delivered_offsets(world), id_counts(relay)) == ([newer], counted(sent=1, superseded=1, too_late=1))


@BOTH
def test_an_id_can_be_used_again_after_a_cancel(after_ms: int) -> None:
    world, relay = started()
    produce(world, after_ms, name=A)
    produce_cancel(world, A)
    again = produce(world, after_ms, name=A)

    relay.run(2 * FAR_MS)

    assert (delivered_offsets(world), id_counts(relay)) == ([again], counted(sent=1, cancelled=1))


def test_an_id_can_be_used_again_after_a_delivery() -> None:
    world, relay = started()
    for _ in range(3):
        produce(world, NEAR_MS, name=A)
        relay.run(NEAR_MS + 1_000)

    assert (delivered_offsets(world), id_counts(relay)) == ([0, 1, 2], counted(sent=3))


@BOTH
def test_of_a_thousand_records_of_one_id_the_last_is_delivered_and_the_others_are_superseded(after_ms: int) -> None:
    world, relay = started()
    for _ in range(1_000):
        produce(world, after_ms, name=A)

    relay.run(2 * FAR_MS, step_ms=250)

    assert (delivered_offsets(world), id_counts(relay)) == ([999], counted(sent=1, superseded=999))


def test_a_record_that_leaves_at_once_replaces_the_pending_one_of_its_id() -> None:
    # Given something delivered, so that the next record is due before it
    world, relay = started()
    produce(world, 0)
    relay.run(1_000)
    produce(world, NEAR_MS, name=A)
    relay.run(1_000)

    at_once = produce(world, -60_000, name=A)
    relay.run(2 * NEAR_MS)

    assert (delivered_offsets(world), id_counts(relay)) == ([0, at_once], counted(sent=2, superseded=1))


def test_ids_of_different_shards_have_nothing_to_do_with_each_other() -> None:
    world = World()
    relay = start(world, MemoryBacklogStore(), setup=Setup(shards=(0, 1)))
    for partition in (0, 1):
        produce(world, NEAR_MS, partition, name=A)
    produce_cancel(world, A, partition=1)

    relay.run(2 * NEAR_MS)

    assert (delivered_offsets(world, 0), delivered_offsets(world, 1)) == ([0], [])


@BOTH
@pytest.mark.parametrize("wiped", [False, True])
def test_replacements_and_cancels_hold_for_a_successor(after_ms: int, wiped: bool) -> None:
    # Given one id replaced, one cancelled and one cancelled and used again, by a relay that then died
    world, store = World(), MemoryBacklogStore()
    predecessor = start(world, store, "predecessor")
    for name in (A, b"b", b"c"):
        produce(world, after_ms, name=name)
    replacement = produce(world, NEAR_MS, name=A)
    produce_cancel(world, b"b")
    produce_cancel(world, b"c")
    again = produce(world, after_ms, name=b"c")
    predecessor.run(2_000)

    # When its backlog may even be wiped
    if wiped:
        store.wipe()
    start(world, store, "successor").run(2 * FAR_MS)

    assert sorted(delivered_offsets(world)) == [replacement, again]


def test_when_the_time_of_a_cancelled_schedule_has_passed_the_source_has_no_lag_any_more() -> None:
    # Given a cancelled schedule, and nothing else to do
    world, relay = started()
    produce(world, NEAR_MS, name=A)
    produce_cancel(world, A)

    relay.run(2 * NEAR_MS)

    assert world.committed[0].offset == 2


def test_when_the_time_of_a_cancelled_schedule_has_passed_the_backlog_forgets_it() -> None:
    world, store = World(), MemoryBacklogStore()
    relay = start(world, store)
    produce(world, FAR_MS, name=A)
    produce_cancel(world, A)

    relay.run(2 * FAR_MS)

    version = store.version(0)
    assert version is not None
    assert (store.slices(0), store.ids(0, version, [A])) == ({}, [None])
