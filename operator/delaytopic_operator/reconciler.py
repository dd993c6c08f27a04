"""Edge: one reconciliation of one DelayTopic: observe, decide (pure), execute, report.

Level-triggered: a reconciliation knows nothing of the event that brought it about, and one that was killed anywhere is
done again from the start.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import replace

from delaytopic_operator.decide.plan import DoTopic, Plan, Purge
from delaytopic_operator.decide.planner import DRY_RUN, plan
from delaytopic_operator.execute.executor import Executor, Outcome
from delaytopic_operator.execute.ledgers import RolloutLimiter, ScalingLedger
from delaytopic_operator.fleet.looks import FleetLooks
from delaytopic_operator.kube.object_cache import ObjectCache
from delaytopic_operator.model.reconciliation import Key, Result
from delaytopic_operator.observe.observation import Observation
from delaytopic_operator.observe.observer import Observer
from delaytopic_operator.report.status import StatusMetrics, StatusWriter


class Reconciler:
    """Reconciles DelayTopics; thread-safe for different keys."""

    def __init__(
        self,
        observer: Observer,
        executor: Executor,
        status_writer: StatusWriter,
        status_metrics: StatusMetrics,
        store: ObjectCache,
        ledger: ScalingLedger,
        rollouts: RolloutLimiter,
        looks: FleetLooks,
    ) -> None:
        """Take the parts of a reconciliation, and `looks` at the numbers between two of them."""
        self._observer = observer
        self._executor = executor
        self._status_writer = status_writer
        self._status_metrics = status_metrics
        self._store = store
        self._ledger = ledger
        self._rollouts = rollouts
        self._looks = looks

    def keys(self) -> Iterable[Key]:
        """List all DelayTopics, and those that are gone while something of them is still there."""
        return self._store.keys()

    def reconcile(self, key: Key, now_ms: int, asked_for_ms: int) -> Result:
        """Reconcile once, or look at the numbers alone while nothing else has changed.

        Raises `OperatorError` to be tried again, later each time.
        """
        judged_by = self._observer.judged_by(key)
        looked = self._looks.look(key, judged_by, now_ms, asked_for_ms)
        done = looked if looked is not None else self._reconcile(key, judged_by, now_ms, asked_for_ms)
        called = self._rollouts.call(self._observer.rollouts(), now_ms)
        return replace(done, others=called) if called else done

    def _reconcile(self, key: Key, judged_by: Hashable, now_ms: int, asked_for_ms: int) -> Result:
        seen = self._with_memory(self._observer.observe(key, now_ms), asked_for_ms)
        decided = plan(seen)
        if any(isinstance(action, DoTopic) for action in decided.actions):
            seen = self._observer.refreshed(seen)
            decided = plan(seen)
        # Nobody keeps a right by an annotation that was taken away.
        dry_run = (
            seen.route.annotations.get(DRY_RUN) == "true" and not seen.route.is_going and not seen.route.is_suspended
        )
        outcome = Outcome()
        if not dry_run:
            seen, decided, outcome = self._execute(seen, decided)
        self._status_writer.report(seen, _silent(decided) if dry_run else decided, outcome, dry_run=dry_run)
        self._status_metrics.update(seen, decided, outcome)
        if outcome.failure is not None:
            raise outcome.failure
        if not dry_run:
            self._looks.note(seen, decided, outcome, judged_by)
        return Result(decided.next_at_ms, seen.route.kafka_cluster)

    def _with_memory(self, seen: Observation, asked_for_ms: int) -> Observation:
        if seen.route.document is None or seen.route.is_suspended:
            self._ledger.forget(seen.key)
        fleet = replace(seen.fleet, memory=self._ledger.memory(seen.key), asked_for_ms=asked_for_ms)
        return replace(seen, fleet=fleet)

    def _execute(self, seen: Observation, decided: Plan) -> tuple[Observation, Plan, Outcome]:
        """Execute a plan, or the one that follows where the fleet has no turn left; remember what was done."""
        try:
            seen, decided = self._in_turn(seen, decided)
            outcome = self._executor.execute(seen, decided)
        finally:
            self._rollouts.release(seen.key)
        if decided.scaling is not None:
            self._ledger.settle(seen.key, decided.scaling, executed=outcome.step is not None)
        self._observer.note_relays(seen)
        if outcome.failure is None:
            self._observer.note_backup(seen)
        if isinstance(outcome.failed, Purge):
            self._observer.unreachable(seen.key, seen.now_ms)
        return seen, decided, outcome

    def _in_turn(self, seen: Observation, decided: Plan) -> tuple[Observation, Plan]:
        """Withhold a start of relays that is not their own change's while as many others start as may at once, or
        the last ones did not become ready.
        """
        image = decided.image_in_turn
        if image is None:
            self._rollouts.forget(seen.key)
            return seen, decided
        refused = self._rollouts.reserve(seen.key, image, seen.route.rollouts, seen.now_ms)
        if refused is None:
            return seen, decided
        seen = replace(seen, route=replace(seen.route, no_turn=refused))
        return seen, plan(seen)


def _silent(decided: Plan) -> Plan:
    """A dry run has done nothing that could be told."""
    return Plan(decided.actions, decided.conditions, decided.progress, decided.suspended, decided.parts)
