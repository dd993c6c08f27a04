"""The plan of a reconciliation, as data: actions, conditions, and when to look again.

Each action may be repeated, so that a reconciliation that is killed is done again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from delaytopic_api.documents import PlannedAction
from delaytopic_operator.model.conditions import Condition, Progress
from delaytopic_operator.model.offsets_backup import OffsetsBackup
from delaytopic_operator.model.record import RouteRecord, record_name
from delaytopic_operator.model.transitions import Event
from delaytopic_operator.resources import image_of
from delaytopic_operator.scaling.decision import Decision
from delaytopic_operator.scaling.state import ScalingMemory
from delaytopic_operator.topics.actions import TopicAction
from delaytopic_operator.topics.plan import TopicPlan

FINALIZER = "delaytopic.dev/drain"


@dataclass(frozen=True)
class AddFinalizer:
    """Keep the object until its deletion policy was followed."""

    def planned(self) -> PlannedAction:
        """Describe the action for a dry run."""
        return PlannedAction(action="AddFinalizer", object=FINALIZER)


@dataclass(frozen=True)
class RemoveFinalizer:
    """Let the object go, or go one day without us."""

    def planned(self) -> PlannedAction:
        """Describe the action for a dry run."""
        return PlannedAction(action="RemoveFinalizer", object=FINALIZER)


@dataclass(frozen=True)
class WriteRecord:
    """Write down what is owned, and what scaling remembers."""

    record: RouteRecord
    memory: ScalingMemory | None

    def planned(self) -> PlannedAction:
        """Describe the action for a dry run."""
        name = record_name(self.record.key)
        return PlannedAction(action="WriteRecord", object=f"ConfigMap {name}", detail=str(self.record.state))


@dataclass(frozen=True)
class ForgetRecord:
    """The end of a record: nothing is owned any more."""

    name: str

    def planned(self) -> PlannedAction:
        """Describe the action for a dry run."""
        return PlannedAction(action="Delete", object=f"ConfigMap {self.name}", detail="nothing is owned any more")


@dataclass(frozen=True)
class DoTopic:
    """Do something to a topic."""

    action: TopicAction

    def planned(self) -> PlannedAction:
        """Describe the action for a dry run."""
        return self.action.planned()


@dataclass(frozen=True)
class RestoreOffsets:
    """Commit again what Kafka forgot of a group without members, and nothing where something is committed."""

    group_id: str
    offsets: OffsetsBackup

    def planned(self) -> PlannedAction:
        """Describe the action for a dry run."""
        return PlannedAction(action="RestoreOffsets", object=self.group_id, detail="where Kafka forgot it")


@dataclass(frozen=True)
class RemoveMembers:
    """Take relays whose pods are gone out of their group: others need not wait for their sessions to end."""

    group_id: str
    names: Sequence[str]

    def planned(self) -> PlannedAction:
        """Describe the action for a dry run."""
        return PlannedAction(action="RemoveMembers", object=self.group_id, detail=", ".join(self.names[:5]))


@dataclass(frozen=True)
class Apply:
    """Make an object, or correct it where `differences` are."""

    document: dict[str, Any]
    differences: Sequence[str] = ()
    exists: bool = False
    step: Decision | None = None
    """The scaling step that this write executes."""
    in_turn: bool = False
    """True if it starts relays anew for no change of their DelayTopic's own, which few may do at once."""

    def planned(self) -> PlannedAction:
        """Describe the action for a dry run."""
        word = "Update" if self.exists else "Create"
        return PlannedAction(action=word, object=_name(self.document), detail=", ".join(self.differences[:5]) or None)


@dataclass(frozen=True)
class Delete:
    """Delete an object."""

    document: dict[str, Any]

    def planned(self) -> PlannedAction:
        """Describe the action for a dry run."""
        return PlannedAction(action="Delete", object=_name(self.document))


@dataclass(frozen=True)
class StopRelays:
    """Scale the relays of a Deployment to zero, and change nothing else of it."""

    document: dict[str, Any]

    def planned(self) -> PlannedAction:
        """Describe the action for a dry run."""
        return PlannedAction(action="Scale", object=_name(self.document), detail="to 0")


@dataclass(frozen=True)
class Purge:
    """Remove a backlog: what its store holds and the group's offsets; `topics`: also the topics that are owned."""

    record: RouteRecord
    topics: bool

    def planned(self) -> PlannedAction:
        """Describe the action for a dry run."""
        what = "everything pending, and the topics that were made for it" if self.topics else "everything pending"
        return PlannedAction(action="Purge", object=self.record.backend_id, detail=what)


Action = (
    AddFinalizer
    | RemoveFinalizer
    | WriteRecord
    | ForgetRecord
    | DoTopic
    | RestoreOffsets
    | RemoveMembers
    | Apply
    | Delete
    | StopRelays
    | Purge
)


def _name(document: dict[str, Any]) -> str:
    metadata = document["metadata"]
    return f"{document['kind']} {metadata.get('namespace', '')}/{metadata['name']}"


NOTHING_CHANGES = Progress()


@dataclass(frozen=True)
class Plan:
    """The outcome of one look at one DelayTopic."""

    actions: Sequence[Action] = ()
    """The actions, in this order."""
    conditions: Sequence[Condition] = ()
    """The conditions, without Ready, Reconciling and Stalled, which follow from them."""
    progress: Progress = NOTHING_CHANGES
    suspended: str | None = None
    """The parts that `spec.suspend` pauses, in words."""
    parts: Mapping[str, Any] = field(default_factory=dict)
    """Parts of the status, as documents have them."""
    events: Sequence[Event] = ()
    """The events beside those that follow from conditions and actions."""
    topics: TopicPlan | None = None
    """The part of topics; None where they were not planned."""
    rules_are_settled: bool = False
    """True if no relay that runs now may take over edited rules, or all have."""
    next_at_ms: int | None = None
    """Look again then, at the latest."""
    scaling: Decision | None = None
    """The number of relays as decided; `step` is what the actions execute of it."""

    @property
    def image_in_turn(self) -> str | None:
        """The image with which relays start anew for no change of their DelayTopic's own; None where none do."""
        applied = (action for action in self.actions if isinstance(action, Apply) and action.in_turn)
        return next((image_of(action.document) for action in applied), None)

    @property
    def step(self) -> Decision | None:
        """The scaling step among the actions; None where there is none, or the Deployment is withheld."""
        return step_in(self.actions)


def step_in(actions: Sequence[Action]) -> Decision | None:
    """Return the scaling step that these actions take."""
    return next((action.step for action in actions if isinstance(action, Apply) and action.step is not None), None)
