"""What no run may show: such a failure is never tried again, as one that a slow machine explains may be."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any


class PromiseBroken(AssertionError):
    """The reader found records that were lost, doubled, early, or not what was sent."""


def require_kept(verdict: Mapping[str, Any], besides: Collection[str] = ()) -> None:
    """Raises PromiseBroken for a fault that is not among those; `verdict` is the reader's."""
    if verdict["faults"].keys() - set(besides):
        raise PromiseBroken(str(dict(verdict)))
