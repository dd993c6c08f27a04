"""The reasons for the number of relays, as a status has them: every number behind a decision."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import AfterValidator, ConfigDict

from delaytopic_api.documents.model import Model
from delaytopic_api.values.lists import ATOMIC

_MOST: Final = 2**53

# Numbers that relays and brokers tell may be anything; the API server would refuse the whole status for a larger one.
Number = Annotated[int, AfterValidator(lambda number: max(-_MOST, min(number, _MOST)))]
Rate = Annotated[float, AfterValidator(lambda rate: max(-1.0 * _MOST, min(rate, 1.0 * _MOST)))]


class _Status(Model):
    model_config = ConfigDict(extra="ignore")


class ScalingSizes(_Status):
    """The numbers of relays that make sense."""

    partitions: Number
    """The number of source partitions."""
    max_useful: Number
    """The number of relays beyond which more cannot help."""
    allowed: Annotated[list[Number], ATOMIC] = []
    """The numbers of relays that are chosen from, such as 1, 2, 3, 4, 6 and 12."""


class ScalingNeed(_Status):
    """Records that fall due within a span, and the relays that they need."""

    kind: str
    """The kind of the need, such as Due."""
    relays: Rate
    """The relays that it needs, such as 2.4."""
    size: Number
    """The number of relays that is chosen for it."""
    records: Number
    """The number of records."""
    from_ms: Number
    """The start of the span, in epoch milliseconds."""
    to_ms: Number
    """The end of the span, in epoch milliseconds."""
    act_from_ms: Number
    """The time from which more relays have to start for it, in epoch milliseconds."""
    binding: bool
    """True for the need that decided."""


class ScalingCapacity(_Status):
    """The work that one relay can do, and the time that it needs to start."""

    per_relay: Number
    """The number of records that a relay delivers in a second."""
    measured: bool
    """True if that was measured; else it is assumed."""
    lead_time_ms: Number
    """The time from asking for a relay to its first delivery, in milliseconds."""
    measured_starts: Number
    """The number of starts that the lead time was measured by."""


class ScalingForecast(_Status):
    """The lateness to expect with several numbers of relays."""

    current: Number | None = None
    """The lateness with the present number, in milliseconds."""
    decided: Number | None = None
    """The lateness with the number that was decided, in milliseconds."""
    most: Number | None = None
    """The lateness with the most that are allowed, in milliseconds."""


class ScalingReading(_Status):
    """A number, and how old it was when it was decided upon."""

    value: Number | None = None
    """The number that was known. Absent where there is none: nothing waits that could be due next."""
    age_ms: Number
    """The age of the number, in milliseconds."""


class ScalingSignals(_Status):
    """The numbers that were known; an absent one was not."""

    pending: ScalingReading | None = None
    """The number of records that were taken in and are not yet delivered."""
    overdue: ScalingReading | None = None
    """The number of records that are due and not yet delivered."""
    ingest_lag: ScalingReading | None = None
    """The number of records that are not yet taken in."""
    next_due_ms: ScalingReading | None = None
    """The nearest due time, in epoch milliseconds."""
    source_end: ScalingReading | None = None
    """The sum of the source partitions' end offsets."""
    due_within_look_ahead: Number | None = None
    """The number of records that are due within autoscaling.lookAhead."""
    uncovered_partitions: Annotated[list[Number], ATOMIC] = []
    """The source partitions that no relay told of."""
    silent_relays: Annotated[list[str], ATOMIC] = []
    """The relays whose last answer is too old to count."""


class ScalingFinding(_Status):
    """A condition that follows from the decision."""

    type: str
    """The type of the condition, such as CapacitySufficient."""
    status: str
    """The state of the condition: True, False or Unknown."""
    reason: str
    """The reason as a word for programs."""
    message: str
    """The reason as a sentence for people."""


class ScalingStatus(_Status):
    """The reasons for the number of relays; `kubectl delaytopic why-scale` shows them."""

    decided_at_ms: Number
    """The time of the decision, in epoch milliseconds."""
    next_look_ms: Number
    """The time of the next one at the latest, in epoch milliseconds."""
    mode: str
    """The party that sets the number of relays: Operator, External or Fixed."""
    current: Number
    """The number of relays at the time of the decision."""
    decided: Number
    """The number of relays that was decided."""
    wanted: Number | None = None
    """The number of relays that the schedule asks for, before bounds and pace."""
    reason: str
    """The reason as a word for programs, such as DueSoon."""
    sentence: str
    """The reason as a sentence for people."""
    sizes: ScalingSizes | None = None
    """The numbers of relays that make sense; absent while too little is known."""
    needs: Annotated[list[ScalingNeed], ATOMIC] = []
    """The largest needs, the first one first."""
    capacity: ScalingCapacity | None = None
    """The work that one relay can do; absent while too little is known."""
    forecast_lateness_ms: ScalingForecast | None = None
    """The lateness to expect with several numbers of relays; absent while nothing is forecast."""
    signals: ScalingSignals = ScalingSignals()
    """The numbers that were known."""
    conditions: Annotated[list[ScalingFinding], ATOMIC] = []
    """The conditions that follow from the decision."""
