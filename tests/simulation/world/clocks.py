"""The clock of one relay: may be wrong, run fast or slow, and be set."""

from __future__ import annotations

from tests.simulation.world.kafka import Kafka


class SimulatedClock:
    """Implements `Clock`; the wall clock is the world's time, with an error."""

    def __init__(self, kafka: Kafka) -> None:
        self._kafka = kafka
        self._started_ms = kafka.now_ms
        self.wrong_ms = 0
        self.drift_permille = 0
        self.shown_ms = 0
        """The highest wall clock time that anybody has read here."""

    def now_ms(self) -> int:
        elapsed_ms = self._kafka.now_ms - self._started_ms
        now_ms = self._kafka.now_ms + self.wrong_ms + elapsed_ms * self.drift_permille // 1_000
        self.shown_ms = max(self.shown_ms, now_ms)
        return now_ms

    def monotonic_ms(self) -> int:
        return self._kafka.now_ms

    def sleep(self, duration_ms: int) -> None:
        self._kafka.pass_time(duration_ms)

    def set_right(self) -> None:
        """Set the clock right, as a time server does."""
        self.wrong_ms = self.drift_permille = 0
