"""The rules of a DelayClass: allowed namespaces, topics and amounts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from delaytopic_api.documents.delay_class import DelayClass, LimitsSpec
from delaytopic_api.documents.delay_topic import DelayTopic, DelayTopicSpec
from delaytopic_api.documents.topics import TopicSpec
from delaytopic_api.errors import Problem
from delaytopic_api.policy.relays import relay_refusals
from delaytopic_api.values.choices import CAPABILITIES, BackendType, Management
from delaytopic_api.values.duration import Duration
from delaytopic_api.values.names import covers, glob_matcher, topic_matcher


class TopicsInUse(NamedTuple):
    """The topics that relays read and write; None for one that there is not."""

    source: str | None
    target: str | None
    dead_letter: str | None
    history: str | None
    outcomes: str | None = None
    allowed: Sequence[str] = ()
    """The globs of those that records may name."""


def refusals(
    topic: DelayTopic, delay_class: DelayClass, namespace_labels: Mapping[str, str] | None
) -> Iterator[Problem]:
    """Everything that the class does not allow; without labels (no cluster to ask) the namespace is not checked."""
    by_class = f"DelayClass {delay_class.metadata.name}"
    spec, namespace = topic.spec, topic.metadata.namespace
    named = TopicsInUse(
        spec.source.topic,
        spec.target.topic,
        spec.dead_letter_topic,
        spec.history_topic,
        spec.outcomes.topic if spec.outcomes is not None else None,
        spec.target.allowed_topics,
    )
    yield from revocations(namespace, named, delay_class, namespace_labels)
    yield from _adoptions(spec, _globs(delay_class.spec.access.adopt_topics, namespace), by_class)
    yield from _limits(topic.spec, delay_class.spec.limits, by_class)
    yield from _topic_limits(topic.spec, delay_class.spec.limits, by_class)
    yield from relay_refusals(topic.spec.relay, delay_class.spec.relay, delay_class.spec.limits, by_class)
    if topic.spec.backend and topic.spec.backend.redis:
        # The class may be the default one, which no delayClassName names.
        yield Problem("spec.backend.redis", f"is not allowed: {by_class} brings its own Redis")
    if topic.spec.backend and topic.spec.backend.signing_key:
        yield Problem("spec.backend.signingKey", f"is not allowed: {by_class} brings its own keys")
    if topic.spec.backend and topic.spec.backend.type is BackendType.REDIS_ZSET and not delay_class.spec.backend.redis:
        yield Problem("spec.backend.type", f"RedisZset is not allowed: {by_class} has no Redis; use KafkaBuckets")


def revocations(
    namespace: str, topics: TopicsInUse, delay_class: DelayClass, namespace_labels: Mapping[str, str] | None
) -> Iterator[Problem]:
    """Everything of a namespace and its topics, in use or to be, for which relays must not have the class's login."""
    by_class = f"DelayClass {delay_class.metadata.name}"
    yield from _namespace(namespace, delay_class, namespace_labels, by_class)
    yield from _topics(namespace, topics, delay_class, by_class)


def _namespace(
    namespace: str, delay_class: DelayClass, labels: Mapping[str, str] | None, by_class: str
) -> Iterator[Problem]:
    selector = delay_class.spec.access.namespace_selector
    if selector is None or labels is None or selector.match_labels.items() <= labels.items():
        return
    wanted = ", ".join(f"{name}={value}" for name, value in selector.match_labels.items())
    yield Problem("metadata.namespace", f"{namespace} is not allowed: {by_class} is for namespaces labelled {wanted}")


def _topics(namespace: str, topics: TopicsInUse, delay_class: DelayClass, by_class: str) -> Iterator[Problem]:
    access = delay_class.spec.access
    sources, targets = _globs(access.source_topics, namespace), _globs(access.target_topics, namespace)
    named = [
        ("spec.source.topic", topics.source, "source", sources),
        ("spec.target.topic", topics.target, "target", targets),
        ("spec.deadLetter.topic", topics.dead_letter, "dead letter", targets),
        ("spec.schedule.scheduler.history.topic", topics.history, "history", targets),
        ("spec.outcomes.topic", topics.outcomes, "topic of outcomes", targets),
    ]
    for path, name, role, globs in named:
        if name is not None and not topic_matcher(globs)(name):
            yield Problem(path, f"{name} is not allowed as a {role}: {by_class} allows {_listed(globs)}")
    for place, glob in enumerate(topics.allowed):
        if not covers(targets, glob):
            yield Problem(
                f"spec.target.allowedTopics[{place}]",
                f"{glob} reaches beyond what {by_class} allows: {_listed(targets)}",
            )


