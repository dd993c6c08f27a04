"""Which numbers of relays make a difference: partitions are dealt out whole, and the fullest relay sets the pace."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, lru_cache

ROUNDING = 1e-9


def power(partitions: int, relays: int) -> float:
    """How many times the work of one relay so many can do: with 12 partitions, 7 to 11 do no more than 6."""
    return partitions / -(-partitions // relays) if relays else 0.0


@cache
def useful_sizes(partitions: int) -> tuple[int, ...]:
    """Sizes that do more than any smaller one, ascending: every divisor of the partition count is among them."""
    return tuple(sorted({-(-partitions // each) for each in range(1, partitions + 1)}))


@dataclass(frozen=True, slots=True)
class Sizes:
    """The sizes that a fleet may have while it is awake."""

    partitions: int
    least: int
    most: int | None
    """None: as many as there are partitions."""

    @property
    def max_useful(self) -> int:
        """More than this cannot help, or is not allowed."""
        most = self.partitions if self.most is None else min(self.partitions, self.most)
        return max((size for size in useful_sizes(self.partitions) if size <= most), default=1)

    @property
    def allowed(self) -> tuple[int, ...]:
        """Ascending, never empty. A minimum beyond what is useful is honoured: somebody wants a relay in reserve."""
        return _allowed(self)

    @property
    def bound_by_partitions(self) -> bool:
        """Whether only more partitions could make room for more relays."""
        return self.most is None or self.most >= self.partitions

    def fit(self, need: float) -> int:
        """The smallest size that can do `need` times the work of one relay; the largest there is when none can."""
        enough = (size for size in self.allowed if power(self.partitions, size) >= need - ROUNDING)
        return next(enough, self.allowed[-1])

    def power(self, relays: int) -> float:
        """See `power`."""
        return power(self.partitions, relays)


@lru_cache(maxsize=1_024)
def _allowed(sizes: Sizes) -> tuple[int, ...]:
    least, most = max(1, sizes.least), sizes.max_useful
    between = tuple(size for size in useful_sizes(sizes.partitions) if least <= size <= most)
    return between or (least if sizes.most is None else max(1, min(least, sizes.most)),)
