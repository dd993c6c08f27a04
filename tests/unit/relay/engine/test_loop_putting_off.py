"""A relay whose dialect puts off: what it writes into its own source, when, and what a successor makes of it."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from tests.support.relay import in_world, markers
from tests.support.relay.backlog.memory_store import MemoryBacklogStore
from tests.support.relay.in_world import Relay, Setup, start
from tests.support.relay.world import Crash, World
from tests.unit.relay.dialects.test_conformance import config_of

from delaytopic_api.records import ENDED, RECEIPT, RESTATED, Receipt
from delaytopic_relay.core.partition import Wanted
from delaytopic_relay.core.suspension import Suspension
from delaytopic_relay.dialects import dialect_for, forms_for, rules_of
from delaytopic_relay.pending.query import LATEST_MS

CONFIG = config_of({"redelivery": {}, "maxDelay": "1h"})
SETUP = Setup(dialect=dialect_for(CONFIG), forms=forms_for(CONFIG), rules=rules_of(CONFIG))
QUEUE = b"queue"


class Seen(NamedTuple):
    """A redelivered message: its payload, when it was due, and its source offset."""

    payload: bytes | None
    due_ms: int
    offset: int


def begin(world: World, message: int, after_ms: int, payload: bytes | None = None) -> int:
    """A START marker; its offset."""
    payload = payload or b"payload %d" % message
    return world.produce(0, QUEUE, markers.start(0, message, after_ms, QUEUE, payload))


def keep_alive(world: World, message: int, after_ms: int) -> int:
    """A KEEPALIVE marker; its offset."""
    return world.produce(0, QUEUE, markers.keep_alive(0, message, after_ms))


def end(world: World, message: int) -> int:
    """An END marker; its offset."""
    return world.produce(0, QUEUE, markers.end(0, message))


def seen(world: World) -> list[Seen]:
    """All that was redelivered, in order."""
    found = []
    for _, record in world.delivered:
        name, text = record.headers[-1]
        assert name == RECEIPT
        receipt = Receipt.parse(text)
        found.append(Seen(record.value, receipt.due_ms, receipt.offset))
    return found


def written(world: World, header: str) -> int:
    """Count the records with a header that relays have written into the source."""
    return sum(any(name == header for name, _ in stone.headers) for stone in world.stones)


def starting(world: World, setup: Setup = SETUP, name: str = "relay-1") -> Relay:
    """A relay with a backlog of its own: the former one's counts as wiped."""
    return start(world, MemoryBacklogStore(), name, setup)


def test_a_message_that_is_kept_alive_comes_back_at_its_last_deadline() -> None:
    world = World()
    relay, begun_ms = starting(world), world.now_ms
    begin(world, 1, 1_000)
    relay.run(500)
    kept_ms = world.now_ms
    keep_alive(world, 1, 2_000)
    relay.run(4_000)

    assert seen(world) == [Seen(b"payload 1", kept_ms + 2_000, 2)]
    assert (written(world, RESTATED), written(world, ENDED)) == (1, 1)
    assert kept_ms > begun_ms


def test_a_message_that_is_kept_alive_again_and_again_waits_as_long() -> None:
    world = World()
    relay = starting(world)
    begin(world, 1, 1_000)
    for _ in range(10):
        relay.run(500)
        keep_alive(world, 1, 3_000)
    last_ms = world.now_ms + 3_000
    relay.run(5_000)

    assert [(one.payload, one.due_ms) for one in seen(world)] == [(b"payload 1", last_ms)]
    assert written(world, RESTATED) == 3


@pytest.mark.parametrize("point", ["before commit", "after commit"])
@pytest.mark.parametrize("is_ended", [False, True])
def test_a_relay_that_dies_when_it_puts_off_leaves_a_successor_with_all_it_needs(point: str, is_ended: bool) -> None:
    # Given a relay that dies at the commit with which a message is put off
    world = World()
    relay = starting(world)
    begin(world, 1, 1_000)
    keep_alive(world, 1, 3_000)
    relay.run(900)

    def die(effect: str) -> None:
        if effect == point and len(world.source[0].entries) > 2:
            raise Crash

    world.crash = die
    with pytest.raises(Crash):
        relay.run(1_000)
    world.crash = lambda effect: None

    # When an END comes before anybody has read what was written
    if is_ended:
        end(world, 1)
    starting(world, name="relay-2").run(6_000)

    assert [one.payload for one in seen(world)] == ([] if is_ended else [b"payload 1"])


def test_an_end_that_is_read_before_what_was_put_off_ends_it_for_successors_that_read_all_anew() -> None:
    # Given an END between a KEEPALIVE and what is written for it: behind all that was read before
    world = World()
    relay = starting(world)
    begin(world, 1, 1_000)
    keep_alive(world, 1, 3_000)
    relay.run(900)

    def meanwhile(effect: str) -> None:
        if effect == "before produce" and len(world.source[0].entries) == 2:
            end(world, 1)

    world.crash = meanwhile
    relay.run(1_000)
    world.crash = lambda effect: None
    withdrawn = written(world, RESTATED)
    starting(world, name="relay-2").run(6_000)

    assert (withdrawn, seen(world)) == (2, [])


def test_while_delivery_is_suspended_nothing_is_written_into_the_source() -> None:
    # Given something that was put off and ended in front of itself, which nobody has read
    world = World()
    relay = starting(world)
    begin(world, 1, 1_000)
    keep_alive(world, 1, 3_000)
    relay.run(900)

    def meanwhile(effect: str) -> None:
        if effect == "before produce" and len(world.source[0].entries) == 2:
            end(world, 1)
        if effect == "after commit" and len(world.source[0].entries) > 3:
            raise Crash

    world.crash = meanwhile
    with pytest.raises(Crash):
        relay.run(1_000)
    world.crash = lambda effect: None
    before = len(world.stones)

    # When a relay that is suspended reads it, and then one that is not
    starting(world, SETUP._replace(suspension=Suspension(delivery=True)), "relay-2").run(6_000)
    while_suspended = len(world.stones)
    starting(world, name="relay-3").run(2_000)

    assert (before, while_suspended, written(world, RESTATED), seen(world)) == (1, 1, 2, [])


def test_what_cannot_be_written_again_is_a_dead_letter_and_holds_nothing_up() -> None:
    world = World()
    relay = starting(world, SETUP._replace(limit=lambda topic: 300 if topic == in_world.SOURCE else 1 << 20))
    begin(world, 1, 1_000, b"x" * 200)
    keep_alive(world, 1, 3_000)
    relay.run(2_000)
    begin(world, 2, 1_000)
    relay.run(2_000)

    assert [(one.offset, one.dead) for one in in_world.deliveries(world)] == [(0, True), (2, False)]
    assert world.committed[0].offset == len(world.source[0].entries)


def test_a_list_shows_what_is_put_off_with_its_new_time_behind_what_comes_first() -> None:
    world = World()
    relay, now_ms = starting(world), world.now_ms
    begin(world, 1, 1_000)
    begin(world, 2, 2_000)
    keep_alive(world, 1, 3_000)
    relay.run(300)

    found, cut_ms = relay.loop.shards[0].first_in_memory(Wanted(0, LATEST_MS, 10))

    assert ([(one.due_ms - now_ms, one.offset) for one in found], cut_ms) == ([(2_000, 1), (3_000, 0)], None)
