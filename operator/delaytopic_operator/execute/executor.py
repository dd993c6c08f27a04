"""Edge: does what a plan says, in its order; what fails ends it, and is told."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import structlog

from delaytopic_operator.config import OperatorConfig
from delaytopic_operator.decide.plan import (
    FINALIZER,
    Action,
    AddFinalizer,
    Apply,
    Delete,
    DoTopic,
    ForgetRecord,
    Plan,
    Purge,
    RemoveFinalizer,
    RemoveMembers,
    RestoreOffsets,
    StopRelays,
    WriteRecord,
)
from delaytopic_operator.decide.relay_objects import KINDS
from delaytopic_operator.errors import Conflict, ObjectForeign, OperatorError
from delaytopic_operator.execute.topics import TopicsExecutor
from delaytopic_operator.kube.client import KubeApi
from delaytopic_operator.kube.finalizers import set_finalizer
from delaytopic_operator.model import kinds
from delaytopic_operator.model.conditions import instant
from delaytopic_operator.model.kinds import Kind, kind_of
from delaytopic_operator.model.kube_cluster import member_name
from delaytopic_operator.model.offsets_backup import OutdatedOffsets
from delaytopic_operator.model.record import RouteRecord, record_document
from delaytopic_operator.model.transitions import NORMAL, WARNING, Event
from delaytopic_operator.observe.observation import Observation
from delaytopic_operator.resources import is_own
from delaytopic_operator.scaling.decision import Decision
from delaytopic_operator.scaling.state import ScalingMemory, memory_data
from delaytopic_operator.topics.actions import TopicAction

MANAGER: Final = "delaytopic-operator"

log = structlog.get_logger()


@dataclass
class Outcome:
    """The actions that were executed, and the one that failed."""

    events: list[Event] = field(default_factory=list)
    step: Decision | None = None
    """The scaling step that was executed."""
    failure: OperatorError | None = None
    failed: Action | None = None
    written: tuple[RouteRecord, ScalingMemory | None] | None = None
    """The record that was written last, and what scaling remembers."""
    outdated: OutdatedOffsets | None = None
    """Restored offsets that were older than what relays had delivered."""
    was_gone: bool = False
    """True if the object had gone before it could be let go: somebody has told all of it already."""


class Executor:
    """Every step may be repeated; none destroys anything that a former step has not written down."""

    def __init__(
        self,
        kube: KubeApi,
        find: Callable[[Kind, str | None, str], Mapping[str, Any] | None],
        topics: TopicsExecutor,
        config: OperatorConfig,
        guard: Callable[[], object],
        corrected: Callable[[str], None],
    ) -> None:
        """`find` answers with an object as last seen; `guard` raises `NotLeading`.

        `corrected` counts objects that were not as they should be, by kind.
        """
        self._kube = kube
        self._find = find
        self._topics = topics
        self._config = config
        self._guard = guard
        self._corrected = corrected

    def execute(self, seen: Observation, plan: Plan) -> Outcome:
        """Do all of it, up to the first step that fails."""
        outcome = Outcome()
        for action in plan.actions:
            try:
                self._execute(seen, action, outcome)
            except OperatorError as error:
                outcome.failure, outcome.failed = error, action
                break
        return outcome

    def _execute(self, seen: Observation, action: Action, outcome: Outcome) -> None:
        match action:
            case AddFinalizer() | RemoveFinalizer():
                outcome.was_gone = not self._set_finalizer(seen, held=isinstance(action, AddFinalizer))
            case WriteRecord(record, memory):
                self._write(seen, record, memory, outcome)
            case ForgetRecord() | Delete():
                self._delete(action)
            case DoTopic(step):
                self._do_topic(seen, step, outcome)
            case RestoreOffsets():
                self._restore(seen, action, outcome)
            case RemoveMembers(group_id, names):
                self._remove_members(seen, group_id, names, outcome)
            case Apply(document):
                self._apply(seen, action, document, outcome)
            case StopRelays(document):
                self._stop(document, outcome)
            case Purge(record, topics):
                self._guard()
                self._topics.purge(seen, record, topics=topics, guard=self._guard)

    def _write(self, seen: Observation, record: RouteRecord, memory: ScalingMemory | None, outcome: Outcome) -> None:
        if outcome.outdated is not None:
            record = record.model_copy(update={"outdated": outcome.outdated})
        outcome.written = record, memory
        document = record_document(record, self._config.namespace)
        if memory is not None:
            document["data"].update(memory_data(memory, seen.now_ms))
        self._kube.apply(document, MANAGER)

    def _do_topic(self, seen: Observation, step: TopicAction, outcome: Outcome) -> None:
        self._guard()
        if self._topics.perform(seen, step):
            told = step.event()
            outcome.events.append(Event(WARNING if told.warning else NORMAL, told.reason, told.note))

    def _restore(self, seen: Observation, action: RestoreOffsets, outcome: Outcome) -> None:
        self._guard()
        found = self._topics.restore(seen, action.group_id, action.offsets)
        if found is None:
            return
        forgot, as_of = f"Kafka had forgotten what {action.group_id} has delivered", instant(found.as_of_ms)
        if not found.outdated:
            note = f"{forgot}, while there were no relays: restored as of {as_of}"
            outcome.events.append(Event(NORMAL, "OffsetsRestored", note))
            return
        note = f"{forgot}; what was backed up is of {as_of}: records delivered since {as_of} come again"
        outcome.events.append(Event(WARNING, "OffsetsOutdated", note))
        outcome.outdated = OutdatedOffsets(restored_ms=seen.now_ms, since_ms=found.as_of_ms)
        record, memory = outcome.written or (seen.route.record, seen.fleet.saved_memory)
        if record is not None:
            self._write(seen, record, memory, outcome)

    def _remove_members(self, seen: Observation, group_id: str, names: Sequence[str], outcome: Outcome) -> None:
        """Take relays out of their group; where that fails, the end of their sessions does it in some seconds."""
        self._guard()
        try:
            removed = self._topics.remove_members(seen, group_id, names)
        except OperatorError as error:
            log.warning("relays that are gone stay in their group", group=group_id, relays=[*names], reason=str(error))
            return
        pods = {member_name(pod, seen.route.kube_cluster): pod for pod in seen.fleet.gone}
        for name in removed:
            note = f"{pods[name]} is gone, and its partitions were given to other relays"
            outcome.events.append(Event(NORMAL, "RelayGone", note))

    def _apply(self, seen: Observation, action: Apply, document: dict[str, Any], outcome: Outcome) -> None:
        if not action.exists and document["kind"] in KINDS:
            self._require_unowned(seen, document)
        self._kube.apply(document, MANAGER)
        if action.exists and action.differences:
            self._corrected(str(document["kind"]))
        if action.step is not None:
            outcome.step = action.step
            outcome.events.append(Event(NORMAL, "RelayScaled", action.step.sentence))

    def _delete(self, action: ForgetRecord | Delete) -> None:
        if isinstance(action, ForgetRecord):
            self._kube.delete(kinds.CONFIG_MAP, self._config.namespace, action.name)
            return
        metadata = action.document["metadata"]
        self._kube.delete(kind_of(action.document), metadata["namespace"], metadata["name"], metadata["uid"])

    def _stop(self, document: Mapping[str, Any], outcome: Outcome) -> None:
        metadata, before = document["metadata"], document["spec"].get("replicas", 1)
        # Of this very Deployment: the API server refuses to change a uid.
        patch = {"metadata": {"uid": metadata["uid"]}, "spec": {"replicas": 0}}
        self._kube.patch(kinds.DEPLOYMENT, metadata["namespace"], metadata["name"], patch, MANAGER)
        note = f"From {before} to 0 relays: their DelayClass no longer allows what they do."
        outcome.events.append(Event(WARNING, "RelayScaled", note))

    def _require_unowned(self, seen: Observation, document: dict[str, Any]) -> None:
        """Raise `ObjectForeign` where the name is taken: names end in 32 bits of a digest, which somebody may match."""
        metadata = document["metadata"]
        live = self._find(kind_of(document), metadata["namespace"], metadata["name"])
        if live is not None and not is_own(live, seen.key):
            place = f"{document['kind']} {metadata['namespace']}/{metadata['name']}"
            raise ObjectForeign(f"{place} was made for another DelayTopic and is not changed: use another name")

    def _set_finalizer(self, seen: Observation, *, held: bool) -> bool:
        """Add the finalizer or remove it; return whether the object is still there, or was until now."""
        namespace, uid = seen.key.namespace, seen.route.metadata["uid"]
        try:
            set_finalizer(self._kube, kinds.DELAY_TOPIC, namespace, seen.route.metadata, FINALIZER, MANAGER, held=held)
        except Conflict:
            current = self._kube.get(kinds.DELAY_TOPIC, *seen.key)
            if current is not None and current["metadata"]["uid"] == uid:
                raise
            return False
        return True
