from __future__ import annotations

import pytest
from tests.support.relay.backlog.memory_store import MemoryBacklogStore
from tests.support.relay.backlog.stores import slices_of

from delaytopic_relay.backlog.store import Segment, Slice, StoreVersion
from delaytopic_relay.core.id_states import IdEntry
from delaytopic_relay.errors import BacklogMoved

NEAR = Slice(1000, 1000)
FIRST, SECOND = StoreVersion("relay-a", 1, 10), StoreVersion("relay-a", 2, 20)
ENTRY = IdEntry(1, 2, 3)


def test_a_restored_snapshot_is_the_backlog_as_it_was() -> None:
    # Given a snapshot, after which slices, ids and other shards came and went
    store = MemoryBacklogStore()
    store.put(0, None, FIRST, [Segment(NEAR, 2, b"1")], {b"id": ENTRY})
    taken = store.snapshot()
    store.put(0, FIRST, SECOND, [Segment(NEAR, 3, b"2")], {b"other": ENTRY})
    store.drop(0, SECOND, [NEAR], [b"id"])
    store.put(1, None, FIRST, [], {})

    store.restore(taken)

    assert (store.version(0), store.version(1), slices_of(store, 0)) == (FIRST, None, {NEAR: 2})
    assert store.load(0, FIRST, NEAR, 0, 9) == [b"1"]
    assert store.ids(0, FIRST, [b"id", b"other"]) == [ENTRY, None]


def test_a_snapshot_can_be_restored_again_after_further_writes() -> None:
    store = MemoryBacklogStore()
    store.put(0, None, FIRST, [Segment(NEAR, 2, b"1")], {})
    taken = store.snapshot()

    for _ in range(2):
        store.restore(taken)
        store.put(0, FIRST, SECOND, [Segment(NEAR, 2, b"2")], {})

    assert store.load(0, SECOND, NEAR, 0, 9) == [b"1", b"2"]


def test_a_wiped_backlog_has_no_versions() -> None:
    store = MemoryBacklogStore()
    store.put(0, None, FIRST, [Segment(NEAR, 2, b"1")], {})

    store.wipe()

    assert (store.version(0), slices_of(store, 0)) == (None, {})


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (None, "no version, not at offset 20 (write 2 of relay-a): it was wiped, or it is another server's"),
        (FIRST, "offset 10 (write 1 of relay-a), not at offset 20 (write 2 of relay-a): it lost its last writes"),
        (
            StoreVersion("relay-b", 3, 20),
            "offset 20 (write 3 of relay-b), not at offset 20 (write 2 of relay-a): "
            "another relay claimed it, or a put was left half done",
        ),
        (
            StoreVersion("relay-a", 3, 30),
            "offset 30 (write 3 of relay-a), not at offset 20 (write 2 of relay-a): "
            "it took a write that this relay does not know of",
        ),
    ],
)
def test_the_error_says_where_the_backlog_is_and_why_that_may_be(found: StoreVersion | None, reason: str) -> None:
    store = MemoryBacklogStore()
    if found:
        store.put(7, None, found, [], {})

    with pytest.raises(BacklogMoved) as caught:
        store.load(7, SECOND, NEAR, 0, 1)

    assert str(caught.value) == f"the backlog of shard 7 is at {reason}"


def test_the_error_of_a_first_claim_says_that_the_shard_is_claimed() -> None:
    store = MemoryBacklogStore()
    store.put(7, None, FIRST, [], {})

    with pytest.raises(BacklogMoved) as caught:
        store.put(7, None, SECOND, [], {})

    assert str(caught.value) == (
        "the backlog of shard 7 is at offset 10 (write 1 of relay-a), not at no version: it is claimed already"
    )
