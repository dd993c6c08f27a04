"""The results of a run: what was measured, and the verdicts that follow. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from bench.cases import GOALS, Case
from bench.figures.goals import (
    AT_LEAST_ONCE_P50_MS,
    AT_LEAST_ONCE_P99_MS,
    BURST_MS,
    DIALECT,
    EXACTLY_ONCE,
    EXACTLY_ONCE_P50_MS,
    EXACTLY_ONCE_P99_MS,
    JSON_DIALECT,
    Verdict,
    all_of,
)
from bench.figures.statistics import Lateness, in_and_out_rate, median, median_ratio
from delaytopic_api.values import CAPABILITIES, Dialect, Guarantee

IN_JSON = frozenset({Dialect.BLACK_BOX, Dialect.SCHEDULER_JSON})
JUDGED_PER_SECOND = 10_000
"""The load that the goals for lateness are about."""


@dataclass(slots=True)
class Measured:
    """Rates in records per second, in the order of the runs; lateness of each load."""

    null: list[float] = field(default_factory=list)
    null_transactional: list[float] = field(default_factory=list)
    rates: dict[tuple[Case, Guarantee], list[float]] = field(default_factory=dict)
    filled: dict[tuple[Case, Guarantee], list[float]] = field(default_factory=dict)
    drained: dict[tuple[Case, Guarantee], list[float]] = field(default_factory=dict)
    lateness: dict[tuple[Guarantee, int], Lateness] = field(default_factory=dict)
    burst_ms: dict[Guarantee, float] = field(default_factory=dict)
    dialects: dict[Dialect, list[float]] = field(default_factory=dict)
    """Inside the horizon, with AtLeastOnce; the native one among them."""
    peak_memory_bytes: dict[tuple[Case, Guarantee], int] = field(default_factory=dict)
    """The most that a relay had resident with a backlog."""

    def add_rate(self, case: Case, guarantee: Guarantee, rate: float) -> None:
        """Note a run."""
        self.rates.setdefault((case, guarantee), []).append(rate)

    def combine_backlogs(self) -> None:
        """Turn the rates in and out of each run into one."""
        for case, rates in self.filled.items():
            self.rates[case] = [in_and_out_rate(*pair) for pair in zip(rates, self.drained[case], strict=True)]


@dataclass(frozen=True, slots=True)
class Throughput:
    """A case's figures."""

    name: str
    rates: list[float]
    ratio: float
    """To the null relay: the median of the rounds' ratios."""
    goal: str = ""
    verdict: Verdict | None = None
    of_at_least_once: float | None = None
    """With ExactlyOnce: to the same case with AtLeastOnce."""
    records: int = 1
    """Records that are written with each delivery."""

    @property
    def rate(self) -> float:
        """The median."""
        return median(self.rates)

    @property
    def written_ratio(self) -> float:
        """The ratio in records written, where the measure writes one with each delivery."""
        return self.ratio * self.records


@dataclass(frozen=True, slots=True)
class Timing:
    """A load's lateness."""

    name: str
    lateness: Lateness
    goal: str = ""
    verdict: Verdict | None = None


@dataclass(frozen=True, slots=True)
class Burst:
    """The time that a burst took from its due time."""

    name: str
    ms: float
    goal: str
    verdict: Verdict


def throughputs(measured: Measured) -> list[Throughput]:
    """The null relays and all cases; nothing if the null relay was not measured."""
    if not measured.null:
        return []
    found = [Throughput("null relay", measured.null, 1.0)]
    if measured.null_transactional:
        ratio = median_ratio(measured.null_transactional, measured.null)
        found.append(Throughput("null relay, transactional", measured.null_transactional, ratio))
    return found + [_case(measured, case, guarantee) for case, guarantee in measured.rates]


def _case(measured: Measured, case: Case, guarantee: Guarantee) -> Throughput:
    rates = measured.rates[case, guarantee]
    name, ratio = f"{case}, {guarantee}", median_ratio(rates, measured.null)
    if guarantee is Guarantee.AT_LEAST_ONCE:
        goal = GOALS[case]
        return Throughput(name, rates, ratio, f">= {goal.limit:.2f}", goal.judge(ratio))
    share = median_ratio(rates, measured.rates[case, Guarantee.AT_LEAST_ONCE])
    text = f">= {EXACTLY_ONCE.limit:.2f} of AtLeastOnce"
    return Throughput(name, rates, ratio, text, EXACTLY_ONCE.judge(share), share)


def dialects(measured: Measured) -> list[Throughput]:
    """The dialects beside the native one, which is the measure; the goals count deliveries."""
    native = measured.dialects.get(Dialect.NATIVE, [])
    return [_dialect(dialect, rates, native) for dialect, rates in measured.dialects.items()]


