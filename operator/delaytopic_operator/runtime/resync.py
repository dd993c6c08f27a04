"""Edge: looks at everything from time to time, by lists: what watches missed is found all the same."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from random import random
from threading import Event, Thread

import structlog

from delaytopic_operator.clock import epoch_ms
from delaytopic_operator.config import OperatorConfig
from delaytopic_operator.errors import ApiServerForbidden, OperatorError
from delaytopic_operator.kube.client import KubeApi
from delaytopic_operator.kube.object_cache import ObjectCache, Ref, ref_of
from delaytopic_operator.model.kinds import Kind
from delaytopic_operator.model.reconciliation import Key
from delaytopic_operator.runtime import watched
from delaytopic_operator.runtime.workqueue import backoff_ms, spread

JITTER = 0.2

log = structlog.get_logger()


class Resync:
    """Fills the store at once, and again every `resync` of the configuration."""

    def __init__(
        self,
        kube: KubeApi,
        store: ObjectCache,
        config: OperatorConfig,
        keys: Callable[[], Iterable[Key]],
        put_at: Callable[[Mapping[Key, int]], None],
    ) -> None:
        """`keys`: everything there is to look at; `put_at` takes them with times (epoch ms)."""
        self._kube = kube
        self._store = store
        self._config = config
        self._keys = keys
        self._put_at = put_at
        self._stopping = Event()
        self._thread = Thread(target=self._run, name="resync", daemon=True)
        self.done_ms = 0
        """The time at which everything was listed last (epoch ms); 0: never."""

    def start(self) -> None:
        """Begin, with the first look at once."""
        self._thread.start()

    def stop(self) -> None:
        """Look no more; a list that is on its way is not waited for."""
        self._stopping.set()

    def look(self) -> None:
        """List everything now, and put every key; raises `OperatorError`."""
        started_ms = epoch_ms()
        urgent: set[Key] = set()
        for kind in watched.ALL:
            for namespace in watched.namespaces_for(kind, self._config):
                urgent |= self._list_if_allowed(kind, namespace)
        first = self.done_ms == 0
        self.done_ms = epoch_ms()
        width_ms = 0 if first else int(self._config.resync.ms * JITTER)
        self._put_at(spread(self._keys(), self.done_ms, width_ms, random))
        self._put_at(dict.fromkeys(urgent, self.done_ms))
        log.info("resync", seconds=round((self.done_ms - started_ms) / 1_000, 2), news=len(urgent), first=first)

    def _run(self) -> None:
        failures = 0
        wait_ms = 0
        while not self._stopping.wait(wait_ms / 1_000):
            try:
                self.look()
                failures, wait_ms = 0, self._config.resync.ms
            except Exception as error:
                failures += 1
                wait_ms = min(backoff_ms(failures, random()), self._config.resync.ms)
                expected = isinstance(error, OperatorError)
                log.warning("resync failed", reason=str(error), exc_info=None if expected else error)

    def _list_if_allowed(self, kind: Kind, namespace: str | None) -> set[Key]:
        """A namespace of relays that was deleted took its rights with it: nobody else waits for that."""
        try:
            return self._list(kind, namespace)
        except ApiServerForbidden as error:
            if kind not in watched.MADE or namespace in {None, self._config.namespace}:
                raise
            log.warning("namespace of relays not looked at", namespace=namespace, reason=str(error))
            return set()

    def _list(self, kind: Kind, namespace: str | None) -> set[Key]:
        """The keys of what is new, other than known, or gone."""
        keys: set[Key] = set()
        listed: set[Ref] = set()
        as_of = ""
        for page in self._kube.pages(kind, namespace, watched.labels_of(kind)):
            as_of = page.resource_version
            for document in page.items:
                listed.add(ref_of(document))
                if self._store.put(document):
                    keys |= self._store.requests_for(kind, document)
        for document in self._store.keep_only(kind, namespace, listed, as_of):
            keys |= self._store.requests_for(kind, document)
        return keys
