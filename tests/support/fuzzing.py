"""Fuzzing: examples of one seed every day, and fresh ones for a time in the nightly run."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic
from typing import Any, Final, TypeVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis.strategies import DrawFn, SearchStrategy, composite, lists, sampled_from

T = TypeVar("T")

_EXAMPLES: Final = 200
"""In a row with one seed; between two rows the clock is asked."""
_ROW: Final = settings(
    max_examples=_EXAMPLES,
    deadline=None,
    database=None,
    derandomize=False,
    suppress_health_check=list(HealthCheck),
)
_SAME_ROW: Final = settings(_ROW, derandomize=True, max_examples=60)


def nightly_for(seconds: int) -> pytest.MarkDecorator:
    """Let a test's argument `seconds` be 0 every day, and so many seconds in `make test-nightly`."""
    long = pytest.mark.takes_long("its share of half an hour of fuzzing")
    nightly = pytest.param(seconds, id="nightly", marks=[pytest.mark.nightly, long])
    return pytest.mark.parametrize("seconds", [pytest.param(0, id="daily"), nightly])


def fuzz(strategy: SearchStrategy[T], check: Callable[[T], object], seconds: int) -> int:
    """Check examples for so long, or one row of always the same; return how many. What fails is shrunk and shown."""
    tried = 0

    def count(example: T) -> None:
        nonlocal tried
        tried += 1
        check(example)

    if not seconds:
        _SAME_ROW(given(strategy)(count))()
        return tried
    until = monotonic() + seconds
    while monotonic() < until:
        _ROW(given(strategy)(count))()
    return tried


def leaves(document: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the paths of all values that are no containers."""
    inner = document.items() if isinstance(document, dict) else enumerate(document)
    for name, value in inner:
        if isinstance(value, dict | list):
            yield from leaves(value, (*path, name))
        else:
            yield (*path, name)


@composite
def changed(draw: DrawFn, document: Any, numbers: SearchStrategy[Any], anything: SearchStrategy[Any]) -> Any:
    """Draw a document with few of its values replaced: numbers by numbers, others by anything."""
    copy = json.loads(json.dumps(document))
    for *path, name in draw(lists(sampled_from([*leaves(document)]), max_size=4)):
        place = copy
        for step in path:
            place = place[step]
        place[name] = draw(numbers if isinstance(place[name], int | None) else anything)
    return copy


def peak_memory_bytes(pid: int | str = "self") -> int:
    """Return the most that a process held since its start (VmHWM)."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) << 10
