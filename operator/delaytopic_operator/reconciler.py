"""Edge: one pass over one DelayTopic: look, decide (pure), do, say.

Level-triggered: a pass knows nothing of the event that brought it about, and one that was killed anywhere is done again
from the start.
"""

from __future__ import annotations

from collections.abc import Iterable

from delaytopic_operator.decide.actions import DoTopic, Purge
from delaytopic_operator.decide.plan import Plan
from delaytopic_operator.decide.planner import DRY_RUN, plan
from delaytopic_operator.execute.executor import Doer, Outcome
from delaytopic_operator.kube.object_cache import Store
from delaytopic_operator.model.keys import Key
from delaytopic_operator.model.reconciliation import Result
from delaytopic_operator.observe.observation import Observation
from delaytopic_operator.observe.observer import Looker
from delaytopic_operator.report.status_metrics import Meter
from delaytopic_operator.report.status_writer import Sayer


class Reconciler:
    """Does the passes; thread-safe for different keys."""

    def __init__(self, looker: Looker, doer: Doer, sayer: Sayer, meter: Meter, store: Store) -> None:
        """The parts of a pass."""
        self._looker = looker
        self._doer = doer
        self._sayer = sayer
        self._meter = meter
        self._store = store

    def keys(self) -> Iterable[Key]:
        """All DelayTopics, and those that are gone while something of them is still there."""
        return self._store.keys()

    def reconcile(self, key: Key, now_ms: int) -> Result:
        """One pass; raises `OperatorError` to be tried again, later each time."""
        seen = self._looker.look(key, now_ms)
        decided = plan(seen)
        if any(isinstance(action, DoTopic) for action in decided.actions):
            seen = self._looker.refreshed(seen)
            decided = plan(seen)
        dry_run = seen.annotations.get(DRY_RUN) == "true" and not seen.is_going
        outcome = Outcome() if dry_run else self._doer.do(seen, decided)
        if outcome.failure is None and not dry_run:
            self._keep(seen)
        if isinstance(outcome.failed, Purge):
            self._looker.cut_off(key, now_ms)
        self._sayer.say(seen, _silent(decided) if dry_run else decided, outcome, dry_run=dry_run)
        self._meter.measure(seen, decided, outcome)
        if outcome.failure is not None:
            raise outcome.failure
        return Result(decided.next_at_ms)

    def _keep(self, seen: Observation) -> None:
        if seen.decision is not None:
            self._looker.keep(seen.key, seen.decision)
        self._looker.keep_progress(seen)


def _silent(decided: Plan) -> Plan:
    """A dry run has done nothing that could be told."""
    return Plan(decided.actions, decided.findings, decided.progress, decided.suspended, decided.parts)
