"""Edge: one reconciliation of one RecurringRecord: observe, decide (pure), execute, report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from delaytopic_operator.errors import NotAllowed, Rejected, Unavailable
from delaytopic_operator.execute.executor import MANAGER
from delaytopic_operator.kube.client import KubeApi
from delaytopic_operator.kube.finalizers import set_finalizer
from delaytopic_operator.kube.object_cache import ObjectCache
from delaytopic_operator.model.kinds import RECURRING_RECORD
from delaytopic_operator.model.reconciliation import Key, Result
from delaytopic_operator.model.transitions import reason_events
from delaytopic_operator.observe.topics import problem_of
from delaytopic_operator.recurring.observer import RecurringObserver
from delaytopic_operator.recurring.plan import FINALIZER, plan_recurring, status_of_refused
from delaytopic_operator.report.events import EventRecorder
from delaytopic_operator.report.status import STATUS_MANAGER


class RecurringReconciler:
    """Reconciles RecurringRecords; thread-safe for different keys."""

    def __init__(self, observer: RecurringObserver, kube: KubeApi, events: EventRecorder, store: ObjectCache) -> None:
        """Take the parts of a reconciliation."""
        self._observer = observer
        self._kube = kube
        self._events = events
        self._store = store

    def keys(self) -> Iterable[Key]:
        """List all RecurringRecords."""
        return self._store.recurring_keys()

    def reconcile(self, key: Key, now_ms: int, asked_for_ms: int) -> Result:
        """Reconcile once; raises `OperatorError` to be tried again, later each time."""
        seen, kafka = self._observer.observe(key, now_ms)
        decided = plan_recurring(seen)
        if seen.document is None:
            return Result()
        if decided.is_held is not None:
            self._hold(key, seen.document, held=decided.is_held)
        if decided.intent is not None:
            self._kube.apply_status(dict(decided.intent), STATUS_MANAGER)
        if decided.message is not None and kafka is not None:
            try:
                kafka.write(decided.message)
            except (NotAllowed, Rejected, Unavailable) as error:
                self._tell(seen.document, status_of_refused(seen, decided, problem_of(error)))
                raise
        self._tell(seen.document, decided.status)
        if decided.is_free:
            self._hold(key, seen.document, held=False)
        return Result(decided.next_at_ms)

    def _tell(self, document: Mapping[str, Any], applied: Mapping[str, Any] | None) -> None:
        """Apply a status that says something new, and send the Events for what changed by it."""
        if applied is not None:
            self._kube.apply_status(dict(applied), STATUS_MANAGER)
            before = (document.get("status") or {}).get("conditions") or ()
            self._events.tell(document, reason_events(before, applied["status"]["conditions"]))

    def _hold(self, key: Key, document: Mapping[str, Any], *, held: bool) -> None:
        set_finalizer(self._kube, RECURRING_RECORD, key.namespace, document["metadata"], FINALIZER, MANAGER, held=held)
