"""What all buckets of a relay have in common: whose they are, and what is too large or too much. Pure."""

from __future__ import annotations

from typing import NamedTuple

LARGEST_SEGMENT_BYTES = 256 << 10
"""Of several schedules; a larger schedule is a segment of its own."""
FULL_RECORDS = 20_000
"""More than a tick can pass on: that many schedules within a quarter of the horizon make a bucket too full."""
LEAD_SHARE = 4
"""A bucket is visited this part of the horizon before anything in it can be due."""
SEGMENT_MARGIN_BYTES = 200
"""More than a batch, a record and a tag take beside the segment in them."""
ROOM_SHARE = 8
"""A bucket that is too full is visited this part of its wait before that."""


class BucketRules(NamedTuple):
    """`mark` tells records of this source from others; `record_bytes` is the largest segment that the topics take."""

    horizon_ms: int
    buckets: int
    mark: int
    record_bytes: int = 1 << 20
    full_records: int = FULL_RECORDS
    key: str = ""
    """Names the key that signs what is written, see `SegmentSigner.mark`."""

    @property
    def lead_ms(self) -> int:
        """How long before its time a segment is read."""
        return self.horizon_ms // LEAD_SHARE

    @property
    def segment_bytes(self) -> int:
        """How large a segment of several schedules may be; estimates of its size are not exact."""
        return min(LARGEST_SEGMENT_BYTES, self.record_bytes // 2)

    def wait_ms(self, bucket: int) -> int:
        """Where the range of a bucket begins, in time from now, unless it was moved."""
        return self.horizon_ms << bucket
