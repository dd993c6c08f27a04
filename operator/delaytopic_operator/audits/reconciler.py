"""Edge: one reconciliation of the audit of a class, or of a namespace: observe, decide (pure), execute."""

from __future__ import annotations

from collections.abc import Iterable

from delaytopic_operator.audits.observer import AuditObserver
from delaytopic_operator.audits.plan import plan_audit
from delaytopic_operator.decide.plan import Apply, Delete
from delaytopic_operator.errors import OperatorError
from delaytopic_operator.execute.executor import MANAGER
from delaytopic_operator.kube.client import KubeApi
from delaytopic_operator.kube.object_cache import ObjectCache
from delaytopic_operator.model.kinds import kind_of
from delaytopic_operator.model.reconciliation import Key, Result


class AuditReconciler:
    """Reconciles audits; thread-safe for different keys."""

    def __init__(self, observer: AuditObserver, kube: KubeApi, store: ObjectCache) -> None:
        """Take the parts of a reconciliation."""
        self._observer = observer
        self._kube = kube
        self._store = store

    def keys(self) -> Iterable[Key]:
        """List the audits of all classes and namespaces, and those of which there are still objects."""
        return self._store.audit_keys()

    def reconcile(self, key: Key, now_ms: int, asked_for_ms: int) -> Result:
        """Reconcile once; raises `OperatorError` to be tried again, later each time."""
        decided = plan_audit(self._observer.observe(key, now_ms))
        try:
            for action in decided.actions:
                self._execute(action)
        except OperatorError as error:
            self._observer.note_failure(key, str(error))
            raise
        self._observer.note_failure(key, None)
        return Result(decided.next_at_ms)

    def _execute(self, action: Apply | Delete) -> None:
        if isinstance(action, Apply):
            self._kube.apply(action.document, MANAGER)
        else:
            metadata = action.document["metadata"]
            self._kube.delete(kind_of(action.document), metadata["namespace"], metadata["name"], metadata["uid"])
