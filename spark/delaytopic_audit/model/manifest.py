"""The documents of a run: the plan, written before anything is read, and the commit, which makes its results count."""

from __future__ import annotations

from enum import StrEnum
from typing import Final, Literal, NamedTuple

from pydantic import Field

from delaytopic_api.documents import Model
from delaytopic_api.relay import Ending
from delaytopic_audit.model.rules import Rules

OF_RUN: Final = ("records", "digests")
"""Tables that each run writes, with or without rows. Of digests, those of the last run say everything."""
OF_PART: Final = ("verdicts", "histogram", "findings")
"""Tables of minutes that are graded."""


class Role(StrEnum):
    """The part that a topic plays for a DelayTopic."""

    SOURCE = "source"
    TARGET = "target"
    DEAD_LETTER = "dead-letter"
    OUTCOMES = "outcomes"


class Range(Model):
    """Offsets of one partition to read: from `start`, up to and without `end`."""

    topic: str
    """Its name."""
    role: Role
    """source, target, dead-letter or outcomes."""
    partition: int
    """Its number."""
    start: int
    """The first offset."""
    end: int
    """The first offset that is not read."""


class PlannedTopic(Model):
    """A topic as it was when its ranges were planned."""

    topic: str
    role: Role
    topic_id: str
    partitions: int


class FirstOffset(Model):
    """The offset at which the audit of one source partition began: earlier records are not judged."""

    partition: int
    offset: int


class RulesFrom(Model):
    """The rules by which the records of one source partition are read, from an offset on up to where others begin."""

    partition: int
    offset: int
    rules: str
    """The rules in the relays' words, as they commit them with their progress."""
    assumed: bool = False
    """True: relays have told nothing of this partition, and these are the DelayTopic's."""


class Remarked(Range):
    """Offsets of the source of which a reader of the report has to know something."""

    reason: str


class Plan(Model):
    """The ranges of one DelayTopic that a run reads, and the moment up to which it judges."""

    delay_topic: str
    """`namespace/name`."""
    number: int
    """The number by which tables know it, in their column `delay_topic`: another one whenever its audit begins anew,
    so that rows of before are nobody's."""
    sequence: int
    """Counts the runs that judged it from 1."""
    epoch: int
    """Counts the times that its audit began anew."""
    planned_at_ms: int
    """Taken before the ends of the ranges."""
    source: str
    target: str
    dead_letter: str
    outcomes: str | None = None
    """The topic of outcomes; None where there is none to read."""
    told: list[Ending] = Field(default_factory=list)
    """The endings that it has to tell."""
    trusts_any_clock: bool = False
    """True: CreateTime is good enough for append times."""
    rules: Rules
    topics: list[PlannedTopic]
    ranges: list[Range]
    scope: list[FirstOffset]
    generations: list[RulesFrom] = Field(default_factory=list)
    """The generations, by partition and offset. Later runs go on with them: relays forget what is done."""
    unjudged: list[Remarked] = Field(default_factory=list)
    """Offsets that this run or one before it does not judge; nor are outcomes of them judged."""
    doubtful: list[Remarked] = Field(default_factory=list)
    """Offsets that this run or one before it may have read by other rules than relays did."""
    remarks: list[str] = Field(default_factory=list)
    """Remarks on what could not be learned, one sentence each."""


class Refused(Model):
    """A DelayTopic that a run could not judge. What is known of it stays as it was."""

    delay_topic: str
    """`namespace/name`."""
    reasons: list[str]
    """One sentence each."""
    unread: bool = False
    """True: Kafka did not let it be read, and the next run may."""


class RunPlan(Model):
    """The plan of one run, with all DelayTopics that it judges. A repeated run has the same plan."""

    schema_version: Literal[2] = 2
    sequence: int
    """Counts the runs of a ledger from 1."""
    plans: list[Plan]
    """One for each DelayTopic."""
    refused: list[Refused] = Field(default_factory=list)
    """The DelayTopics that were asked for, and that cannot be planned."""

    @property
    def names(self) -> set[str]:
        """The DelayTopics that the run was asked for."""
        return {plan.delay_topic for plan in self.plans} | {each.delay_topic for each in self.refused}


class MinuteRange(NamedTuple):
    """Minutes from `start`, up to and without `end`."""

    start: int
    end: int


class Asked(NamedTuple):
    """Offsets of one partition of a source: from `start`, up to and without `end`."""

    partition: int
    start: int
    end: int


class Part(Model):
    """The verdicts of some minutes. Each graded minute of a DelayTopic that is remembered is in one part.

    DelayTopics with other graces close other minutes in a run, so parts may overlap in time.
    """

    folder: str
    """The folder of its tables, relative to the ledger."""
    start: int
    """The first minute."""
    end: int
    """The first minute after the last."""
    runs: int
    """The number of runs that graded it first: parts of as many are put together."""

    @property
    def tables(self) -> list[str]:
        """The places of its tables."""
        return [f"{self.folder}/{table}" for table in OF_PART]


