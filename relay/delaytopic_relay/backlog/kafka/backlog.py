"""The backlog in bucket topics: its state is part of the progress, so a shard is opened from what is committed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from delaytopic_api.values import same_name
from delaytopic_relay.backlog.kafka.bucket import BucketsCopy
from delaytopic_relay.backlog.kafka.manager import BucketManager
from delaytopic_relay.backlog.kafka.partition import BucketShard
from delaytopic_relay.backlog.kafka.ranges import SEGMENT_MARGIN_BYTES, BucketRules
from delaytopic_relay.backlog.kafka.segments import SegmentHead, decode_id, segment_head
from delaytopic_relay.backlog.kafka.topics import BucketLog, BucketNames
from delaytopic_relay.backlog.protocol import Forgotten, PendingReader
from delaytopic_relay.backlog.signing import UNSIGNED, SegmentSigner, bucket_place
from delaytopic_relay.core.bucket_state import BucketsState, BucketState
from delaytopic_relay.core.commands import Record
from delaytopic_relay.core.id_states import IdEntry
from delaytopic_relay.core.progress import Progress
from delaytopic_relay.core.recovery import Bounds, FormerLife, Plan, plan_recovery
from delaytopic_relay.core.rules import Generation
from delaytopic_relay.errors import CorruptState, ForeignRecord, KafkaUnavailable
from delaytopic_relay.ports import Clock, LoopEvents

PATIENCE_MS = 10_000
"""The longest wait for the next record of a bucket."""
PAUSE_MS = 5

OpenReader = Callable[[Mapping[int, BucketsCopy]], PendingReader]


class BucketBacklog:
    """A `Backlog` over bucket topics."""

    transactional = True

    def __init__(
        self,
        log: BucketLog,
        names: BucketNames,
        rules: BucketRules,
        clock: Clock,
        events: LoopEvents,
        open_reader: OpenReader,
        signer: SegmentSigner = UNSIGNED,
    ) -> None:
        """Owns the log; a reader has one of its own."""
        self._log = log
        self._names = names
        self._rules = rules
        self._clock = clock
        self._events = events
        self._signer = signer
        self._open_reader = open_reader
        self._ids: dict[int, dict[bytes, IdEntry]] = {}
        self.manager = BucketManager(log, names, rules, clock, events, signer)

    def begin(self, partitions: int) -> None:
        """Do nothing: no share has to be bounded."""

    @property
    def largest_batch_bytes(self) -> int:
        """The least `max.message.bytes` of the topics."""
        return self._rules.record_bytes + SEGMENT_MARGIN_BYTES

    def plan(
        self, partition: int, committed: Progress | None, bounds: Bounds, owner: str, *, offset_reset: bool
    ) -> Plan:
        """Start at the committed offset, or where the source begins if the buckets are to be filled.

        They are filled again, too, where what was written is signed with no key that is here.
        """
        intact = committed is not None and self._is_intact(partition, committed.buckets)
        buckets = committed.buckets if committed is not None and intact else self._empty(partition)
        filled = committed.offset if committed is not None and intact else None
        plan = plan_recovery(committed, filled, bounds, owner, offset_reset=offset_reset)
        changed = committed is not None and committed.buckets is None and not offset_reset
        return plan._replace(progress=plan.progress._replace(buckets=buckets), backend_changed=changed)

    def _is_intact(self, partition: int, buckets: BucketsState | None) -> bool:
        return buckets is not None and partition not in self.manager.lost() and self._signer.knows(buckets.key)

    def _empty(self, partition: int) -> BucketsState:
        """Return the state in which nothing that the topics hold counts any more."""
        # No number comes twice while a topic lives, as each segment takes an offset at least: a signed segment that
        # somebody writes again later has a number that was passed.
        ends = self._log.ends(partition, self._rules.buckets)
        return BucketsState(0, 0, tuple(BucketState(end, end, end, end) for end in ends), self._rules.key)

    def former_life(self, partition: int, *, offset_reset: bool) -> FormerLife | None:
        """Return that bucket topics have segments of this source, or of another topic of its name.

        What of them waits is known from progress alone.
        """
        ours = self._rules.source_id
        for number, end in enumerate(self._log.ends(partition, self._rules.buckets)):
            found = self._source_of(partition, number) if end else None
            if found == ours:
                return FormerLife(f"the topic {self._names.bucket(number)} has segments of it")
            if found is not None and not offset_reset:
                return FormerLife(f"the topic {self._names.bucket(number)} has segments of another topic", True)
        return None

    def _source_of(self, partition: int, number: int) -> int | None:
        """Return this source if it has segments in a bucket, else the last one of its name that has; None if none."""
        ours, found = self._rules.source_id, None
        for head in self._heads(partition, number):
            if head.source_id == ours:
                return ours
            found = head.source_id if same_name(head.source_id, ours) else found
        return found

    def _heads(self, partition: int, number: int) -> Iterator[SegmentHead]:
        """Read a bucket's partition from its beginning to its end."""
        offset, give_up_ms = 0, self._clock.monotonic_ms() + PATIENCE_MS
        try:
            while True:
                portion = self._log.read(partition, number, offset)
                for record in portion.records:
                    with suppress(CorruptState):
                        yield segment_head(self._signer.verify(bucket_place(partition, number), record.value))
                if portion.records:
                    offset, give_up_ms = portion.records[-1].offset + 1, self._clock.monotonic_ms() + PATIENCE_MS
                elif portion.at_end:
                    return
                elif self._clock.monotonic_ms() >= give_up_ms:
                    raise KafkaUnavailable(f"{self._names.bucket(number)}[{partition}] not read in {PATIENCE_MS} ms")
                else:
                    self._clock.sleep(PAUSE_MS)
        finally:
            self._log.release(partition, number)

    def forget(self, partition: int, marks: Collection[str], committed: Progress | None) -> Forgotten:
        """Return tombstones for all ids; segments are passed over, as the buckets begin at the ends of their topics."""
        names = self._log.ids([partition])[partition]
        state = committed.buckets if committed is not None else None
        waiting = sum(bucket.records for bucket in state.buckets) if state is not None else 0
        if committed is None:
            waiting = self._not_due(partition)
        return Forgotten(waiting, [Record(self._names.ids, None, name, [], partition) for name in names])

    def _not_due(self, partition: int) -> int:
        """Count the records of sources of this name whose segments are not due to be read: what waits, about."""
        now_ms, ours = self._clock.now_ms(), self._rules.source_id
        ends = self._log.ends(partition, self._rules.buckets)
        heads = (head for number, end in enumerate(ends) if end for head in self._heads(partition, number))
        return sum(head.records for head in heads if same_name(head.source_id, ours) and head.floor_ms > now_ms)

    def prepare(self, partitions: Sequence[int]) -> None:
        """Read what is known of the ids of shards that are ours by now. Raises `KafkaUnavailable`."""
        found = self._log.ids(partitions)
        self._ids = {partition: self._decoded(partition, values) for partition, values in found.items()}

    def _decoded(self, partition: int, values: Mapping[bytes, bytes]) -> dict[bytes, IdEntry]:
        found: dict[bytes, IdEntry] = {}
        for name, value in values.items():
            try:
                source_id, entry = decode_id(value)
                if source_id == self._rules.source_id:
                    found[name] = entry
            except ForeignRecord as error:
                self._events.foreign(partition, f"the topic {self._names.ids}[{partition}], key {name!r}: {error}")
        return found

    def open(self, partition: int, plan: Plan) -> BucketShard:
        """Return a shard that was prepared, from what is committed now."""
        progress = plan.progress
        assert progress.buckets is not None
        ids = self._ids.pop(partition)
        shard = BucketShard(partition, progress, progress.offset, progress.buckets, ids, self._rules)
        shard.advance(self._clock.now_ms())
        self.manager.opened(shard)
        return shard

    def follow(self, shard: Any, generations: Sequence[Generation]) -> None:
        """Do nothing: what a former owner writes by its own rules is refused with its transaction."""

    def reader(self, states: Mapping[int, Any]) -> PendingReader:
        """Open a log of its own."""
        return self._open_reader(states)

    def close(self) -> None:
        """Give back connections."""
        self._log.close()
