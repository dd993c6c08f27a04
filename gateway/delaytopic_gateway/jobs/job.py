"""A job, and what it does with a page of pending records. Pure.

A job is a document that is written again with each batch of commands, in the same transaction. So what it says of
itself is exact, and whoever reads it last goes on from there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from enum import StrEnum
from itertools import accumulate, islice
from typing import Annotated, Final, NamedTuple

from pydantic import ConfigDict, Field

from delaytopic_api.documents.model import Model
from delaytopic_api.relay import PendingRecord
from delaytopic_gateway.client.new_records import OutgoingRecord
from delaytopic_gateway.service.control_records import (
    cancelling,
    demand_cancels,
    demand_moves,
    id_of,
    moving,
    requested_by,
)
from delaytopic_gateway.service.served_topics import ServedTopic

GUARD_MS: Final = 30_000
"""Records that are due sooner are neither moved nor released: relays could deliver them before they read of it."""
BATCH_RECORDS: Final = 1_000
"""Commands in one transaction. While it is open, relays read nothing behind it in its partition."""
BEFORE_ALL: Final = (-1, -1)

MOST_KEPT_PARTS: Final = 10_000
"""The most parts that the ended jobs of a namespace have: a job of a source with three partitions counts as three."""

Place = tuple[int, int]
"""Due time and source offset: the order of the list of one partition."""


class Action(StrEnum):
    """The action on the records."""

    CANCEL = "Cancel"
    MOVE = "Move"
    RELEASE = "Release"


class State(StrEnum):
    """The progress of a job."""

    RUNNING = "Running"
    DONE = "Done"
    FAILED = "Failed"
    CANCELLED = "Cancelled"


class Reason(StrEnum):
    """The reason why nothing was written for a record."""

    NO_ID = "noId"
    """It has no id, so that there is no command for it."""
    TOO_NEAR = "tooNear"
    """It was due within the guard: it is delivered at its own time."""
    EXPIRES = "expires"
    """It expires before its new time."""
    TOO_FAR = "tooFar"
    """Its new time is further ahead than schedule.maxDelay allows."""
    TOO_LARGE = "tooLarge"
    """Kafka refused its command for its size."""
    GONE = "gone"
    """It was counted when the job began, and delivered, cancelled or replaced before its turn came."""


class _Stored(Model):
    # A gateway of another version may have written it.
    model_config = ConfigDict(extra="ignore")


class Selector(_Stored):
    """The pending records that are meant: those that fit all that is given."""

    due_from: int | None = None
    """Due at this time or later, in epoch milliseconds."""
    due_before: int | None = None
    """Due before this time."""
    id_prefix: str | None = None
    """The beginning of the ids of its records."""
    key_prefix: str | None = None
    """The beginning of the keys of its records."""
    partition: int | None = None
    """The source partition of its records."""


class Part(_Stored):
    """A source partition, and how far the job is in it."""

    partition: int
    """Its number."""
    before_offset: int
    """Its end when the job was made: what was written later, by this job or others, is not the job's."""
    due_ms: int = -1
    """The place up to which it is done: the due time."""
    offset: int = -1
    """The place up to which it is done: the offset among what is due then."""
    done: bool = False
    """True if nothing is left in it."""

    @property
    def place(self) -> Place:
        """The place up to which it is done."""
        return self.due_ms, self.offset

    def at(self, place: Place | None) -> Part:
        """Return it when it is done up to a place; None for all of it."""
        if place is None:
            return self.model_copy(update={"done": True})
        return self.model_copy(update={"due_ms": place[0], "offset": place[1]})


