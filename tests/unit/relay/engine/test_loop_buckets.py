"""A loop whose backlog is in bucket topics: what comes from them comes while the loop goes on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.simulation.world.bucket_log import SimulatedBucketLog
from tests.support.relay.backlog.memory_store import MemoryBacklogStore
from tests.support.relay.in_world import Relay, Setup, delivered_offsets, produce, start
from tests.support.relay.world import World

from delaytopic_relay.backlog.kafka.topics import BucketPortion
from delaytopic_relay.engine.loop import AWAITING_MS
from delaytopic_relay.engine.pacing import LONGEST_SLEEP_MS

IN_BUCKETS = Setup(buckets=2)


def waits_of(relay: Relay, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the times for which a loop waits for records, as it asks for them."""
    waits: list[int] = []
    poll: Callable[..., Any] = relay.source.poll

    def noting(limit: int, timeout_ms: int, read: Any) -> Any:
        waits.append(timeout_ms)
        return poll(limit, timeout_ms, read)

    monkeypatch.setattr(relay.source, "poll", noting)
    return waits


def test_a_relay_sleeps_no_longer_than_a_moment_while_something_that_is_due_is_on_its_way_from_a_bucket(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Given a record that waits in a bucket, and is due when another relay starts
    world, store = World(), MemoryBacklogStore()
    offset = produce(world, 15_000)
    relay = start(world, store, setup=IN_BUCKETS)
    relay.run(1_000)
    relay.finish()
    world.now_ms += 20_000
    successor = start(world, store, "successor", IN_BUCKETS)
    waits = waits_of(successor, monkeypatch)

    # When its segment has been asked for and does not come at once
    with monkeypatch.context() as slow:
        slow.setattr(SimulatedBucketLog, "read", lambda *_: BucketPortion((), at_end=False))
        successor.run(100)
        waits.clear()
        successor.run(150)
    meanwhile = [*waits]
    successor.run(200)
    waits.clear()
    successor.run(1_000)

    assert delivered_offsets(world) == [offset]
    assert (meanwhile, waits[-1]) == ([AWAITING_MS] * 3, LONGEST_SLEEP_MS)
