"""The actions on a topic, and the words for each. Pure; `kafka.admin` executes them.

Every action may be repeated: doing it twice is doing it once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from delaytopic_api.documents import PlannedAction

BROKERS_OWN: Final = -1
"""The number of partitions and copies that stands for what the broker's configuration says."""


class TopicEvent(NamedTuple):
    """Something that happened, for the events of the DelayTopic."""

    reason: str
    note: str
    warning: bool = False


@dataclass(frozen=True, slots=True)
class CreateTopic:
    """Make a topic that is not there; one that is there meanwhile is left as it is."""

    name: str
    partitions: int = BROKERS_OWN
    replication_factor: int = BROKERS_OWN
    config: Mapping[str, str] = field(default_factory=dict)

    def event(self) -> TopicEvent:
        """Return how it is told once it is done."""
        return TopicEvent("TopicCreated", f"created the topic {self.name}")

    def planned(self) -> PlannedAction:
        """Return how a dry run tells it."""
        sizes = {"partitions": self.partitions, "replicationFactor": self.replication_factor}
        shown = {name: str(size) for name, size in sizes.items() if size != BROKERS_OWN}
        return PlannedAction(action="CreateTopic", object=self.name, detail=_listed({**shown, **self.config}) or None)


@dataclass(frozen=True, slots=True)
class GrowTopic:
    """Add partitions; a topic that has as many or more is left as it is."""

    name: str
    partitions: int
    before: int

    def event(self) -> TopicEvent:
        """Return how it is told once it is done."""
        return TopicEvent(
            "PartitionsIncreased", f"the topic {self.name} has {self.partitions} partitions now, {self.before} before"
        )

    def planned(self) -> PlannedAction:
        """Return how a dry run tells it."""
        return PlannedAction(
            action="GrowTopic", object=self.name, detail=f"partitions: {self.partitions} instead of {self.before}"
        )


@dataclass(frozen=True, slots=True)
class SetConfig:
    """Set some settings of a topic; all others stay as they are."""

    name: str
    config: Mapping[str, str]
    before: Mapping[str, str | None]
    """The values that were found; None for the broker's own or none."""

    def event(self) -> TopicEvent:
        """Return how it is told once it is done."""
        return TopicEvent("TopicConfigCorrected", f"the topic {self.name} has now {self._changes()}")

    def planned(self) -> PlannedAction:
        """Return how a dry run tells it."""
        return PlannedAction(action="SetTopicConfig", object=self.name, detail=self._changes())

    def _changes(self) -> str:
        return ", ".join(
            f"{name}={value} (was {self.before.get(name) or 'not set'})" for name, value in self.config.items()
        )


@dataclass(frozen=True, slots=True)
class DeleteTopic:
    """Delete a topic with its records, if it still has this id; None: whatever its id, as it was never seen."""

    name: str
    topic_id: str | None

    def event(self) -> TopicEvent:
        """Return how it is told once it is done."""
        return TopicEvent("TopicDeleted", f"deleted the topic {self.name}")

    def planned(self) -> PlannedAction:
        """Return how a dry run tells it."""
        return PlannedAction(action="DeleteTopic", object=self.name, detail=None)


TopicAction = CreateTopic | GrowTopic | SetConfig | DeleteTopic


def _listed(values: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={value}" for name, value in values.items())
