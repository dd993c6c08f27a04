"""Judges whether the own clock may be believed: it is compared with a second one, which is the backend's. Pure.

A record leaves when the clock says that it is due. A clock that is ahead would let it leave early, and nothing that a
relay does later could mend that. So nothing is due before the second clock has said, once, that the own one is not
ahead of it. From then on the monotonic clock tells what the second one shows now, and with it every jump of the own
one: the jump makes it differ. A clock that is behind delivers late and never early, so it is believed.
"""

from __future__ import annotations

from typing import Final, NamedTuple

BOUND_MS: Final = 2_000
"""The own clock may be ahead of the second one by so much: those of machines that a time server sets differ by less."""
AGAIN_MS: Final = 1_000
"""The time after which the second clock is asked again while the own one is not believed."""
CALM_MS: Final = 60_000
"""The time after which it is asked again while the own one is believed: clocks drift, the monotonic one, too."""


class Reading(NamedTuple):
    """An answer of the second clock: it showed `time_ms` at some moment between the question and the answer, both in
    milliseconds of the monotonic clock.
    """

    asked_ms: int
    answered_ms: int
    time_ms: int


class Difference(NamedTuple):
    """The time by which the own clock is ahead of the second one: between `least_ms` and `most_ms`, below 0 behind."""

    least_ms: int
    most_ms: int

    @property
    def about_ms(self) -> int:
        """The middle."""
        return (self.least_ms + self.most_ms) // 2


def difference(reading: Reading, now_ms: int, monotonic_ms: int) -> Difference:
    """Return how far the own clock is ahead while it shows `now_ms`, which was read before `monotonic_ms` was."""
    latest_ms = reading.time_ms + monotonic_ms - reading.asked_ms
    earliest_ms = reading.time_ms + monotonic_ms - reading.answered_ms
    return Difference(now_ms - latest_ms, now_ms - earliest_ms)


class ClockState(NamedTuple):
    """The comparison at one moment."""

    name: str
    """The second clock's, such as "Redis at db:6379"."""
    believed: bool
    ahead_ms: int | None
    """The time by which the own clock is ahead of the second one, about; None before any answer."""
    trouble: str | None
    """The reason why the second clock did not answer the last time."""

    @property
    def message(self) -> str | None:
        """Say what is wrong with the clocks, and what follows; None while nothing is."""
        if self.believed and (self.ahead_ms is None or self.ahead_ms >= -BOUND_MS):
            return None
        if self.ahead_ms is None:
            why = f"does not answer: {self.trouble}" if self.trouble is not None else "has not answered yet"
            return f"nothing is delivered until this relay's clock was compared with that of {self.name}, which {why}"
        far = f"{abs(self.ahead_ms) / 1_000:.1f} s"
        if self.believed:
            return f"the clock of this relay is {far} behind that of {self.name}: records are delivered late by that"
        said = (
            f"nothing is delivered: the clock of this relay is {far} ahead of that of {self.name}, and it is not known "
            "which is right; delivery goes on by itself when both agree, so have a time server set them"
        )
        return f"{said} (the last question had no answer: {self.trouble})" if self.trouble is not None else said


class ClockWatch:
    """Decides from answers of the second clock whether anything may be due."""

    def __init__(self, name: str) -> None:
        """`name` is the second clock's; it has not answered yet."""
        self._name = name
        self._reading: Reading | None = None
        self._asked_ms: int | None = None
        self._trouble: str | None = None

    def believes(self, now_ms: int, monotonic_ms: int) -> bool:
        """Tell whether the own clock is certainly not ahead, by readings of both clocks, the own one's first."""
        return self._reading is not None and difference(self._reading, now_ms, monotonic_ms).most_ms <= BOUND_MS

    def asks(self, now_ms: int, monotonic_ms: int) -> bool:
        """Tell whether to ask now, and take note of it."""
        wait_ms = CALM_MS if self.believes(now_ms, monotonic_ms) else AGAIN_MS
        if self._asked_ms is not None and monotonic_ms - self._asked_ms < wait_ms:
            return False
        self._asked_ms = monotonic_ms
        return True

    def answered(self, reading: Reading, now_ms: int, monotonic_ms: int) -> None:
        """Take note of an answer. One that was long on its way says less than the last one, and may say nothing."""
        self._trouble = None
        found = difference(reading, now_ms, monotonic_ms)
        tells = found.most_ms <= BOUND_MS or found.least_ms > BOUND_MS
        if tells or not self.believes(now_ms, monotonic_ms):
            self._reading = reading

    def failed(self, why: str) -> None:
        """Take note that there was no answer; what is known from former ones holds."""
        self._trouble = why

    def state(self, now_ms: int, monotonic_ms: int) -> ClockState:
        """Return how the clocks compare now."""
        known = difference(self._reading, now_ms, monotonic_ms).about_ms if self._reading is not None else None
        return ClockState(self._name, self.believes(now_ms, monotonic_ms), known, self._trouble)
