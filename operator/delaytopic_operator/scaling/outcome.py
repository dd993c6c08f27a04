"""What a decision says."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from delaytopic_api.documents import ConditionStatus, ConditionType
from delaytopic_api.values import AutoscalingMode
from delaytopic_operator.scaling.assessment import Assessment
from delaytopic_operator.scaling.forecast import Forecast
from delaytopic_operator.scaling.memory import ScalingMemory


class Reason(StrEnum):
    """Why the number of relays changes, or does not: a word for programs."""

    DUE = "DueSoon"
    OVERDUE = "Overdue"
    INGEST = "IngestLag"
    MIN_REPLICAS = "MinReplicas"
    MAX_REPLICAS = "MaxReplicas"
    LESS_NEEDED = "LessNeeded"
    NOTHING_PENDING = "NothingPending"
    NEXT_DUE = "NextDue"
    NEW_RECORDS = "NewRecords"
    BLIND = "Blind"

    ENOUGH = "Enough"
    AT_MAXIMUM = "AtMaximum"
    TOO_LATE = "TooLate"
    NEEDED_SOON = "NeededSoon"
    STABILIZING = "Stabilizing"
    SIGNAL_STALE = "SignalStale"
    STEP_TOO_SOON = "StepTooSoon"
    TARGET_THROTTLED = "TargetThrottled"
    PAUSED_SCALE_IN = "PausedScaleIn"
    PAUSED_SCALE_OUT = "PausedScaleOut"
    SUSPENDED = "Suspended"
    ASLEEP = "Asleep"
    OPERATOR_BUDGET = "OperatorBudget"
    EXTERNAL_SCALER = "ExternalScaler"
    FIXED = "Fixed"


@dataclass(frozen=True, slots=True)
class ScalingCondition:
    """A condition without the fields that whoever merges it knows: generation and time of transition."""

    type: ConditionType
    status: ConditionStatus
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Decision:
    """How many relays there shall be, why, and what to remember if it is carried out."""

    current: int
    replicas: int
    reason: Reason
    sentence: str
    """For the event and the status."""
    mode: AutoscalingMode
    active: ScalingCondition
    capacity: ScalingCondition
    forecast: Forecast | None
    """None while too little is known."""
    next_look_ms: int
    """When it must be asked again, at the latest."""
    decided_at_ms: int
    memory: ScalingMemory
    """To be kept when the step was taken, or when there is none; a step that failed keeps the former memory."""
    assessment: Assessment | None
    """What it was computed from; None while the source's partitions are not known."""

    @property
    def changed(self) -> bool:
        """Whether there is a step to take."""
        return self.replicas != self.current

    @property
    def max_useful(self) -> int | None:
        """More relays than this cannot help, or are not allowed."""
        return self.assessment.sizes.max_useful if self.assessment else None

    @property
    def wanted(self) -> int:
        """What the schedule ahead asks for, whatever holds it."""
        return self.assessment.wanted if self.assessment and self.replicas else self.replicas
