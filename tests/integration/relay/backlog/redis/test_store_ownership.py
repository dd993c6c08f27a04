"""Tests of what every backlog must refuse: calls of a relay whose version is no longer the shard's."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.support.relay.backlog.stores import Store, slices_of

from delaytopic_relay.backlog.store import BacklogStore, Segment, Slice, StoreVersion
from delaytopic_relay.core.id_states import IdEntry
from delaytopic_relay.errors import BacklogMoved

SHARD = 3
CLAIM, FIRST, SECOND = StoreVersion("relay-a", 1, 0), StoreVersion("relay-a", 2, 100), StoreVersion("relay-a", 3, 250)
OTHER_RELAY = StoreVersion("relay-b", 3, 100)
NEAR, FAR = Slice(1_795_269_686_000, 1000), Slice(1_795_269_700_000, 60_000)
ENTRY = IdEntry(7, 1_795_269_686_270, 5)


def filled(backlog: BacklogStore) -> BacklogStore:
    """A backlog at FIRST, with segments in two slices and an id."""
    backlog.put(SHARD, None, CLAIM, [], {})
    backlog.put(SHARD, CLAIM, FIRST, [Segment(NEAR, 10, b"n1"), Segment(FAR, 2, b"f1")], {b"id-1": ENTRY})
    return backlog


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
    "put": lambda backlog, held: backlog.put(
        SHARD, held, StoreVersion("relay-a", 9, 999), [Segment(NEAR, 1, b"z")], {b"z": ENTRY}
    ),
    "claim": lambda backlog, held: backlog.put(SHARD, held, StoreVersion("relay-c", 9, 999), [], {}),
    "load": lambda backlog, held: backlog.load(SHARD, held, NEAR, 0, 10),
    "load of several": lambda backlog, held: backlog.load_first(SHARD, held, [NEAR, FAR], 10),
    "load nothing": lambda backlog, held: backlog.load(SHARD, held, NEAR, 0, 0),
    "ids": lambda backlog, held: backlog.ids(SHARD, held, [b"id-1"]),
    "no ids": lambda backlog, held: backlog.ids(SHARD, held, []),
    "drop": lambda backlog, held: backlog.drop(SHARD, held, [NEAR, FAR], [b"id-1"]),
    "drop nothing": lambda backlog, held: backlog.drop(SHARD, held, [], []),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
@pytest.mark.parametrize("spoil", LOSSES)
def test_a_relay_that_lost_the_shard_can_do_nothing(
    store: Store, spoil: Spoil, call: Callable[[BacklogStore, StoreVersion], object]
) -> None:
    backlog = filled(store.open())
    spoil(store)
    version, slices = backlog.version(SHARD), slices_of(backlog, SHARD)

    with pytest.raises(BacklogMoved):
        call(backlog, FIRST)

    assert (backlog.version(SHARD), slices_of(backlog, SHARD)) == (version, slices)


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
def test_a_relay_notices_that_the_backlog_was_rolled_back(
    store: Store, call: Callable[[BacklogStore, StoreVersion], object]
) -> None:
    backlog = filled(store.open())
    roll_back = store.snapshot()
    backlog.put(SHARD, FIRST, SECOND, [Segment(NEAR, 5, b"n2")], {})
    roll_back()

    with pytest.raises(BacklogMoved):
        call(backlog, SECOND)

    assert (backlog.version(SHARD), slices_of(backlog, SHARD)) == (FIRST, {NEAR: 10, FAR: 2})


@pytest.mark.parametrize("held", [("relay-b", 2, 100), ("relay-a", 3, 100), ("relay-a", 2, 101)])
def test_owner_counter_and_offset_must_all_agree(backlog: BacklogStore, held: tuple[str, int, int]) -> None:
    filled(backlog)

    with pytest.raises(BacklogMoved):
        backlog.load(SHARD, StoreVersion(*held), NEAR, 0, 1)
