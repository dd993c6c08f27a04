"""The time up to which records are due: the clock's, as long as it is believed and delivery is not suspended."""

from __future__ import annotations

from delaytopic_relay.core.second_clock import ClockState, ClockWatch, Reading
from delaytopic_relay.core.suspension import NOTHING_DUE_MS
from delaytopic_relay.ports import Clock, SecondClock


class DueTime:
    """Asks the second clock now and then, and waits for none of its answers."""

    def __init__(self, clock: Clock, second: SecondClock | None, *, suspended: bool) -> None:
        """Take a clock, and a second one; without it the own one is believed; while delivery is `suspended`, nothing is
        due.
        """
        self._clock = clock
        self._second = second
        self._suspended = suspended
        self._watch = ClockWatch(second.name) if second is not None else None

    def compare(self) -> None:
        """Take the second clock's answer if it is there, and ask again if it is time."""
        if self._second is None or self._watch is None:
            return
        answer = self._second.answer()
        now_ms, monotonic_ms = self._machine_ms(), self._clock.monotonic_ms()
        if isinstance(answer, Reading):
            self._watch.answered(answer, now_ms, monotonic_ms)
        elif answer is not None:
            self._watch.failed(answer)
        if self._watch.asks(now_ms, monotonic_ms):
            self._second.ask()

    def now_ms(self) -> int:
        """Return the time up to which records are due; `NOTHING_DUE_MS` where none may leave."""
        if self._suspended:
            return NOTHING_DUE_MS
        now_ms, machine_ms = self._clock.now_ms(), self._machine_ms()
        believed = self._watch is None or self._watch.believes(machine_ms, self._clock.monotonic_ms())
        return now_ms if believed else NOTHING_DUE_MS

    @property
    def state(self) -> ClockState | None:
        """The comparison of the clocks; None without a second one."""
        if self._watch is None:
            return None
        now_ms = self._machine_ms()
        return self._watch.state(now_ms, self._clock.monotonic_ms())

    def _machine_ms(self) -> int:
        """Return what the clock shows that the second one is like: nobody moves that."""
        return self._clock.now_ms() - self._clock.shift_ms

    def close(self) -> None:
        """Ask no more."""
        if self._second is not None:
            self._second.close()
