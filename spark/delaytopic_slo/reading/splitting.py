"""Shares of planned ranges for parallel tasks. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from delaytopic_slo.model.manifest import Range

SMALLEST_PIECE = 20_000


def shares(ranges: Sequence[Range], tasks: int) -> list[list[Range]]:
    """At most `tasks` lists of about as many offsets each; large ranges are split, small ones put together."""
    wanted = [piece for piece in ranges if piece.end > piece.start]
    total = sum(piece.end - piece.start for piece in wanted)
    if not total:
        return []
    largest = max(SMALLEST_PIECE, -(-total // tasks))
    pieces = sorted(
        (part for piece in wanted for part in _split(piece, largest)),
        key=lambda part: (part.start - part.end, part.topic, part.partition, part.start),
    )
    loads: list[list[Range]] = [[] for _ in range(min(tasks, len(pieces)))]
    for part in pieces:
        # A consumer reads a partition once: two parts of it are for different tasks, or the least laden one after all.
        free = [load for load in loads if all((part.topic, part.partition) != (r.topic, r.partition) for r in load)]
        if not free:
            loads.append([])
            free = [loads[-1]]
        min(free, key=_size).append(part)
    return loads


def _split(piece: Range, largest: int) -> list[Range]:
    count = -(-(piece.end - piece.start) // largest)
    bounds = [piece.start + (piece.end - piece.start) * place // count for place in range(count + 1)]
    return [piece.model_copy(update={"start": start, "end": end}) for start, end in pairwise(bounds)]


def _size(load: Sequence[Range]) -> int:
    return sum(part.end - part.start for part in load)
