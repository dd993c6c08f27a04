"""Faults that no run may show, whatever the machine's speed."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any


class PromiseBroken(AssertionError):
    """The reader found records that were lost, doubled, early, or not what was sent."""


def require_kept(verdict: Mapping[str, Any], besides: Collection[str] = ()) -> None:
    """Raise PromiseBroken for a fault that is not among `besides`; `verdict` is the reader's."""
    if verdict["faults"].keys() - set(besides):
        raise PromiseBroken(str(dict(verdict)))
