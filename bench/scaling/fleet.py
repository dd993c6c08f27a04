"""Relays in simulated time: pods that take a while to start, rebalances in which nobody delivers, a queue. Pure."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass

from delaytopic_operator.scaling.need import power


@dataclass(frozen=True, slots=True)
class Physics:
    """The real speed of relays, whatever a rule believes."""

    partitions: int = 12
    per_second: int = 2_500
    start_seconds: int = 25
    rebalance_seconds: int = 2


class Fleet:
    """Relays that run, that start, and what is overdue."""

    def __init__(self, physics: Physics, relays: int) -> None:
        self.physics = physics
        self.wanted = self.ready = relays
        self.steps = 0
        self.relay_seconds = 0
        self.lateness: Counter[int] = Counter()
        """Records by whole seconds of lateness."""
        self.delivered = 0
        self.busy = 0.0
        """Share of the last second that relays worked."""
        self._starting: deque[tuple[int, int]] = deque()
        self._pause_until = 0
        self._queue: deque[list[int]] = deque()

    @property
    def overdue(self) -> int:
        """Due and not delivered."""
        return sum(records for _, records in self._queue)

    def rebalancing(self, second: int) -> bool:
        """Return whether nobody delivers."""
        return second < self._pause_until

    def scale(self, relays: int, second: int) -> None:
        """Ask for another number of relays."""
        if relays == self.wanted:
            return
        self.steps += 1
        if relays > self.wanted:
            self._starting.append((second + self.physics.start_seconds, relays - self.wanted))
        self._take_away(self.wanted - relays, second)
        self.wanted = relays

    def _take_away(self, relays: int, second: int) -> None:
        while relays > 0 and self._starting:
            at, starting = self._starting.pop()
            if starting > relays:
                self._starting.append((at, starting - relays))
            relays -= min(relays, starting)
        if relays > 0:
            self.ready -= relays
            self._pause_until = second + self.physics.rebalance_seconds

    def tick(self, second: int, due: int) -> None:
        """One second of work."""
        while self._starting and self._starting[0][0] <= second:
            self.ready += self._starting.popleft()[1]
            self._pause_until = second + self.physics.rebalance_seconds
        if due:
            self._queue.append([second, due])
        # A pod costs from the moment it is asked for.
        self.relay_seconds += self.wanted
        room = 0 if self.rebalancing(second) else self._rate()
        left = room
        while left and self._queue:
            due_second, records = self._queue[0]
            taken = min(left, records)
            self.lateness[second - due_second] += taken
            left -= taken
            self._queue[0][1] -= taken
            if not self._queue[0][1]:
                self._queue.popleft()
        self.delivered += room - left
        self.busy = (room - left) / room if room else 0.0

    def _rate(self) -> int:
        return round(self.physics.per_second * power(self.physics.partitions, self.ready))
