"""The comparison of what was produced with what arrived: each record once, none early. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from bench.errors import PromiseBroken

SHOWN = 5
"""The most offenders that an error names."""


@dataclass(frozen=True, slots=True)
class Tally:
    """Sequence numbers that did not arrive exactly once, in order, and those that nobody sent."""

    lost: list[int] = field(default_factory=list)
    twice: list[int] = field(default_factory=list)
    unknown: list[int] = field(default_factory=list)


def tally(arrived: Iterable[int], expected: int, wanted: Iterable[int] | None = None) -> Tally:
    """Count arrivals of the sequence numbers 0 to `expected` - 1; only those in `wanted` (all) can be lost."""
    counts = bytearray(expected)
    unknown = []
    for sequence in arrived:
        if 0 <= sequence < expected:
            counts[sequence] = min(counts[sequence] + 1, 2)
        else:
            unknown.append(sequence)
    lost = [sequence for sequence in (range(expected) if wanted is None else wanted) if not counts[sequence]]
    twice = [sequence for sequence, count in enumerate(counts) if count > 1] if 2 in counts else []
    return Tally(lost, twice, unknown)


def require_each_once(case: str, found: Tally) -> None:
    """Raise `PromiseBroken` unless every record arrived exactly once."""
    problems = [
        f"{len(numbers)} {word} ({', '.join(map(str, numbers[:SHOWN]))}{', ...' if len(numbers) > SHOWN else ''})"
        for word, numbers in (
            ("lost", found.lost),
            ("delivered twice", found.twice),
            ("that nobody sent", found.unknown),
        )
        if numbers
    ]
    if problems:
        raise PromiseBroken(f"{case}: {'; '.join(problems)}")


def require_none_early(case: str, due_ms: Sequence[int], arrived_ms: Sequence[float]) -> None:
    """Raise `PromiseBroken` if a record arrived before it was due; both sequences are in the same order."""
    early = sum(arrived < due for due, arrived in zip(due_ms, arrived_ms, strict=True))
    if early:
        raise PromiseBroken(f"{case}: {early} records arrived before they were due")
