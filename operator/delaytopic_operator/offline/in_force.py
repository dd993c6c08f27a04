"""The settings in force for a DelayTopic, each with its origin. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from delaytopic_api import Settings
from delaytopic_api.documents import (
    AutoscalingSettings,
    BackendSettings,
    CesiumSpec,
    ScheduleSettings,
    SloSettings,
    TopicSettings,
)
from delaytopic_api.policy import LATENESS_OF_PRECISION, RETENTION_MARGIN
from delaytopic_api.values import Dialect
from delaytopic_operator.offline.outcome import InForce
from delaytopic_operator.rules.validate import Accepted

_ABSENT = object()
BROKERS = "the broker's"


class _Row(NamedTuple):
    field: str
    value: object
    of_class: tuple[str, ...] = ()
    """Fields of the class's spec that it may come from."""
    otherwise: str = "default"


def in_force(accepted: Accepted, written: Mapping[str, Any]) -> list[InForce]:
    """Return every setting that there is; `written` is the document as its author has it."""
    of_class = accepted.delay_class
    spec = of_class.spec.to_document() if of_class is not None else {}
    name = f"DelayClass {of_class.metadata.name}" if of_class is not None else ""
    return [
        InForce(row.field, str(row.value), _origin(row, written, spec, name))
        for row in _rows(accepted.settings)
        if row.value is not None
    ]


def _rows(settings: Settings) -> Iterator[_Row]:
    yield _Row("spec.delayClassName", settings.class_name, otherwise="the default class")
    yield from _connection_rows(settings)
    yield from _topic_rows("spec.source", settings.source, "the source", f"maxDelay + {RETENTION_MARGIN}")
    yield from _topic_rows("spec.target", settings.target, "the target", BROKERS)
    yield from _topic_rows("spec.deadLetter", settings.dead_letter, "the source's name", BROKERS)
    yield from _optional_topics(settings)
    yield _Row("topicProvisioning", settings.topic_provisioning, ("topicProvisioning",))
    yield _Row("spec.target.allowedTopics", ", ".join(settings.allowed_topics) or None)
    yield _Row("spec.target.partitioning", settings.partitioning)
    yield _Row("spec.target.compression", settings.compression)
    yield from _schedule_rows(settings.schedule)
    yield _Row("spec.precision", settings.precision, ("defaults.precision", "limits.minPrecision"))
    yield _Row("spec.guarantee", settings.guarantee, ("defaults.guarantee",))
    yield from _backend_rows(settings.backend)
    yield from _scaling_rows(settings.autoscaling)
    yield from _slo_rows(settings.slo)
    yield _Row("spec.suspend", settings.suspend)
    yield _Row("spec.deletionPolicy", settings.deletion_policy)
    yield _Row("spec.drainTimeout", settings.drain_timeout, ("defaults.drainTimeout",))


def _connection_rows(settings: Settings) -> Iterator[_Row]:
    connection = settings.connection
    if connection is not None:
        yield _Row("spec.connection.bootstrapServers", connection.bootstrap_servers, ("connection.bootstrapServers",))
        login = connection.authentication.type if connection.authentication is not None else None
        yield _Row("spec.connection.authentication.type", login, ("connection.authentication.type",))


def _schedule_rows(schedule: ScheduleSettings) -> Iterator[_Row]:
    yield _Row(
        "dialect", schedule.dialect, otherwise="default" if schedule.dialect is Dialect.NATIVE else "this document"
    )
    yield _Row("spec.schedule.defaultDelay", schedule.default_delay)
    yield _Row("spec.schedule.fixedDelay", schedule.fixed_delay)
    yield _Row("spec.schedule.maxDelay", schedule.max_delay, ("defaults.maxDelay", "limits.maxDelay"))
    yield _Row("spec.schedule.ids", schedule.ids)
    if schedule.dialect is Dialect.CESIUM:
        for field, value in (schedule.cesium or CesiumSpec()).to_document().items():
            yield _Row(f"spec.schedule.cesium.{field}", value)
    for field, value in (schedule.scheduler.to_document() if schedule.scheduler is not None else {}).items():
        yield _Row(f"spec.schedule.scheduler.{field}", value)
    for field, value in (schedule.redelivery.to_document() if schedule.redelivery is not None else {}).items():
        yield _Row(f"spec.schedule.redelivery.{field}", value)