class Job(_Stored):
    """One command for many records, and how much of it is done. Times are epoch milliseconds."""

    version: int = 1
    """The version of this document."""
    id: str
    """Its name in its DelayTopic."""
    namespace: str
    """The DelayTopic's namespace."""
    name: str
    """The DelayTopic's name."""
    source: str
    """The DelayTopic's source topic."""
    action: Action
    """The action."""
    due_ms: int | None = None
    """The new time of moved records."""
    after_ms: int | None = None
    """The time from the making of the job until then, where it was given so."""
    shift_ms: int | None = None
    """The time that is added to the due time of each moved record."""
    selector: Selector
    """The selection of its records."""
    created_by: str = ""
    """The name of who asked for it, where people have names."""
    created_ms: int
    """The time at which it was asked for."""
    updated_ms: int
    """The time at which this was written."""
    ended_ms: int | None = None
    """The time at which it ended."""
    state: State = State.RUNNING
    """Its progress."""
    message: str | None = None
    """The reason why it waits or ended."""
    expected: int | None = None
    """The number of records that matched when it began; null while they are counted."""
    matched: int = 0
    """The number of them that had their turn."""
    written: int = 0
    """The number of commands that were written."""
    skipped: Annotated[Mapping[Reason, int], Field(default_factory=dict)]
    """The numbers of records for which nothing was written, by reason."""
    batches: int = 0
    """The number of transactions that its commands were written in."""
    begun: int = 0
    """The number of times that a gateway began to work on it, by which the one before sees that another one does."""
    parts: tuple[Part, ...]
    """The source partitions."""

    @property
    def key(self) -> str:
        """Its name among the jobs of all DelayTopics."""
        return job_key(self.namespace, self.name, self.id)

    @property
    def is_over(self) -> bool:
        """True if nothing more is done."""
        return self.state is not State.RUNNING

    @property
    def left(self) -> list[Part]:
        """The partitions that are not done, the one with the nearest place first."""
        return sorted((part for part in self.parts if not part.done), key=lambda part: (part.due_ms, part.partition))

    def part(self, partition: int) -> Part:
        """Return how far it is in a partition."""
        return next(part for part in self.parts if part.partition == partition)

    def belongs_to(self, served: ServedTopic) -> bool:
        """Tell whether it is of this DelayTopic."""
        return (self.namespace, self.name) == (served.namespace, served.name)

    def selects_as(self, other: Job) -> bool:
        """Tell whether another one asks for the same."""
        mine, others = (
            (each.action, each.after_ms, each.due_ms if each.after_ms is None else None, each.shift_ms, each.selector)
            for each in (self, other)
        )
        return mine == others

    def parameters(self, partition: int, place: Place) -> dict[str, int | str]:
        """Return the parameters of `GET /pending` for what comes behind a place of a partition."""
        given = self.selector.model_dump(by_alias=True, exclude_none=True)
        after = {"after": f"{place[0]}:{partition}:{place[1]}"} if place > BEFORE_ALL else {}
        return {**given, "partition": partition, **after}

    def taken(self, now_ms: int) -> Job:
        """Return it when a gateway begins to work on it."""
        return self._changed(now_ms, begun=self.begun + 1)

    def counted(self, records: int, now_ms: int) -> Job:
        """Return it when it is known how many records match."""
        return self._changed(now_ms, expected=records, message=None)

    def waiting(self, why: str | None, now_ms: int) -> Job:
        """Return it while it waits for something."""
        return self._changed(now_ms, message=why)

    def ended(self, state: State, now_ms: int, why: str | None = None) -> Job:
        """Return it when it is over."""
        skipped = dict(self.skipped)
        gone = (self.expected or 0) - self.matched
        if state is State.DONE and gone > 0:
            skipped[Reason.GONE] = gone
        return self._changed(now_ms, state=state, ended_ms=now_ms, message=why, skipped=skipped)

    def _changed(self, now_ms: int, **changes: object) -> Job:
        return self.model_copy(update={**changes, "updated_ms": now_ms})


class Batch(NamedTuple):
    """The commands of one transaction, and the job as it is when they are there."""

    partition: int
    commands: Sequence[OutgoingRecord]
    offsets: Sequence[int]
    """The source offsets of the records that its commands are about, one of each."""
    job: Job


def job_key(namespace: str, name: str, job_id: str) -> str:
    """Return the name of a job among those of all DelayTopics."""
    return f"{namespace}/{name}/{job_id}"


