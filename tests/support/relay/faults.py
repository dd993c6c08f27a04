"""Load, waiting and judgement that tests of faults have in common."""

from __future__ import annotations

import threading

from delaytopic_local.verifier.verdict import Verdict

RATE = 500
DELAYS_MS = (0, 5_000)
"""Within the horizon of two seconds, and beyond it."""
FEW = 20


def pass_time(seconds: float) -> None:
    """Let the load run on: what is tested happens at moments, not at states."""
    threading.Event().wait(seconds)


def assert_exact(verdict: Verdict) -> None:
    """Nothing lost, twice, early, altered or unknown; and there was something to judge."""
    assert verdict.faults == {}, {name: (len(found), found[:FEW]) for name, found in verdict.faults.items()}
    assert verdict.pending == 0
    assert verdict.delivered == verdict.schedules > 0


def assert_exact_but_for_repeats(verdict: Verdict) -> None:
    """The same for `AtLeastOnce`, which may deliver twice after a crash."""
    assert {name: found for name, found in verdict.faults.items() if name != "twice"} == {}
    assert verdict.delivered == verdict.schedules > 0
