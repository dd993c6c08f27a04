"""Edge: kopf, and nothing but its watches: what is seen goes into the store, whom it concerns onto the queue.

No change handlers, no timers, no daemons, no finalizer, no posting: kopf writes nothing. It runs three times, each in a
thread of its own: one kopf takes all its kinds from the same namespaces, by pages of one size, and people write
elsewhere than relays run. It is started again when it gives up; meanwhile, and whatever watches miss, the resync finds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from random import random
from threading import Event, Thread
from typing import Any, Final, cast

import aiohttp
import kopf
import structlog

from delaytopic_operator.clock import epoch_ms, monotonic_ms
from delaytopic_operator.config import OperatorConfig
from delaytopic_operator.kube.login import ClusterLogin
from delaytopic_operator.kube.object_cache import ObjectCache
from delaytopic_operator.model.kinds import Kind, Place
from delaytopic_operator.model.reconciliation import Key
from delaytopic_operator.runtime import watched
from delaytopic_operator.runtime.watched import Together
from delaytopic_operator.runtime.workqueue import backoff_ms

LOGIN_MINUTES: Final = 10
HEARTBEAT_SECONDS: Final = 1.0
CLOSING_SECONDS: Final = 0.25
"""Connections with TLS that were closed are gone a moment later only (aiohttp, graceful shutdown)."""
STEADY_SECONDS: Final = 60
"""After so long without giving up, earlier failures are forgotten."""
OWN_WRITE_SECONDS: Final = 0.25
"""The event of an own write often comes before the answer to the write: so long is waited for the answer."""
TELLING: Final = frozenset({"apiVersion", "kind", "metadata", "spec"})
"""The fields of an object that say whom it concerns."""
IDENTITY: Final = ("namespace", "name", "uid", "resourceVersion")
WATCH_SECONDS: Final = 240
"""The API server ends a watch after this time, and kopf begins the next one: a sign of life at least this often."""

log = structlog.get_logger()


class Watches:
    """The watches, between `start` and `stop`."""

    def __init__(
        self,
        login: ClusterLogin,
        store: ObjectCache,
        enqueue: Callable[[Iterable[Key]], None],
        config: OperatorConfig,
        login_lasts: timedelta = timedelta(minutes=LOGIN_MINUTES),
        *,
        enqueue_classes: Callable[[Iterable[Key]], None],
        enqueue_audits: Callable[[Iterable[Key]], None],
        enqueue_recurring: Callable[[Iterable[Key]], None],
    ) -> None:
        """`enqueue` takes the DelayTopics to look at now, the others take the DelayClasses, the audits and the
        RecurringRecords.

        After `login_lasts`, the credentials are read again.
        """
        self._login = login
        self._store = store
        self._enqueue = enqueue
        self._enqueue_classes = enqueue_classes
        self._enqueue_audits = enqueue_audits
        self._enqueue_recurring = enqueue_recurring
        self._login_lasts = login_lasts
        self._config = config
        self._stopping = Event()
        self._stop_loop: dict[Together, Callable[[], object]] = {}
        self._threads = [
            Thread(target=self._run, args=[group], name=f"watches-{group.name}", daemon=True)
            for group in watched.GROUPS
        ]
        self._signs_ms: dict[Place, int] = {}
        self._beat_ms: dict[Together, int] = {}

    def start(self) -> None:
        """Begin to watch."""
        self._signs_ms = dict.fromkeys(watched.places(self._config), epoch_ms())
        self._beat_ms = dict.fromkeys(watched.GROUPS, monotonic_ms())
        for thread in self._threads:
            thread.start()

    def ask_to_stop(self) -> None:
        """Watch no more; does not wait."""
        self._stopping.set()
        for stop_loop in list(self._stop_loop.values()):
            with suppress(RuntimeError):  # it has just ended by itself
                stop_loop()

    def stop(self, deadline_s: float) -> None:
        """Watch no more, and wait for the end of it for so long."""
        self.ask_to_stop()
        until_ms = monotonic_ms() + int(deadline_s * 1_000)
        for thread in self._threads:
            thread.join(max(0, until_ms - monotonic_ms()) / 1_000)

    def signs_of_life_ms(self) -> dict[Place, int]:
        """Return by watch when there was an event, or an answer to the request for them (epoch ms)."""
        return dict(self._signs_ms)

    def loop_lag_ms(self) -> int:
        """Return for how long an event loop of kopf has not come round, beyond what is usual."""
        oldest_ms = min(self._beat_ms.values(), default=monotonic_ms())
        return max(0, monotonic_ms() - oldest_ms - int(HEARTBEAT_SECONDS * 1_000))

    # -- a thread

    def _run(self, group: Together) -> None:
        failures = 0
        while not self._stopping.is_set():
            started_ms = monotonic_ms()
            try:
                asyncio.run(self._operator(group))
                reason = "it ended by itself"
            except Exception as error:
                reason = f"{type(error).__name__}: {error}"
            failures = 1 if monotonic_ms() - started_ms > STEADY_SECONDS * 1_000 else failures + 1
            if not self._stopping.is_set():
                wait_ms = min(backoff_ms(failures, random()), 30_000)
                log.warning("watches ended, and begin again", of=group.name, reason=reason, again_in_ms=wait_ms)
                self._stopping.wait(wait_ms / 1_000)

    async def _operator(self, group: Together) -> None:
        # Not the threading.Event itself: kopf waits for one in a thread, and the loop cannot end before that thread.
        stop = asyncio.Event()
        self._stop_loop[group] = partial(asyncio.get_running_loop().call_soon_threadsafe, stop.set)
        namespaces = [each for each in watched.namespaces_for(group.kinds[-1], self._config) if each is not None]
        try:
            if not self._stopping.is_set():
                await kopf.operator(
                    registry=self._registry(group),
                    settings=settings(group.page_size),
                    namespaces=namespaces,
                    clusterwide=not namespaces,
                    standalone=True,
                    stop_flag=stop,
                )
                await asyncio.sleep(CLOSING_SECONDS)
        finally:
            self._stop_loop.pop(group, None)

    def _registry(self, group: Together) -> kopf.OperatorRegistry:
        registry = kopf.OperatorRegistry()
        kopf.on.login(registry=registry)(self._log_in)
        kopf.on.startup(registry=registry)(partial(self._on_startup, group))
        for kind in group.kinds:
            api_group, _, version = kind.api_version.rpartition("/")
            kopf.on.event(api_group, version, kind.plural, id=kind.plural, registry=registry)(self._handler(kind))
        return registry

    def _handler(self, kind: Kind) -> Callable[..., Any]:
        stamp = {"apiVersion": kind.api_version, "kind": kind.name}

        async def handle(event: kopf.RawEvent, **_: Any) -> None:
            seen: dict[str, Any] = stamp | dict(event["object"])
            self._note_sign(kind.plural, seen["metadata"].get("namespace"))
            known = self._store.remove if event["type"] == "DELETED" else self._store.put
            is_news = known(seen)
            _empty(cast("dict[str, Any]", event["object"]))
            if is_news:
                document = {name: value for name, value in seen.items() if name in TELLING}
                asyncio.get_running_loop().call_later(OWN_WRITE_SECONDS, self._tell, kind, document)

        return handle

    def _tell(self, kind: Kind, document: dict[str, Any]) -> None:
        if not self._store.is_own(document):
            self._enqueue(self._store.requests_for(kind, document))
            self._enqueue_classes(self._store.class_requests_for(kind, document))
            self._enqueue_audits(self._store.audit_requests_for(kind, document))
            self._enqueue_recurring(self._store.recurring_requests_for(kind, document))

    async def _on_startup(self, group: Together, **_: Any) -> None:
        loop = asyncio.get_running_loop()

        def beat() -> None:
            self._beat_ms[group] = monotonic_ms()
            loop.call_later(HEARTBEAT_SECONDS, beat)

        beat()

    # -- logging in

    async def _log_in(self, **_: Any) -> kopf.AiohttpSession:
        """A session of its own, which tells of answers to watches."""
        trace = aiohttp.TraceConfig()
        trace.on_request_end.append(self._on_answer)
        info = kopf.ConnectionInfo(server=self._login.server, **self._login.tls)
        session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=info.as_ssl_context()),
            headers=self._login.headers(),
            trace_configs=[trace],
        )
        ends = datetime.now(UTC) + self._login_lasts
        return kopf.AiohttpSession(server=self._login.server, aiohttp_session=session, expiration=ends)

    async def _on_answer(self, session: object, context: object, answer: aiohttp.TraceRequestEndParams) -> None:
        # Bookmarks end inside kopf; but kopf asks again when there was nothing for inactivity_timeout.
        if answer.response.status == 200 and answer.url.query.get("watch") == "true":
            # .../namespaces/NAMESPACE/RESOURCE, or .../RESOURCE of all namespaces.
            *_, collection, namespace, resource = ("", *answer.url.path.split("/"))
            self._note_sign(resource, namespace if collection == "namespaces" else None)

    def _note_sign(self, resource: str, namespace: str | None) -> None:
        """Note a sign of life of the watch of a namespace, or of the one of all."""
        place = Place(resource, namespace)
        place = place if place in self._signs_ms else Place(resource, None)
        if place in self._signs_ms:
            self._signs_ms[place] = epoch_ms()


def _empty(body: dict[str, Any]) -> None:
    """Leave kopf no more of an object than its identity.

    Kopf's views of an object refer to each other, and hold it until the collector of cyclic garbage comes. That one
    counts objects, however large they are: hundreds of MiB would wait for it.
    """
    metadata = body["metadata"]
    body.clear()
    body["metadata"] = {name: metadata[name] for name in IDENTITY if name in metadata}


def settings(page_size: int) -> kopf.OperatorSettings:
    """Kopf's settings: everything off but watching; lists come by pages of so many objects."""
    of = kopf.OperatorSettings()
    of.posting.enabled = False
    of.peering.standalone = True
    of.scanning.disabled = True  # neither CRDs nor namespaces are watched: no rights for it are needed
    of.persistence.finalizer = "delaytopic.dev/kopf"
    of.persistence.progress_storage = kopf.AnnotationsProgressStorage(prefix="kopf.delaytopic.dev")
    of.persistence.diffbase_storage = kopf.AnnotationsDiffBaseStorage(prefix="kopf.delaytopic.dev")
    of.watching.server_timeout = WATCH_SECONDS
    of.watching.client_timeout = WATCH_SECONDS + 60
    of.watching.connect_timeout = 10
    of.watching.inactivity_timeout = 70
    of.watching.chunk_size = page_size
    of.networking.request_timeout = 30
    of.networking.connect_timeout = 10
    of.networking.enforce_retry_after = True
    of.networking.error_backoffs = (1, 2, 4)  # then kopf gives up, and is started again
    # A kopf worker lives for idle_timeout after its only event, and blocks one of the places meanwhile: with the usual
    # 5 s and 20 places, a thousand objects take four minutes to come in.
    of.queueing.worker_limit = 100
    of.queueing.idle_timeout = 0.05
    of.queueing.exit_timeout = 1
    of.process.ultimate_exiting_timeout = None  # it would kill the whole process; the thread is a daemon anyway
    for kind in watched.MADE:
        group, _, version = kind.api_version.rpartition("/")
        labels = watched.labels_of(kind) or {}
        selector = ",".join(f"{name}={value}" for name, value in labels.items())
        of.watching.label_selectors[group, version, kind.plural] = selector
    return of
