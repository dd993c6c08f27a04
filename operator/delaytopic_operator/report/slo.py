"""The gauges of one DelayTopic's SLO: what is asked of it, and what the last audit found. Pure.

Only words that are known become labels, and only finite numbers values: whatever a status holds, the page can be read.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Final, NamedTuple

from delaytopic_api.documents import TIMELY, AuditedObjective, AuditedSlo, Settings
from delaytopic_api.errors import InvalidText
from delaytopic_api.relay import lateness_bucket
from delaytopic_api.values import Duration, Guarantee
from delaytopic_operator.model.conditions import instant_ms
from delaytopic_operator.model.reconciliation import audit_key
from delaytopic_operator.observe.audit_verdict import known_slo, parsed_slo
from delaytopic_operator.observe.observation import Observation
from delaytopic_operator.report import metric_names as names
from delaytopic_operator.report.metric_names import MetricName
from delaytopic_operator.resources.audits.cron_job import LATE_START_SECONDS, LONGEST_RUN_SECONDS, schedule_of
from delaytopic_operator.resources.schedule import longest_gap_ms

UNIQUE: Final = "Unique"
TOLD: Final = "Told"
OBJECTIVES: Final = (TIMELY, "Complete", UNIQUE, "NotEarly", TOLD)
MISSED_RUNS: Final = 2
"""One run may fail for a passing reason; the next one catches up."""
_VERDICTS: Final = {"Met": 1.0, "Missed": 0.0, "CannotJudge": -1.0}
_OBJECTIVE = re.compile(rf"{'|'.join(OBJECTIVES)}|{TIMELY}-[0-9hms]{{2,28}}", re.ASCII)
_DECIMAL = re.compile(r"(-?[0-9]{1,18}(?:\.[0-9]{1,18})?)(%?)", re.ASCII)


class Sample(NamedTuple):
    """One series, without the labels of the DelayTopic."""

    metric: MetricName
    labels: tuple[str, ...]
    value: float


def slo_samples(seen: Observation) -> list[Sample]:
    """Return the gauges of a DelayTopic that is there."""
    # While it is paused nothing was looked at, and all is as it was.
    written = seen.route.record.audited if seen.route.record is not None else None
    slo = parsed_slo(seen.audit.slo.slo) if seen.audit.slo is not None else known_slo(seen.route.status, written)
    found = list(_asked(seen.route.accepted.settings)) if seen.route.accepted is not None else []
    due_ms = _audit_due_ms(seen, slo)
    if due_ms is not None:
        found.append(Sample(names.SLO_AUDIT_DUE, (), due_ms / 1_000))
    if slo is not None:
        found += _told(slo)
    return [sample for sample in found if math.isfinite(sample.value)]


def _asked(settings: Settings) -> Iterator[Sample]:
    for name, lateness, share in settings.slo.lateness_objectives:
        yield Sample(names.SLO_THRESHOLD, (name, lateness_bucket(lateness.ms)), lateness.ms / 1_000)
        yield Sample(names.SLO_OBJECTIVE, (name,), float(share.ratio))
    promised = {UNIQUE: settings.guarantee is Guarantee.EXACTLY_ONCE, TOLD: settings.outcomes is not None}
    for objective in OBJECTIVES[1:]:
        if promised.get(objective, True):
            yield Sample(names.SLO_OBJECTIVE, (objective,), 1.0)


def _audit_due_ms(seen: Observation, slo: AuditedSlo | None) -> int | None:
    """Return when a verdict is missing; None where no audit is to be."""
    if seen.route.accepted is None or seen.route.is_going:
        return None
    of_class = seen.route.accepted.delay_class
    audit = audit_key(seen.key.namespace, of_class.metadata.name if of_class is not None else None)
    schedule = schedule_of(audit, of_class, seen.config)
    gap_ms = longest_gap_ms(schedule) if schedule is not None else None
    if gap_ms is None:
        return None
    run_ms = (LATE_START_SECONDS + LONGEST_RUN_SECONDS) * 1_000
    return _last_audit_ms(seen, slo) + MISSED_RUNS * gap_ms + run_ms


def _last_audit_ms(seen: Observation, slo: AuditedSlo | None) -> int:
    """Return when it was audited last; before the first time, since when it is to be audited."""
    if slo is not None and slo.audited_at is not None:
        return round(slo.audited_at.timestamp() * 1_000)
    made = seen.audit.job["metadata"] if seen.audit.job is not None else {}
    created = [
        metadata["creationTimestamp"] for metadata in (made, seen.route.metadata) if metadata.get("creationTimestamp")
    ]
    # Whichever came later: an audit that others had before, or a DelayTopic that had none.
    return max(map(instant_ms, created), default=seen.now_ms)


def _told(slo: AuditedSlo) -> Iterator[Sample]:
    """List what the audit found."""
    if slo.verdict in _VERDICTS:
        yield Sample(names.SLO_VERDICT, (), _VERDICTS[slo.verdict])
    if slo.audited_at is not None:
        yield Sample(names.SLO_GENERATED, (), slo.audited_at.timestamp())
    if slo.window_end is not None:
        yield Sample(names.SLO_WINDOW_END, (), slo.window_end.timestamp())
    yield from _objectives(slo)
    for quantile, text in (("0.5", slo.lateness_p50), ("0.99", slo.lateness_p99), ("0.999", slo.lateness_p999)):
        length_ms = _duration_ms(text)
        if length_ms is not None:
            yield Sample(names.SLO_LATENESS, (quantile,), length_ms / 1_000)
    yield from _spending(TIMELY, slo)


def _spending(objective: str, of: AuditedSlo | AuditedObjective) -> Iterator[Sample]:
    """List what the audit found of an error budget."""
    left = _number(of.budget_left_percent)
    if left is not None:
        yield Sample(names.SLO_BUDGET_LEFT, (objective,), left)
    if of.budget_exhausted_at is not None:
        yield Sample(names.SLO_BUDGET_EXHAUSTED, (objective,), of.budget_exhausted_at.timestamp())
    for burn in of.burn_rates or ():
        rate = _number(burn.rate)
        if rate is not None and _duration_ms(burn.window) is not None:
            yield Sample(names.SLO_BURN_RATE, (objective, burn.window), rate)
            yield Sample(names.SLO_BURN_BAD, (objective, burn.window), burn.bad)


def _objectives(slo: AuditedSlo) -> Iterator[Sample]:
    for each in slo.objectives or ():
        if _OBJECTIVE.fullmatch(each.name) is None:
            continue
        if each.name not in OBJECTIVES:
            yield from _spending(each.name, each)
        attained = _number(each.attainment)
        if attained is not None:
            yield Sample(names.SLO_ATTAINMENT, (each.name,), attained)
        yield Sample(names.SLO_BAD, (each.name,), each.bad)
        if each.newly_bad is not None:
            yield Sample(names.SLO_NEWLY_BAD, (each.name,), each.newly_bad)


def _number(text: str | None) -> float | None:
    """Return what a decimal says, or the share that a percentage is."""
    match = _DECIMAL.fullmatch(text or "")
    return float(Fraction(match[1]) / (100 if match[2] else 1)) if match is not None else None


def _duration_ms(text: str | None) -> int | None:
    try:
        return Duration(text).ms if text else None
    except InvalidText:
        return None


def by_metric(samples: list[Sample]) -> Mapping[MetricName, Mapping[tuple[str, ...], float]]:
    """Group the samples; of two that would be one series, the last counts."""
    found: dict[MetricName, dict[tuple[str, ...], float]] = {}
    for metric, labels, value in samples:
        found.setdefault(metric, {})[labels] = value
    return found
