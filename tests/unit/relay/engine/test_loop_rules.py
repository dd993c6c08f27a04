from __future__ import annotations

import pytest
from tests.support.relay.backlog.memory_store import MemoryBacklogStore
from tests.support.relay.in_world import Setup, delivered_offsets, produce, start, usual_rules
from tests.support.relay.world import World

from delaytopic_relay.core.commands import NOTHING_DELIVERED
from delaytopic_relay.core.progress import decode_progress
from delaytopic_relay.core.rules import Generation


@pytest.mark.parametrize("buckets", [0, 12], ids=["Redis", "buckets"])
def test_former_rules_by_which_nothing_waits_are_forgotten_although_no_record_comes(buckets: int) -> None:
    world, store = World(), MemoryBacklogStore()
    before, after = Setup(buckets=buckets), Setup(buckets=buckets, max_delay_ms=60_000)
    first = start(world, store, "first", before)
    offset = produce(world, 1_000)
    first.run(5_000)
    start(world, store, "second", after).run(5_000)

    progress = decode_progress(*world.committed[0])

    assert delivered_offsets(world) == [offset]
    assert (progress.floor, progress.generations) == (
        offset + 1,
        (Generation(offset + 1, 0, NOTHING_DELIVERED, usual_rules(after)),),
    )
