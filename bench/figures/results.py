"""The results of a run: figures by table, case and name, each with the values of its runs. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from bench.figures.goals import GOALS, Goal, Verdict, records_written
from bench.figures.names import (
    COST,
    DESIGN,
    INTO,
    NULL,
    OF_DESIGN,
    OF_NATIVE,
    OF_NULL,
    OF_OFF,
    OF_PLAIN,
    OF_PLAINLY,
    OF_PURE,
    OF_SMALLER,
    OFF,
    OFF_AGAIN,
    ON,
    OUT,
    P99,
    P99_OF_DESIGN,
    PLAINLY,
    RATE,
    RECURS,
    TRANSACTIONAL_NULL,
    TWO_RELAYS,
    WRITTEN_OF_NATIVE,
    Name,
    Table,
    at_rate,
    with_pending,
)
from bench.figures.statistics import in_and_out_rate, median
from bench.selection import BACKENDS, GROWING, IN_C, PURE, WAYS, WHOLE, Case
from delaytopic_api.values import Dialect, Guarantee


class Unit(StrEnum):
    """The unit of a figure."""

    PER_SECOND = "records/s"
    RATIO = "ratio"
    MS = "ms"
    SECONDS = "s"
    COUNT = "records"
    MIB = "MiB"
    BYTES = "bytes"
    US = "us"

    def text(self, value: float) -> str:
        """Return a value as tables show it; the unit of a ratio, rate or number is in the heading."""
        match self:
            case Unit.RATIO:
                return f"{value:.2f}"
            case Unit.SECONDS:
                return f"{value:.2f} s"
            case Unit.MS | Unit.MIB | Unit.US:
                return f"{value:,.0f} {self}"
        return f"{value:,.0f}"


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure; the runs are in the order of the rounds."""

    table: str
    case: str
    name: str
    unit: Unit
    runs: Sequence[float]

    @property
    def median(self) -> float:
        """The median of the runs."""
        return median(self.runs)

    @property
    def goal(self) -> Goal | None:
        """The goal; None where there is none."""
        return GOALS.get((self.table, self.case, self.name))

    @property
    def verdict(self) -> Verdict | None:
        """The median held against the goal; None without one."""
        return self.goal.limit.judge(self.median) if self.goal is not None else None

    def text(self) -> str:
        """The median and, of several runs that differ, their range."""
        least, most = self.unit.text(min(self.runs)), self.unit.text(max(self.runs))
        suffix = f" ({least} to {most})" if least != most else ""
        return self.unit.text(self.median) + suffix

    def document(self) -> dict[str, Any]:
        """All of it, for JSON."""
        goal = self.goal
        return {
            "table": str(self.table),
            "case": self.case,
            "figure": self.name,
            "unit": str(self.unit),
            "median": round(self.median, 4),
            "runs": [round(value, 4) for value in self.runs],
            "goal": str(goal.limit) if goal is not None else None,
            "verdict": self.verdict,
        }


class Results:
    """Figures in the order in which they were first noted."""

    def __init__(self) -> None:
        self._figures: dict[Name, tuple[Unit, list[float]]] = {}

    def add(self, table: Table, case: str, name: str, unit: Unit, value: float) -> None:
        """Note the value of one run."""
        self._figures.setdefault((table, case, name), (unit, []))[1].append(value)

    def forget(self, table: Table, case: str) -> None:
        """Drop a case that was not measured in every round: the others would be compared with other rounds."""
        for name in [name for name in self._figures if name[:2] == (table, case)]:
            del self._figures[name]

    def runs(self, table: Table, case: str, name: str) -> list[float]:
        """Return the values of the runs; none if it was not measured."""
        return self._figures.get((table, case, name), (Unit.COUNT, []))[1]

    def compare(self, table: Table, case: str, name: str, other: str, called: str) -> None:
        """Note the ratios of a figure to that of another case in the same rounds, as far as both were measured.

        A machine that gets faster or slower from round to round changes both alike, so that their ratio stays.
        """
        for value, base in zip(self.runs(table, case, name), self.runs(table, other, name), strict=False):
            self.add(table, case, called, Unit.RATIO, value / base if base else 0.0)

    def figures(self) -> list[Figure]:
        """Return all."""
        return [Figure(*name, unit, runs) for name, (unit, runs) in self._figures.items() if runs]


