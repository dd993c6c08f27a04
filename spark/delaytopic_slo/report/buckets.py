"""Logarithmic buckets of lateness: exact counts, mergeable by addition, and within 2 % at every percentile. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final

BASE: Final = 1.02
LOG_BASE: Final = math.log(BASE)
"""Bucket 0 is for what was not late at all; then there is one for each 2 %: see `verdicts.bucket_of`."""


def bucket_value_ms(bucket: int) -> float:
    """The middle of a bucket, as a ratio: within 1 % of everything in it."""
    return 0.0 if bucket <= 0 else BASE ** (bucket - 0.5)


def percentile_ms(counts: Iterable[tuple[int, int]], share: float) -> float | None:
    """The lateness that this share of the records did not exceed; `counts` are (bucket, records). None without any."""
    ordered = sorted(counts)
    total = sum(records for _, records in ordered)
    rank = math.ceil(share * total)
    seen = 0
    for bucket, records in ordered:
        seen += records
        if records and seen >= rank:
            return bucket_value_ms(bucket)
    return None
