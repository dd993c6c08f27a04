"""Ports of a run: where its rows come from, and where its progress is shown."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import DataFrame

from delaytopic_audit.model.manifest import Range

Read = Callable[[list[Range]], DataFrame]
"""Gives the extract of some ranges, as one of the readers does."""
Progress = Callable[[str], None]
"""Takes one line for people."""


def silent(_line: str) -> None:
    """Show nothing."""
