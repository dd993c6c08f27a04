"""Waiting for a condition that nothing announces."""

from __future__ import annotations

import time
from collections.abc import Callable

POLL_SECONDS = 0.02


def wait_until(condition: Callable[[], bool], *, timeout_seconds: float, poll_seconds: float = POLL_SECONDS) -> bool:
    """Ask `condition` again and again until it holds; True when it did, False when the time was over first."""
    deadline = time.monotonic() + timeout_seconds
    while not condition():
        if time.monotonic() >= deadline:
            return False
        time.sleep(poll_seconds)
    return True