JUDGED_PER_SECOND = 10_000
MEASURE_OF_PENDING = 100_000


def complete(results: Results) -> None:
    """Add what follows from what was measured: the rates of backlogs in and out, and the ratios."""
    _compare_throughput(results)
    for dialect in Dialect:
        results.compare(Table.DIALECTS, dialect, RATE, Dialect.NATIVE, OF_NATIVE)
        for ratio in results.runs(Table.DIALECTS, dialect, OF_NATIVE):
            results.add(Table.DIALECTS, dialect, WRITTEN_OF_NATIVE, Unit.RATIO, ratio * records_written(dialect))
    for way in WAYS:
        for relays in ("", TWO_RELAYS):
            results.compare(Table.PAST_DUE, f"{way}{relays}", RATE, DESIGN, OF_DESIGN)
    ours, theirs = (at_rate(who, JUDGED_PER_SECOND) for who in (Guarantee.AT_LEAST_ONCE, DESIGN))
    results.compare(Table.LATENESS, ours, P99, theirs, P99_OF_DESIGN)
    for backend in BACKENDS.values():
        for told in (ON, OFF_AGAIN):
            results.compare(Table.OUTCOMES, f"{backend}, {told}", RATE, f"{backend}, {OFF}", OF_OFF)
    results.compare(Table.RECURRING, RECURS, COST, PLAINLY, OF_PLAINLY)
    for backend, guarantee in GROWING:
        _compare_pending(results, backend, guarantee)


def _compare_throughput(results: Results) -> None:
    """Note the rates of backlogs, and the ratios to the null relay, to at least once, and to pure Python."""
    for case in Case:
        for way in WAYS:
            name = f"{case}, {way}"
            filled, drained = (results.runs(Table.BACKLOG, name, figure) for figure in (INTO, OUT))
            for into, out in zip(filled, drained, strict=False):
                results.add(Table.THROUGHPUT, name, RATE, Unit.PER_SECOND, in_and_out_rate(into, out))
            results.compare(Table.THROUGHPUT, name, RATE, NULL, OF_NULL)
        for first, second in (PURE, IN_C):
            results.compare(Table.THROUGHPUT, f"{case}, {second}", RATE, f"{case}, {first}", OF_PLAIN)
        for pure, in_c in zip(PURE, IN_C, strict=True):
            results.compare(Table.THROUGHPUT, f"{case}, {in_c}", RATE, f"{case}, {pure}", OF_PURE)
    results.compare(Table.THROUGHPUT, TRANSACTIONAL_NULL, RATE, NULL, OF_NULL)


def _compare_pending(results: Results, backend: str, guarantee: str) -> None:
    """Note the rates in and out with more pending, of those with the number that is the measure."""
    rates: dict[int, float] = {}
    for pending in WHOLE.pending:
        into, out = (
            results.runs(Table.PENDING, with_pending(backend, guarantee, pending), name) for name in (INTO, OUT)
        )
        if into and out:
            rates[pending] = in_and_out_rate(median(into), median(out))
    for pending, rate in rates.items():
        if pending > MEASURE_OF_PENDING and MEASURE_OF_PENDING in rates:
            name = with_pending(backend, guarantee, pending)
            results.add(Table.PENDING, name, OF_SMALLER, Unit.RATIO, rate / rates[MEASURE_OF_PENDING])


def document(machine: dict[str, Any], sizes: dict[str, Any], figures: Iterable[Figure]) -> dict[str, Any]:
    """All of a run, for JSON; rates in records a second."""
    return {"machine": machine, "sizes": sizes, "figures": [figure.document() for figure in figures]}


def figures_of(results: dict[str, Any]) -> list[Figure]:
    """The inverse of `document`."""
    return [
        Figure(each["table"], each["case"], each["figure"], Unit(each["unit"]), each["runs"])
        for each in results["figures"]
    ]
