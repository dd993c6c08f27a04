"""Ranges that adapt to how full they are: where each bucket's begins, in time from now. Pure.

Bucket k takes what is due in at least its wait, up to the next one's: horizon * 2^k at first. Twice in a second or
so it is seen how much each took. One that took more than can be passed on in a tick is split: the bucket above
begins in the middle of its range from then on. Where two neighbours together took little, the split is undone.

Waits only ever choose the bucket: floors are what is exact, and they are written down.
"""

from __future__ import annotations

from typing import NamedTuple

LARGEST_SEGMENT_BYTES = 256 << 10
"""The bound of a segment of several schedules; a larger schedule is a segment of its own."""
FULL_RECORDS = 20_000
"""The number of records that no tick can pass on: that many schedules within a quarter of the horizon make a bucket too
full."""
EARLY_BYTES = 4 << 20
"""The memory that a shard's schedules take which wait to be written when they are sent ahead of the commit: enough for
full segments. The broker takes them while the relay reads on, so that less is left for the commit to wait for.
"""
LEAD_SHARE = 4
"""A bucket is visited this part of the horizon before anything in it can be due."""
SEGMENT_MARGIN_BYTES = 200
"""The room for what a batch, a record and a tag take beside the segment in them."""
ROOM_SHARE = 8
"""A bucket that is too full is visited this part of its wait before that."""


class BucketRules(NamedTuple):
    """`source_id` tells records of this source from others; `record_bytes` is the largest segment that the topics
    take.
    """

    horizon_ms: int
    buckets: int
    source_id: int
    record_bytes: int = 1 << 20
    full_records: int = FULL_RECORDS
    early_bytes: int = EARLY_BYTES
    key: str = ""
    """Names the key that signs what is written, see `SegmentSigner.key_id`."""

    @property
    def lead_ms(self) -> int:
        """Return how long before its time a segment is read."""
        return self.horizon_ms // LEAD_SHARE

    @property
    def segment_bytes(self) -> int:
        """Return how large a segment of several schedules may be; estimates of its size are not exact."""
        return min(LARGEST_SEGMENT_BYTES, self.record_bytes // 2)

    def wait_ms(self, bucket: int) -> int:
        """Return where the range of a bucket begins, in time from now, unless it was moved."""
        return self.horizon_ms << bucket


CALM_SHARE = 4
"""A split is undone when both took less than this part of what is too much."""


class BucketRanges:
    """The waits of one shard's buckets, the nearest first."""

    def __init__(self, rules: BucketRules) -> None:
        self._rules = rules
        self.waits_ms = [rules.wait_ms(number) for number in range(rules.buckets)]
        self._took = [0] * rules.buckets
        self._narrowest_ms = 2 * rules.lead_ms
        self._since_ms = 0

    def took(self, bucket: int, records: int) -> None:
        """Count schedules that were written to a bucket."""
        self._took[bucket] += records

    def is_split(self, bucket: int) -> bool:
        """Return whether a part of its range was given to the bucket above."""
        above = bucket + 1
        return above < len(self.waits_ms) and self.waits_ms[above] < self._rules.wait_ms(above)

    def adapt(self, now_ms: int) -> None:
        """Split and merge, once in a quarter of the horizon; a clock that was set back counts as one."""
        if 0 <= now_ms - self._since_ms < self._rules.lead_ms:
            return
        self._since_ms = now_ms
        for number in reversed(range(len(self.waits_ms) - 1)):
            self._adapt(number)
        self._took = [0] * len(self._took)

    def _adapt(self, number: int) -> None:
        waits_ms, above = self.waits_ms, number + 1
        if self._took[number] > self._rules.full_records:
            if waits_ms[above] - waits_ms[number] >= 2 * self._narrowest_ms:
                waits_ms[above] = (waits_ms[number] + waits_ms[above]) // 2
        elif (self._took[number] + self._took[above]) * CALM_SHARE <= self._rules.full_records:
            waits_ms[above] = max(waits_ms[above], min(self._merged_ms(number), self._highest_ms(above)))

    def _merged_ms(self, number: int) -> int:
        """Return where the bucket above began before the last split."""
        return 2 * self.waits_ms[number + 1] - self.waits_ms[number]

    def _highest_ms(self, number: int) -> int:
        """Return where a bucket may begin at the latest: its retention is made for that, and the next one comes after
        it.
        """
        wait_ms = self._rules.wait_ms(number)
        if number + 1 == len(self.waits_ms):
            return wait_ms
        return min(wait_ms, self.waits_ms[number + 1] - self._narrowest_ms)
