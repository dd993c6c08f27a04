"""Decisions that follow from documents: DelayTopic and DelayClass to settings, and settings to a relay's configuration.
Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from delaytopic_api.documents.delay_class import DefaultsSpec, DelayClass, DelayClassSpec, LimitsSpec
from delaytopic_api.documents.delay_topic import DelayTopic, DelayTopicSpec, SchedulerSpec, distinct_thresholds
from delaytopic_api.documents.dialects import SchedulerOptions, member
from delaytopic_api.documents.settings import (
    AutoscalingSettings,
    BackendSettings,
    ScheduleSettings,
    Settings,
    SloSettings,
    TopicSettings,
)
from delaytopic_api.documents.topics import TopicSpec
from delaytopic_api.errors import Problem, Refused
from delaytopic_api.policy.access import refusals
from delaytopic_api.policy.reading_rules import rules_mark
from delaytopic_api.relay.config import (
    HttpServer,
    RelayBackend,
    RelayConfig,
    RelayDeadLetter,
    RelayLimits,
    RelayOutcomes,
    RelaySchedule,
    RelaySource,
    RelayTarget,
)
from delaytopic_api.relay.connection import KafkaClient, RedisClient
from delaytopic_api.values.choices import (
    CAPABILITIES,
    BackendType,
    Ending,
    Guarantee,
    Ids,
    Partitioning,
    TopicProvisioning,
)
from delaytopic_api.values.duration import Duration
from delaytopic_api.values.percent import Percent

DEFAULT_PRECISION: Final = Duration("1s")
DEFAULT_MAX_DELAY: Final = Duration("720h")
DEFAULT_BACKEND: Final = BackendType.KAFKA_BUCKETS
DEFAULT_GUARANTEE: Final = Guarantee.EXACTLY_ONCE
DEFAULT_DRAIN_TIMEOUT: Final = Duration("15m")
DEFAULT_TARGET_UTILIZATION: Final = Percent("60%")
RETENTION_MARGIN: Final = Duration("168h")
"""Kept beyond maxDelay on the source, so that the backlog can still be rebuilt after a week of trouble."""
LATENESS_OF_PRECISION: Final = 5


def class_for(topic: DelayTopic, classes: Iterable[DelayClass], in_force: str | None = None) -> DelayClass | None:
    """Find the class that a DelayTopic uses; None without one. Raises `Refused`.

    It is the named one, else the one that its status says is `in_force`, else the default class: who marks another one
    as the default moves no DelayTopic.
    """
    if topic.spec.connection is not None:
        return None
    named = topic.spec.delay_class_name or in_force
    if named is None:
        return _default_class(topic, classes)
    known = {delay_class.metadata.name: delay_class for delay_class in classes}
    if named not in known:
        listed = ", ".join(sorted(known)) or "none"
        raise _refused(topic, Problem("spec.delayClassName", f'there is no DelayClass "{named}"; there is: {listed}'))
    return known[named]


def class_in_force(document: Mapping[str, Any]) -> str | None:
    """Return the class that the status of a DelayTopic says is in force, whatever else is in it; None without one."""
    part: Any = document
    for name in ("status", "effective", "delayClass"):
        part = part.get(name) if isinstance(part, Mapping) else None
    return part if isinstance(part, str) and part else None


def resolve(
    topic: DelayTopic, delay_class: DelayClass | None = None, namespace_labels: Mapping[str, str] | None = None
) -> Settings:
    """Return the effective settings. Raises `Refused` with every field that class or defaults do not allow.

    Without `namespace_labels` there is no cluster to ask, and the class's namespace selector is not checked.
    """
    settings = _settings(topic, delay_class)
    problems = list(refusals(topic, delay_class, namespace_labels)) if delay_class else []
    problems += _contradictions(settings)
    if problems:
        raise _refused(topic, *problems)
    return settings


def relay_config(
    settings: Settings,
    kafka: KafkaClient,
    redis: RedisClient | None = None,
    http: HttpServer | None = None,
    limits: RelayLimits | None = None,
    signing_keys_file: str | None = None,
    declared_ms: int | None = None,
    accepted_topic_id: str | None = None,
) -> RelayConfig:
    """Make the document to start a relay with; connections come from whoever knows where secrets are files.

    `declared_ms` and `accepted_topic_id` are of whoever remembers them. Raises `Refused` when the backend is RedisZset
    and `redis` is missing.
    """
    return RelayConfig(
        name=settings.name,
        namespace=settings.namespace,
        group_id=settings.group_id,
        source=RelaySource(topic=settings.source.topic, accepted_topic_id=accepted_topic_id),
        target=_relay_target(settings),
        dead_letter=RelayDeadLetter(topic=settings.dead_letter.topic),
        schedule=_relay_schedule(settings, declared_ms),
        precision=settings.precision,
        guarantee=settings.guarantee,
        backend=_relay_backend(settings, redis, signing_keys_file),
        kafka=kafka,
        suspend=settings.suspend,
        outcomes=RelayOutcomes(topic=settings.outcomes.topic, only=settings.told) if settings.outcomes else None,
        http=http or HttpServer(),
        limits=limits or RelayLimits(look_ahead=settings.autoscaling.look_ahead),
    )


def mark_of(settings: Settings) -> str:
    """Return the mark of the rules by which records are read: what is declared again when it changes."""
    return rules_mark(_relay_schedule(settings), _relay_target(settings))


def _relay_target(settings: Settings) -> RelayTarget:
    return RelayTarget(
        topic=settings.target.topic,
        allowed_topics=settings.allowed_topics,
        partitioning=settings.partitioning,
        compression=settings.compression,
    )


def _relay_schedule(settings: Settings, declared_ms: int | None = None) -> RelaySchedule:
    schedule = settings.schedule
    dialect: dict[str, Any] = member(schedule.dialect, schedule.cesium or schedule.scheduler or schedule.redelivery)
    if settings.history is not None:
        dialect["scheduler"] |= {"history": {"topic": settings.history.topic}}
    return RelaySchedule(
        fixed_delay=schedule.fixed_delay,
        default_delay=schedule.default_delay,
        max_delay=schedule.max_delay,
        ids=schedule.ids,
        declared_ms=declared_ms,
        **dialect,
    )


def _relay_backend(settings: Settings, redis: RedisClient | None, signing_keys_file: str | None) -> RelayBackend:
    backend = settings.backend
    if backend.type is BackendType.REDIS_ZSET and redis is None:
        subject = f"DelayTopic {settings.namespace}/{settings.name}"
        raise Refused([Problem("spec.backend.type", "RedisZset needs a Redis; use KafkaBuckets without one", subject)])
    return RelayBackend(
        type=backend.type,
        id=backend.id,
        redis=redis,
        max_redis_memory=backend.max_redis_memory,
        signing_keys_file=signing_keys_file,
    )


def _settings(topic: DelayTopic, delay_class: DelayClass | None) -> Settings:
    spec, of_class = topic.spec, delay_class.spec if delay_class else None
    defaults = of_class.defaults if of_class else DefaultsSpec()
    limits = of_class.limits if of_class else LimitsSpec()
    group_id = f"delaytopic.{topic.metadata.namespace}.{topic.metadata.name}"
    schedule = _schedule(spec, defaults, limits)
    precision = spec.precision or _longer(defaults.precision or DEFAULT_PRECISION, limits.min_precision)
    dead_letter = spec.dead_letter or TopicSpec(topic=spec.dead_letter_topic)
    history = spec.history_topic
    retention = _shorter(Duration.of_ms(schedule.max_delay.ms + RETENTION_MARGIN.ms), limits.max_retention)
    return Settings(
        namespace=topic.metadata.namespace,
        name=topic.metadata.name,
        class_name=delay_class.metadata.name if delay_class else None,
        group_id=group_id,
        source=_topic(spec.source, defaults, retention if _is_cut_off(spec) else None),
        target=_topic(spec.target, defaults),
        dead_letter=_topic(dead_letter, defaults),
        history=_topic(spec.history or TopicSpec(topic=history), defaults) if history is not None else None,
        outcomes=_topic(spec.outcomes, defaults) if spec.outcomes is not None else None,
        told=(spec.outcomes.only or [*Ending]) if spec.outcomes is not None else [],
        topic_provisioning=of_class.topic_provisioning if of_class else TopicProvisioning.DIRECT,
        allowed_topics=spec.target.allowed_topics,
        partitioning=spec.target.partitioning,
        compression=spec.target.compression,
        schedule=schedule,
        precision=precision,
        guarantee=spec.guarantee or defaults.guarantee or DEFAULT_GUARANTEE,
        backend=_backend(spec, of_class, group_id),
        connection=spec.connection or (of_class.connection if of_class else None),
        autoscaling=_autoscaling(spec, defaults, limits),
        slo=SloSettings(
            lateness=spec.slo.lateness or Duration.of_ms(LATENESS_OF_PRECISION * precision.ms),
            objective=spec.slo.objective,
            window=spec.slo.window,
            exclusions=spec.slo.exclusions,
            calendar=spec.slo.calendar,
            time_zone=spec.slo.time_zone,
            thresholds=spec.slo.thresholds,
        ),
        suspend=spec.suspend,
        deletion_policy=spec.deletion_policy,
        drain_timeout=spec.drain_timeout or defaults.drain_timeout or DEFAULT_DRAIN_TIMEOUT,
    )


def _is_cut_off(spec: DelayTopicSpec) -> bool:
    """Return whether records leave the source by age, and nobody has written at which."""
    compacted = spec.source.is_compacted
    if compacted is None:
        compacted = CAPABILITIES[spec.schedule.dialect].tombstones
    return not compacted and "retention.ms" not in spec.source.config


def _schedule(spec: DelayTopicSpec, defaults: DefaultsSpec, limits: LimitsSpec) -> ScheduleSettings:
    schedule = spec.schedule
    default_ids = Ids.DISABLED if schedule.fixed_delay else CAPABILITIES[schedule.dialect].ids
    by_default = _shorter(defaults.max_delay or DEFAULT_MAX_DELAY, limits.max_delay)
    return ScheduleSettings(
        dialect=schedule.dialect,
        default_delay=schedule.default_delay,
        fixed_delay=schedule.fixed_delay,
        max_delay=schedule.fixed_delay or schedule.max_delay or by_default,
        ids=schedule.ids or default_ids,
        cesium=schedule.cesium,
        scheduler=_without_history(schedule.scheduler),
        redelivery=schedule.redelivery,
    )


def _without_history(spec: SchedulerSpec | None) -> SchedulerOptions | None:
    """Return the rules for late schedules alone: the history topic is one of the settings' topics."""
    if spec is None:
        return None
    return SchedulerOptions(grace_interval=spec.grace_interval, since_days=spec.since_days)


