"""The clock of one relay, which may be wrong, run fast or slow, and be set; and one that is right, or silent."""

from __future__ import annotations

from collections.abc import Callable

from tests.simulation.world.kafka import Kafka

from delaytopic_relay.core.second_clock import Reading


class SimulatedClock:
    """Implements `Clock`; the wall clock is the world's time, with an error, and with the shift that relays commit."""

    def __init__(self, kafka: Kafka, *, told: bool = True) -> None:
        """One that is not `told` what is asked for finds it in what others commit."""
        self._kafka = kafka
        self._told = told
        self._started_ms = kafka.now_ms
        self.wrong_ms = 0
        self.drift_permille = 0
        self.shift_ms = 0
        self.shown_ms = 0
        """The highest wall clock time that anybody has read here."""

    def now_ms(self) -> int:
        elapsed_ms = self._kafka.now_ms - self._started_ms
        now_ms = self._kafka.now_ms + self.wrong_ms + elapsed_ms * self.drift_permille // 1_000 + self.shift_ms
        self.shown_ms = max(self.shown_ms, now_ms)
        return now_ms

    @property
    def asked_ms(self) -> int:
        return self._kafka.asked_shift_ms if self._told else 0

    def move(self, shift_ms: int) -> None:
        self.shift_ms = max(self.shift_ms, shift_ms)

    def monotonic_ms(self) -> int:
        return self._kafka.now_ms

    def sleep(self, duration_ms: int) -> None:
        self._kafka.pass_time(duration_ms)

    def set_right(self) -> None:
        """Set the clock right, as a time server does."""
        self.wrong_ms = self.drift_permille = 0
        self._told = True


class SimulatedSecondClock:
    """Implements `SecondClock`; it shows the world's time, and its answers take theirs."""

    name = "the world"

    def __init__(self, kafka: Kafka, silent: Callable[[], bool], slow_ms: int) -> None:
        """Without an answer while it is `silent`; otherwise the answer is on its way for `slow_ms`."""
        self._kafka = kafka
        self._silent = silent
        self._slow_ms = slow_ms
        self._asked_ms: int | None = None

    def ask(self) -> None:
        if self._asked_ms is None:
            self._asked_ms = self._kafka.now_ms

    def answer(self) -> Reading | str | None:
        now_ms, asked_ms = self._kafka.now_ms, self._asked_ms
        if asked_ms is None or now_ms < asked_ms + self._slow_ms:
            return None
        self._asked_ms = None
        if self._silent():
            return "no answer"
        return Reading(asked_ms, now_ms, asked_ms + self._slow_ms)

    def close(self) -> None:
        """Nothing was opened."""
