"""Edge: puts the operator together, runs it until it is to stop, and stops it in order."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from random import random
from secrets import token_hex
from socket import gethostname
from threading import Event
from time import monotonic

import structlog

from delaytopic_operator.clock import epoch_ms
from delaytopic_operator.config import OperatorConfig
from delaytopic_operator.kube.client import KubeApi, WriteGuard, always
from delaytopic_operator.kube.login import ClusterLogin
from delaytopic_operator.kube.object_cache import ObjectCache
from delaytopic_operator.kube.transport import KubeTransport
from delaytopic_operator.model.conditions import ready_counts
from delaytopic_operator.model.kinds import CRON_JOB, DELAY_CLASS, RECURRING_RECORD, Kind
from delaytopic_operator.model.reconciliation import Key, Reconciler, Result
from delaytopic_operator.observe.relay_pages import RelayPages
from delaytopic_operator.report.events import EventRecorder
from delaytopic_operator.report.metrics import Gauges, OperatorMetrics
from delaytopic_operator.runtime import health
from delaytopic_operator.runtime.election import LeaderElection
from delaytopic_operator.runtime.handlers import Watches
from delaytopic_operator.runtime.health import PageServer, health_page, metrics_page
from delaytopic_operator.runtime.lease import Terms
from delaytopic_operator.runtime.resync import Resync
from delaytopic_operator.runtime.workers import Workers
from delaytopic_operator.runtime.workqueue import WorkQueue

LEASE_NAME = "delaytopic-operator"
FEW_WORKERS = 2
FEW_DEBOUNCE_MS = 1_000
"""A class, or an audit, is looked at so long after one of its DelayTopics came or went: with all that came or went
meanwhile."""
# A pod gets 10 s in the promise: reconciliations, Events, the Lease and the watches, one after the other.
PASSES_STOP_SECONDS = 4.0
EVENTS_STOP_SECONDS = 0.5
WATCHES_STOP_SECONDS = 0.5

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Shell:
    """The shell that a reconciler works with. `guard` raises `NotLeading`: ask it before each write elsewhere, to
    Kafka say.
    """

    kube: KubeApi
    store: ObjectCache
    pages: RelayPages
    events: EventRecorder
    config: OperatorConfig
    metrics: OperatorMetrics
    guard: WriteGuard


@dataclass(frozen=True, slots=True)
class Reconcilers:
    """A reconciler for each kind that people write."""

    topics: Reconciler
    classes: Reconciler
    audits: Reconciler
    recurring: Reconciler


def of_cluster(workers: int) -> int:
    """Return how many workers one Kafka cluster may have: all but a quarter, which are for others if it hangs."""
    return workers - -(-workers // 4) or 1


MakeReconcilers = Callable[[Shell], Reconcilers]


class Service:
    """One operator."""

    def __init__(self, config: OperatorConfig, login: ClusterLogin, make_reconcilers: MakeReconcilers) -> None:
        self._config = config
        self._identity = f"{gethostname()}_{token_hex(4)}"
        self._stopping = False
        self._metrics = OperatorMetrics()
        self._store = ObjectCache(config.namespace, config.watch_namespaces)
        self._transport = KubeTransport(login, self._metrics.observe_request, at_once=config.workers + 4)
        self._election = self._make_election()
        kube = KubeApi(self._transport, self._election.guard, self._store)
        self._events = EventRecorder(kube, self._identity)
        self._pages = RelayPages(config.poll.ms / 1_000)
        self._reconcilers = make_reconcilers(
            Shell(kube, self._store, self._pages, self._events, config, self._metrics, self._election.guard)
        )
        self._workers = Workers(
            WorkQueue(random, config.workers_per_namespace or -(-config.workers // 2), of_cluster(config.workers)),
            partial(self._pass, self._reconcilers.topics),
            config.workers,
            self._may_run,
            self._metrics.observe_pass,
        )
        self._class_workers = self._make_few_workers(self._reconcilers.classes, DELAY_CLASS)
        self._audit_workers = self._make_few_workers(self._reconcilers.audits, CRON_JOB)
        self._recurring_workers = self._make_few_workers(self._reconcilers.recurring, RECURRING_RECORD)
        self._watches = Watches(
            login,
            self._store,
            self._workers.add,
            config,
            enqueue_classes=self._class_workers.add,
            enqueue_audits=self._audit_workers.add,
            enqueue_recurring=self._recurring_workers.add,
        )
        self._resync = Resync(kube, self._store, config, self._reconcilers.topics.keys, self._add_listed)
        self._http = self._make_pages()
        self._connect_metrics()

    @property
    def port(self) -> int:
        """Return where the pages are."""
        return self._http.port

    def run(self, stop: Event) -> None:
        """Run until `stop` is set; raises `ConfigurationError` when it cannot even begin."""
        self._http.start()
        log.info("starting", identity=self._identity, port=self.port, namespaces=self._config.watch_namespaces or "all")
        self._events.start()
        self._workers.start()
        self._class_workers.start()
        self._audit_workers.start()
        self._recurring_workers.start()
        self._watches.start()
        self._resync.start()
        self._election.start()
        try:
            stop.wait()
        finally:
            self._stop()

    # -- parts

    def _make_election(self) -> LeaderElection:
        terms = Terms(self._config.lease_duration.ms)
        kube = KubeApi(self._transport, always, deadline_s=terms.writable_ms / 3_000)
        return LeaderElection(
            kube, self._config.namespace, LEASE_NAME, self._identity, terms, self._on_leading, self._on_lost
        )

    def _make_few_workers(self, reconciler: Reconciler, kind: Kind) -> Workers:
        """A queue of their own: a class must not wait for its thousand DelayTopics, nor they for its Kafka.

        Neither must an audit, whose pod is asked.
        """
        return Workers(
            WorkQueue(random),
            partial(self._pass, reconciler),
            FEW_WORKERS,
            self._may_run,
            self._metrics.observe_pass,
            kind,
            FEW_DEBOUNCE_MS,
        )

    def _make_pages(self) -> PageServer:
        return PageServer(
            self._config.http_port,
            {
                "/livez": health_page(self._liveness),
                "/readyz": health_page(self._readiness),
                "/metrics": metrics_page(self._metrics.render),
            },
        )

    def _connect_metrics(self) -> None:
        self._metrics.connect(
            Gauges(
                load=self._workers.load,
                is_leader=lambda: self._election.is_leader,
                signs_of_life_ms=self._watches.signs_of_life_ms,
                resynced_ms=lambda: self._resync.done_ms,
                objects=self._store.counts,
                recurring=lambda: ready_counts(self._store.recurring()),
            )
        )

    def _liveness(self) -> health.Health:
        return health.liveness(
            self._watches.loop_lag_ms(), self._watches.signs_of_life_ms(), self._transport.answered_ms, epoch_ms()
        )

    def _readiness(self) -> health.Health:
        return health.readiness(self._resync.done_ms, self._election.is_leader, self._stopping)

    # -- leading

    def _may_run(self) -> bool:
        """Return whether DelayTopics may be reconciled: not before everything is known, as what is not yet listed would
        look as if it were gone.
        """
        return self._election.is_leader and self._resync.done_ms > 0 and not self._stopping

    def _pass(self, reconciler: Reconciler, key: Key, now_ms: int, asked_for_ms: int) -> Result:
        self._election.bind()
        return reconciler.reconcile(key, now_ms, asked_for_ms)

    def _on_leading(self) -> None:
        """Everything is looked at; if nothing is listed yet, the first resync does it."""
        self._workers.add(self._reconcilers.topics.keys())
        self._add_few()

    def _on_lost(self) -> None:
        for workers in (self._workers, self._class_workers, self._audit_workers, self._recurring_workers):
            workers.clear()
        self._pages.close()

    def _add_listed(self, times: Mapping[Key, int]) -> None:
        """Everything was listed: DelayTopics are looked at in their time, what there are few of now."""
        self._workers.add_at(times)
        self._add_few()

    def _add_few(self) -> None:
        self._class_workers.add(self._reconcilers.classes.keys())
        self._audit_workers.add(self._reconcilers.audits.keys())
        self._recurring_workers.add(self._reconcilers.recurring.keys())

    # -- stopping

    def _stop(self) -> None:
        self._stopping = True
        self._watches.ask_to_stop()
        self._resync.stop()
        until_s = monotonic() + PASSES_STOP_SECONDS
        few = (self._class_workers, self._audit_workers, self._recurring_workers)
        for workers in few:
            workers.ask_to_stop()
        unfinished = self._workers.stop(PASSES_STOP_SECONDS)
        for workers in few:
            unfinished += workers.stop(max(0.0, until_s - monotonic()))
        self._events.stop(EVENTS_STOP_SECONDS)
        if unfinished:
            log.warning(
                "reconciliations did not end in time; the lease is kept until it ends",
                unfinished=[*map(str, unfinished)],
            )
        self._election.stop(release=not unfinished)
        self._watches.stop(WATCHES_STOP_SECONDS)
        self._http.stop()
        self._pages.close()
        self._transport.close()
        log.info("stopped")
