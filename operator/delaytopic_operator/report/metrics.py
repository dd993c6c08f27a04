"""Edge: what the operator tells Prometheus, in one registry. The names are `metric_names`'s."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector, disable_created_metrics
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector

from delaytopic_operator.kube.errors import Call
from delaytopic_operator.model.kinds import Place
from delaytopic_operator.model.reconciliation import Key
from delaytopic_operator.report import metric_names as names
from delaytopic_operator.report.metric_names import MetricName

SECONDS = (0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)


@dataclass(frozen=True, slots=True)
class WorkLoad:
    """The work that waits and runs; times in ms, those of `running` are epoch ms."""

    depth: int
    oldest_age_ms: int
    running: dict[Key, int]


@dataclass(frozen=True, slots=True)
class Gauges:
    """The gauges that are read with each request of the page; times are epoch ms."""

    load: Callable[[], WorkLoad]
    is_leader: Callable[[], bool]
    signs_of_life_ms: Callable[[], Mapping[Place, int]]
    resynced_ms: Callable[[], int]
    objects: Callable[[], Mapping[str, int]]
    recurring: Callable[[], Mapping[tuple[str, ...], int]]
    """The number of RecurringRecords by namespace, and by status and reason of Ready."""


@dataclass(slots=True)
class _Topic:
    """The gauges of one DelayTopic."""

    conditions: dict[str, str] = field(default_factory=dict)
    values: dict[MetricName, float] = field(default_factory=dict)
    slo: Mapping[MetricName, Mapping[tuple[str, ...], float]] = field(default_factory=dict)


class OperatorMetrics(Collector):
    """All metrics of one operator; thread-safe. Calls about a DelayTopic replace what was said before."""

    def __init__(self) -> None:
        # When a series began is of no use, and doubles them.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self._lock = Lock()
        self._topics: dict[Key, _Topic] = {}
        self._stopped: Mapping[str, int] = {}
        self._gauges: Gauges | None = None
        self._registry = CollectorRegistry()
        self._passes = self._counter(names.RECONCILES)
        self._pass_seconds = self._histogram(names.RECONCILE_SECONDS)
        self._drift = self._counter(names.DRIFT)
        self._kafka = self._histogram(names.KAFKA_SECONDS)
        self._requests = self._histogram(names.KUBERNETES_SECONDS)
        self._registry.register(self)
        ProcessCollector(registry=self._registry)

    # -- counting

    def observe_pass(self, result: str, seconds: float) -> None:
        """One reconciliation ended; `result` is Success or the reason of its error."""
        self._passes.labels(result).inc()
        self._pass_seconds.observe(seconds)

    def observe_request(self, call: Call, code: str, seconds: float) -> None:
        """The API server was asked; `code` is the HTTP status, or `unreachable`."""
        self._requests.labels(call.verb, call.resource, code).observe(seconds)

    def observe_kafka(self, op: str, result: str, seconds: float) -> None:
        """Kafka's admin interface was called; `result` is Success or the reason of its error."""
        self._kafka.labels(op, result).observe(seconds)

    def add_drift(self, resource: str) -> None:
        """An object that somebody had changed was set right; `resource` as in addresses, or `topic`."""
        self._drift.labels(resource).inc()

    def set_stopped_rollouts(self, by_image: Mapping[str, int]) -> None:
        """Set how many DelayTopics did not become ready, by the image that no others are started anew with."""
        with self._lock:
            self._stopped = by_image

    # -- DelayTopics

    def set_conditions(self, key: Key, statuses: Mapping[str, str]) -> None:
        """The status of each condition, by its type."""
        with self._lock:
            self._topics.setdefault(key, _Topic()).conditions = dict(statuses)

    def set_scaling(self, key: Key, desired: int, peak_rate: float | None, lateness_s: float | None) -> None:
        """Set what the autoscaling decided; None: nothing is known."""
        wanted = {
            names.DESIRED_REPLICAS: float(desired),
            names.FORECAST_RATE: peak_rate,
            names.FORECAST_LATENESS: lateness_s,
        }
        self._set(key, wanted)

    def set_retained(self, key: Key, records: int | None) -> None:
        """Set how many records a DelayTopic that is gone left behind; None: none any more."""
        self._set(key, {names.RETAINED: None if records is None else float(records)})

    def set_slo(self, key: Key, values: Mapping[MetricName, Mapping[tuple[str, ...], float]]) -> None:
        """Set the gauges of the SLO, by the labels that each has besides those of the DelayTopic."""
        with self._lock:
            self._topics.setdefault(key, _Topic()).slo = values

    def forget(self, key: Key) -> None:
        """The DelayTopic is gone, and nothing of it is left."""
        with self._lock:
            self._topics.pop(key, None)

    def _set(self, key: Key, values: Mapping[MetricName, float | None]) -> None:
        with self._lock:
            known = self._topics.setdefault(key, _Topic()).values
            for metric, value in values.items():
                known.pop(metric, None)
                if value is not None:
                    known[metric] = value

    # -- reading

    def connect(self, gauges: Gauges) -> None:
        """Connect the page to what it asks for the present values."""
        self._gauges = gauges

    def render(self) -> bytes:
        """The page: Prometheus' text format."""
        return generate_latest(self._registry)

    def collect(self) -> Iterator[Metric]:
        """All gauges of this moment; called by the registry."""
        if self._gauges is not None:
            yield from _of_operator(self._gauges)
        with self._lock:
            stopped = _filled(names.STOPPED_ROLLOUTS, {(image,): count for image, count in self._stopped.items()})
            families = [stopped, *self._of_topics()]
        yield from families

    def describe(self) -> Iterator[Metric]:
        """Describe nothing, so that registering asks for no values."""
        return iter(())

    def _of_topics(self) -> Iterator[Metric]:
        conditions = _family(names.CONDITION)
        for key, topic in self._topics.items():
            for condition, status in topic.conditions.items():
                conditions.add_metric((*key, condition, status), 1)
        yield conditions
        for metric in (names.DESIRED_REPLICAS, names.FORECAST_RATE, names.FORECAST_LATENESS, names.RETAINED):
            values = {tuple(key): topic.values.get(metric) for key, topic in self._topics.items()}
            yield _filled(metric, {labels: value for labels, value in values.items() if value is not None})

        for metric in names.SLO:
            of_topics = ((key, topic.slo.get(metric, {})) for key, topic in self._topics.items())
            yield _filled(metric, {(*key, *labels): value for key, has in of_topics for labels, value in has.items()})

    def _counter(self, metric: MetricName) -> Counter:
        return Counter(metric.name, metric.text, metric.labels, registry=self._registry)

    def _histogram(self, metric: MetricName) -> Histogram:
        return Histogram(metric.name, metric.text, metric.labels, registry=self._registry, buckets=SECONDS)