def forgotten(jobs: Sequence[Job], latest: Job) -> list[str]:
    """Return the keys of jobs that are no longer kept in memory, now that one was written.

    They are ended ones of its namespace, those first that ended first: a namespace may ask for any number of them.
    """
    if not latest.is_over:
        return []
    ended = sorted(
        (job for job in jobs if job.is_over and job.namespace == latest.namespace and job.key != latest.key),
        key=lambda job: -job.updated_ms,
    )
    sums = accumulate((max(1, len(job.parts)) for job in ended), initial=max(1, len(latest.parts)))
    return [job.key for job, parts in zip(ended, islice(sums, 1, None), strict=True) if parts > MOST_KEPT_PARTS]


def demand_possible(served: ServedTopic, action: Action) -> None:
    """Raise `ConflictError` where a DelayTopic does not allow an action."""
    if action is Action.CANCEL:
        demand_cancels(served)
    else:
        demand_moves(served)


def portions(
    records: Sequence[PendingRecord], end: Place | None
) -> Iterator[tuple[Sequence[PendingRecord], Place | None]]:
    """Cut a page into what one transaction takes, each with the place up to which it reaches."""
    for start in range(0, max(1, len(records)), BATCH_RECORDS):
        some = records[start : start + BATCH_RECORDS]
        is_last = start + BATCH_RECORDS >= len(records)
        yield some, end if is_last else (some[-1].due_ms, some[-1].offset)


def batch_of(
    job: Job,
    served: ServedTopic,
    partition: int,
    records: Sequence[PendingRecord],
    end: Place | None,
    now_ms: int,
    too_large: Set[int] = frozenset(),
) -> Batch:
    """Return the commands for records of a partition, which reach up to `end`; None: nothing comes behind them.

    `too_large` are offsets of records whose commands Kafka has refused.
    """
    part = job.part(partition)
    commands, offsets = list[OutgoingRecord](), list[int]()
    skipped, matched = dict(job.skipped), job.matched
    for record in records:
        if record.offset >= part.before_offset:
            continue
        matched += 1
        reason = _refusal(job, served, record, now_ms)
        if reason is None and record.offset in too_large:
            reason = Reason.TOO_LARGE
        if reason is not None:
            skipped[reason] = skipped.get(reason, 0) + 1
            continue
        commands.append(_command(job, served, record, now_ms))
        offsets.append(record.offset)
    changes = {
        "matched": matched,
        "written": job.written + len(commands),
        "skipped": skipped,
        "batches": job.batches + bool(commands),
        "message": None,
        "updated_ms": now_ms,
        "parts": tuple(each if each is not part else part.at(end) for each in job.parts),
    }
    return Batch(partition, commands, offsets, job.model_copy(update=changes))


def _refusal(job: Job, served: ServedTopic, record: PendingRecord, now_ms: int) -> Reason | None:
    if id_of(record) is None:
        return Reason.NO_ID
    if job.action is Action.CANCEL:
        return None
    if record.due_ms - now_ms < GUARD_MS:
        return Reason.TOO_NEAR
    due_ms = _new_due_ms(job, record, now_ms)
    if record.expires_ms is not None and due_ms > record.expires_ms:
        return Reason.EXPIRES
    return Reason.TOO_FAR if due_ms - now_ms > served.max_delay_ms else None


def _command(job: Job, served: ServedTopic, record: PendingRecord, now_ms: int) -> OutgoingRecord:
    if job.action is Action.CANCEL:
        return requested_by(served, cancelling(served, record), job.created_by)
    return requested_by(served, moving(served, record, _new_due_ms(job, record, now_ms), now_ms), job.created_by)


def _new_due_ms(job: Job, record: PendingRecord, now_ms: int) -> int:
    if job.action is Action.RELEASE:
        return now_ms
    if job.due_ms is not None:
        return job.due_ms
    return max(0, record.due_ms + (job.shift_ms or 0))
