"""The one clock that processes on a machine share with the broker's timestamps."""

from __future__ import annotations

import time
from collections.abc import Callable

from bench.errors import Stalled


def now_ms() -> float:
    """Epoch milliseconds, with a fraction."""
    return time.time() * 1_000


def sleep_until(when_ms: float) -> None:
    """Wait for a moment; returns at once if it is over."""
    while (left_ms := when_ms - now_ms()) > 0:
        time.sleep(left_ms / 1_000)


def wait_for(condition: Callable[[], bool], what: str, *, timeout_s: float, every_s: float = 0.02) -> None:
    """Ask again and again until it holds; raises `Stalled` when the time is over first."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            raise Stalled(f"{what}: not within {timeout_s:.0f} s")
        time.sleep(every_s)
