"""What a run says while it works."""

from __future__ import annotations

from collections.abc import Callable

Say = Callable[[str], None]
"""Takes one line for people."""


def silent(_line: str) -> None:
    """Say nothing."""
