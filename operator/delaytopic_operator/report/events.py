"""Events as Kubernetes has them (events.k8s.io/v1): how many are written, and the thread that writes them.

The same thing said again of the same object becomes a series: one Event that counts, instead of many. Of one object,
25 Events may be written at once, and then one every 5 minutes, as the other controllers of Kubernetes do.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from queue import Full, Queue
from threading import Thread
from time import monotonic
from typing import Any, Final

import structlog

from delaytopic_operator.clock import epoch_ms
from delaytopic_operator.errors import OperatorError
from delaytopic_operator.kube.client import KubeApi
from delaytopic_operator.model.conditions import micro_time
from delaytopic_operator.model.kinds import EVENT
from delaytopic_operator.model.transitions import WARNING, Event

Document = dict[str, Any]

CONTROLLER: Final = "delaytopic.dev/operator"
LONGEST_NOTE: Final = 1_024
SERIES_ENDS_MS: Final = 6 * 60_000
BURST: Final = 25
REFILL_MS: Final = 300_000
REMEMBERED: Final = 4_096
WAITING = 1_000
MANAGER = "delaytopic-operator"
log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class EventRecord:
    """Something that happened to an object; `kind` is Normal or Warning, `action` what the operator did."""

    regarding: Document
    reason: str
    note: str
    kind: str
    action: str

    @property
    def same(self) -> tuple[str, ...]:
        """Return what is the same in all of a series."""
        return (self.regarding["uid"], self.reason, self.note, self.kind, self.action)


@dataclass(slots=True)
class _Series:
    namespace: str
    name: str
    count: int
    last_ms: int


@dataclass(frozen=True, slots=True)
class NewEvent:
    """Create this Event."""

    document: Document


@dataclass(frozen=True, slots=True)
class Repeated:
    """Patch this Event: it happened again."""

    namespace: str
    name: str
    patch: Document


def reference(document: Document) -> Document:
    """Return how an Event names an object."""
    metadata = document["metadata"]
    names = {name: metadata[name] for name in ("namespace", "name", "uid", "resourceVersion") if metadata.get(name)}
    return {"apiVersion": document["apiVersion"], "kind": document["kind"], "uid": ""} | names


class EventBudget:
    """The budget of Events: one event gives a document to write, or none. Not thread-safe."""

    def __init__(self, instance: str) -> None:
        """`instance`: of the operator that writes."""
        self._instance = instance
        self._series: OrderedDict[tuple[str, ...], _Series] = OrderedDict()
        self._tokens: OrderedDict[str, tuple[float, int]] = OrderedDict()

    def write(self, event: EventRecord, now_ms: int) -> NewEvent | Repeated | None:
        """None: too much was said of this object already."""
        if not self._may(event.regarding["uid"], now_ms):
            return None
        series = self._series.get(event.same)
        if series is not None and now_ms - series.last_ms < SERIES_ENDS_MS:
            series.count += 1
            series.last_ms = now_ms
            self._series.move_to_end(event.same)
            return Repeated(series.namespace, series.name, {"series": _series(series)})
        document = _document(event, self._instance, now_ms)
        metadata = document["metadata"]
        _remember(self._series, event.same, _Series(metadata["namespace"], metadata["name"], 1, now_ms))
        return NewEvent(document)

    def forget(self, event: EventRecord) -> None:
        """Its Event was not written, or is gone: begin a new one next time."""
        self._series.pop(event.same, None)

    def _may(self, uid: str, now_ms: int) -> bool:
        tokens, since_ms = self._tokens.get(uid, (float(BURST), now_ms))
        tokens = min(float(BURST), tokens + (now_ms - since_ms) / REFILL_MS)
        allowed = tokens >= 1
        _remember(self._tokens, uid, (tokens - allowed, now_ms))
        return allowed


def _remember(table: OrderedDict[Any, Any], name: object, value: object) -> None:
    table[name] = value
    table.move_to_end(name)
    if len(table) > REMEMBERED:
        table.popitem(last=False)


def _series(series: _Series) -> Document:
    return {"count": series.count, "lastObservedTime": micro_time(series.last_ms)}


def _document(event: EventRecord, instance: str, now_ms: int) -> Document:
    regarding = event.regarding
    suffix = sha256("\0".join((*event.same, str(now_ms), instance)).encode()).hexdigest()[:16]
    return {
        "apiVersion": EVENT.api_version,
        "kind": EVENT.name,
        "metadata": {
            # Objects of the whole cluster have their Events in the namespace default.
            "namespace": regarding.get("namespace") or "default",
            "name": f"{regarding['name']}.{suffix}",
        },
        "eventTime": micro_time(now_ms),
        "type": event.kind,
        "reason": event.reason,
        "action": event.action,
        "note": event.note if len(event.note) <= LONGEST_NOTE else f"{event.note[: LONGEST_NOTE - 3]}...",
        "regarding": regarding,
        "reportingController": CONTROLLER,
        "reportingInstance": instance,
    }


class EventRecorder:
    """Call it on transitions only; what is too much all the same is counted or dropped."""

    def __init__(self, kube: KubeApi, instance: str) -> None:
        """`instance`: the identity of this operator, which the Events name."""
        self._kube = kube
        self._budget = EventBudget(instance)
        self._queue: Queue[EventRecord | None] = Queue(WAITING)
        self._thread = Thread(target=self._run, name="events", daemon=True)

    def tell(self, document: Mapping[str, Any], events: Iterable[Event]) -> None:
        """Record all that happened to the object."""
        for event in events:
            self.record(dict(document), event.reason, event.message, warning=event.type == WARNING)

    def record(
        self, document: Document, reason: str, note: str, *, warning: bool = False, action: str = "Reconcile"
    ) -> None:
        """Something happened to the object; `reason` and `action` are words, `note` is a sentence."""
        event = EventRecord(reference(document), reason, note, "Warning" if warning else "Normal", action)
        log.info("event", **_name(event), reason=reason, note=note, warning=warning)
        try:
            self._queue.put_nowait(event)
        except Full:
            log.warning("event dropped: too many are waiting", **_name(event), reason=reason)

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
        while (event := self._queue.get()) is not None:
            try:
                self._write(event)
            except OperatorError as error:
                self._budget.forget(event)
                log.warning("event not written", **_name(event), reason=str(error))
            except Exception:
                self._budget.forget(event)
                log.exception("event not written", **_name(event))

    def _write(self, event: EventRecord) -> None:
        write = self._budget.write(event, epoch_ms())
        if write is None:
            log.debug("event dropped: too many of this object", **_name(event))
        elif isinstance(write, NewEvent):
            self._kube.create(write.document, MANAGER)
        else:
            self._kube.patch(EVENT, write.namespace, write.name, write.patch, MANAGER)


def _name(event: EventRecord) -> dict[str, str]:
    """Return the field of a log line that names the object."""
    regarding = event.regarding
    return {regarding["kind"].lower(): "/".join(filter(None, (regarding.get("namespace"), regarding["name"])))}
