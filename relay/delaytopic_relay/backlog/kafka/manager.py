"""Carries out what shards ask of their bucket topics: visits in between, writes as part of the transaction."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from delaytopic_relay.backlog.kafka.partition import BucketShard, BucketWrite
from delaytopic_relay.backlog.kafka.ranges import BucketRules
from delaytopic_relay.backlog.kafka.segments import encode_id, segment_head, segment_schedules
from delaytopic_relay.backlog.kafka.topics import BucketLog, BucketNames, BucketRecord
from delaytopic_relay.backlog.signing import UNSIGNED, SegmentSigner, bucket_place
from delaytopic_relay.core.commands import Record
from delaytopic_relay.core.id_states import IdEntry
from delaytopic_relay.errors import BucketLost, ForeignRecord, SegmentError, Unavailable
from delaytopic_relay.ports import Clock, LoopEvents

LOADING_MS = 10
"""The time for which visits may keep the loop from what is due."""
UNREADABLE_MS = 10_000
"""The time for which an unreadable shard is left alone."""
MISSING_MS = 10_000
"""The time for which a committed segment may stay invisible before it counts as lost: markers are written after the
answer."""
IDLE_MS = 10_000
"""A bucket of which nothing comes close for so long is let go."""
REPEAT = "the relay reads it again from the source topic"


class BucketManager:
    """The bucket topics as the loop uses them."""

    def __init__(
        self,
        log: BucketLog,
        names: BucketNames,
        rules: BucketRules,
        clock: Clock,
        events: LoopEvents,
        signer: SegmentSigner = UNSIGNED,
    ) -> None:
        self._log = log
        self._signer = signer
        self._names = names
        self._rules = rules
        self._clock = clock
        self._events = events
        self._turn = 0
        self._reading: set[tuple[int, int]] = set()
        self._lost: dict[int, str] = {}
        self._missing_since_ms: dict[tuple[int, int], int] = {}
        self._unreadable_until_ms: dict[int, int] = {}
        self.unreadable: dict[int, str] = {}
        """The reasons why shards cannot be loaded any further, by partition."""
        self.awaits = False
        """See `BacklogManager.awaits`."""

    def opened(self, shard: BucketShard) -> None:
        """Begin anew with a shard that was recovered."""
        partition = shard.partition
        self._lost.pop(partition, None)
        self.unreadable.pop(partition, None)
        for place in [place for place in self._missing_since_ms if place[0] == partition]:
            del self._missing_since_ms[place]
        for number in range(len(shard.buckets)):
            self._log.release(partition, number)

    # -- the loop

    def look_up(self, shard: BucketShard, names: Sequence[bytes]) -> dict[bytes, IdEntry]:
        """Return what is known of these ids."""
        return shard.look_up(names) if names else {}

    def put_early(self, shards: Iterable[BucketShard]) -> list[Record]:
        """The records of shards of which enough waits to be written."""
        return self.put_all(shard for shard in shards if shard.far_bytes >= self._rules.early_bytes)

    def put_all(self, shards: Iterable[BucketShard]) -> list[Record]:
        """The records to write in the transaction that commits these shards."""
        records: list[Record] = []
        for shard in shards:
            if not shard.must_put:
                continue
            put = shard.put()
            records += [
                Record(self._names.bucket(segment.bucket), self._signed(shard, segment), None, [], shard.partition)
                for segment in put.segments
            ]
            records += [
                Record(self._names.ids, self._id_value(entry), name, [], shard.partition)
                for name, entry in put.ids.items()
            ]
            shard.put_done(put, self._clock.now_ms())
        return records

    def _signed(self, shard: BucketShard, segment: BucketWrite) -> bytes:
        return self._signer.sign(bucket_place(shard.partition, segment.bucket), segment.data)

    def _id_value(self, entry: IdEntry | None) -> bytes | None:
        return encode_id(self._rules.source_id, entry) if entry is not None else None

    def drop_done(self, shards: Iterable[BucketShard]) -> None:
        """Do nothing: retention forgets segments, and ids were forgotten in the transaction."""

    def hand_over(self, shards: Iterable[BucketShard]) -> None:
        """Do nothing: the state of the buckets is part of the progress."""

    def lost(self) -> Collection[int]:
        """Shards of which a bucket has lost what waited there, until they are open again."""
        return self._lost.keys()

    def list_next(self, shards: Sequence[BucketShard]) -> None:
        """Do nothing: what waits in bucket topics is committed with the progress."""

    def load_next(self, shards: Sequence[BucketShard], room_bytes: int) -> bool:
        """Visit what comes close, each shard in its turn; whether anything was read that a commit has to say."""
        self._release_all_but(shards)
        until_ms = self._clock.monotonic_ms() + LOADING_MS
        moved = False
        for _ in shards:
            self._turn = (self._turn + 1) % len(shards)
            shard = shards[self._turn]
            before = shard.size
            moved = self._load_shard(shard, room_bytes, until_ms) or moved
            room_bytes -= shard.size - before
            if self._clock.monotonic_ms() >= until_ms:
                break
        now_ms = self._clock.now_ms()
        self.awaits = any(shard.lags(now_ms) and shard.partition not in self.unreadable for shard in shards)
        return moved

    def _release_all_but(self, shards: Sequence[BucketShard]) -> None:
        """Read nothing any more of shards that went to somebody else."""
        here = {shard.partition for shard in shards}
        for place in [place for place in self._reading if place[0] not in here]:
            self._reading.discard(place)
            self._log.release(*place)

    def _load_shard(self, shard: BucketShard, room_bytes: int, until_ms: int) -> bool:
        now_ms = self._clock.now_ms()
        shard.advance(now_ms)
        if self._unreadable_until_ms.get(shard.partition, 0) > until_ms:
            return False
        full = shard.size + room_bytes
        moved = False
        try:
            while to_visit := shard.to_visit(now_ms, room=shard.size < full):
                found = [self._visit(shard, number, now_ms, full, until_ms) for number in to_visit]
                moved = moved or any(found)
                if not any(found) or self._clock.monotonic_ms() >= until_ms:
                    break
        except SegmentError as error:
            self.unreadable[shard.partition] = str(error)
            self._unreadable_until_ms[shard.partition] = until_ms + UNREADABLE_MS
            self._events.stuck(shard.partition, error)
        except BucketLost as error:
            self._lost[shard.partition] = str(error)
            self._events.stuck(shard.partition, error)
        except Unavailable as error:
            self.unreadable[shard.partition] = str(error)
            self._events.unavailable(error)
        else:
            self.unreadable.pop(shard.partition, None)
        return moved

    def _visit(self, shard: BucketShard, number: int, now_ms: int, full: int, until_ms: int) -> bool:
        """Read on in one bucket, as far as it is close; whether a segment was read."""
        bucket = shard.buckets[number]
        self._reading.add((shard.partition, number))
        portion = self._log.read(shard.partition, number, bucket.offset)
        moved = False
        for record in portion.records:
            lead_ms = shard.lead_ms(number) if shard.size < full else 0
            if not bucket.waits or not self._take(shard, number, record, now_ms + lead_ms):
                if (bucket.bound_ms or now_ms) > now_ms + IDLE_MS:
                    self._reading.discard((shard.partition, number))
                    self._log.release(shard.partition, number)
                return moved
            moved = True
            if self._clock.monotonic_ms() >= until_ms:
                return moved
        self._watch(shard, number, at_end=portion.at_end)
        return moved

    def _take(self, shard: BucketShard, number: int, record: BucketRecord, close_ms: int) -> bool:
        """One record of a bucket; false for a segment that is not close yet."""
        bucket = shard.buckets[number]
        try:
            segment = self._signer.verify(bucket_place(shard.partition, number), record.value)
            head = segment_head(segment)
            if head.source_id != self._rules.source_id or head.number < bucket.next_number:
                bucket.skipped(record.offset)
            elif shard.is_next(number, head, record.offset, close_ms):
                shard.visit(number, record.offset, head, segment_schedules(segment))
            else:
                return False
        except ForeignRecord as error:
            bucket.skipped(record.offset)
            self._events.foreign(shard.partition, f"{self._place(shard, number, record)}: {error}")
        except SegmentError as error:
            raise SegmentError(f"{self._place(shard, number, record)}: {error}") from error
        except BucketLost as error:
            raise self._is_lost(shard, number, str(error)) from error
        return True

    def _watch(self, shard: BucketShard, number: int, *, at_end: bool) -> None:
        """Take for lost what is committed and stays away for long."""
        place, now_ms = (shard.partition, number), self._clock.monotonic_ms()
        if not (at_end and shard.buckets[number].waits):
            self._missing_since_ms.pop(place, None)
        elif now_ms - self._missing_since_ms.setdefault(place, now_ms) >= MISSING_MS:
            bucket = shard.buckets[number]
            missing = f"segments {bucket.next_number} to {bucket.written - 1} are not there"
            raise self._is_lost(shard, number, f"{missing} at or after offset {bucket.offset}")

    def _is_lost(self, shard: BucketShard, number: int, why: str) -> BucketLost:
        text = (
            f"the topic {self._names.bucket(number)}[{shard.partition}] has lost what waited in it: {why}; {REPEAT}. "
            "Do not delete or truncate it, and keep its retention above maxDelay"
        )
        return BucketLost(text)

    def _place(self, shard: BucketShard, number: int, record: BucketRecord) -> str:
        return f"the topic {self._names.bucket(number)}[{shard.partition}], offset {record.offset}"
