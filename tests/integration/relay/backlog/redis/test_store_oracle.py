"""A backlog in Redis and one in memory get the same calls, and must answer the same."""

from __future__ import annotations

import uuid
from collections import ChainMap
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test
from tests.support.relay.backlog.memory_store import MemoryBacklogStore
from tests.support.relay.backlog.stores import MemoryStore, RedisStore, slices_of

from delaytopic_relay.backlog.redis.connection import RedisConnection
from delaytopic_relay.backlog.redis.store import RedisBacklogStore
from delaytopic_relay.backlog.store import BacklogStore, Segment, Slice, StoreVersion
from delaytopic_relay.core.commands import DueKey
from delaytopic_relay.core.id_states import IdEntry
from delaytopic_relay.errors import BacklogMoved

pytestmark = pytest.mark.integration

Answer = TypeVar("Answer")
SHARDS = st.integers(0, 1)
SLICES = st.sampled_from([Slice(0, 1000), Slice(1000, 1000), Slice(0, 60_000)])
SEGMENTS = st.lists(st.builds(Segment, SLICES, st.integers(1, 100), st.binary(max_size=8)), max_size=5)
NAMES = st.sampled_from([b"", b"a", b"b", b"\xff\x00"])
NUMBERS = (st.integers(0, 9), st.integers(0, 10**14), st.integers(0, 9))
KEYS = st.none() | st.builds(DueKey, st.integers(0, 10**14), st.integers(0, 9))
COMMITTED = st.builds(IdEntry, *NUMBERS, KEYS, KEYS, st.none(), st.none())
ENTRIES = COMMITTED | st.builds(IdEntry, *NUMBERS, KEYS, KEYS, st.integers(0, 9), st.none() | COMMITTED)
# Whose idea of the version a call is made with: the shard's own, mostly, or one from before.
STALENESS = st.sampled_from([0, 0, 0, 0, 1, 2])


class StoreComparison(RuleBasedStateMachine):
    """Puts, claims, repeats, reads, drops, wipes and rollbacks, by relays that are up to date or not."""

    connection: RedisConnection

    def __init__(self) -> None:
        super().__init__()
        backend_id = f"test.{uuid.uuid4()}"
        self.memory, self.redis = MemoryBacklogStore(), RedisBacklogStore(self.connection, backend_id)
        self.stores = MemoryStore(self.memory), RedisStore(self.connection, backend_id)
        self.history: dict[int, list[StoreVersion | None]] = {0: [None], 1: [None]}
        self.last_put: Callable[[BacklogStore], int] | None = None
        self.roll_back: list[Callable[[], None]] = []
        self.counter = 0

    def both(self, call: Callable[[BacklogStore], Answer]) -> Answer | str:
        oracle, answer = (self.outcome(call, backlog) for backlog in (self.memory, self.redis))
        assert answer == oracle
        return oracle

    @staticmethod
    def outcome(call: Callable[[BacklogStore], Answer], backlog: BacklogStore) -> Answer | str:
        try:
            return call(backlog)
        except BacklogMoved as error:
            return str(error)

    def held(self, partition: int, staleness: int) -> StoreVersion | None:
        known = self.history[partition]
        return known[max(-1 - staleness, -len(known))]

    def owned(self, partition: int, staleness: int) -> StoreVersion:
        return self.held(partition, staleness) or StoreVersion("nobody", 0, 0)

    @rule(
        partition=SHARDS,
        staleness=STALENESS,
        owner=st.sampled_from(["a", "b"]),
        offset=st.integers(0, 1000),
        segments=SEGMENTS,
        ids=st.dictionaries(NAMES, ENTRIES, max_size=3),
    )
    def put(
        self,
        partition: int,
        staleness: int,
        owner: str,
        offset: int,
        segments: Sequence[Segment],
        ids: Mapping[bytes, IdEntry],
    ) -> None:
        self.counter += 1
        expected, new = self.held(partition, staleness), StoreVersion(owner, self.counter, offset)
        self.last_put = lambda backlog: backlog.put(partition, expected, new, segments, ids)
        self.both(self.last_put)
        self.history[partition].append(self.memory.version(partition))

    @rule()
    def repeat_the_last_put(self) -> None:
        if self.last_put:
            self.both(self.last_put)

    @rule(partition=SHARDS, staleness=STALENESS, slice_=SLICES, first=st.integers(0, 6), count=st.integers(0, 6))
    def load(self, partition: int, staleness: int, slice_: Slice, first: int, count: int) -> None:
        self.both(lambda backlog: backlog.load(partition, self.owned(partition, staleness), slice_, first, count))

    @rule(partition=SHARDS, staleness=STALENESS, slices=st.lists(SLICES, max_size=4), count=st.integers(0, 3))
    def load_first(self, partition: int, staleness: int, slices: Sequence[Slice], count: int) -> None:
        self.both(lambda backlog: backlog.load_first(partition, self.owned(partition, staleness), slices, count))

    @rule(partition=SHARDS, staleness=STALENESS, from_ms=st.sampled_from([-1, 0, 500, 1_000]))
    def page(self, partition: int, staleness: int, from_ms: int) -> None:
        self.both(lambda backlog: backlog.page(partition, self.owned(partition, staleness), from_ms, 3))

    @rule(partition=SHARDS, staleness=STALENESS, names=st.lists(NAMES, max_size=4))
    def ids(self, partition: int, staleness: int, names: Sequence[bytes]) -> None:
        self.both(lambda backlog: backlog.ids(partition, self.owned(partition, staleness), names))

    @rule(partition=SHARDS)
    def id_pages(self, partition: int) -> None:
        self.both(lambda backlog: dict(ChainMap(*map(dict, backlog.id_pages(partition)))))

    @rule(
        partition=SHARDS,
        staleness=STALENESS,
        slices=st.lists(SLICES, max_size=2),
        names=st.lists(NAMES, max_size=2),
    )
    def drop(self, partition: int, staleness: int, slices: Sequence[Slice], names: Sequence[bytes]) -> None:
        self.both(lambda backlog: backlog.drop(partition, self.owned(partition, staleness), slices, names))

    @rule()
    def take_a_snapshot(self) -> None:
        self.roll_back = [store.snapshot() for store in self.stores]

    @rule()
    def fail_over_to_the_snapshot(self) -> None:
        for roll_back in self.roll_back:
            roll_back()
        self.read_versions()

    @rule()
    def wipe(self) -> None:
        for store in self.stores:
            store.wipe()
        self.read_versions()

    def read_versions(self) -> None:
        for partition, known in self.history.items():
            known.append(self.memory.version(partition))

    @invariant()
    def versions_and_slices_agree(self) -> None:
        for partition in self.history:
            assert self.redis.version(partition) == self.memory.version(partition)
            assert slices_of(self.redis, partition) == slices_of(self.memory, partition)


def test_redis_answers_what_memory_answers(redis_connection: RedisConnection) -> None:
    StoreComparison.connection = redis_connection

    run_state_machine_as_test(
        StoreComparison,
        settings=settings(
            max_examples=40, stateful_step_count=25, deadline=None, suppress_health_check=[HealthCheck.too_slow]
        ),
    )