def _backend_rows(backend: BackendSettings) -> Iterator[_Row]:
    yield _Row("spec.backend.type", backend.type, ("backend.type",))
    if backend.redis is not None:
        yield _Row("spec.backend.redis.url", backend.redis.url, ("backend.redis.url",))
    yield _Row("limits.maxRedisMemory", backend.max_redis_memory, ("limits.maxRedisMemory",))


def _scaling_rows(scaling: AutoscalingSettings) -> Iterator[_Row]:
    yield _Row("spec.autoscaling.mode", scaling.mode)
    yield _Row("spec.relay.replicas", scaling.replicas)
    yield _Row("spec.autoscaling.minReplicas", scaling.min_replicas)
    most = scaling.max_replicas if scaling.max_replicas is not None else "as many as partitions"
    yield _Row("spec.autoscaling.maxReplicas", most, ("limits.maxReplicas",))
    yield _Row("spec.autoscaling.scaleToZero", scaling.scale_to_zero)
    yield _Row("spec.autoscaling.lookAhead", scaling.look_ahead)
    yield _Row("spec.autoscaling.scaleDownStabilization", scaling.scale_down_stabilization)
    utilization = ("defaults.targetUtilization",)
    yield _Row("spec.autoscaling.targetUtilization", scaling.target_utilization, utilization)


def _slo_rows(slo: SloSettings) -> Iterator[_Row]:
    yield _Row("spec.slo.lateness", slo.lateness, otherwise=f"{LATENESS_OF_PRECISION} x precision")
    yield _Row("spec.slo.objective", f"{slo.objective} in {slo.calendar or slo.window}")
    yield _Row("spec.slo.timeZone", slo.time_zone)
    thresholds = "; ".join(f"{each.objective} within {each.lateness}" for each in slo.thresholds)
    yield _Row("spec.slo.thresholds", thresholds or None)
    exclusions = "; ".join(f"{each.start} to {each.until}: {each.reason}" for each in slo.exclusions)
    yield _Row("spec.slo.exclusions", exclusions or None)


def _optional_topics(settings: Settings) -> Iterator[_Row]:
    if settings.history is not None:
        yield from _topic_rows("spec.schedule.scheduler.history", settings.history, "the source's name", BROKERS)
    if settings.outcomes is not None:
        yield from _topic_rows("spec.outcomes", settings.outcomes, "this document", BROKERS)
        yield _Row("spec.outcomes.only", ", ".join(settings.told))


def _topic_rows(field: str, topic: TopicSettings, by_default: str, retention: str) -> Iterator[_Row]:
    yield _Row(f"{field}.topic", topic.topic, otherwise=by_default)
    yield _Row(f"{field}.management", topic.management)
    partitions = topic.partitions if topic.partitions is not None else BROKERS
    yield _Row(f"{field}.partitions", partitions, ("defaults.partitions",))
    copies = topic.replication_factor if topic.replication_factor is not None else BROKERS
    yield _Row(f"{field}.replicationFactor", copies, ("defaults.replicationFactor",))
    kept = topic.retention if topic.retention is not None else BROKERS
    yield _Row(f"{field}.retention", kept, otherwise=retention)
    yield _Row(f"{field}.config", ", ".join(f"{name}={value}" for name, value in topic.config.items()) or None)


def _origin(row: _Row, written: Mapping[str, Any], class_spec: Mapping[str, Any], class_name: str) -> str:
    path = row.field.removeprefix("spec.")
    if _at(written.get("spec"), path) is not _ABSENT:
        return "this document"
    for place in row.of_class:
        if str(_at(class_spec, place)) == str(row.value):
            return f"{class_name}, {place}"
    return row.otherwise if row.value != row.otherwise else "default"


def _at(part: object, path: str) -> object:
    for name in path.split("."):
        part = part.get(name, _ABSENT) if isinstance(part, Mapping) else _ABSENT
    return part
