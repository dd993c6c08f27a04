"""Edge: one reconciliation of one DelayClass: observe, decide (pure), execute, report."""

from __future__ import annotations

from collections.abc import Iterable

from delaytopic_operator.classes.observer import ClassObserver
from delaytopic_operator.classes.plan import ClassObservation, class_finalizer, plan_class
from delaytopic_operator.execute.executor import MANAGER
from delaytopic_operator.kube.client import KubeApi
from delaytopic_operator.kube.finalizers import set_finalizer
from delaytopic_operator.kube.object_cache import ObjectCache
from delaytopic_operator.model.kinds import DELAY_CLASS
from delaytopic_operator.model.reconciliation import Key, Result
from delaytopic_operator.report.events import EventRecorder
from delaytopic_operator.report.status import STATUS_MANAGER


class ClassReconciler:
    """Reconciles DelayClasses; thread-safe for different keys."""

    def __init__(self, observer: ClassObserver, kube: KubeApi, events: EventRecorder, store: ObjectCache) -> None:
        """Take the parts of a reconciliation."""
        self._observer = observer
        self._kube = kube
        self._events = events
        self._store = store

    def keys(self) -> Iterable[Key]:
        """List all DelayClasses."""
        return self._store.class_keys()

    def reconcile(self, key: Key, now_ms: int, asked_for_ms: int) -> Result:
        """Reconcile once; raises `OperatorError` to be tried again, later each time."""
        seen = self._observer.observe(key.name, now_ms)
        decided = plan_class(seen)
        if decided.held is not None:
            self._hold(seen, held=decided.held)
        if decided.status is not None:
            self._kube.apply_status(dict(decided.status), STATUS_MANAGER)
        if seen.document is not None:
            self._events.tell(seen.document, decided.events)
        return Result(decided.next_at_ms)

    def _hold(self, seen: ClassObservation, *, held: bool) -> None:
        """Set this operator's finalizer, or take it away."""
        finalizer = class_finalizer(seen.config.namespace)
        set_finalizer(self._kube, DELAY_CLASS, None, seen.metadata, finalizer, MANAGER, held=held)
