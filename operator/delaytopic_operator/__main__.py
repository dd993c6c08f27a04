"""`delaytopic-operator`: look after the DelayTopics of a cluster until SIGTERM."""

from __future__ import annotations

import sys

from delaytopic_process.extras import missing_package

try:
    from delaytopic_operator.command_line import operator_command
    from delaytopic_operator.execute.executor import Executor
    from delaytopic_operator.execute.ledgers import RolloutLedger, ScalingLedger
    from delaytopic_operator.execute.topics import TopicsExecutor
    from delaytopic_operator.kafka.admin import KafkaClusters
    from delaytopic_operator.observe.cluster import ClusterObserver
    from delaytopic_operator.observe.observer import Observer
    from delaytopic_operator.observe.topics import TopicsObserver
    from delaytopic_operator.reconciler import Reconciler
    from delaytopic_operator.report.status import StatusMetrics, StatusWriter
    from delaytopic_operator.runtime.manager import Shell
except ModuleNotFoundError as error:
    sys.exit(f"error: {missing_package(error, 'operator')}")


def make_reconciler(shell: Shell) -> Reconciler:
    """Put the parts of a reconciliation together."""
    config, kube, store = shell.config, shell.kube, shell.store
    kafka = KafkaClusters(lambda: _may_write(shell), shell.metrics.observe_kafka)
    topics = TopicsObserver(kafka, kube)
    return Reconciler(
        Observer(ClusterObserver(kube, store, shell.pages, config), topics, store, config),
        Executor(kube, store.get, TopicsExecutor(topics, kube), config, shell.guard, shell.metrics.add_drift),
        StatusWriter(kube, shell.events, config),
        StatusMetrics(shell.metrics),
        store,
        ScalingLedger(config.scale_steps_per_minute),
        RolloutLedger(config.rollouts),
    )


def _may_write(shell: Shell) -> None:
    shell.guard()


main = operator_command(make_reconciler)

if __name__ == "__main__":
    main()
