"""The stance on a topic: to make it, to change it, or only to look, by what is written down and what is there. Pure.

there     written down        Managed            Adopt            Observe
missing   nothing             create             create           wait for it
missing   with an id          create (*)         create (*)       wait for it
there     nothing             refuse             manage: adopted  look
there     an intent, no id    manage: created    manage: created  look
there     another id          refuse (**)        refuse (**)      refuse (**)
there     observed            refuse             manage: adopted  look
there     created, adopted    manage             manage           look

(*) not a source: what waited in it is lost, so somebody has to look first.
(**) a bucket topic is taken as it is: relays notice, and fill it again from the source.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final, NamedTuple

from delaytopic_api.documents import Ownership
from delaytopic_api.values import Management
from delaytopic_operator.model.kafka_view import TopicFacts
from delaytopic_operator.model.record import Role, TopicRecord
from delaytopic_operator.topics.actions import TopicEvent
from delaytopic_operator.topics.desired import DesiredTopic

ACCEPT_RECREATION: Final = "delaytopic.dev/accept-topic-recreation"
"""The annotation whose value is the id of a topic that somebody has looked at; several separated by commas."""


class TopicProblem(NamedTuple):
    """Something that is not as it has to be; `stalled` when it will not get better without a person."""

    reason: str
    sentence: str
    stalled: bool = True


class Stance(Enum):
    """The actions that are allowed on a topic."""

    CREATE = auto()
    MANAGE = auto()
    OBSERVE = auto()
    SKIP = auto()


@dataclass(frozen=True, slots=True)
class Owned:
    """The stance, and what is to be written down before anything is done."""

    stance: Stance
    record: TopicRecord | None
    problem: TopicProblem | None = None
    event: TopicEvent | None = None


def own(
    desired: DesiredTopic,
    facts: TopicFacts | None,
    recorded: TopicRecord | None,
    accepted: Collection[str],
    *,
    forbidden: bool,
) -> Owned:
    """The stance on one topic; `facts` are None if it is missing, or may not be seen (`forbidden`)."""
    if recorded is not None and recorded.name != desired.name:
        recorded = None
    if forbidden:
        sentence = f"the operator's Kafka user may not see {desired.what}: grant it Describe and DescribeConfigs on it"
        return Owned(Stance.SKIP, recorded, TopicProblem("AuthorizationFailed", sentence, stalled=False))
    if facts is None:
        return _of_missing(desired, recorded, accepted)
    is_same = recorded is None or recorded.topic_id in (None, facts.topic_id)
    if recorded is not None and not is_same and facts.topic_id not in accepted:
        return _of_another(desired, facts, recorded)
    return _of_present(desired, facts, recorded)


def accepted_ids(annotation: str | None) -> frozenset[str]:
    """The ids that the annotation names."""
    return frozenset(part.strip() for part in (annotation or "").split(",") if part.strip())


def _of_missing(desired: DesiredTopic, recorded: TopicRecord | None, accepted: Collection[str]) -> Owned:
    if desired.management is Management.OBSERVE:
        sentence = f"{desired.what} does not exist; create it, or correct {desired.field}.topic"
        return Owned(Stance.SKIP, recorded, TopicProblem("TopicMissing", sentence, stalled=False))
    lost = recorded.topic_id if recorded is not None else None
    if desired.role is Role.SOURCE and lost is not None and lost not in accepted:
        sentence = (
            f"{desired.what} was deleted, and whatever was pending in it is lost; to go on with a new and empty one, "
            f"set the annotation {ACCEPT_RECREATION}: {lost}"
        )
        return Owned(Stance.SKIP, recorded, TopicProblem("TopicMissing", sentence))
    return Owned(Stance.CREATE, TopicRecord(name=desired.name, ownership=Ownership.CREATED, replaces=lost))


def _of_another(desired: DesiredTopic, facts: TopicFacts, recorded: TopicRecord) -> Owned:
    note = f"{desired.what} was made anew by somebody else: its id is {facts.topic_id}, it was {recorded.topic_id}"
    event = TopicEvent("TopicRecreated", note, warning=True) if recorded.stranger_id != facts.topic_id else None
    if desired.role is None:
        return Owned(Stance.MANAGE, _seen(facts, recorded.ownership), event=event)
    sentence = f"{note}; if it is the right one, set the annotation {ACCEPT_RECREATION}: {facts.topic_id}"
    if desired.role is Role.SOURCE:
        sentence += " (whatever was pending in the former one is lost)"
    told = recorded.model_copy(update={"stranger_id": facts.topic_id})
    return Owned(Stance.SKIP, told, TopicProblem("TopicRecreated", sentence), event)


def _of_present(desired: DesiredTopic, facts: TopicFacts, recorded: TopicRecord | None) -> Owned:
    if desired.management is Management.OBSERVE:
        return Owned(Stance.OBSERVE, _seen(facts, Ownership.OBSERVED))
    if recorded is not None and recorded.ownership is not Ownership.OBSERVED:
        seen = _seen(facts, recorded.ownership)
        return Owned(Stance.MANAGE, seen.model_copy(update={"replaces": _replaces(facts, recorded)}))
    if desired.management is Management.ADOPT:
        event = TopicEvent("TopicAdopted", f"adopted {desired.what}, which was there already")
        return Owned(Stance.MANAGE, _seen(facts, Ownership.ADOPTED), event=event)
    sentence = (
        f"{desired.what} exists, and was not made by this operator; to take it over set {desired.field}.management: "
        "Adopt, to use it as it is Observe"
    )
    return Owned(Stance.SKIP, recorded, TopicProblem("TopicExists", sentence))


def _seen(facts: TopicFacts, ownership: Ownership) -> TopicRecord:
    return TopicRecord(name=facts.name, ownership=ownership, topic_id=facts.topic_id)


def _replaces(facts: TopicFacts, recorded: TopicRecord) -> str | None:
    """Return the id of the topic in whose place this one was made; None once it is yet another one."""
    return recorded.replaces if recorded.topic_id in (None, facts.topic_id) else None


def accepted_source(recorded: TopicRecord | None, accepted: Collection[str]) -> str | None:
    """Return the id of the source topic if somebody has accepted it in the place of another one."""
    if recorded is None or recorded.topic_id is None:
        return None
    return recorded.topic_id if {recorded.topic_id, recorded.replaces} & {*accepted} else None
