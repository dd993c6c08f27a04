"""Whether a DelayTopic may be acted upon: ordered rules, of which the first that is broken decides. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from delaytopic_api import DelayClass, DelayTopic, Settings, class_for, load_document, resolve
from delaytopic_api.errors import ApiError, Problem, Refused
from delaytopic_operator.desired import relay_problems
from delaytopic_operator.keys import Key
from delaytopic_operator.operator_config import OperatorConfig

_REASON_OF_PATH: Final = (
    ("metadata.namespace", "NamespaceNotAllowed"),
    ("spec.delayClassName", "ClassNotFound"),
    ("spec.source.topic", "SourceNotAllowed"),
    ("spec.source.management", "AdoptionNotAllowed"),
    ("spec.target.management", "AdoptionNotAllowed"),
    ("spec.deadLetter.management", "AdoptionNotAllowed"),
    ("spec.target", "TargetNotAllowed"),
    ("spec.deadLetter", "TargetNotAllowed"),
    ("spec.precision", "LimitExceeded"),
    ("spec.schedule", "LimitExceeded"),
    ("spec.autoscaling", "LimitExceeded"),
    ("spec.relay", "LimitExceeded"),
    ("spec.backend", "BackendNotAllowed"),
)
"""Which word stands for a field that a class or the defaults do not allow; the first prefix that fits."""


RELAYS_OUT_OF_SIGHT: Final = "RelayNamespaceNotAllowed"
"""The word for relays in a namespace where the operator may have none."""


@dataclass(frozen=True)
class Subject:
    """What is looked at: the document as the API server has it, and what is around it."""

    key: Key
    document: Mapping[str, Any]
    classes: Sequence[DelayClass]
    namespace_labels: Mapping[str, str]
    elder_siblings: int
    """DelayTopics of the same namespace and class that are older."""
    rival: str | None
    """What another, older DelayTopic has to do with its topics; a sentence."""
    config: OperatorConfig = field(default_factory=OperatorConfig)
    """What the operator may do."""


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
    """Whether somebody has to change something about this object; else it waits for another one."""


def check(subject: Subject) -> Accepted | Refusal:
    """The settings in force, or the first reason against it."""
    topic = _parsed(subject)
    if isinstance(topic, Refusal):
        return topic
    delay_class = _class_of(topic, subject.classes)
    if isinstance(delay_class, Refusal):
        return delay_class
    try:
        settings = resolve(topic, delay_class, subject.namespace_labels)
    except Refused as refused:
        return _not_allowed(refused.problems)
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


def _class_of(topic: DelayTopic, classes: Iterable[DelayClass]) -> DelayClass | Refusal | None:
    try:
        delay_class = class_for(topic, classes)
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
        most = accepted.delay_class.spec.limits.max_delay_topics_per_namespace
        if most is not None and subject.elder_siblings >= most:
            name = accepted.delay_class.metadata.name
            message = f"DelayClass {name} allows {most} DelayTopics in a namespace; remove another one first"
            yield Refusal("LimitExceeded", message)
    if subject.rival is not None:
        yield Refusal("ResourceConflict", subject.rival)


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


def _not_allowed(problems: Sequence[Problem]) -> Refusal:
    path = problems[0].path
    reason = next((word for prefix, word in _REASON_OF_PATH if path.startswith(prefix)), "InvalidSpec")
    return Refusal(reason, _lines(problems))


def _lines(problems: Iterable[Problem]) -> str:
    """Each problem by its field; one of a class names the class, as its fields are not this object's."""
    return "; ".join(str(_of_topic(problem)) for problem in problems)


def _of_topic(problem: Problem) -> Problem:
    return problem if problem.subject.startswith("DelayClass") else problem._replace(subject="")