def _dialect(dialect: Dialect, rates: list[float], native: list[float]) -> Throughput:
    ratio = median_ratio(rates, native)
    if dialect is Dialect.NATIVE:
        return Throughput(str(dialect), rates, ratio)
    goal = JSON_DIALECT if dialect in IN_JSON else DIALECT
    return Throughput(
        str(dialect), rates, ratio, f">= {goal.limit:.2f}", goal.judge(ratio), records=records_written(dialect)
    )


def records_written(dialect: Dialect) -> int:
    """Return how many records a delivery is: itself, what ends its schedule in the source, a copy for the history."""
    _, tombstones, history, postpones = CAPABILITIES[dialect]
    return 1 + (tombstones or postpones) + history


def timings(measured: Measured) -> list[Timing]:
    """Lateness by guarantee and load; the goals are about one of the loads."""
    return [_timing(guarantee, load, found) for (guarantee, load), found in measured.lateness.items()]


def _timing(guarantee: Guarantee, per_second: int, found: Lateness) -> Timing:
    name = f"{guarantee}, {per_second:,}/s"
    if per_second != JUDGED_PER_SECOND:
        return Timing(name, found)
    p50, p99 = AT_LEAST_ONCE_P50_MS, AT_LEAST_ONCE_P99_MS
    if guarantee is Guarantee.EXACTLY_ONCE:
        p50, p99 = EXACTLY_ONCE_P50_MS, EXACTLY_ONCE_P99_MS
    verdict = all_of(p50.judge(found.p50_ms), p99.judge(found.p99_ms))
    return Timing(name, found, f"<= {p50.limit:.0f} / {p99.limit:.0f} ms", verdict)


def bursts(measured: Measured, records: int) -> list[Burst]:
    """The bursts of so many records."""
    return [
        Burst(f"{guarantee}, {records:,}", ms, f"<= {BURST_MS.limit / 1_000:.1f} s", BURST_MS.judge(ms))
        for guarantee, ms in measured.burst_ms.items()
    ]


def document(machine: dict[str, Any], scale: dict[str, int], measured: Measured, burst_records: int) -> dict[str, Any]:
    """All of it, for JSON; rates in records per second, times in milliseconds."""
    return {
        "machine": machine,
        "records": scale,
        "throughput": [_throughput_entry(each) for each in throughputs(measured)],
        "redis": _backlog_entry(measured, Case.REDIS),
        "buckets": _backlog_entry(measured, Case.BUCKETS),
        "dialects": [_dialect_entry(each) for each in dialects(measured)],
        "lateness": [_timing_entry(each) for each in timings(measured)],
        "bursts": [
            {"case": each.name, "ms": each.ms, "goal": each.goal, "verdict": each.verdict}
            for each in bursts(measured, burst_records)
        ],
    }


def _backlog_entry(measured: Measured, case: Case) -> dict[str, Any]:
    return {
        str(guarantee): {
            "inPerSecond": _rounded(rates),
            "outPerSecond": _rounded(measured.drained.get((case, guarantee), [])),
            "relayPeakMemoryBytes": measured.peak_memory_bytes.get((case, guarantee)),
        }
        for (of, guarantee), rates in measured.filled.items()
        if of is case
    }


def _throughput_entry(each: Throughput) -> dict[str, Any]:
    return {
        "case": each.name,
        "ratioToNull": round(each.ratio, 3),
        "ratioToAtLeastOnce": None if each.of_at_least_once is None else round(each.of_at_least_once, 3),
        "goal": each.goal or None,
        "verdict": each.verdict,
        "perSecond": round(each.rate),
        "runsPerSecond": _rounded(each.rates),
    }


def _dialect_entry(each: Throughput) -> dict[str, Any]:
    return {
        "dialect": each.name,
        "ratioToNative": round(each.ratio, 3),
        "recordsPerDelivery": each.records,
        "writtenRatioToNative": round(each.written_ratio, 3),
        "goal": each.goal or None,
        "verdict": each.verdict,
        "deliveriesPerSecond": round(each.rate),
        "runsPerSecond": _rounded(each.rates),
    }


def _timing_entry(each: Timing) -> dict[str, Any]:
    late = each.lateness
    return {
        "case": each.name,
        "records": late.records,
        "p50Ms": late.p50_ms,
        "p99Ms": late.p99_ms,
        "maxMs": late.max_ms,
        "goal": each.goal or None,
        "verdict": each.verdict,
    }


def _rounded(rates: list[float]) -> list[int]:
    return [round(rate) for rate in rates]
