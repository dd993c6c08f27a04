"""The right to use a class that was taken away from relays that run. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from delaytopic_api import DelayClass
from delaytopic_api.errors import Problem
from delaytopic_api.policy import TopicsInUse, revocations
from delaytopic_api.values import OnRevoked
from delaytopic_operator.model.record import Role, RouteRecord

_FIELD_OF_CLASS: Final = {"metadata.namespace": "namespaceSelector", "spec.source.topic": "sourceTopics"}
"""The field of `spec.access` that decides, by that of the DelayTopic; all others are targets."""


@dataclass(frozen=True)
class Revoked:
    """The parts of a right that relays had and have no longer."""

    class_name: str
    problems: tuple[Problem, ...]
    suspends: bool
    """True if the class says that such relays stop."""

    @property
    def fields(self) -> str:
        """The fields of the class that decide, such as `access.sourceTopics`."""
        found = {_FIELD_OF_CLASS.get(problem.path, "targetTopics") for problem in self.problems}
        return ", ".join(f"access.{name}" for name in sorted(found))


def revoked(record: RouteRecord, classes: Iterable[DelayClass], labels: Mapping[str, str]) -> Revoked | None:
    """Return what the class of relays no longer allows of what they do; None if it allows all of it.

    They run by what was accepted and written down last: an edit of the DelayTopic that is refused takes no right away,
    and none that was taken away is kept by such an edit.
    """
    of_class = next((each for each in classes if each.metadata.name == record.class_name), None)
    if of_class is None:
        return None
    names = {role: topic.name for role in Role if (topic := record.of_role(role)) is not None}
    topics = TopicsInUse(
        source=names.get(Role.SOURCE),
        target=names.get(Role.TARGET),
        dead_letter=names.get(Role.DEAD_LETTER),
        history=names.get(Role.HISTORY),
        outcomes=names.get(Role.OUTCOMES),
        allowed=record.allowed_topics,
    )
    problems = tuple(revocations(record.namespace, topics, of_class, labels))
    if not problems:
        return None
    suspends = of_class.spec.access.on_revoked is OnRevoked.SUSPEND
    return Revoked(of_class.metadata.name, problems, suspends)
