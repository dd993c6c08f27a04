"""Edge: the machine's clocks."""

from __future__ import annotations

import time


class SystemClock:
    """Implements `Clock`."""

    def now_ms(self) -> int:
        """Wall clock, epoch milliseconds, rounded down: a record is never early by it."""
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        """For intervals."""
        return time.monotonic_ns() // 1_000_000

    def sleep(self, duration_ms: int) -> None:
        """Wait."""
        time.sleep(duration_ms / 1000)
