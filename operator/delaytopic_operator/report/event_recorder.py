"""Edge: writes Events, from a thread of its own: no reconciliation waits for one, or fails because of one."""

from __future__ import annotations

from queue import Full, Queue
from threading import Thread
from time import monotonic

import structlog

from delaytopic_operator.clock import epoch_ms
from delaytopic_operator.errors import OperatorError
from delaytopic_operator.kube.client import KubeApi
from delaytopic_operator.model.kinds import EVENT
from delaytopic_operator.report.event_documents import Document, EventBudget, EventRecord, NewEvent, reference

WAITING = 1_000
MANAGER = "delaytopic-operator"

log = structlog.get_logger()


class EventRecorder:
    """Call it on transitions only; what is too much all the same is counted or dropped."""

    def __init__(self, kube: KubeApi, instance: str) -> None:
        """`instance`: the identity of this operator, which the Events name."""
        self._kube = kube
        self._budget = EventBudget(instance)
        self._queue: Queue[EventRecord | None] = Queue(WAITING)
        self._thread = Thread(target=self._run, name="events", daemon=True)

    def record(
        self, document: Document, reason: str, note: str, *, warning: bool = False, action: str = "Reconcile"
    ) -> None:
        """Something happened to the object; `reason` and `action` are words, `note` is a sentence."""
        happening = EventRecord(reference(document), reason, note, "Warning" if warning else "Normal", action)
        log.info("event", delaytopic=_name(happening), reason=reason, note=note, warning=warning)
        try:
            self._queue.put_nowait(happening)
        except Full:
            log.warning("event dropped: too many are waiting", delaytopic=_name(happening), reason=reason)

    def start(self) -> None:
        """Begin to write."""
        self._thread.start()

    def stop(self, deadline_s: float) -> None:
        """Write what is waiting, as far as time allows, and end."""
        ends = monotonic() + deadline_s
        try:
            self._queue.put(None, timeout=deadline_s)
        except Full:
            log.warning("events dropped: the operator stops", events=self._queue.qsize())
            return
        self._thread.join(max(0.0, ends - monotonic()))

    def _run(self) -> None:
        while (happening := self._queue.get()) is not None:
            try:
                self._write(happening)
            except OperatorError as error:
                self._budget.forget(happening)
                log.warning("event not written", delaytopic=_name(happening), reason=str(error))
            except Exception:
                self._budget.forget(happening)
                log.exception("event not written", delaytopic=_name(happening))

    def _write(self, happening: EventRecord) -> None:
        write = self._budget.write(happening, epoch_ms())
        if write is None:
            log.debug("event dropped: too many of this object", delaytopic=_name(happening))
        elif isinstance(write, NewEvent):
            self._kube.create(write.document, MANAGER)
        else:
            self._kube.patch(EVENT, write.namespace, write.name, write.patch, MANAGER)


def _name(happening: EventRecord) -> str:
    return "/".join(filter(None, (happening.regarding.get("namespace"), happening.regarding["name"])))
