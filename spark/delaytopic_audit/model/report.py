"""report.json: the documented, versioned result of an audit. HTML, metrics and status are made from it alone."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from pydantic import Field

from delaytopic_api.documents import TIMELY, Model
from delaytopic_audit.model.manifest import ClockReading, Range, TopicRead


class Verdict(StrEnum):
    """The answer."""

    MET = "Met"
    MISSED = "Missed"
    CANNOT_JUDGE = "CannotJudge"
    NOT_PROMISED = "NotPromised"
    """The state of an objective that this DelayTopic does not promise."""


class ObjectiveName(StrEnum):
    """The name of a usual objective. Each is graded apart, as one good figure would hide another bad one."""

    TIMELY = TIMELY
    COMPLETE = "Complete"
    UNIQUE = "Unique"
    NOT_EARLY = "NotEarly"
    TOLD = "Told"


class Objective(Model):
    """One objective over the window."""

    name: str
    """Timely, Complete, Unique, NotEarly or Told; of a further threshold its name, such as Timely-100ms."""
    lateness_ms: int | None = None
    """The bound of Timely and of further thresholds: later than this is late."""
    objective: str
    """The share that has to be good, such as `99.9%`."""
    attainment: str | None
    """The share that was good, cut off after four decimals, never rounded up; null when nothing was due."""
    good: int
    """Records that were."""
    bad: int
    """Records that were not."""
    verdict: Verdict
    """Met, Missed or NotPromised."""
    sentence: str
    """The state in words, for people."""


class Window(Model):
    """The deadlines that are graded: from the first, up to and without the second. Epoch milliseconds."""

    from_ms: int
    """Start."""
    to_ms: int
    """End: minutes after it are not closed yet."""


class Counts(Model):
    """The fates of the records of some time, counted."""

    asked: int = 0
    """Source records that asked for something to happen, cancelled ones included."""
    delivered: int = 0
    """Arrived, late ones and those that came twice included."""
    on_time: int = 0
    """Arrived, and not late."""
    late: int = 0
    """Arrived later than allowed."""
    early: int = 0
    """Arrived before they were due."""
    lost: int = 0
    """Did not arrive, and nothing explains why."""
    misdirected: int = 0
    """Arrived on another topic than asked for."""
    duplicated: int = 0
    """Arrived more than once."""
    copies: int = 0
    """Arrivals beyond the first of a record or of a slot, in all."""
    unwanted: int = 0
    """Arrived although withdrawn in good time, or although they could not be scheduled."""
    unknown: int = 0
    """Arrivals whose source record asked for nothing, or does not exist."""
    cancelled: int = 0
    """Withdrawn by a cancel."""
    replaced: int = 0
    """Withdrawn by a later record with the same id."""
    dead_lettered: int = 0
    """The number on the dead-letter topic."""
    told: int = 0
    """The number with an outcome on the topic of outcomes."""
    untold: int = 0
    """Ended without an outcome there, of an ending that has to be told."""
    told_twice: int = 0
    """The number with more than one outcome, where `guarantee: ExactlyOnce` promises one."""
    retold: int = 0
    """Outcomes beyond the first, in all."""
    untrue: int = 0
    """The number with an outcome that the other topics contradict."""
    slots: int = 0
    """Occurrences of records that recur: slots that somebody was to have a delivery for."""
    slots_missed: int = 0
    """Slots that have no occurrence, as they were past and `deliver-missed` leaves them out; of one record at a time
    1,000 at most."""
    slots_skipped: int = 0
    """Slots that have no occurrence, although `deliver-missed` delivers them; bounded in the same way."""
    slots_repeated: int = 0
    """Occurrences that were delivered for a slot that was delivered before, or that their rule does not have, where
    `guarantee: ExactlyOnce` promises none; else they are among `copies`."""
    chains_broken: int = 0
    """Occurrences that were delivered, and that nothing follows although their rule has another slot."""


class Lateness(Model):
    """Arrival minus deadline of delivered records, milliseconds; within 1 % but for the greatest, which is exact."""

    p50_ms: float | None
    """Half of the records."""
    p90_ms: float | None
    """90 of 100."""
    p99_ms: float | None
    """99 of 100."""
    p999_ms: float | None
    """999 of 1000."""
    max_ms: int | None
    """The latest."""


class Span(Model):
    """One of the equal parts that the window is drawn in."""

    from_ms: int
    """Start."""
    to_ms: int
    """End."""
    counts: Counts
    """The fates of its records."""
    lateness: Lateness
    """Their lateness."""
    excluded: Counts | None = None
    """The counts of records due within exclusions: what was on time, late, lost or misdirected."""
    bins: list[int]
    """Delivered records by lateness; the upper edges are the report's `binEdgesMs`, the last bin has none."""