def _adoptions(spec: DelayTopicSpec, globs: Sequence[str], by_class: str) -> Iterator[Problem]:
    may_adopt = topic_matcher(globs)
    for role, part in _topics_of(spec).items():
        path = f"spec.{role}"
        if part is not None and part.management is Management.ADOPT and not may_adopt(part.topic):
            yield Problem(
                f"{path}.management",
                f"{part.topic} must not be adopted: {by_class} allows {_listed(globs)}; use Observe, or ask who looks "
                f'after the class for access.adoptTopics: ["{part.topic}"]',
            )


def _limits(spec: DelayTopicSpec, limits: LimitsSpec, by_class: str) -> Iterator[Problem]:
    longest, finest, most = limits.max_delay, limits.min_precision, limits.max_replicas
    if longest is not None:
        for field in ("max_delay", "fixed_delay", "default_delay"):
            delay = getattr(spec.schedule, field)
            if delay is not None and delay.ms > longest.ms:
                path = f"spec.schedule.{type(spec.schedule).model_fields[field].alias}"
                yield Problem(path, f"{delay} is too long: {by_class} allows up to {longest}")
    if finest is not None and spec.precision is not None and spec.precision.ms < finest.ms:
        yield Problem("spec.precision", f"{spec.precision} is too fine: {by_class} allows {finest} or coarser")
    if most is not None:
        replicas = {
            "spec.autoscaling.minReplicas": spec.autoscaling.min_replicas,
            "spec.autoscaling.maxReplicas": spec.autoscaling.max_replicas,
            "spec.relay.replicas": spec.relay.replicas,
        }
        for path, count in replicas.items():
            if count is not None and count > most:
                yield Problem(path, f"{count} is too many: {by_class} allows up to {most}")


def _topic_limits(spec: DelayTopicSpec, limits: LimitsSpec, by_class: str) -> Iterator[Problem]:
    for role, topic in _topics_of(spec).items():
        if topic is None:
            continue
        most = limits.max_partitions
        if most is not None and (topic.partitions or 0) > most:
            yield Problem(f"spec.{role}.partitions", f"{topic.partitions} is too many: {by_class} allows up to {most}")
        for name in topic.config:
            if not glob_matcher(limits.allowed_topic_config)(name):
                message = f"is not allowed: {by_class} allows {_listed(limits.allowed_topic_config)}"
                yield Problem(f'spec.{role}.config["{name}"]', message)
        yield from _retention_limits(topic, f"spec.{role}", limits.max_retention, by_class)
    longest, compacted = limits.max_retention, CAPABILITIES[spec.schedule.dialect].tombstones
    if longest is not None and compacted and spec.source.is_compacted is None:
        yield Problem(
            'spec.source.config["cleanup.policy"]',
            f"is required: dialect {spec.schedule.dialect} compacts its source, which keeps records for ever, and"
            f" {by_class} allows up to {longest}; write compact,delete",
        )


def _topics_of(spec: DelayTopicSpec) -> Mapping[str, TopicSpec | None]:
    topics = {"source": spec.source, "target": spec.target, "deadLetter": spec.dead_letter}
    return {**topics, "outcomes": spec.outcomes, "schedule.scheduler.history": spec.history}


def _retention_limits(topic: TopicSpec, path: str, longest: Duration | None, by_class: str) -> Iterator[Problem]:
    if longest is None:
        return
    if topic.retention is not None and topic.retention.ms > longest.ms:
        yield Problem(f"{path}.retention", f"{topic.retention} is too long: {by_class} allows up to {longest}")
    written = topic.config.get("retention.ms")
    # Everything but a plain number is without an end (-1), or nothing that Kafka takes.
    if written is not None and (not written.isdecimal() or int(written) > longest.ms):
        yield Problem(f'{path}.config["retention.ms"]', f"{written} is too long: {by_class} allows up to {longest.ms}")
    policy = topic.config.get("cleanup.policy", "delete")
    if "delete" not in policy:
        message = f"{policy} keeps records for ever: {by_class} allows up to {longest}; add delete"
        yield Problem(f'{path}.config["cleanup.policy"]', message)


def _globs(templates: Sequence[str], namespace: str) -> list[str]:
    return [template.replace("{namespace}", namespace) for template in templates]


def _listed(globs: Sequence[str]) -> str:
    return ", ".join(globs) or "none"
