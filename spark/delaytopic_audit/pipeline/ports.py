"""Ports of a run: where its rows come from, and where its progress is shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pyspark.sql import DataFrame

from delaytopic_audit.model.manifest import Range

Read = Callable[[Mapping[int, Sequence[Range]]], DataFrame]
"""Gives the extract of some ranges by the numbers of DelayTopics, as one of the readers does."""
Progress = Callable[[str], None]
"""Takes one line for people."""


def silent(_line: str) -> None:
    """Show nothing."""
