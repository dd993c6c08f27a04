"""The backlog in Redis: shards are planned by their version there, and claimed when they are opened."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any

from delaytopic_api.values import Quantity
from delaytopic_relay.backlog.protocol import Forgotten, PendingReader
from delaytopic_relay.backlog.redis.manager import RedisManager, Writing
from delaytopic_relay.backlog.redis.shard import UNLIMITED_BYTES as UNLIMITED_SHARE
from delaytopic_relay.backlog.redis.shard import RedisShard, share_bytes_of
from delaytopic_relay.backlog.store import BacklogStore, StoreVersion
from delaytopic_relay.core.progress import Progress
from delaytopic_relay.core.recovery import Bounds, FormerLife, Plan, plan_recovery
from delaytopic_relay.core.rules import Generation, mark_of
from delaytopic_relay.errors import BacklogFull, BacklogMoved, CorruptState
from delaytopic_relay.ports import Clock, LoopEvents


class RedisBacklog:
    """A `Backlog` over a `BacklogStore`."""

    transactional = False
    largest_batch_bytes = None

    def __init__(
        self,
        store: BacklogStore,
        relay: str,
        horizon_ms: int,
        clock: Clock,
        events: LoopEvents,
        open_reader: Callable[[], PendingReader],
        writing: Writing = Writing(),  # noqa: B008 - it cannot be changed
        max_memory: Quantity | None = None,
    ) -> None:
        """Owns the backlog; `relay` names this relay there, with a number for each claim.

        An older copy of the backlog may hold an earlier claim of this very relay, with the same counter.
        """
        self._store = store
        self._relay = relay
        self._horizon_ms = horizon_ms
        self._events = events
        self._signer, self._background = writing.signer, writing.background
        self._open_reader = open_reader
        self._versions: dict[int, StoreVersion | None] = {}
        """The version of the backlog when a shard was planned."""
        self._claims = 0
        self._max_memory = max_memory
        self.share_bytes = UNLIMITED_SHARE
        """The size of what a shard has in the backlog from which on its reading pauses."""
        self.manager = RedisManager(store, clock, events, writing)

    def begin(self, partitions: int) -> None:
        """Give each partition of the source an equal share of the memory in Redis: of what the class allows, or else of
        what Redis has left.
        """
        if self._max_memory is not None:
            self.share_bytes = share_bytes_of(self._max_memory, max(1, partitions))
        else:
            self.manager.share_what_is_free(max(1, partitions))

    def plan(
        self, partition: int, committed: Progress | None, bounds: Bounds, owner: str, *, offset_reset: bool
    ) -> Plan:
        """Start at the lower of the committed offset and the backlog's."""
        self.manager.abandon(partition)
        version = self._version(partition, committed)
        if version is not None and (committed is None or offset_reset):
            version = self._believe_ids(partition, version)
        self._versions[partition] = version
        filled = version.offset if version is not None else None
        plan = plan_recovery(committed, filled, bounds, owner, offset_reset=offset_reset)
        return plan._replace(backend_changed=committed is not None and committed.buckets is not None)

    def _believe_ids(self, partition: int, version: StoreVersion) -> StoreVersion:
        """Have all entries of ids believed as they are, and return the backlog's version after that.

        The offsets are gone by which those were told that a tick had left behind which was never committed. A cancel
        that counted would be one of them, and what it withdrew would be delivered.
        """
        for page in self._store.id_pages(partition):
            doubted = {name: each.believed() for name, each in page.items() if each.position is not None}
            if doubted:
                new = version._replace(counter=version.counter + 1)
                self._store.put(partition, version, new, [], doubted)
                version = new
        return version

    def former_life(self, partition: int, *, offset_reset: bool) -> FormerLife | None:
        """Return that the backlog has a version, or is of another topic; a bare offset is all that it needs."""
        if offset_reset:
            return None
        try:
            version = self._store.version(partition)
        except CorruptState:
            return FormerLife("the backlog in Redis has a version of it, which cannot be read")
        if version is not None:
            return FormerLife(f"the backlog in Redis is filled up to its offset {version.offset}")
        mark = self._store.topic(partition)
        if mark in (None, self._store.topic_mark):
            return None
        return FormerLife(f"the backlog in Redis is of a topic whose id begins with {mark}", True, (mark,))

    def forget(self, partition: int, marks: Collection[str], committed: Progress | None) -> Forgotten:
        """Delete what the topics with these marks left."""
        return Forgotten(sum(self._store.forget_topic(partition, mark) for mark in marks))

    def _version(self, partition: int, committed: Progress | None) -> StoreVersion | None:
        """Return where the backlog is; None also where it holds what cannot be believed, which is forgotten then.

        Its version names the key that signs. A backlog without one, or with one that is not here, has segments that
        this relay would skip. It also names the rules by which it is filled. With others than those in force, which
        began while schedules waited elsewhere, or since a copy of it was made, a former owner may have put schedules
        there of records that are read by the rules in force: one record would have two keys.
        """
        try:
            version = self._store.version(partition)
            if version is None:
                return None
            if not self._signer.knows(version.owner):
                raise CorruptState(
                    f"the backlog of shard {partition} was filled without a signing key, or with another one"
                )
            if committed is not None and committed.generations and not _names(version, committed.generations[-1]):
                raise CorruptState(
                    f"the backlog of shard {partition} was filled by other rules than are in force, and is filled anew"
                )
        except CorruptState as error:
            self._store.reset(partition, ())
            self._events.stuck(partition, error)
            return None
        return version

    def prepare(self, partitions: Sequence[int]) -> None:
        """Do nothing: each shard is claimed for itself."""

    def open(self, partition: int, plan: Plan) -> RedisShard:
        """Claim the backlog; what is there is listed page by page."""
        version, claim = self._versions.get(partition), self._claim(partition, plan.progress)
        try:
            if version is None:
                # A full Redis takes no further key, and is claimed all the same.
                with suppress(BacklogFull):
                    self._store.note_topic(partition)
            stored_bytes = self._store.put(partition, version, claim, [], {})
        except CorruptState as error:
            self._store.reset(partition, ())
            raise BacklogMoved(
                f"the backlog of shard {partition} counts as lost, and is filled again: {error}"
            ) from error
        shard = RedisShard(partition, plan.progress, plan.progress.offset, claim, self._horizon_ms, self.share_bytes)
        shard.note_stored(stored_bytes)
        return shard

    def _claim(self, partition: int, progress: Progress) -> StoreVersion:
        version = self._versions.get(partition)
        self._claims += 1
        token = self._token(progress.generations[-1:])
        return StoreVersion(token, version.counter + 1 if version is not None else 1, progress.offset)

    def _token(self, generations: Sequence[Generation]) -> str:
        rules = "".join(map(_mark, generations))
        return f"{self._relay}-{self._claims}{rules}{self._signer.key_id}"

    def follow(self, shard: RedisShard, generations: Sequence[Generation]) -> None:
        """Have the version name the rules that begin, and those before them, which go on if the commit fails."""
        put = shard.renamed(self._token(generations), then=self._token(generations[-1:]))
        self._store.put(shard.partition, put.expected, put.new, put.segments, put.ids)
        shard.acknowledged(put)

    def reader(self, states: Mapping[int, Any]) -> PendingReader:
        """Open a connection of its own."""
        return self._open_reader()

    def close(self) -> None:
        """Give back connections."""
        if self._background is not None:
            self._background.shutdown()
        self._store.close()


def _mark(generation: Generation) -> str:
    return f"@{mark_of(generation)}"


def _names(version: StoreVersion, generation: Generation) -> bool:
    return _mark(generation) in version.owner