class Buckets(Model):
    """The files of a table of commands, by hashes of their ids."""

    of: int
    """The number of buckets that ids are divided into: a power of two."""
    commands: list[int] = Field(default_factory=list)
    """The buckets with commands that do not recur."""
    chains: list[int] = Field(default_factory=list)
    """The buckets with records that recur, and their occurrences."""


class Run(Model):
    """A run whose tables still count, or several that were put together."""

    sequence: int
    """The number of the run, or of the last of them."""
    folder: str
    """The folder of its tables, relative to the ledger."""
    first_minute: int | None = None
    """The first minute of its records' deadlines; None without records."""
    last_minute: int | None = None
    """The last minute of these."""
    commands: int
    """Rows of its table of commands."""
    buckets: Buckets | None = None
    """The files of this table; None without rows."""
    overdue: int
    """Rows of its table of overdue records."""
    asks: dict[int, list[Asked]]
    """The offsets of sources that it read, by the number of the DelayTopic."""
    rows: int
    """The rows of its table of records."""
    runs: int = 1
    """The number of runs that it was put together from."""

    @property
    def tables(self) -> list[str]:
        """The tables of the run that count: without any, the run is forgotten."""
        counts = {
            "records": self.last_minute is not None,
            "commands": self.commands > 0,
            "overdue": self.overdue > 0,
        }
        return [name for name, does in counts.items() if does]


class CountedFrom(Model):
    """The first minute from which on all are graded by a further threshold of lateness."""

    lateness_ms: int
    minute: int


class GradedUntil(Model):
    """A former `lateness_ms` of the rules, and the first minute that was not graded by it."""

    lateness_ms: int
    minute: int


class TopicRead(Model):
    """The number of records read of a topic."""

    topic: str
    """Its name."""
    role: Role
    """source, target, dead-letter or outcomes."""
    records: int
    """The number of records."""
    by_broker: int
    """The number of these with LogAppendTime."""
    foreign: int
    """The number of these that were not written for this source."""


class ClockReading(Model):
    """The least of append time minus sent time of one target partition. Below zero, clocks disagree."""

    topic: str
    """The target topic."""
    partition: int
    """The target partition."""
    least_ms: int
    """The least difference, milliseconds."""


class State(Model):
    """A DelayTopic as the last run that judged it has left it."""

    plan: Plan
    closed_minute: int
    """Minutes before this one are graded."""
    floor_minute: int = 0
    """Minutes before this one are forgotten."""
    forgotten: list[Asked] = Field(default_factory=list)
    """Offsets of the source whose records are all of minutes that are forgotten."""
    read: list[TopicRead]
    clocks: list[ClockReading]
    named: list[str]
    """Topics that records asked for by `deliver-to`."""
    out_of_scope: int
    """Outcomes of source records from before the audit began."""
    ancient: int = 0
    """Source records that were due in 1973 or before."""
    beyond_retention: int
    """Records of minutes that the ledger no longer knows."""
    restated_minutes: int
    """The number of the minutes graded now that an earlier run had graded."""
    counted: list[CountedFrom] = Field(default_factory=list)
    """The first minute of each further threshold of the plan's rules."""
    formerly: list[GradedUntil] = Field(default_factory=list)
    """Other latenesses than that of the plan's rules by which minutes are graded that count, by time."""
    telling: dict[Ending, int] = Field(default_factory=dict)
    """The endings that have to be told, each with the time from which on an untold one is a fault."""
    awaited_minutes: list[int] = Field(default_factory=list)
    """Minutes with an end that is so recent that its outcome may be on its way: the next run grades them again."""


class Commit(Model):
    """The end of a run, with the tables that it wrote. Readers list commits, never folders."""

    schema_version: Literal[5] = 5
    sequence: int
    """The number of the run."""
    folder: str
    """The folder of this run's tables, which no other run has, nor another attempt at this one."""
    states: list[State]
    """All DelayTopics that are remembered: those that this run judged, and others as they were."""
    refused: list[Refused] = Field(default_factory=list)
    """DelayTopics that this run was asked for, and could not judge."""
    numbers: int
    """The greatest number that a DelayTopic has had."""
    runs: list[Run]
    """All runs that count, this one last."""
    parts: list[Part]
    """The verdicts, in the order in which they were graded first. No rows count of a number that is not among
    `states`, nor of a minute before the `floorMinute` of its DelayTopic."""

    def state_of(self, delay_topic: str) -> State | None:
        """Return what is known of a DelayTopic, `namespace/name`."""
        return next((state for state in self.states if state.plan.delay_topic == delay_topic), None)

    @property
    def tables(self) -> set[str]:
        """The places of all tables that count, and of those of this run that are empty."""
        of_runs = {f"{run.folder}/{table}" for run in self.runs for table in run.tables}
        of_parts = {table for part in self.parts for table in part.tables}
        return of_runs | of_parts | {f"{self.folder}/{table}" for table in OF_RUN}

    @property
    def folders(self) -> set[str]:
        """The folders of all runs that have a table that counts."""
        return {"/".join(table.split("/")[:2]) for table in self.tables}
