"""The key of a reconciliation."""

from __future__ import annotations

from typing import NamedTuple


class Key(NamedTuple):
    """A DelayTopic, by name."""

    namespace: str
    name: str

    def __str__(self) -> str:
        """`namespace/name`."""
        return f"{self.namespace}/{self.name}"