def _topic(spec: TopicSpec, defaults: DefaultsSpec, retention: Duration | None = None) -> TopicSettings:
    return TopicSettings(
        topic=spec.topic,
        management=spec.management,
        partitions=spec.partitions or defaults.partitions,
        replication_factor=spec.replication_factor or defaults.replication_factor,
        retention=spec.retention or retention,
        config=spec.config,
    )


def _backend(spec: DelayTopicSpec, of_class: DelayClassSpec | None, backend_id: str) -> BackendSettings:
    from_class = of_class.backend if of_class else None
    by_default = from_class.type if from_class else DEFAULT_BACKEND
    type_ = spec.backend.type if spec.backend else by_default
    redis = (spec.backend.redis if spec.backend else None) or (from_class.redis if from_class else None)
    signing_key = from_class.signing_key if from_class else spec.backend.signing_key if spec.backend else None
    if type_ is not BackendType.REDIS_ZSET:
        return BackendSettings(type_, backend_id, None, signing_key)
    return BackendSettings(
        type_, backend_id, redis, signing_key, of_class.limits.max_redis_memory if of_class else None
    )


def _autoscaling(spec: DelayTopicSpec, defaults: DefaultsSpec, limits: LimitsSpec) -> AutoscalingSettings:
    autoscaling = spec.autoscaling
    return AutoscalingSettings(
        mode=autoscaling.mode,
        replicas=spec.relay.replicas,
        min_replicas=autoscaling.min_replicas,
        max_replicas=autoscaling.max_replicas or limits.max_replicas,
        scale_to_zero=autoscaling.scale_to_zero,
        look_ahead=autoscaling.look_ahead,
        scale_down_stabilization=autoscaling.scale_down_stabilization,
        target_utilization=autoscaling.target_utilization or defaults.target_utilization or DEFAULT_TARGET_UTILIZATION,
    )