class WorstMinute(Model):
    """A minute that cost more of the budget than others."""

    minute_ms: int
    """Its start."""
    counts: Counts
    """The fates of its records."""
    latest_ms: int | None
    """The greatest lateness."""


class PartitionCounts(Model):
    """One source partition over the window."""

    partition: int
    """Its number."""
    counts: Counts
    """The fates of its records."""


class Listed(Model):
    """One record by its coordinates."""

    partition: int
    """The partition of the source record."""
    offset: int
    """The offset of the source record."""
    deadline_ms: int
    """The time at which it had to arrive."""
    lateness_ms: int | None = None
    """The lateness of its first arrival."""
    copies: int = 0
    """The number of its arrivals."""
    topic: str | None = None
    """The topic of its first arrival."""
    at_partition: int | None = None
    """The partition of its first arrival."""
    at_offset: int | None = None
    """The offset of its first arrival."""
    reason: str | None = None
    """The reason of a dead letter; of an untrue outcome the word that it says; of a broken chain and of a repeated slot
    that slot; of slots that were skipped or missed, how many, and the first of them."""


class FindingList(Model):
    """All records of which the same is to be said."""

    finding: str
    """lost, duplicated, early, late, misdirected, unwanted, unknown, untold, told-twice, untrue, chains-broken,
    slots-skipped, slots-repeated, cancelled, replaced, dead-lettered or slots-missed."""
    records: int
    """The number of records; of slots that were skipped or missed, that of slots."""
    provisional: int
    """The number of these that are too young to be final: a late arrival may still heal them. Losses only."""
    listed: list[Listed]
    """The first of them by deadline, up to a bound; the ledger has all."""


class Budget(Model):
    """The error budget over the objective's own window, or over the period of its calendar."""

    window: str
    """Its length."""
    calendar: str | None = None
    """Day, Week or Month; null for a rolling window."""
    time_zone: str | None = None
    """The zone in which that begins at midnight; null for UTC."""
    from_ms: int
    """Its start, or when the audit began if that was later."""
    until_ms: int | None = None
    """The end of the period of a calendar; null for a rolling window."""
    total: int
    """Records that were due."""
    allowed: float
    """The number of them that may be late or lost."""
    spent: int
    """The number of them that were."""
    excluded: int = 0
    """Records that were due within exclusions, and are in none of these numbers."""
    remaining: float | None
    """The share of the budget that is left; below zero when it is overspent, null when nothing was due."""


class BurnRate(Model):
    """The speed at which the budget was spent over the last so many hours, as a multiple of the allowed one."""

    window: str
    """The length."""
    total: int
    """Records that were due."""
    bad: int
    """Late or lost."""
    rate: float | None
    """1 spends exactly the budget; null when nothing was due."""


class Exhaustion(Model):
    """The time at which the error budget is spent, if records go on being late or lost at the present pace."""

    window: str
    """The window of `burnRates` that stands for the pace: the shortest that alerts, else the longest up to 72h."""
    rate: float
    """Its burn rate."""
    at_ms: int | None
    """The time; the end of what is graded when it is spent already, null when it lasts for the objective's window."""
    sentence: str
    """The state in words, for people."""


class ThresholdBudget(Model):
    """The error budget of a further threshold of lateness; how it was kept is in the report's `objectives`."""

    objective: str
    """The name of its objective."""
    lateness_ms: int
    """Later than this is late for it."""
    counts_from_ms: int | None = None
    """The time from which on it counts: earlier records were graded without it, and are in none of its figures. Null
    when it counts all."""
    budget: Budget
    """Over the objective's own window."""
    budget_before: Budget | None = None
    """The budget of the period before, with a calendar; null when nothing is known of it."""
    burn_rates: list[BurnRate] = Field(default_factory=list)
    """Shortest first."""
    exhaustion: Exhaustion | None = None
    """Null when nothing was due, or without a budget."""


