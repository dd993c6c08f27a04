"""Listing from a real Redis: what is read, with which commands, and what happens while others write."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from redis.exceptions import NoPermissionError
from tests.harness.shared_servers import SharedRedis
from tests.support.relay.schedules import offsets, schedule
from tests.support.servers.redis_server import RedisFields

from delaytopic_local.servers.redis_server import RedisServer
from delaytopic_relay.backlog.protocol import SliceGone
from delaytopic_relay.backlog.redis.connection import RedisConnection, connect_redis
from delaytopic_relay.backlog.redis.reader import FIRST_PORTION, NAMES, RedisPendingReader
from delaytopic_relay.backlog.redis.store import RedisBacklogStore
from delaytopic_relay.backlog.segments import encode_segment
from delaytopic_relay.backlog.store import END_MS, Segment, Slice, StoreVersion
from delaytopic_relay.core.commands import DueKey, Schedule
from delaytopic_relay.core.done import Done
from delaytopic_relay.core.id_states import IdEntry
from delaytopic_relay.core.partition import Stored
from delaytopic_relay.errors import BacklogUnavailable, CorruptState
from delaytopic_relay.pending.query import PendingQuery
from delaytopic_relay.pending.search import list_pending
from delaytopic_relay.pending.snapshot import ShardCopy

pytestmark = pytest.mark.integration

CLAIM = StoreVersion("me", 1, 0)
FILLED = StoreVersion("me", 2, 0)


def at_any_time() -> int:
    """Whatever it is due, it is asked for."""
    return 1 << 62


NARROW, WIDE = Slice(10_000, 1_000), Slice(3_600_000, 3_600_000)


class Stores:
    """A backlog that a relay writes, and a reader beside it."""

    def __init__(self, connection: RedisConnection, url: str) -> None:
        self.backend_id = f"test.{uuid.uuid4()}"
        self.store = RedisBacklogStore(connection, self.backend_id)
        self.store.put(0, None, CLAIM, [], {})
        self.connection = connect_redis(RedisFields(url=url))
        self.reader = RedisPendingReader(self.connection, self.backend_id)

    def put(self, slice_: Slice, *segments: list[Schedule], ids: dict[bytes, IdEntry] | None = None) -> None:
        version = self.store.version(0)
        assert version is not None
        packed = [Segment(slice_, len(segment), encode_segment(segment)) for segment in segments]
        self.store.put(0, version, version._replace(counter=version.counter + 1), packed, ids or {})

    def forget(self, *slices: Slice) -> None:
        version = self.store.version(0)
        assert version is not None
        self.store.drop(0, version, slices, [])

    def read(self, *slices: Slice) -> list[int]:
        return [offset for portion in self.reader.read(0, slices, at_any_time) for offset in offsets(portion.schedules)]


@pytest.fixture
def stores(redis_connection: RedisConnection, redis: SharedRedis) -> Iterator[Stores]:
    stores = Stores(redis_connection, redis.url)
    yield stores
    stores.reader.close()


def test_slices_are_those_that_the_relay_put(stores: Stores) -> None:
    stores.put(NARROW, [schedule(10_000, 1), schedule(10_001, 2)], [schedule(10_000, 3)])
    stores.put(WIDE, [schedule(3_600_000, 4)])

    assert stores.reader.slices(0, 0, END_MS) == {NARROW: 3, WIDE: 1}
    assert stores.reader.slices(1, 0, END_MS) == {}


def test_slices_of_a_range_of_time_are_read_over_many_pages_and_no_further(stores: Stores) -> None:
    version = stores.store.version(0)
    assert version is not None
    slices = [Slice(number * 1_000, 1_000) for number in range(5 * NAMES)]
    stores.store.put(0, version, FILLED, [Segment(slice_, 1, b"s") for slice_ in slices], {})

    found = stores.reader.slices(0, 1_500_000, 2_600_000)

    assert list(found) == slices[1_500 : 1_500 + 2 * (NAMES - 1)]
    assert dict(stores.reader.slices(0, 0, END_MS)) == dict.fromkeys(slices, 1)


@pytest.mark.parametrize("segments", [1, FIRST_PORTION - 1, FIRST_PORTION, FIRST_PORTION + 1, 3_000])
def test_a_slice_is_read_to_its_end_in_portions(stores: Stores, segments: int) -> None:
    stores.put(NARROW, *([schedule(10_000, number)] for number in range(segments)))

    assert stores.read(NARROW) == list(range(segments))


def test_portions_of_large_segments_are_bounded(stores: Stores) -> None:
    for number in range(20):
        stores.put(NARROW, [schedule(10_000, number, value=bytes(200_000))])

    portions = list(stores.reader.read(0, [NARROW], at_any_time))

    assert [offset for portion in portions for offset in offsets(portion.schedules)] == list(range(20))
    assert max(portion.data_bytes for portion in portions) <= FIRST_PORTION * 200_100


def test_several_slices_are_read_together(stores: Stores) -> None:
    other = Slice(11_000, 1_000)
    stores.put(NARROW, *([schedule(10_000, number)] for number in range(10)))
    stores.put(other, [schedule(11_000, 10)])

    assert sorted(stores.read(other, NARROW)) == list(range(11))


@pytest.mark.parametrize("segments", [0, 1, FIRST_PORTION])
def test_a_slice_that_was_forgotten_before_it_was_read_is_gone(stores: Stores, segments: int) -> None:
    stores.put(NARROW, *([schedule(10_000, number)] for number in range(segments)))
    stores.forget(NARROW)

    with pytest.raises(SliceGone):
        stores.read(NARROW)


@pytest.mark.parametrize("segments", [FIRST_PORTION, FIRST_PORTION + 1, 600])
def test_a_slice_that_is_forgotten_while_it_is_read_is_gone(stores: Stores, segments: int) -> None:
    stores.put(NARROW, *([schedule(10_000, number)] for number in range(segments)))
    portions = stores.reader.read(0, [NARROW], at_any_time)
    next(portions)

    stores.forget(NARROW)

    with pytest.raises(SliceGone):
        list(portions)


def test_ids_are_those_that_the_relay_put(stores: Stores) -> None:
    entry = IdEntry(2 * 7, 10_000, 7)
    stores.put(NARROW, [schedule(10_000, 7, b"a")], ids={b"a": entry})

    names = [b"a", *(b"%d" % number for number in range(2_500))]
    assert stores.reader.ids(0, names) == [entry, *[None] * 2_500]


def test_the_backlog_stays_where_its_owner_has_it_while_it_writes_on(stores: Stores) -> None:
    stores.put(NARROW, [schedule(10_000, 1)])
    seen = stores.store.version(0)
    assert seen is not None
    stores.put(WIDE, [schedule(3_600_000, 2)])

    assert stores.reader.still_at(0, seen)


@pytest.mark.parametrize(
    "now",
    [
        StoreVersion("me+1", 3, 0),
        StoreVersion("me", 1, 0),
        StoreVersion("other", 9, 0),
        StoreVersion("other+1", 9, 0),
        None,
    ],
)
def test_a_backlog_that_lost_writes_or_was_taken_over_is_noticed(stores: Stores, now: StoreVersion | None) -> None:
    stores.store.put(0, CLAIM, FILLED, [], {})
    if now is None:
        stores.connection.client.delete(f"{{{stores.backend_id}:0}}:position")
    else:
        stores.store.put(0, FILLED, now, [], {})

    assert stores.reader.still_at(0, FILLED) == (now == StoreVersion("me+1", 3, 0))


def test_a_user_who_may_only_read_can_list(stores: Stores, redis: SharedRedis, tmp_path: Path) -> None:
    stores.put(NARROW, *([schedule(10_000, number, b"id")] for number in range(10)))
    client: Any = stores.connection.client
    user = f"reader-{uuid.uuid4()}"
    client.acl_setuser(user, enabled=True, reset=True, passwords=["+secret"], keys=["*"], commands=["+@read"])
    url_file = tmp_path / "url"
    url_file.write_text(redis.url.replace("//", f"//{user}:secret@"))
    connection = connect_redis(RedisFields(url_file=str(url_file)))
    reader = RedisPendingReader(connection, stores.backend_id)

    portions = [*reader.read(0, [NARROW], at_any_time)]
    listed = sum(len(each.schedules) for each in portions)
    found = reader.slices(0, 0, END_MS), listed, reader.ids(0, [b"id"]), reader.still_at(0, CLAIM)
    with pytest.raises(NoPermissionError):
        cast(Any, connection.client).set("key", "value")
    reader.close()
    client.acl_deluser(user)

    assert found == ({NARROW: 10}, 10, [None], True)


def test_what_no_relay_wrote_is_refused_with_its_place_or_skipped(stores: Stores) -> None:
    stores.connection.client.zadd(f"{{{stores.backend_id}:0}}:slices", {"tomorrow": 1})
    stores.connection.client.rpush(f"{{{stores.backend_id}:0}}:s:10000:1000", b"\x07nonsense")

    with pytest.raises(CorruptState, match="tomorrow"):
        stores.reader.slices(0, 0, END_MS)
    assert stores.read(NARROW) == []


def test_a_server_that_is_gone_is_told(start_redis: Callable[..., RedisServer]) -> None:
    server = start_redis()
    reader = RedisPendingReader(connect_redis(RedisFields(url=server.url)), "shop")
    server.kill()

    with pytest.raises(BacklogUnavailable):
        reader.slices(0, 0, END_MS)


def test_a_listing_from_a_real_backlog_leaves_out_what_delivery_would_leave_out(stores: Stores) -> None:
    done, replaced, cancelled, latest, unread = (
        schedule(10_000, 1),
        schedule(10_500, 2, b"a"),
        schedule(10_600, 3, b"c"),
        schedule(3_600_000, 4, b"a"),
        schedule(10_700, 9),
    )
    waiting, copy = schedule(10_800, 5), schedule(10_800, 5)
    stores.put(NARROW, [done, replaced, cancelled], [unread, waiting], [copy])
    stores.put(WIDE, [latest], ids={b"a": IdEntry(2 * 4, 3_600_000, 4), b"c": IdEntry(2 * 6 + 1, 10_600, 3)})
    version = stores.store.version(0)
    shard = ShardCopy(0, [], stored=Stored(10_000, version), done=Done(DueKey(10_000, 1)), ingested=9)

    found = list_pending([shard], lambda: stores.reader, PendingQuery())

    assert ([record[:3] for record in found.records], found.why) == ([(10_800, 0, 5), (3_600_000, 0, 4)], None)
