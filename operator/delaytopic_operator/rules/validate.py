"""Validation of a DelayTopic: ordered rules, of which the first that is broken decides. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from delaytopic_api import DelayClass, DelayTopic, Settings, class_for, class_in_force, load_document, resolve
from delaytopic_api.documents import DelayTopicSpec
from delaytopic_api.errors import ApiError, Problem, Refused
from delaytopic_api.values import glob_matcher
from delaytopic_operator.config import InlineConnections, OperatorConfig
from delaytopic_operator.model.reconciliation import Key
from delaytopic_operator.resources import relay_problems
from delaytopic_operator.topics.desired import partition_count

_REASON_OF_PATH: Final = (
    ("metadata.namespace", "NamespaceNotAllowed"),
    ("spec.delayClassName", "ClassNotFound"),
    ("spec.source.topic", "SourceNotAllowed"),
    ("spec.source.management", "AdoptionNotAllowed"),
    ("spec.target.management", "AdoptionNotAllowed"),
    ("spec.deadLetter.management", "AdoptionNotAllowed"),
    ("spec.schedule.scheduler.history.management", "AdoptionNotAllowed"),
    ("spec.outcomes.management", "AdoptionNotAllowed"),
    ("spec.source", "LimitExceeded"),
    ("spec.target.partitions", "LimitExceeded"),
    ("spec.target.retention", "LimitExceeded"),
    ("spec.target.config", "LimitExceeded"),
    ("spec.deadLetter.partitions", "LimitExceeded"),
    ("spec.deadLetter.retention", "LimitExceeded"),
    ("spec.deadLetter.config", "LimitExceeded"),
    ("spec.schedule.scheduler.history.partitions", "LimitExceeded"),
    ("spec.schedule.scheduler.history.retention", "LimitExceeded"),
    ("spec.schedule.scheduler.history.config", "LimitExceeded"),
    ("spec.outcomes.partitions", "LimitExceeded"),
    ("spec.outcomes.retention", "LimitExceeded"),
    ("spec.outcomes.config", "LimitExceeded"),
    ("spec.target", "TargetNotAllowed"),
    ("spec.deadLetter", "TargetNotAllowed"),
    ("spec.schedule.scheduler.history", "TargetNotAllowed"),
    ("spec.outcomes", "TargetNotAllowed"),
    ("spec.precision", "LimitExceeded"),
    ("spec.schedule", "LimitExceeded"),
    ("spec.autoscaling", "LimitExceeded"),
    ("spec.relay", "LimitExceeded"),
    ("spec.backend.redis", "ConnectionNotAllowed"),
    ("spec.backend", "BackendNotAllowed"),
    ("spec.connection", "ConnectionNotAllowed"),
)
"""The words for fields that a class or the defaults do not allow; the first prefix that fits."""


RELAYS_OUT_OF_SIGHT: Final = "RelayNamespaceNotAllowed"
"""The word for relays in a namespace where the operator may have none."""


class QuotaUsage(NamedTuple):
    """The use of a class's quotas by older DelayTopics of the same namespace."""

    topics: int
    """The number of them."""
    partitions: int
    """The partitions of the topics of those that the class has room for."""


@dataclass(frozen=True)
class Subject:
    """The subject of validation: the document as the API server has it, and all that is around it."""

    key: Key
    document: Mapping[str, Any]
    classes: Sequence[DelayClass]
    namespace_labels: Mapping[str, str]
    quota_usage: QuotaUsage
    """DelayTopics of the same namespace and class that are older."""
    conflict: str | None
    """The claim of another, older DelayTopic on its topics; a sentence."""
    config: OperatorConfig = field(default_factory=OperatorConfig)
    """The limits of the operator."""


@dataclass(frozen=True)
class Accepted:
    """It may be acted upon, with these settings."""

    topic: DelayTopic
    delay_class: DelayClass | None
    settings: Settings


@dataclass(frozen=True)
class Refusal:
    """It may not; nothing of what is there already is touched."""

    reason: str
    message: str
    stalled: bool = True
    """True if somebody has to change something about this object; else it waits for another one."""


def check(subject: Subject) -> Accepted | Refusal:
    """The settings in force, or the first reason against it."""
    topic = _parsed(subject)
    if isinstance(topic, Refusal):
        return topic
    delay_class = _class_of(topic, subject.classes, class_in_force(subject.document))
    if isinstance(delay_class, Refusal):
        return delay_class
    try:
        settings = resolve(topic, delay_class, subject.namespace_labels)
    except Refused as refused:
        return _not_allowed(refused.problems)
    if problems := list(_foreign_hosts(topic.spec, subject.config.inline_connections)):
        return _not_allowed(problems)
    accepted = Accepted(topic, delay_class, settings)
    return next(_against(subject, accepted), accepted)


def _parsed(subject: Subject) -> DelayTopic | Refusal:
    document = {name: part for name, part in subject.document.items() if name != "status"}
    try:
        parsed = load_document(document)
    except ApiError as error:
        return Refusal("InvalidSpec", "; ".join(str(error).splitlines()))
    if not isinstance(parsed, DelayTopic):
        return Refusal("InvalidSpec", f"kind: is {type(parsed).__name__}, not DelayTopic")
    return parsed


