"""The stance on a topic: to make it, to change it, or only to look, by what is written down and what is there. Pure.

there     written down        Managed            Adopt            Observe
missing   nothing             make               make             wait for it
missing   with an id          make (*)           make (*)         wait for it
there     nothing             refuse             care: adopted    look
there     an intent, no id    care: created      care: created    look
there     another id          refuse (**)        refuse (**)      refuse (**)
there     observed            refuse             care: adopted    look
there     created, adopted    care               care             look

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


class Trouble(NamedTuple):
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
    trouble: Trouble | None = None
    event: TopicEvent | None = None


def own(
    wish: DesiredTopic,
    facts: TopicFacts | None,
    recorded: TopicRecord | None,
    accepted: Collection[str],
    *,
    forbidden: bool,
) -> Owned:
    """The stance on one topic; `facts` are None if it is missing, or may not be seen (`forbidden`)."""
    if recorded is not None and recorded.name != wish.name:
        recorded = None
    if forbidden:
        sentence = f"the operator's Kafka user may not see {wish.what}: grant it Describe and DescribeConfigs on it"
        return Owned(Stance.SKIP, recorded, Trouble("AuthorizationFailed", sentence, stalled=False))
    if facts is None:
        return _of_missing(wish, recorded, accepted)
    is_same = recorded is None or recorded.topic_id in (None, facts.topic_id)
    if recorded is not None and not is_same and facts.topic_id not in accepted:
        return _of_another(wish, facts, recorded)
    return _of_present(wish, facts, recorded)


def accepted_ids(annotation: str | None) -> frozenset[str]:
    """The ids that the annotation names."""
    return frozenset(part.strip() for part in (annotation or "").split(",") if part.strip())


def _of_missing(wish: DesiredTopic, recorded: TopicRecord | None, accepted: Collection[str]) -> Owned:
    if wish.management is Management.OBSERVE:
        sentence = f"{wish.what} does not exist; create it, or correct {wish.field}.topic"
        return Owned(Stance.SKIP, recorded, Trouble("TopicMissing", sentence, stalled=False))
    lost = recorded.topic_id if recorded is not None else None
    if wish.role is Role.SOURCE and lost is not None and lost not in accepted:
        sentence = (
            f"{wish.what} was deleted, and whatever was pending in it is lost; to go on with a new and empty one, set "
            f"the annotation {ACCEPT_RECREATION}: {lost}"
        )
        return Owned(Stance.SKIP, recorded, Trouble("TopicMissing", sentence))
    return Owned(Stance.CREATE, TopicRecord(name=wish.name, ownership=Ownership.CREATED))


def _of_another(wish: DesiredTopic, facts: TopicFacts, recorded: TopicRecord) -> Owned:
    note = f"{wish.what} was made anew by somebody else: its id is {facts.topic_id}, it was {recorded.topic_id}"
    event = TopicEvent("TopicRecreated", note, warning=True) if recorded.stranger_id != facts.topic_id else None
    if wish.role is None:
        return Owned(Stance.MANAGE, _seen(facts, recorded.ownership), event=event)
    sentence = f"{note}; if it is the right one, set the annotation {ACCEPT_RECREATION}: {facts.topic_id}"
    if wish.role is Role.SOURCE:
        sentence += " (whatever was pending in the former one is lost)"
    told = recorded.model_copy(update={"stranger_id": facts.topic_id})
    return Owned(Stance.SKIP, told, Trouble("TopicRecreated", sentence), event)


def _of_present(wish: DesiredTopic, facts: TopicFacts, recorded: TopicRecord | None) -> Owned:
    if wish.management is Management.OBSERVE:
        return Owned(Stance.OBSERVE, _seen(facts, Ownership.OBSERVED))
    if recorded is not None and recorded.ownership is not Ownership.OBSERVED:
        return Owned(Stance.MANAGE, _seen(facts, recorded.ownership))
    if wish.management is Management.ADOPT:
        event = TopicEvent("TopicAdopted", f"adopted {wish.what}, which was there already")
        return Owned(Stance.MANAGE, _seen(facts, Ownership.ADOPTED), event=event)
    sentence = (
        f"{wish.what} exists, and was not made by this operator; to take it over set {wish.field}.management: Adopt, "
        "to use it as it is Observe"
    )
    return Owned(Stance.SKIP, recorded, Trouble("TopicExists", sentence))


def _seen(facts: TopicFacts, ownership: Ownership) -> TopicRecord:
    return TopicRecord(name=facts.name, ownership=ownership, topic_id=facts.topic_id)
