"""The plan of the steady producer, and its sequence numbers. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from bench.errors import BenchError


@dataclass(frozen=True, slots=True)
class Phase:
    """A number of records a second, for a time."""

    per_second: int
    seconds: int

    @property
    def records(self) -> int:
        """Return the number of records."""
        return self.per_second * self.seconds

    def __str__(self) -> str:
        """Return the text that `parse` reads."""
        return f"{self.per_second}x{self.seconds}"


@dataclass(frozen=True, slots=True)
class Plan:
    """Phases one after another, and then a burst: many records that are due in one instant."""

    phases: tuple[Phase, ...]
    burst: int

    @property
    def records(self) -> int:
        """Return the number of all records."""
        return sum(phase.records for phase in self.phases) + self.burst

    def ranges(self) -> list[range]:
        """The sequence numbers of each phase and, last, of the burst."""
        found, first = [], 0
        for records in (*(phase.records for phase in self.phases), self.burst):
            found.append(range(first, first + records))
            first += records
        return found

    def __str__(self) -> str:
        """Such as `2000x8,10000x8,50000`."""
        return ",".join((*map(str, self.phases), str(self.burst)))

    @classmethod
    def parse(cls, text: str) -> Plan:
        """The inverse of `str`; raises `BenchError`."""
        *phases, burst = text.split(",")
        try:
            rates = [tuple(map(int, phase.split("x"))) for phase in phases]
            return cls(tuple(Phase(per_second, seconds) for per_second, seconds in rates), int(burst))
        except ValueError as error:
            raise BenchError(f'"{text}" is not a plan; write it like 2000x8,10000x8,50000') from error


def due_by_now(phase: Phase, elapsed_s: float) -> int:
    """Return how many records of a phase should have been sent after this time."""
    return min(phase.records, int(elapsed_s * phase.per_second))
