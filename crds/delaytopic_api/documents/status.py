"""The status of both kinds, written by the operator; what a newer operator adds is ignored here."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import AwareDatetime, ConfigDict, Field

from delaytopic_api.documents.model import Model
from delaytopic_api.documents.scaling_status import ScalingStatus
from delaytopic_api.values.choices import BackendType
from delaytopic_api.values.lists import ATOMIC, as_map


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
    RULES_IN_FORCE = "RulesInForce"
    SOURCE_HELD_BACK = "SourceHeldBack"
    OTHER_OWNER = "OtherOwner"
    ACCEPTED = "Accepted"
    """The condition of a DelayClass that may be used."""
    DELETION_BLOCKED = "DeletionBlocked"
    """The condition of a DelayClass that DelayTopics still use while it goes."""


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


class StatusPart(Model):
    """A part that operators write: what a newer one adds is ignored."""

    model_config = ConfigDict(extra="ignore")


class Condition(StatusPart):
    """One observation, in the shape of Kubernetes' meta/v1 Condition."""

    type: Annotated[str, Field(min_length=1, max_length=316)]
    """The condition's type; one of `ConditionType`, or one of a newer operator."""
    status: ConditionStatus
    """The condition's state: True, False or Unknown."""
    observed_generation: Annotated[int, Field(ge=0)] | None = None
    """The generation of spec that was looked at."""
    last_transition_time: AwareDatetime
    """The time at which status last changed."""
    reason: Annotated[str, Field(max_length=1024, pattern="^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$")]
    """The reason as a word for programs."""
    message: Annotated[str, Field(max_length=32_768)]
    """The reason as a sentence for people, with what to do."""


class EffectiveStatus(StatusPart):
    """Values that follow from spec, class and defaults; those of schedule count for what is produced from now on."""

    precision: str | None = None
    """The precision in force, such as 1s."""
    dialect: str | None = None
    """The headers that are read."""
    max_delay: str | None = None
    """The longest delay in force, such as 720h."""
    default_delay: str | None = None
    """The delay of records without a time header; absent for at once."""
    fixed_delay: str | None = None
    """The delay of every record; absent where records say it."""
    ids: str | None = None
    """The use of names: ByHeader, ByKey or Disabled."""
    delay_class: str | None = None
    """The class in use, named or default."""
    delay_class_generation: int | None = None
    """The generation of the class that is applied."""


RecordCount = Annotated[int, Field(ge=0, le=2**53)]
"""A count that another process made: the API server takes no larger numbers, and would refuse the whole status."""
MOST_FORMER = 8
"""The number of `FormerRulesStatus` that are listed."""


class FormerRulesStatus(StatusPart):
    """Rules of before an edit, by which records wait: each record keeps the rules that it was produced by."""

    dialect: Annotated[str, Field(max_length=32)]
    """The headers that were read."""
    max_delay: Annotated[str, Field(max_length=32)]
    """The longest delay that was taken."""
    default_delay: Annotated[str | None, Field(max_length=32)] = None
    """The delay of records without a time header; absent for at once."""
    fixed_delay: Annotated[str | None, Field(max_length=32)] = None
    """The delay of every record; absent where records said it."""
    ids: Annotated[str, Field(max_length=32)]
    """The use of names."""
    allowed_topics: Annotated[list[Annotated[str, Field(max_length=255)]], Field(max_length=16), ATOMIC] = []
    """The topics that records could name besides the target; * where that is asked when they are due alone."""
    declared_at: AwareDatetime | None = None
    """The time at which the operator saw these rules first."""
    records: RecordCount
    """The most records that wait by them."""
    partitions: Annotated[int, Field(ge=0)]
    """The number of source partitions in which they do."""
    last_due: AwareDatetime
    """The time at which the last of them is due."""


class TopicStatus(StatusPart):
    """A topic as it is in Kafka."""

    topic_id: str | None = None
    """Kafka's id: another one means that the topic was made anew."""
    partitions: int | None = None
    """The number of partitions."""
    ownership: Ownership | None = None
    """The way it came to be managed by the operator."""


class BackendStatus(StatusPart):
    """The backend in use."""

    type: BackendType | None = None
    """The backend: RedisZset or KafkaBuckets."""
    id: str | None = None
    """The identity by which the backlog is found when the same object is applied again."""
    to_move: int | None = None
    """Source offsets that relays still have to read again: the backlog that moves after a change of backend, or what
    only memory held before a crash."""


