"""Edge: the collector of cyclic garbage, kept from looking at records.

The hot path makes no cycles, only faults and pages make a few. Left to itself the collector looks at every new
record's headers, a seventh of what a record costs, and stops the loop for 50 ms at a time.
"""

from __future__ import annotations

import gc

from delaytopic_relay.ports import Clock

OFTEN_MS = 60_000
LITTLE_BYTES = 8 << 20
"""Schedules that take no more than this are looked at within some milliseconds."""
AT_LEAST_MS = 600_000


class GarbageCollector:
    """Collects now and then: soon where that is quick, and seldom where it takes a part of a second."""

    def __init__(self, clock: Clock) -> None:
        """Take the collector over: from now on nothing is collected but in `turn`."""
        self._clock = clock
        self._collected_ms = clock.monotonic_ms()
        gc.disable()
        gc.collect()
        gc.freeze()

    def turn(self, size: int) -> bool:
        """Collect if it is time, with schedules of about `size` bytes in memory; whether it did."""
        silent_ms = self._clock.monotonic_ms() - self._collected_ms
        if silent_ms < OFTEN_MS or (size > LITTLE_BYTES and silent_ms < AT_LEAST_MS):
            return False
        gc.collect()
        self._collected_ms = self._clock.monotonic_ms()
        return True
