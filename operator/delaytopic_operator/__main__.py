"""`delaytopic-operator`: look after the DelayTopics of a cluster until SIGTERM."""

from __future__ import annotations

import sys
from random import random

from delaytopic_process.extras import missing_package

try:
    from delaytopic_operator.audits.observer import AuditObserver
    from delaytopic_operator.audits.reconciler import AuditReconciler
    from delaytopic_operator.classes.observer import ClassObserver
    from delaytopic_operator.classes.reconciler import ClassReconciler
    from delaytopic_operator.command_line import operator_command
    from delaytopic_operator.execute.executor import Executor
    from delaytopic_operator.execute.ledgers import RolloutLimiter, ScalingLedger
    from delaytopic_operator.execute.topics import TopicsExecutor
    from delaytopic_operator.fleet.looks import FleetLooks
    from delaytopic_operator.kafka.admin import KafkaClusters
    from delaytopic_operator.observe.cluster import ClusterObserver
    from delaytopic_operator.observe.observer import Observer
    from delaytopic_operator.observe.told_verdicts import ToldVerdicts
    from delaytopic_operator.observe.topics import TopicsObserver
    from delaytopic_operator.reconciler import Reconciler
    from delaytopic_operator.recurring.observer import RecurringObserver
    from delaytopic_operator.recurring.reconciler import RecurringReconciler
    from delaytopic_operator.report.status import StatusMetrics, StatusWriter
    from delaytopic_operator.runtime.manager import Reconcilers, Shell
except ModuleNotFoundError as error:
    sys.exit(f"error: {missing_package(error, 'operator')}")


def make_reconcilers(shell: Shell) -> Reconcilers:
    """Put the parts of reconciliations together."""
    config, kube, store = shell.config, shell.kube, shell.store
    observe = shell.metrics.observe_kafka
    poll_s, settings_kept_s = config.poll.ms / 1_000, config.resync.ms / 1_000
    kafka = KafkaClusters(lambda: _may_write(shell), observe, poll_s=poll_s, settings_kept_s=settings_kept_s)
    topics = TopicsObserver(kafka, kube)
    cluster, told = ClusterObserver(kube, store, shell.pages, config), ToldVerdicts(shell.pages)
    observer = Observer(cluster, topics, store, config, told)
    writer, metrics = StatusWriter(kube, shell.events, config), StatusMetrics(shell.metrics)
    ledger, turns = ScalingLedger(), RolloutLimiter(config.rollouts)
    reconciler = Reconciler(
        observer,
        Executor(kube, store.get, TopicsExecutor(topics, kube), config, shell.guard, shell.metrics.add_drift),
        writer,
        metrics,
        store,
        ledger,
        turns,
        FleetLooks(observer, ledger, turns, writer, metrics, config, random),
    )
    classes = ClassReconciler(ClassObserver(cluster, kafka, store, config), kube, shell.events, store)
    audits = AuditReconciler(AuditObserver(cluster, store, config, told), kube, store)
    recurring = RecurringReconciler(RecurringObserver(cluster, kafka, store, shell.pages), kube, shell.events, store)
    return Reconcilers(reconciler, classes, audits, recurring)


def _may_write(shell: Shell) -> None:
    shell.guard()


main = operator_command(make_reconcilers)

if __name__ == "__main__":
    main()
