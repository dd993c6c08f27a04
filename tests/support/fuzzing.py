"""Fuzzing for a time: examples of a strategy, with fresh seeds, until the time is over."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis.strategies import SearchStrategy

T = TypeVar("T")

EXAMPLES = 100
"""In a row with one seed; between two rows the clock is asked."""
_ROW = settings(
    max_examples=EXAMPLES,
    deadline=None,
    database=None,
    derandomize=False,
    suppress_health_check=list(HealthCheck),
)


def seconds(daily: float, nightly: float) -> pytest.MarkDecorator:
    """Run a test for some seconds every day, and for longer in `make test-nightly`."""
    rare = pytest.param(nightly, marks=[pytest.mark.nightly, pytest.mark.takes_long("a share of an hour of fuzzing")])
    usual = pytest.param(daily, marks=pytest.mark.takes_long("draws examples for seconds, beside other tests"))
    return pytest.mark.parametrize("seconds", [usual, rare])


def fuzz(strategy: SearchStrategy[T], check: Callable[[T], object], *, seconds: float) -> int:
    """Check examples for so long; return how many. What fails is shrunk and shown by hypothesis."""
    tried = 0

    def count(example: T) -> None:
        nonlocal tried
        tried += 1
        check(example)

    until = monotonic() + seconds
    while monotonic() < until:
        _ROW(given(strategy)(count))()
    return tried


def peak_memory_bytes(pid: int | str = "self") -> int:
    """Return the most that a process held since its start, or since `forget_peak_memory` (VmHWM)."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) << 10


def forget_peak_memory() -> int:
    """Measure this process' peak anew; return what it holds."""
    Path("/proc/self/clear_refs").write_text("5")
    return peak_memory_bytes()