def _of_operator(gauges: Gauges) -> Iterator[Metric]:
    load = gauges.load()
    yield _filled(names.IN_PROGRESS, {tuple(key): since_ms / 1_000 for key, since_ms in load.running.items()})
    yield _filled(names.QUEUE_DEPTH, {(): load.depth})
    yield _filled(names.QUEUE_AGE, {(): load.oldest_age_ms / 1_000})
    yield _filled(names.LEADER, {(): int(gauges.is_leader())})
    yield _filled(names.RESYNC, {(): gauges.resynced_ms() / 1_000})
    oldest_ms: dict[tuple[str, ...], float] = {}
    for (resource, _), at_ms in gauges.signs_of_life_ms().items():
        oldest_ms[resource,] = min(at_ms, oldest_ms.get((resource,), at_ms))
    yield _filled(names.WATCH_EVENT, {labels: at_ms / 1_000 for labels, at_ms in oldest_ms.items()})
    yield _filled(names.OBJECTS, {(name,): count for name, count in gauges.objects().items()})
    yield _filled(names.RECURRING_RECORDS, dict(gauges.recurring()))


def _family(metric: MetricName) -> Any:
    return GaugeMetricFamily(metric.name, metric.text, labels=metric.labels)


def _filled(metric: MetricName, values: Mapping[tuple[str, ...], float]) -> Metric:
    family = _family(metric)
    for labels, value in values.items():
        family.add_metric(labels, value)
    filled: Metric = family
    return filled
