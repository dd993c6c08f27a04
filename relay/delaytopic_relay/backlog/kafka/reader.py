"""A reader of bucket topics for the page of pending records: they are read as of the moment at which the shards were
copied.

A bucket is a log, so nothing that happens meanwhile can change what is read: segments from the first unread one to the
last that was written then. Floors tell when the rest of a bucket is of no more use.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence

from delaytopic_relay.backlog.kafka.bucket import BucketsCopy, WaitingBucket
from delaytopic_relay.backlog.kafka.segments import SegmentHead, segment_head, segment_schedules
from delaytopic_relay.backlog.kafka.topics import BucketLog
from delaytopic_relay.backlog.protocol import Portion
from delaytopic_relay.backlog.signing import UNSIGNED, SegmentSigner, bucket_place
from delaytopic_relay.backlog.store import Slice
from delaytopic_relay.core.id_states import IdEntry
from delaytopic_relay.errors import CorruptState, ForeignRecord, KafkaUnavailable

PATIENCE_S = 5.0
"""The longest wait for the next segment."""
PAUSE_S = 0.002


class BucketPendingReader:
    """A `PendingReader` over bucket topics: each bucket of a shard is one slice."""

    def __init__(
        self, log: BucketLog, copies: Mapping[int, BucketsCopy], source_id: int, signer: SegmentSigner = UNSIGNED
    ) -> None:
        """Owns the log; `source_id` is the source's."""
        self._log = log
        self._signer = signer
        self._copies = copies
        self._source_id = source_id

    def slices(self, partition: int, from_ms: int, before_ms: int) -> Mapping[Slice, int]:
        """See `PendingReader.slices`: how many wait is known from the copy."""
        found: dict[Slice, int] = {}
        for bucket in self._copies[partition].buckets:
            slice_ = _slice_of(bucket)
            found[slice_] = found.get(slice_, 0) + bucket.records
        return found

    def expect(self, partition: int, slices: Sequence[Slice]) -> None:
        """See `PendingReader.expect`: Kafka takes its time until the first segment is here."""
        for bucket in self._wanted(partition, slices):
            self._log.read(partition, bucket.bucket, bucket.offset)

    def read(self, partition: int, slices: Sequence[Slice], before_ms: Callable[[], int]) -> Iterator[Portion]:
        """See `PendingReader.read`."""
        for bucket in self._wanted(partition, slices):
            yield from self._segments(partition, bucket, before_ms)
            self._log.release(partition, bucket.bucket)

    def _wanted(self, partition: int, slices: Sequence[Slice]) -> list[WaitingBucket]:
        return [bucket for bucket in self._copies[partition].buckets if _slice_of(bucket) in slices]

    def _segments(self, partition: int, bucket: WaitingBucket, before_ms: Callable[[], int]) -> Iterator[Portion]:
        number = bucket.next_number
        for head, data in self._ours(partition, bucket):
            if head.number < number:
                continue
            if head.number > number:
                raise CorruptState(f"segments of bucket {bucket.bucket} are missing; see /status")
            if number >= bucket.read_before and head.floor_ms >= before_ms():
                return
            yield Portion(segment_schedules(data), len(data))
            number += 1
            if number == bucket.written:
                return

    def _ours(self, partition: int, bucket: WaitingBucket) -> Iterator[tuple[SegmentHead, bytes]]:
        """The segments of this source, without an end."""
        offset, give_up_s = bucket.offset, time.monotonic() + PATIENCE_S
        while True:
            records = self._log.read(partition, bucket.bucket, offset).records
            for record in records:
                offset, give_up_s = record.offset + 1, time.monotonic() + PATIENCE_S
                try:
                    segment = self._signer.verify(bucket_place(partition, bucket.bucket), record.value)
                    head = segment_head(segment)
                except ForeignRecord:
                    continue
                if head.source_id == self._source_id:
                    yield head, segment
            if not records:
                time.sleep(PAUSE_S)
            if time.monotonic() > give_up_s:
                raise KafkaUnavailable(f"bucket {bucket.bucket}: nothing arrived for {PATIENCE_S:g} s")

    def ids(self, partition: int, names: Sequence[bytes]) -> Sequence[IdEntry | None]:
        """See `PendingReader.ids`: the shard's own, which its loop may change meanwhile."""
        return [*map(self._copies[partition].ids.get, names)]

    def still_at(self, partition: int, version: BucketsCopy) -> bool:
        """Whoever else owns the shard by now: what was written before stays as it is."""
        return True

    def close(self) -> None:
        """See `PendingReader.close`."""
        self._log.close()


def _slice_of(bucket: WaitingBucket) -> Slice:
    return Slice(bucket.first_ms, max(1, bucket.last_ms - bucket.first_ms + 1))
