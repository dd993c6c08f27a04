"""Moments that a test has to live to see: a due time, the end of a minute that is to be audited."""

from __future__ import annotations

import threading
import time

MINUTE_MS = 60_000
SPARE_MS = 1_000


def now_ms() -> int:
    """The clock of this machine, which a cluster's nodes are taken to agree with."""
    return time.time_ns() // 1_000_000


def await_moment(moment_ms: int) -> None:
    """Return then, or at once if it has passed."""
    threading.Event().wait(max(0.0, (moment_ms - now_ms()) / 1_000))


def end_of_minute_ms(moment_ms: int) -> int:
    """Return the end of the minute that the moment is in."""
    return (moment_ms // MINUTE_MS + 1) * MINUTE_MS


def await_audit_of(last_due_ms: int, *, lateness_ms: int) -> None:
    """Wait until an audit that starts now judges a record due then: the SLO's lateness and a minute after its
    minute.
    """
    await_moment(end_of_minute_ms(last_due_ms) + lateness_ms + MINUTE_MS + SPARE_MS)
