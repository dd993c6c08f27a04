"""Edge: the clocks."""

from __future__ import annotations

import time


def epoch_ms() -> int:
    """The time of day, in milliseconds since 1970; may be set while one looks."""
    return time.time_ns() // 1_000_000


def monotonic_ms() -> int:
    """Milliseconds that only ever grow, also while the machine sleeps: for durations that others count, too."""
    return time.clock_gettime_ns(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)) // 1_000_000
