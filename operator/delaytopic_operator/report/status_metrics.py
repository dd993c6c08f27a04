"""Edge: the gauges of one DelayTopic, as its last reconciliation found it."""

from __future__ import annotations

from delaytopic_operator.decide.actions import ForgetRecord, WriteRecord
from delaytopic_operator.decide.plan import Plan
from delaytopic_operator.execute.executor import Outcome
from delaytopic_operator.model.conditions import summed_up
from delaytopic_operator.model.record import RecordState, RouteRecord
from delaytopic_operator.observe.observation import Observation
from delaytopic_operator.report.metrics import OperatorMetrics
from delaytopic_operator.report.status_writer import with_failure
from delaytopic_operator.scaling.decision import Decision
from delaytopic_operator.scaling.need import Crest

AT_LEAST_ONE = 1
"""Stands for a count that nobody knows: a backlog that may be there must not look like none."""


class StatusMetrics:
    """Thread-safe for different keys."""

    def __init__(self, metrics: OperatorMetrics) -> None:
        """`metrics` is the page they are on."""
        self._metrics = metrics

    def update(self, seen: Observation, plan: Plan, outcome: Outcome) -> None:
        """Say how it stands after a reconciliation."""
        if seen.document is not None:
            self._living(seen, with_failure(plan, outcome))
            return
        self._metrics.forget(seen.key)
        retained = retained_records(left_behind(seen, plan, outcome))
        if retained is not None:
            self._metrics.set_retained(seen.key, retained)

    def _living(self, seen: Observation, plan: Plan) -> None:
        findings = summed_up(plan.findings, plan.progress, suspended=plan.suspended)
        self._metrics.set_conditions(seen.key, {finding.type: finding.status for finding in findings})
        self._metrics.set_retained(seen.key, None)
        if plan.scaling is not None:
            self._scaling(seen, plan.scaling)

    def _scaling(self, seen: Observation, decision: Decision) -> None:
        lateness_s = decision.forecast.best_ms / 1_000 if decision.forecast is not None else None
        crests = decision.assessment.crests if decision.assessment is not None else ()
        peak = max((_per_second(crest) for crest in crests), default=None)
        self._metrics.set_scaling(seen.key, decision.wanted, peak, lateness_s)


def _per_second(crest: Crest) -> float:
    return (crest.sudden + crest.smooth) * 1_000 / max(1, crest.end_ms - crest.start_ms)


def left_behind(seen: Observation, plan: Plan, outcome: Outcome) -> RouteRecord | None:
    """The record after a reconciliation."""
    record = seen.record
    for action in plan.actions:
        if action is outcome.failed:
            break
        if isinstance(action, WriteRecord):
            record = action.record
        elif isinstance(action, ForgetRecord):
            record = None
    return record


def retained_records(record: RouteRecord | None) -> int | None:
    """Return how many records wait for their DelayTopic to be applied again; None: nothing waits."""
    if record is None or record.state is not RecordState.RETAINED or record.pending == 0:
        return None
    return AT_LEAST_ONE if record.pending is None else record.pending
