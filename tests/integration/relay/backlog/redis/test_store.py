"""Tests of what only a backlog in Redis can do or suffer: its keys, its scripts, half-done puts."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import pytest
import redis
from tests.support.relay.backlog.stores import RedisStore, slices_of
from tests.support.servers.redis_server import RedisFields

from delaytopic_local.servers.redis_server import RedisServer
from delaytopic_relay.backlog.redis.connection import Client, RedisConnection, connect_redis
from delaytopic_relay.backlog.redis.layout import encode_version, stored_bytes
from delaytopic_relay.backlog.redis.parts import MAX_ITEMS
from delaytopic_relay.backlog.redis.store import RedisBacklogStore
from delaytopic_relay.backlog.store import BacklogStore, Segment, Slice, StoreVersion
from delaytopic_relay.core.id_states import IdEntry
from delaytopic_relay.errors import BacklogMoved, BacklogUnavailable, ConfigurationError, CorruptState

pytestmark = pytest.mark.integration

StartRedis = Callable[..., RedisServer]
CLAIM, FIRST, SECOND = StoreVersion("relay-a", 1, 0), StoreVersion("relay-a", 2, 100), StoreVersion("relay-a", 3, 250)
NEAR, FAR = Slice(1000, 1000), Slice(60_000, 60_000)
ENTRY = IdEntry(7, 1500, 5)
MANY = [Segment(NEAR, 1, b"%d" % number) for number in range(3 * MAX_ITEMS)]


def load_all(backlog: BacklogStore, version: StoreVersion, slice_: Slice = NEAR) -> list[bytes]:
    return backlog.load(0, version, slice_, 0, 1_000_000)


class Interrupted:
    """A client that does something else before some of its scripts, counted from one: faults at chosen moments."""

    def __init__(self, client: Client, faults: Mapping[int, Callable[[], object]]) -> None:
        self._client, self._faults, self._scripts = client, faults, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def evalsha(self, *arguments: Any) -> Any:
        self._scripts += 1
        self._faults.get(self._scripts, int)()
        return self._client.evalsha(*arguments)


def interrupted(store: RedisStore, faults: Mapping[int, Callable[[], object]]) -> RedisBacklogStore:
    client = cast(Client, Interrupted(store.connection.client, faults))
    return RedisBacklogStore(RedisConnection(client, store.connection.where), store.backend_id)


def break_off() -> None:
    raise redis.ConnectionError("Connection reset by peer")


@pytest.fixture
def redis_store(redis_connection: RedisConnection) -> RedisStore:
    return RedisStore(redis_connection, f"test.{uuid.uuid4()}")


# --- layout


def test_a_shard_has_the_documented_keys_in_one_slot(redis_store: RedisStore) -> None:
    backlog = redis_store.open()

    backlog.put(0, None, FIRST, [Segment(NEAR, 2, b"x"), Segment(FAR, 1, b"y")], {b"id": ENTRY})

    tag = f"{{{redis_store.backend_id}:0}}:"
    names = ["counts", "ids", "position", "s:1000:1000", "s:60000:60000", "sizes", "slices"]
    client: Any = redis_store.connection.client
    assert redis_store.keys() == [f"{tag}{name}".encode() for name in names]
    assert client.get(tag + "position") == b"2:100:relay-a"
    assert client.zrange(tag + "slices", 0, -1, withscores=True) == [(b"1000:1000", 1_000), (b"60000:60000", 60_000)]
    assert client.hgetall(tag + "counts") == {b"1000:1000": b"2", b"60000:60000": b"1"}
    assert client.hgetall(tag + "ids") == {b"id": b"7:1500:5"}
    assert client.hgetall(tag + "sizes") == {
        b"1000:1000": b"1",
        b"60000:60000": b"1",
        b"total": b"2",
        b"position": b"2:100:relay-a",
    }


def test_an_emptied_shard_leaves_nothing_but_its_version_and_that_nothing_has_a_size(redis_store: RedisStore) -> None:
    backlog = redis_store.open()
    backlog.put(0, None, FIRST, [Segment(NEAR, 2, b"x"), Segment(FAR, 1, b"y")], {b"id": ENTRY})

    backlog.drop(0, FIRST, [NEAR, FAR], [b"id"])

    tag, client = f"{{{redis_store.backend_id}:0}}:", cast(Any, redis_store.connection.client)
    assert redis_store.keys() == [f"{tag}position".encode(), f"{tag}sizes".encode()]
    assert client.hgetall(tag + "sizes") == {b"total": b"0", b"position": b"2:100:relay-a"}


@pytest.mark.parametrize("backend_id", ["", "a{b", "a}b"])
def test_an_id_that_would_break_the_hash_tag_is_refused(redis_connection: RedisConnection, backend_id: str) -> None:
    with pytest.raises(ConfigurationError, match="must not be empty or contain braces"):
        RedisBacklogStore(redis_connection, backend_id)


@pytest.mark.parametrize("junk", [b"7", b"7:x:relay", b"\xff:\xfe"])
def test_a_version_that_no_relay_wrote_is_corrupt(redis_store: RedisStore, junk: bytes) -> None:
    key = f"{{{redis_store.backend_id}:0}}:position"
    redis_store.connection.client.set(key, junk)

    with pytest.raises(CorruptState) as caught:
        redis_store.open().version(0)

    assert str(caught.value) == (
        f"the Redis key {key} holds {junk!r}, which no relay writes: delete the keys that begin with "
        f"{{{redis_store.backend_id}:0}}; the relay then fills the backlog again from the source topic"
    )


def test_a_slice_or_an_id_that_no_relay_wrote_is_corrupt(redis_store: RedisStore) -> None:
    backlog, client = redis_store.open(), cast(Any, redis_store.connection.client)
    backlog.put(0, None, FIRST, [], {})
    client.hset(f"{{{redis_store.backend_id}:0}}:counts", "soon", 1)
    client.zadd(f"{{{redis_store.backend_id}:0}}:slices", {"soon": 1})
    client.hset(f"{{{redis_store.backend_id}:0}}:ids", "id", "1:2")

    with pytest.raises(CorruptState, match="holds b'soon', which no relay writes"):
        slices_of(backlog, 0)
    with pytest.raises(CorruptState, match="holds b'1:2', which no relay writes"):
        backlog.ids(0, FIRST, [b"id"])


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda client, tag: client.delete(f"{tag}slices"), "slices names 0 slices, and .*counts 2"),
        (lambda client, tag: client.zrem(f"{tag}slices", "1000:1000"), "slices names 1 slices, and .*counts 2"),
        (lambda client, tag: client.hdel(f"{tag}counts", "1000:1000"), "slices names 2 slices, and .*counts 1"),
        (lambda client, tag: client.zadd(f"{tag}slices", {"1000:1000": 9e12}), "holds b'1000:1000 at 9"),
        (lambda client, tag: client.hset(f"{tag}counts", "1000:1000", "many"), "holds b'many'"),
    ],
)
def test_a_schedule_that_contradicts_the_counts_or_itself_is_corrupt(
    redis_store: RedisStore, spoil: Callable[[Any, str], object], said: str
) -> None:
    backlog = redis_store.open()
    backlog.put(0, None, FIRST, [Segment(NEAR, 2, b"x"), Segment(FAR, 1, b"y")], {})

    spoil(redis_store.connection.client, f"{{{redis_store.backend_id}:0}}:")

    with pytest.raises(CorruptState, match=said):
        slices_of(backlog, 0)


def test_keys_of_another_type_are_corrupt(redis_store: RedisStore) -> None:
    backlog, client = redis_store.open(), redis_store.connection.client
    backlog.put(0, None, FIRST, [], {})
    client.set(f"{{{redis_store.backend_id}:0}}:s:1000:1000", "text")

    for call in (
        lambda: backlog.put(0, FIRST, SECOND, [Segment(NEAR, 1, b"x")], {}),
        lambda: load_all(backlog, FIRST),
    ):
        with pytest.raises(
            CorruptState, match=r"holds keys of another type under the backlog's names: set another back"
        ):
            call()


# --- sizes


def former_version(store: RedisStore, version: StoreVersion, segments: Sequence[Segment]) -> None:
    """Put as a relay does that knows nothing of sizes."""
    tag, client = f"{{{store.backend_id}:0}}:", cast(Any, store.connection.client)
    for slice_, records, data in segments:
        name = f"{slice_.start_ms}:{slice_.width_ms}"
        client.rpush(f"{tag}s:{name}", data)
        client.hincrby(tag + "counts", name, records)
        client.zadd(tag + "slices", {name: slice_.start_ms})
    client.set(tag + "position", encode_version(version))


def test_the_size_of_what_waits_is_near_what_redis_says_of_its_keys(redis_store: RedisStore) -> None:
    # Given slices of a few small segments each, a large one, and ids
    backlog, client = redis_store.open(), cast(Any, redis_store.connection.client)
    small = [Segment(Slice(start_ms, 1_000), 1, b"s" * 150) for start_ms in range(0, 500_000, 1_000)] * 3
    large = [Segment(FAR, 500, b"l" * 60_000)] * 20
    ids = {b"%036d" % number: IdEntry(10**6, 10**13, 10**6) for number in range(2_000)}

    found = [
        backlog.put(0, None, CLAIM, small, {}),
        backlog.put(0, CLAIM, FIRST, large, {}),
        backlog.put(0, FIRST, SECOND, [], ids),
    ]

    used = sum(client.memory_usage(key, samples=0) for key in [*redis_store.keys()])
    assert found == sorted(found)
    assert 0.7 < found[-1] / used < 1.4


def test_what_a_former_version_left_is_read_and_its_size_is_not_counted(redis_store: RedisStore) -> None:
    former_version(redis_store, CLAIM, [Segment(NEAR, 2, b"x" * 100), Segment(FAR, 1, b"y" * 50)])
    backlog = redis_store.open()

    claimed = backlog.put(0, CLAIM, FIRST, [], {})
    put = backlog.put(0, FIRST, SECOND, [Segment(NEAR, 1, b"z" * 10)], {})
    dropped = backlog.drop(0, SECOND, [NEAR], [])

    assert (claimed, put, dropped) == (stored_bytes(0, 2, 0), stored_bytes(10, 2, 0), stored_bytes(0, 1, 0))
    assert slices_of(backlog, 0) == {FAR: 1}
    assert load_all(backlog, SECOND, FAR) == [b"y" * 50]


def test_when_a_former_version_has_written_in_between_sizes_are_counted_anew(redis_store: RedisStore) -> None:
    backlog = redis_store.open()
    backlog.put(0, None, CLAIM, [Segment(NEAR, 1, b"x" * 100)], {})
    former_version(redis_store, FIRST, [Segment(NEAR, 1, b"x" * 100), Segment(FAR, 1, b"y" * 50)])

    assert backlog.put(0, FIRST, SECOND, [Segment(FAR, 1, b"z" * 10)], {}) == stored_bytes(10, 2, 0)
    assert backlog.drop(0, SECOND, [NEAR, FAR], []) == 0


# --- half-done puts


def test_a_put_that_broke_off_half_way_says_the_offset_from_before(redis_store: RedisStore) -> None:
    redis_store.open().put(0, None, CLAIM, [], {})

    with pytest.raises(BacklogUnavailable):
        interrupted(redis_store, {3: break_off}).put(0, CLAIM, FIRST, MANY, {})

    assert redis_store.open().version(0) == StoreVersion("relay-a+2", 2, CLAIM.offset)


@pytest.mark.parametrize("before_script", [1, 2, 3])
def test_a_put_that_broke_off_is_completed_by_its_repeat(redis_store: RedisStore, before_script: int) -> None:
    backlog = redis_store.open()
    backlog.put(0, None, CLAIM, [], {})
    with pytest.raises(BacklogUnavailable):
        interrupted(redis_store, {before_script: break_off}).put(0, CLAIM, FIRST, MANY, {b"id": ENTRY})

    backlog.put(0, CLAIM, FIRST, MANY, {b"id": ENTRY})

    assert (backlog.version(0), slices_of(backlog, 0)) == (FIRST, {NEAR: 3 * MAX_ITEMS})
    assert load_all(backlog, FIRST) == [segment.data for segment in MANY]
    assert backlog.ids(0, FIRST, [b"id"]) == [ENTRY]


def test_a_part_that_was_done_although_its_answer_was_lost_is_not_done_again(redis_store: RedisStore) -> None:
    # Given that the first attempt's part two is carried out only after the repeat has begun
    backlog = redis_store.open()
    backlog.put(0, None, CLAIM, [], {})
    first_attempt = interrupted(redis_store, {3: break_off})

    def late() -> None:
        with pytest.raises(BacklogUnavailable):
            first_attempt.put(0, CLAIM, FIRST, MANY, {})

    interrupted(redis_store, {2: late}).put(0, CLAIM, FIRST, MANY, {})

    assert (backlog.version(0), slices_of(backlog, 0)) == (FIRST, {NEAR: 3 * MAX_ITEMS})


def test_a_successor_claims_over_a_half_done_put_whose_relay_then_can_do_nothing(redis_store: RedisStore) -> None:
    successor = redis_store.open()
    successor.put(0, None, CLAIM, [], {})
    with pytest.raises(BacklogUnavailable):
        interrupted(redis_store, {2: break_off}).put(0, CLAIM, FIRST, MANY, {})
    claimed = StoreVersion("relay-b", 2, 0)
    successor.put(0, successor.version(0), claimed, [], {})

    with pytest.raises(BacklogMoved):
        redis_store.open().put(0, CLAIM, FIRST, MANY, {})

    assert (successor.version(0), slices_of(successor, 0)) == (claimed, {NEAR: MAX_ITEMS})


@pytest.mark.parametrize("taken_before", [1, 2])
def test_a_server_that_lost_a_part_in_the_middle_of_a_put_is_noticed(
    redis_store: RedisStore, taken_before: int
) -> None:
    backlog = redis_store.open()
    backlog.put(0, None, CLAIM, [], {})
    taken: list[Callable[[], None]] = []
    faults = {
        taken_before: lambda: taken.append(redis_store.snapshot()),
        3: lambda: [roll_back() for roll_back in taken],
    }

    with pytest.raises(BacklogMoved):
        interrupted(redis_store, faults).put(0, CLAIM, FIRST, MANY, {})

    assert backlog.version(0) == [CLAIM, StoreVersion("relay-a+1", 2, CLAIM.offset)][taken_before - 1]


def test_a_claim_in_the_middle_of_a_large_put_stops_it(redis_store: RedisStore) -> None:
    backlog, successor = redis_store.open(), redis_store.open()
    backlog.put(0, None, CLAIM, [], {})
    claimed = StoreVersion("relay-b", 2, 0)

    faults = {2: lambda: successor.put(0, successor.version(0), claimed, [], {})}

    with pytest.raises(BacklogMoved, match="another relay claimed it"):
        interrupted(redis_store, faults).put(0, CLAIM, FIRST, MANY, {})

    assert (backlog.version(0), slices_of(backlog, 0)) == (claimed, {NEAR: MAX_ITEMS})


def test_a_flushed_script_cache_is_filled_again(start_redis: StartRedis) -> None:
    connection = connect_redis(RedisFields(url=start_redis().url))
    backlog = RedisBacklogStore(connection, "shop")
    backlog.put(0, None, FIRST, [Segment(NEAR, 1, b"1")], {})

    connection.client.script_flush()
    backlog.put(0, FIRST, SECOND, [Segment(NEAR, 1, b"2")], {})
    connection.client.script_flush()
    backlog.drop(0, SECOND, [FAR], [])

    assert load_all(backlog, SECOND) == [b"1", b"2"]
    backlog.close()
