"""What tests of faults under load have in common."""

from __future__ import annotations

import threading

from delaytopic_cli.audit import Verdict


def pass_time(seconds: float) -> None:
    """Let the load run on: what is tested happens at moments, not at states."""
    threading.Event().wait(seconds)


def assert_exact(verdict: Verdict) -> None:
    """Nothing lost, twice, early, altered or unknown; and there was something to judge."""
    assert verdict.faults == {}
    assert verdict.pending == 0
    assert verdict.delivered == verdict.schedules > 0
