"""The status of a DelayTopic, written by the operator; what a newer operator adds is ignored here."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import AwareDatetime, ConfigDict, Field

from delaytopic_api.documents.model import Model
from delaytopic_api.documents.relays import KubernetesObject
from delaytopic_api.values.choices import BackendType


class ConditionType(StrEnum):
    """The subject of a condition. Ready sums up; Reconciling and Stalled are as kstatus defines them."""

    READY = "Ready"
    RECONCILING = "Reconciling"
    STALLED = "Stalled"
    POLICY_ACCEPTED = "PolicyAccepted"
    TOPICS_READY = "TopicsReady"
    BACKEND_READY = "BackendReady"
    RELAY_AVAILABLE = "RelayAvailable"
    DELIVERING_ON_TIME = "DeliveringOnTime"
    CAPACITY_SUFFICIENT = "CapacitySufficient"
    AUTOSCALING_ACTIVE = "AutoscalingActive"
    SLO_MET = "SLOMet"
    PAUSED = "Paused"
    DRAINING = "Draining"


class ConditionStatus(StrEnum):
    """The truth of a condition."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


class Ownership(StrEnum):
    """The way a topic came to be managed by the operator."""

    CREATED = "Created"
    ADOPTED = "Adopted"
    OBSERVED = "Observed"


class _Status(Model):
    model_config = ConfigDict(extra="ignore")


class Condition(_Status):
    """One observation, in the shape of Kubernetes' meta/v1 Condition."""

    type: Annotated[str, Field(min_length=1, max_length=316)]
    """The condition's type; one of `ConditionType`, or one of a newer operator."""
    status: ConditionStatus
    """True, False or Unknown."""
    observed_generation: Annotated[int, Field(ge=0)] | None = None
    """The generation of spec that was looked at."""
    last_transition_time: AwareDatetime
    """The time at which status last changed."""
    reason: Annotated[str, Field(max_length=1024, pattern="^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$")]
    """A word for programs."""
    message: Annotated[str, Field(max_length=32_768)]
    """A sentence for people: what is the matter, and what to do."""


class EffectiveStatus(_Status):
    """Values that follow from spec, class and defaults."""

    precision: str | None = None
    """In force."""
    max_delay: str | None = None
    """In force."""
    delay_class: str | None = None
    """The class in use, named or default."""
    delay_class_generation: int | None = None
    """The generation of the class that is applied."""


class TopicStatus(_Status):
    """A topic as it is in Kafka."""

    topic_id: str | None = None
    """Kafka's id: another one means that the topic was made anew."""
    partitions: int | None = None
    """The number of partitions."""
    ownership: Ownership | None = None
    """The way it came to be managed by the operator."""


class BackendStatus(_Status):
    """The backend in use."""

    type: BackendType | None = None
    """RedisZset or KafkaBuckets."""
    id: str | None = None
    """The identity by which the backlog is found when the same object is applied again."""
    to_move: int | None = None
    """Source offsets that relays still have to read again: the backlog that moves after a change of backend, or what
    only memory held before a crash."""


class RelayFleetStatus(_Status):
    """The relays as they are."""

    replicas: int | None = None
    """For the scale subresource."""
    ready_replicas: int | None = None
    """Running and assigned."""
    desired_replicas: int | None = None
    """The number of relays that the schedule ahead asks for."""
    max_useful_replicas: int | None = None
    """More than this cannot help."""
    selector: str | None = None
    """For the scale subresource."""
    summary: str | None = None
    """ready/desired, for kubectl."""
    version: str | None = None
    """Of the relays' image."""
    last_scale_time: AwareDatetime | None = None
    """The time at which the number last changed."""


class BacklogStatus(_Status):
    """Counts of pending records."""

    pending: int | None = None
    """Taken in and not yet delivered."""
    overdue: int | None = None
    """Due and not yet delivered."""
    due_within_look_ahead: int | None = None
    """Due within autoscaling.lookAhead."""
    next_due: AwareDatetime | None = None
    """The nearest due time."""
    as_of: AwareDatetime | None = None
    """The time of the count."""


class SloStatus(_Status):
    """The last audit."""

    lateness_p99: Annotated[str | None, Field(alias="latenessP99")] = None
    """99 of 100 records were at most this late."""
    attainment_percent: str | None = None
    """The share of records that were not late."""
    report: str | None = None
    """The place of the full report."""
    as_of: AwareDatetime | None = None
    """The time at which it was made."""


class PlannedAction(_Status):
    """One step that a dry run would take."""

    action: str
    """The change that would be made."""
    object: str
    """To what."""
    detail: str | None = None
    """The reason, with its values."""


class DelayTopicStatus(_Status):
    """The observed state."""

    observed_generation: int | None = None
    """The generation of spec that this status is about."""
    conditions: Annotated[list[Condition], Field(max_length=32)] = []
    """One of each type."""
    effective: EffectiveStatus | None = None
    """Values that follow from spec, class and defaults."""
    source: TopicStatus | None = None
    """The source topic."""
    target: TopicStatus | None = None
    """The target topic."""
    dead_letter: TopicStatus | None = None
    """The dead-letter topic."""
    history: TopicStatus | None = None
    """The history topic."""
    backend: BackendStatus | None = None
    """The backend in use."""
    relay: RelayFleetStatus | None = None
    """The relays as they are."""
    backlog: BacklogStatus | None = None
    """Counts of pending records."""
    scaling: KubernetesObject | None = None
    """The reasons for the number of relays; `kubectl delaytopic why-scale` shows them."""
    slo: SloStatus | None = None
    """The last audit."""
    plan: Annotated[list[PlannedAction], Field(max_length=50)] = []
    """The changes that a dry run would make."""
    operator_version: str | None = None
    """The version of the operator that wrote this."""
    last_handled_reconcile_at: str | None = None
    """The last request for a reconciliation that was served."""

    def condition(self, type: ConditionType) -> Condition | None:
        """The condition of this type, if there is one."""
        return next((condition for condition in self.conditions if condition.type == type), None)
