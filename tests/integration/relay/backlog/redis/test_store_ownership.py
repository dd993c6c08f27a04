"""What every backlog must refuse: calls of a relay whose position is no longer the shard's."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.support.stores import Store, slices_of

from delaytopic_relay.backlog.store import BacklogStore, Segment, Slice, StoreVersion
from delaytopic_relay.core.ids import IdEntry
from delaytopic_relay.errors import BacklogMoved

SHARD = 3
CLAIM, FIRST, SECOND = StoreVersion("relay-a", 1, 0), StoreVersion("relay-a", 2, 100), StoreVersion("relay-a", 3, 250)
OTHER_RELAY = StoreVersion("relay-b", 3, 100)
NEAR, FAR = Slice(1_795_269_686_000, 1000), Slice(1_795_269_700_000, 60_000)
ENTRY = IdEntry(7, 1_795_269_686_270, 5)


def filled(shelf: BacklogStore) -> BacklogStore:
    """A backlog at FIRST, with segments in two slices and an id."""
    shelf.put(SHARD, None, CLAIM, [], {})
    shelf.put(SHARD, CLAIM, FIRST, [Segment(NEAR, 10, b"n1"), Segment(FAR, 2, b"f1")], {b"id-1": ENTRY})
    return shelf


Spoil = Callable[[Store], None]


def claim_elsewhere(store: Store) -> None:
    store.open().put(SHARD, FIRST, OTHER_RELAY, [], {})


def put_elsewhere(store: Store) -> None:
    store.open().put(SHARD, FIRST, SECOND, [Segment(NEAR, 5, b"n2")], {})


def wipe(store: Store) -> None:
    store.wipe()


def wipe_and_fill_again(store: Store) -> None:
    store.wipe()
    store.open().put(SHARD, None, OTHER_RELAY, [Segment(NEAR, 1, b"again")], {})


LOSSES = [claim_elsewhere, put_elsewhere, wipe, wipe_and_fill_again]
CALLS: dict[str, Callable[[BacklogStore, StoreVersion], object]] = {
    "put": lambda shelf, held: shelf.put(
        SHARD, held, StoreVersion("relay-a", 9, 999), [Segment(NEAR, 1, b"z")], {b"z": ENTRY}
    ),
    "claim": lambda shelf, held: shelf.put(SHARD, held, StoreVersion("relay-c", 9, 999), [], {}),
    "load": lambda shelf, held: shelf.load(SHARD, held, NEAR, 0, 10),
    "load of several": lambda shelf, held: shelf.load_first(SHARD, held, [NEAR, FAR], 10),
    "load nothing": lambda shelf, held: shelf.load(SHARD, held, NEAR, 0, 0),
    "ids": lambda shelf, held: shelf.ids(SHARD, held, [b"id-1"]),
    "no ids": lambda shelf, held: shelf.ids(SHARD, held, []),
    "drop": lambda shelf, held: shelf.drop(SHARD, held, [NEAR, FAR], [b"id-1"]),
    "drop nothing": lambda shelf, held: shelf.drop(SHARD, held, [], []),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
@pytest.mark.parametrize("spoil", LOSSES)
def test_a_relay_that_lost_the_shard_can_do_nothing(
    store: Store, spoil: Spoil, call: Callable[[BacklogStore, StoreVersion], object]
) -> None:
    shelf = filled(store.open())
    spoil(store)
    position, slices = shelf.position(SHARD), slices_of(shelf, SHARD)

    with pytest.raises(BacklogMoved):
        call(shelf, FIRST)

    assert (shelf.position(SHARD), slices_of(shelf, SHARD)) == (position, slices)


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
def test_a_relay_notices_that_the_shelf_was_rolled_back(
    store: Store, call: Callable[[BacklogStore, StoreVersion], object]
) -> None:
    shelf = filled(store.open())
    roll_back = store.snapshot()
    shelf.put(SHARD, FIRST, SECOND, [Segment(NEAR, 5, b"n2")], {})
    roll_back()

    with pytest.raises(BacklogMoved):
        call(shelf, SECOND)

    assert (shelf.position(SHARD), slices_of(shelf, SHARD)) == (FIRST, {NEAR: 10, FAR: 2})


@pytest.mark.parametrize("held", [("relay-b", 2, 100), ("relay-a", 3, 100), ("relay-a", 2, 101)])
def test_owner_counter_and_offset_must_all_agree(shelf: BacklogStore, held: tuple[str, int, int]) -> None:
    filled(shelf)

    with pytest.raises(BacklogMoved):
        shelf.load(SHARD, StoreVersion(*held), NEAR, 0, 1)