def _class_of(topic: DelayTopic, classes: Iterable[DelayClass], in_force: str | None) -> DelayClass | Refusal | None:
    try:
        delay_class = class_for(topic, classes, in_force)
    except Refused as refused:
        return Refusal("ClassNotFound", _lines(refused.problems), stalled=False)
    if delay_class is None and topic.spec.connection is None:
        message = "spec.delayClassName: is required, as no DelayClass is marked default; or set spec.connection"
        return Refusal("ClassNotFound", message, stalled=False)
    return delay_class


def _against(subject: Subject, accepted: Accepted) -> Iterator[Refusal]:
    of_class = accepted.delay_class.spec.relay if accepted.delay_class is not None else None
    problems = relay_problems(accepted.settings, accepted.topic.spec.relay, of_class)
    if problems:
        # A class's to change: until then this object waits.
        own = [problem for problem in problems if not problem.subject.startswith("DelayClass")]
        yield Refusal("InvalidSpec" if own else "InvalidClass", _lines(own or problems), stalled=bool(own))
    yield from _out_of_sight(subject, accepted)
    if accepted.delay_class is not None:
        yield from _over_limits(subject.quota_usage, accepted.delay_class, accepted.settings)
    if subject.conflict is not None:
        yield Refusal("ResourceConflict", subject.conflict)


def _out_of_sight(subject: Subject, accepted: Accepted) -> Iterator[Refusal]:
    """Refuse relays where the operator neither sees nor makes any."""
    namespace = relay_namespace(subject.key, accepted.delay_class, subject.config)
    if subject.config.lets_relays_run_in(namespace):
        return
    if accepted.delay_class is not None:
        named = f"spec.relayNamespace of DelayClass {accepted.delay_class.metadata.name}"
    else:
        named = "spec.connection: relays of a connection of its own run beside it"
    message = (
        f"{named}: the operator runs no relays in {namespace}; the platform team adds it to relayNamespaces of the "
        "operator, and nothing has to be tried again"
    )
    yield Refusal(RELAYS_OUT_OF_SIGHT, message, stalled=False)


def relay_namespace(key: Key, delay_class: DelayClass | None, config: OperatorConfig) -> str:
    """Return where relays run: beside an object with a connection of its own, else where the class says."""
    return key.namespace if delay_class is None else delay_class.spec.relay_namespace or config.namespace


def _over_limits(quota_usage: QuotaUsage, delay_class: DelayClass, settings: Settings) -> Iterator[Refusal]:
    """Return what the namespace has too much of; the older ones keep what they have."""
    limits, by_class = delay_class.spec.limits, f"DelayClass {delay_class.metadata.name}"
    most = limits.max_delay_topics_per_namespace
    if most is not None and quota_usage.topics >= most:
        yield Refusal("LimitExceeded", f"{by_class} allows {most} DelayTopics in a namespace; remove another one first")
    most, own = limits.max_partitions_per_namespace, partition_count(settings)
    if most is not None and quota_usage.partitions + own > most:
        message = (
            f"spec.source.partitions: its topics have {own} partitions, and those of older DelayTopics of "
            f"the namespace {quota_usage.partitions}: {by_class} allows {most} together; ask for fewer, or "
            "remove another one"
        )
        yield Refusal("LimitExceeded", message)


def _foreign_hosts(spec: DelayTopicSpec, inline: InlineConnections) -> Iterator[Problem]:
    """Servers that a connection of its own may not name: the operator asks them, from the platform's network."""
    if spec.connection is None:
        return
    if not inline.enabled:
        yield Problem("spec.connection", "is not allowed by this operator; name a DelayClass in spec.delayClassName")
        return
    allowed, listed = glob_matcher(inline.allowed_hosts), ", ".join(inline.allowed_hosts) or "none"
    redis = spec.backend.redis if spec.backend is not None else None
    if redis is not None and redis.url_secret is not None and not allowed("*"):
        message = f"is not allowed, as it hides the host; write url: this operator allows {listed}"
        yield Problem("spec.backend.redis.urlSecret", message)
    hosts = [
        ("spec.connection.bootstrapServers", server.strip()) for server in spec.connection.bootstrap_servers.split(",")
    ]
    authentication = spec.connection.authentication
    if authentication is not None and authentication.oauth is not None:
        hosts.append(("spec.connection.authentication.oauth.tokenEndpointUrl", authentication.oauth.token_endpoint_url))
    hosts += [("spec.backend.redis.url", redis.url)] if redis is not None and redis.url is not None else []
    for path, text in hosts:
        host = urlsplit(text if "://" in text else f"//{text}").hostname or ""
        if not allowed(host):
            yield Problem(path, f"{host} is not allowed: this operator allows {listed}")


def _not_allowed(problems: Sequence[Problem]) -> Refusal:
    path = problems[0].path
    reason = next((word for prefix, word in _REASON_OF_PATH if path.startswith(prefix)), "InvalidSpec")
    return Refusal(reason, _lines(problems))


def _lines(problems: Iterable[Problem]) -> str:
    """Each problem by its field; one of a class names the class, as its fields are not this object's."""
    return "; ".join(str(_of_topic(problem)) for problem in problems)


def _of_topic(problem: Problem) -> Problem:
    return problem if problem.subject.startswith("DelayClass") else problem._replace(subject="")
