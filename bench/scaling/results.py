"""Results of a rule over three hours. Pure."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass

from bench.scaling.fleet import Fleet


@dataclass(frozen=True, slots=True)
class Result:
    """One row of the table."""

    rule: str
    p99_seconds: int
    longest_seconds: int
    within_5_seconds: float
    """Share of the records."""
    relay_hours: float
    steps: int

    @classmethod
    def of(cls, rule: str, fleet: Fleet) -> Result:
        """Sum up."""
        total = sum(fleet.lateness.values())
        in_time = sum(records for seconds, records in fleet.lateness.items() if seconds <= 5)
        return cls(
            rule,
            p99_seconds=quantile(fleet.lateness, 0.99),
            longest_seconds=max(fleet.lateness),
            within_5_seconds=round(in_time / total, 5),
            relay_hours=round(fleet.relay_seconds / 3_600, 2),
            steps=fleet.steps,
        )

    def cells(self) -> tuple[str, ...]:
        """For the table."""
        return (
            self.rule,
            f"{self.p99_seconds} s",
            f"{self.longest_seconds} s",
            f"{100 * self.within_5_seconds:.1f} %",
            f"{self.relay_hours:.1f}",
            str(self.steps),
        )

    def document(self) -> dict[str, object]:
        """For programs."""
        return asdict(self)


HEADINGS = ("p99 late", "longest", "within 5 s", "relay-hours", "steps")


def quantile(lateness: Counter[int], share: float) -> int:
    """The lateness that this share of the records did not exceed."""
    left = share * sum(lateness.values())
    for seconds in sorted(lateness):
        left -= lateness[seconds]
        if left <= 0:
            return seconds
    return max(lateness)
