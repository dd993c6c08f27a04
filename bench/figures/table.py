"""Tables, as aligned text for a terminal or as Markdown. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of text under headings; the first column is aligned to the left, all others to the right."""

    headings: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]

    def text(self) -> str:
        """Return the table for a terminal."""
        widths = [max(map(len, column)) for column in zip(self.headings, *self.rows, strict=True)]
        lines = [self.headings, tuple("-" * width for width in widths), *self.rows]
        return "\n".join("  ".join(_aligned(line, widths)).rstrip() for line in lines)

    def markdown(self) -> str:
        """Return the table for a document."""
        rule = ("---", *("---:" for _ in self.headings[1:]))
        return "\n".join(f"| {' | '.join(line)} |" for line in (self.headings, rule, *self.rows))


def _aligned(cells: Sequence[str], widths: Sequence[int]) -> list[str]:
    first, *others = zip(cells, widths, strict=True)
    return [first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in others)]
