"""Edge: asks a clock of the backend in a thread of its own, so that the loop waits for no answer."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Protocol

from delaytopic_relay.core.second_clock import Reading
from delaytopic_relay.errors import ConfigurationError, Unavailable
from delaytopic_relay.ports import Clock


class TimeSource(Protocol):
    """Something in the backend that knows the time. It may block, for a bounded time."""

    @property
    def name(self) -> str:
        """The name of the clock in messages."""
        ...

    def time_ms(self) -> int:
        """Return what it shows, in epoch milliseconds. Raises `Unavailable` and `ConfigurationError`."""
        ...

    def close(self) -> None:
        """Give back connections."""
        ...


class BackendClock:
    """Implements `SecondClock`."""

    def __init__(self, source: TimeSource, clock: Clock) -> None:
        self._source = source
        self._clock = clock
        self._thread = ThreadPoolExecutor(1, "clock")
        self._asked: Future[Reading] | None = None

    @property
    def name(self) -> str:
        """See `SecondClock.name`."""
        return self._source.name

    def ask(self) -> None:
        """See `SecondClock.ask`."""
        if self._asked is None:
            self._asked = self._thread.submit(self._read)

    def _read(self) -> Reading:
        asked_ms = self._clock.monotonic_ms()
        time_ms = self._source.time_ms()
        return Reading(asked_ms, self._clock.monotonic_ms(), time_ms)

    def answer(self) -> Reading | str | None:
        """See `SecondClock.answer`."""
        if self._asked is None or not self._asked.done():
            return None
        asked, self._asked = self._asked, None
        try:
            return asked.result()
        except (Unavailable, ConfigurationError) as error:
            return str(error)

    def close(self) -> None:
        """See `SecondClock.close`."""
        close: Callable[[], None] = self._source.close
        self._thread.submit(close)
        self._thread.shutdown(wait=False)