def _contradictions(settings: Settings) -> list[Problem]:
    """Rules about what is in force, whether written or not."""
    schedule, precision = settings.schedule, settings.precision
    partitions, wanted = settings.target.partitions, settings.source.partitions
    rules = [
        (
            schedule.default_delay is None or schedule.default_delay.ms <= schedule.max_delay.ms,
            "spec.schedule.defaultDelay",
            f"is {schedule.default_delay}, longer than maxDelay ({schedule.max_delay})",
        ),
        (
            schedule.fixed_delay is not None or schedule.max_delay.ms >= precision.ms,
            "spec.schedule.maxDelay",
            f"is {schedule.max_delay}, shorter than precision ({precision})",
        ),
        (
            settings.partitioning is not Partitioning.SAME_PARTITION
            or (partitions or 0) >= (wanted or 0)
            or not partitions,
            "spec.target.partitions",
            f"is {partitions}, fewer than the source's {wanted}; partitioning SamePartition needs as many",
        ),
        *distinct_thresholds(settings.slo.lateness, settings.slo.thresholds, "spec.slo.thresholds"),
    ]
    return [Problem(path, message) for kept, path, message in rules if not kept] + _too_short_retention(settings)


def _too_short_retention(settings: Settings) -> list[Problem]:
    source, max_delay = settings.source, settings.schedule.max_delay
    path, written = "spec.source.retention", str(source.retention)
    retention_ms = source.retention.ms if source.retention else None
    if retention_ms is None and "retention.ms" not in source.config:
        return []
    if retention_ms is None:
        path, written = 'spec.source.config["retention.ms"]', source.config["retention.ms"]
        retention_ms = int(written) if written.isdecimal() else None
    if retention_ms is None or retention_ms >= max_delay.ms:
        return []
    message = f"is {written}, shorter than maxDelay ({max_delay}): pending records would be lost with the backend"
    return [Problem(path, message)]


def _default_class(topic: DelayTopic, classes: Iterable[DelayClass]) -> DelayClass | None:
    default = [delay_class for delay_class in classes if delay_class.is_default]
    if len(default) > 1:
        names = ", ".join(sorted(delay_class.metadata.name for delay_class in default))
        message = f"is required, as more than one DelayClass is marked default: {names}"
        raise _refused(topic, Problem("spec.delayClassName", message))
    return default[0] if default else None


def _shorter(wanted: Duration, limit: Duration | None) -> Duration:
    return limit if limit is not None and limit.ms < wanted.ms else wanted


def _longer(wanted: Duration, limit: Duration | None) -> Duration:
    return limit if limit is not None and limit.ms > wanted.ms else wanted


def _refused(topic: DelayTopic, *problems: Problem) -> Refused:
    return Refused([problem._replace(subject=f"DelayTopic {topic.full_name}") for problem in problems])