class ExcludedTime(Model):
    """A time of `spec.slo.exclusions` in which records count for no objective of lateness."""

    from_ms: int
    """Start."""
    until_ms: int
    """End."""
    reason: str
    """The reason as the DelayTopic gives it."""
    records: int
    """Records that were due within it and within the window; of times that overlap, the first has them."""
    bad: int
    """The number of these that were late, lost, or on another topic."""


class FaultyHour(Model):
    """Records that broke an objective of 100 % and were due within one hour."""

    hour_ms: int
    """Its start."""
    objective: str
    """Its name."""
    records: int
    """The number of records."""


class Reading(Model):
    """The topics and ranges that the run read."""

    run: int
    """The number of the run in its ledger."""
    planned_at_ms: int
    """The time at which its ranges were planned, up to which it judges."""
    ranges: list[Range]
    """The offsets, from `start` up to and without `end`."""
    topics: list[TopicRead]
    """The number of records by topic."""
    clocks: list[ClockReading]
    """The clocks, by target partition."""
    out_of_scope: int
    """Arrivals of source records from before the audit began."""
    ancient: int = 0
    """Source records that were due in 1973 or before: mostly a time in seconds, read as milliseconds."""
    beyond_retention: int
    """Records of minutes that the ledger no longer knows."""
    restated_minutes: int
    """Minutes that were graded before, and again now because more was found of them."""


class Report(Model):
    """The result of one audit of one DelayTopic."""

    schema_version: Literal[1] = 1
    """Grows when a field changes its meaning; new fields do not count."""
    delay_topic: str
    """`namespace/name`."""
    verdict: Verdict
    """Met, Missed or CannotJudge."""
    sentence: str
    """The state in words, for people."""
    reasons: list[str] = Field(default_factory=list)
    """Reasons why there is no verdict, one sentence each."""
    remarks: list[str] = Field(default_factory=list)
    """Remarks on the run, one sentence each; `make report` says that it killed the relay."""
    generated_at_ms: int
    """The time at which this document was made."""
    source: str = ""
    """The source topic; coordinates are its."""
    target: str = ""
    """The target topic."""
    window: Window | None = None
    """The deadlines that are graded."""
    lateness_objective_ms: int | None = None
    """Later than this is late."""
    objectives: list[Objective] = Field(default_factory=list)
    """Graded apart."""
    counts: Counts | None = None
    """Over the window."""
    lateness: Lateness | None = None
    """Over the window."""
    budget: Budget | None = None
    """Over the objective's own window."""
    budget_before: Budget | None = None
    """The budget of the period before, with a calendar; null when nothing is known of it."""
    burn_rates: list[BurnRate] = Field(default_factory=list)
    """Shortest first."""
    exclusions: list[ExcludedTime] = Field(default_factory=list)
    """Exclusions that meet the window, as the DelayTopic has them."""
    exhaustion: Exhaustion | None = None
    """Null when nothing was due, or without a budget."""
    thresholds: list[ThresholdBudget] = Field(default_factory=list)
    """Error budgets of further thresholds of lateness, as the DelayTopic has them; those above are of Timely."""
    bin_edges_ms: list[int] = Field(default_factory=list)
    """Upper edges of the bins of `spans`."""
    spans: list[Span] = Field(default_factory=list)
    """Over the window, in order."""
    worst_minutes: list[WorstMinute] = Field(default_factory=list)
    """Worst first; none when nothing was wrong."""
    partitions: list[PartitionCounts] = Field(default_factory=list)
    """The partitions, in order."""
    findings: list[FindingList] = Field(default_factory=list)
    """Faults first."""
    faulty_hours: list[FaultyHour] = Field(default_factory=list)
    """The faulty hours of all that the ledger remembers, latest first, up to a bound: two audits compared tell what was
    found newly."""
    notes: list[str] = Field(default_factory=list)
    """Remarks that a reader has to know before trusting the figures."""
    reading: Reading | None = None
    """The topics and ranges that the run read."""
