"""What no run may show: such a failure is never tried again, as one that a slow machine explains may be."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final, Protocol

BROKEN_PROMISES: Final = "delaytopic/broken_promises"
"""Where pytest's cache keeps the names of tests that must not be tried again; `make test-failed` looks there."""


class Cache(Protocol):
    """Of pytest: it outlives the run."""

    def get(self, key: str, default: Any) -> Any: ...

    def set(self, key: str, value: object) -> None: ...


class PromiseBroken(AssertionError):
    """The reader found records that were lost, doubled, early, or not what was sent."""


def require_kept(verdict: Mapping[str, Any], besides: Collection[str] = ()) -> None:
    """Raises PromiseBroken for a fault that is not among those; `verdict` is the reader's."""
    if verdict["faults"].keys() - set(besides):
        raise PromiseBroken(str(dict(verdict)))


def remember(cache: Cache, test: str, error: BaseException) -> None:
    """Keep a broken promise beyond this run: another run that goes well does not mend it."""
    if isinstance(error, PromiseBroken):
        cache.set(BROKEN_PROMISES, [*cache.get(BROKEN_PROMISES, []), test])
