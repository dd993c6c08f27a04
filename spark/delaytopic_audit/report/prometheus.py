"""A report as Prometheus metrics, for a push gateway or a file collector. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from prometheus_client import CollectorRegistry, Gauge, generate_latest

from delaytopic_api.documents import TIMELY
from delaytopic_audit.model.report import Budget, BurnRate, Exhaustion, Report, Verdict

HELP: Final = {
    "verdict": "1 met, 0 missed, -1 could not judge.",
    "generated_timestamp_seconds": "When the report was made.",
    "window_end_timestamp_seconds": "Up to which deadline is graded.",
    "objective_ratio": "The share that has to be good.",
    "attainment_ratio": "The share that was good.",
    "bad_records": "Records of the window that were not good.",
    "records": "Records of the window, by what became of them.",
    "lateness_seconds": "Arrival minus deadline of delivered records.",
    "budget_remaining_ratio": "The share of the error budget that is left.",
    "budget_exhausted_timestamp_seconds": "When the error budget is spent at the present pace; absent while it lasts.",
    "burn_rate": "How many times faster than allowed the error budget was spent.",
    "burn_bad_records": "Records that were late or lost.",
}
_DELAY_TOPIC: Final = ("delaytopic_namespace", "delaytopic_name")
_VALUES: Final = {Verdict.MET: 1, Verdict.MISSED: 0, Verdict.CANNOT_JUDGE: -1}
Sample = tuple[str, dict[str, str], float]


def registry_of(report: Report) -> CollectorRegistry:
    """Return a registry with the metrics of one report; the names begin with `delaytopic_slo_`."""
    namespace, _, name = report.delay_topic.partition("/")
    registry = CollectorRegistry()
    gauges: dict[str, Gauge] = {}
    for metric, labels, value in _samples(report):
        if metric not in gauges:
            gauges[metric] = Gauge(
                f"delaytopic_slo_{metric}", HELP[metric], [*_DELAY_TOPIC, *labels], registry=registry
            )
        gauges[metric].labels(namespace, name, *labels.values()).set(value)
    return registry


def prometheus_text(report: Report) -> str:
    """Return the metrics of one report in the exposition format."""
    return generate_latest(registry_of(report)).decode()


def _samples(report: Report) -> Iterator[Sample]:
    yield "verdict", {}, _VALUES[report.verdict]
    yield "generated_timestamp_seconds", {}, report.generated_at_ms / 1000
    if report.window is not None:
        yield "window_end_timestamp_seconds", {}, report.window.to_ms / 1000
    for each in report.objectives:
        yield "objective_ratio", {"objective": str(each.name)}, float(each.objective.rstrip("%")) / 100
    for each in report.objectives:
        if each.good + each.bad:
            yield "attainment_ratio", {"objective": str(each.name)}, each.good / (each.good + each.bad)
    for each in report.objectives:
        if each.verdict is not Verdict.NOT_PROMISED:
            yield "bad_records", {"objective": str(each.name)}, each.bad
    if report.counts is not None:
        for outcome, records in report.counts.model_dump(by_alias=False).items():
            yield "records", {"outcome": outcome}, records
    yield from _lateness(report)
    yield from _spending(report)


def _lateness(report: Report) -> Iterator[Sample]:
    of = report.lateness
    if of is None:
        return
    quantiles = (("0.5", of.p50_ms), ("0.9", of.p90_ms), ("0.99", of.p99_ms), ("0.999", of.p999_ms), ("1", of.max_ms))
    for quantile, value_ms in quantiles:
        if value_ms is not None:
            yield "lateness_seconds", {"quantile": quantile}, value_ms / 1000


def _spending(report: Report) -> Iterator[Sample]:
    yield from _spending_of(TIMELY, report.budget, report.exhaustion, report.burn_rates)
    for each in report.thresholds:
        yield from _spending_of(each.objective, each.budget, each.exhaustion, each.burn_rates)


def _spending_of(
    objective: str, budget: Budget | None, exhaustion: Exhaustion | None, burn_rates: Sequence[BurnRate]
) -> Iterator[Sample]:
    labels = {"objective": objective}
    if budget is not None and budget.remaining is not None:
        yield "budget_remaining_ratio", labels, budget.remaining
    if exhaustion is not None and exhaustion.at_ms is not None:
        yield "budget_exhausted_timestamp_seconds", labels, exhaustion.at_ms / 1000
    for burn in burn_rates:
        if burn.rate is not None:
            yield "burn_rate", {**labels, "window": burn.window}, burn.rate
            yield "burn_bad_records", {**labels, "window": burn.window}, burn.bad
