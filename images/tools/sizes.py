"""The sizes of images, for people and for programs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

_HEADINGS = ("IMAGE", "REFERENCE", "SIZE", "ABOVE BASE")


@dataclass(frozen=True, slots=True)
class ImageSize:
    """Bytes of an image, unpacked, and how many of them are not its base's."""

    name: str
    reference: str
    bytes: int
    bytes_above_base: int


def size_table(sizes: Sequence[ImageSize]) -> str:
    """Columns, megabytes with one decimal."""
    rows = [_HEADINGS, *((s.name, s.reference, _megabytes(s.bytes), _megabytes(s.bytes_above_base)) for s in sizes)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADINGS))]
    return "\n".join("  ".join(_aligned(row, widths)).rstrip() for row in rows)


def size_json(sizes: Sequence[ImageSize]) -> str:
    """A list of objects."""
    documents = [
        {"name": s.name, "reference": s.reference, "bytes": s.bytes, "bytesAboveBase": s.bytes_above_base}
        for s in sizes
    ]
    return json.dumps(documents, indent=2)


def _aligned(row: Sequence[str], widths: Sequence[int]) -> list[str]:
    """Text to the left, numbers to the right."""
    texts, numbers = list(zip(row, widths, strict=True))[:2], list(zip(row, widths, strict=True))[2:]
    return [cell.ljust(width) for cell, width in texts] + [cell.rjust(width) for cell, width in numbers]


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB"