class RelayFleetStatus(StatusPart):
    """The relays as they are."""

    replicas: int | None = None
    """The number of relays, for the scale subresource."""
    ready_replicas: int | None = None
    """The number of relays that run and have partitions assigned."""
    desired_replicas: int | None = None
    """The number of relays that the schedule ahead asks for."""
    max_useful_replicas: int | None = None
    """The number of relays beyond which more cannot help."""
    selector: str | None = None
    """The labels of the relays' pods, for the scale subresource."""
    summary: str | None = None
    """The ready relays of the desired ones, such as 2/2, for kubectl."""
    version: str | None = None
    """The version of the relays' image."""
    last_scale_time: AwareDatetime | None = None
    """The time at which the number last changed."""


class BacklogStatus(StatusPart):
    """Counts of pending records."""

    pending: int | None = None
    """The number of records that were taken in and are not yet delivered, without those that are known to be cancelled
    or replaced."""
    overdue: int | None = None
    """The number of records that are due and not yet delivered."""
    due_within_look_ahead: int | None = None
    """The number of records that are due within autoscaling.lookAhead."""
    next_due: AwareDatetime | None = None
    """The nearest due time."""
    as_of: AwareDatetime | None = None
    """The time of the count."""


class SloStatus(StatusPart):
    """The last audit in short; its report has the rest. Without a verdict, the figures stay those of the last one that
    had a verdict.
    """

    verdict: Annotated[str | None, Field(max_length=32)] = None
    """The verdict: Met, Missed or CannotJudge."""
    audited_at: AwareDatetime | None = None
    """The time of the last audit."""
    window: Annotated[str | None, Field(max_length=28)] = None
    """The length of time that is graded."""
    missed: Annotated[list[Annotated[str, Field(max_length=32)]], Field(max_length=8), ATOMIC] | None = None
    """The names of the objectives that were missed, such as Timely or Complete; absent when none was."""
    lateness_p99: Annotated[str | None, Field(alias="latenessP99", max_length=32)] = None
    """The lateness that 99 of 100 records did not exceed, such as 80ms."""
    attainment_percent: Annotated[str | None, Field(max_length=32)] = None
    """The share of records that were not late."""
    budget_left_percent: Annotated[str | None, Field(max_length=32)] = None
    """The share of the error budget that is left, over the objective's own window; below zero when it is overspent."""
    report: str | None = None
    """The place of the full report."""


class PlannedAction(StatusPart):
    """One step that a dry run would take."""

    action: str
    """The change that would be made."""
    object: str
    """The object that would be changed, such as `ConfigMap order-reminders`."""
    detail: str | None = None
    """The reason, with its values."""


class DelayTopicStatus(StatusPart):
    """The observed state."""

    observed_generation: int | None = None
    """The generation of spec that this status is about."""
    conditions: Annotated[list[Condition], Field(max_length=32), as_map("type")] = []
    """The conditions, one of each type."""
    effective: EffectiveStatus | None = None
    """Values that follow from spec, class and defaults."""
    former_rules: Annotated[list[FormerRulesStatus], Field(max_length=MOST_FORMER), ATOMIC] = []
    """Rules of before an edit by which records wait, the oldest first; empty if all that waits has those of now."""
    source: TopicStatus | None = None
    """The source topic."""
    target: TopicStatus | None = None
    """The target topic."""
    dead_letter: TopicStatus | None = None
    """The dead-letter topic."""
    history: TopicStatus | None = None
    """The history topic."""
    outcomes: TopicStatus | None = None
    """The topic of outcomes."""
    backend: BackendStatus | None = None
    """The backend in use."""
    relay: RelayFleetStatus | None = None
    """The relays as they are."""
    backlog: BacklogStatus | None = None
    """Counts of pending records."""
    scaling: ScalingStatus | None = None
    """The reasons for the number of relays; `kubectl delaytopic why-scale` shows them."""
    slo: SloStatus | None = None
    """The last audit."""
    plan: Annotated[list[PlannedAction], Field(max_length=50), ATOMIC] = []
    """The changes that a dry run would make."""
    operator_version: str | None = None
    """The version of the operator that wrote this."""
    last_handled_reconcile_at: str | None = None
    """The last request for a reconciliation that was served."""

    def condition(self, type: ConditionType) -> Condition | None:
        """The condition of this type, if there is one."""
        return next((condition for condition in self.conditions if condition.type == type), None)


class DelayClassStatus(StatusPart):
    """The observed state of a class."""

    observed_generation: int | None = None
    """The generation of spec that this status is about."""
    conditions: Annotated[list[Condition], Field(max_length=8), as_map("type")] = []
    """One of each type."""
    users: Annotated[int, Field(ge=0)] | None = None
    """The number of DelayTopics that use the class, those that are being deleted included."""
    operator: Annotated[str, Field(max_length=63)] | None = None
    """The namespace of the operator that wrote this; of several that share a class, the first one does."""
