"""Kubernetes' HorizontalPodAutoscaler with its default behaviour, on an external metric with an average value. Pure."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable

from bench.scaling.fleet import Fleet

SYNC_SECONDS = 15
PHASE_SECONDS = 7
"""Loads change at full minutes: neither just before it looks nor just after."""
TOLERANCE = 0.1
DOWN_WINDOW_SECONDS = 300
UP_AT_LEAST = 4


class HorizontalPodAutoscaler:
    """Scales to metric / threshold: at most doubled or 4 more in 15 s, down to the highest wish of five minutes."""

    def __init__(self, metric: Callable[[Fleet, int], int], threshold: int, most: int) -> None:
        self._metric = metric
        self._threshold = threshold
        self._most = most
        self._wishes: deque[tuple[int, int]] = deque()

    def __call__(self, fleet: Fleet, second: int) -> None:
        """One second; it looks every fifteenth."""
        if second % SYNC_SECONDS != PHASE_SECONDS:
            return
        current = fleet.wanted
        wish = min(self._most, max(1, self._desired(self._metric(fleet, second), current)))
        self._wishes.append((second, wish))
        while second - self._wishes[0][0] > DOWN_WINDOW_SECONDS:
            self._wishes.popleft()
        highest = max(relays for _, relays in self._wishes)
        target = min(current, highest) if wish < current else wish
        fleet.scale(min(target, max(2 * current, current + UP_AT_LEAST)), second)

    def _desired(self, value: int, current: int) -> int:
        if abs(value / (self._threshold * current) - 1) <= TOLERANCE:
            return current
        return math.ceil(value / self._threshold)
