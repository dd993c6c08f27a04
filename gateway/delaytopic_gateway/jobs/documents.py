"""The documents of jobs. Times are epoch milliseconds. Pure."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Annotated, Final

from pydantic import Field

from delaytopic_api.documents.model import Model
from delaytopic_gateway.client.time_text import duration
from delaytopic_gateway.documents import Span, Time, time_ms
from delaytopic_gateway.jobs.job import Action, Job, Selector, State
from delaytopic_gateway.jobs.service import Order
from delaytopic_gateway.service.served_topics import ServedTopic
from delaytopic_process.errors import InputError

JobId = Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,64}$", examples=["campaign-17"])]
Text = Annotated[str | None, Field(max_length=1_024)]
OTHERS_KEY: Final = "a prefix of keys, which is shown to who may write"


class JobSelector(Model):
    """The pending records that are meant: those that fit all that is given; {} means all."""

    due_from: Time | None = None
    """Due at this time or later."""
    due_before: Time | None = None
    """Due before this time."""
    id_prefix: Text = None
    """The beginning of the ids of the records that the job is about."""
    key_prefix: Text = None
    """The beginning of the keys of the records that the job is about."""
    partition: Annotated[int | None, Field(ge=0, lt=1 << 31)] = None
    """The source partition of the records that the job is about."""

    def to_selector(self) -> Selector:
        """Return it as a job has it. Raises `InputError` that names the field."""
        return Selector(
            due_from=None if self.due_from is None else time_ms("selector.dueFrom", self.due_from),
            due_before=None if self.due_before is None else time_ms("selector.dueBefore", self.due_before),
            id_prefix=self.id_prefix,
            key_prefix=self.key_prefix,
            partition=self.partition,
        )


class NewJob(Model):
    """One command for all pending records that a selector fits."""

    id: JobId | None = None
    """Its name. Asked for twice by one name, it is done once. Default: a new one."""
    action: Action
    """The action on them."""
    selector: JobSelector
    """The records that a job is about."""
    deliver_at: Time | None = None
    """The time at which all of them are due; for Move."""
    deliver_after: Span | None = None
    """The delay from now after which all of them are due; for Move."""
    move_by: Annotated[str | None, Field(examples=["1h30m", "-15m"])] = None
    """The time by which each is due later than it was; with a minus, earlier; for Move."""
    dry_run: bool = False
    """Only count those that match now."""

    def to_order(self) -> Order:
        """Return what is asked for. Raises `InputError`."""
        given = [each for each in (self.deliver_at, self.deliver_after, self.move_by) if each is not None]
        if len(given) != (self.action is Action.MOVE):
            raise InputError("Move takes one of deliverAt, deliverAfter and moveBy; Cancel and Release take none")
        return Order(
            self.id or uuid.uuid4().hex[:12],
            self.action,
            self.selector.to_selector(),
            due_ms=None if self.deliver_at is None else time_ms("deliverAt", self.deliver_at),
            after_ms=None if self.deliver_after is None else duration(self.deliver_after).ms,
            shift_ms=None if self.move_by is None else _shift_ms(self.move_by),
        )


class JobDocument(Model):
    """A job, and how much of it is done."""

    id: str
    """Its name in its DelayTopic."""
    action: Action
    """The action."""
    deliver_at: int | None
    """The new time of moved records; null where each has its own."""
    move_by_ms: int | None
    """The time by which each is due later than it was."""
    selector: Selector
    """The records that are meant; without keys for who may not write."""
    state: State
    """Running, Done, Failed or Cancelled."""
    message: str | None
    """The reason why it waits or ended."""
    created_by: str | None
    """The name of who asked for it; null where people have no names."""
    created_ms: int
    """The time at which it was asked for."""
    updated_ms: int
    """The time at which this was written."""
    ended_ms: int | None
    """The time at which it ended; null while it runs."""
    expected: int | None
    """The number of records that matched when it began; null while they are counted."""
    matched: int
    """The number of them that had their turn."""
    written: int
    """The number of records for which a command was written."""
    skipped: Mapping[str, int]
    """The numbers of records for which none was, by reason: noId, tooNear, expires, tooFar, tooLarge, gone."""
    batches: int
    """The commands were written in so many transactions."""
    done_up_to_ms: int | None
    """Everything due before this time is done; null while nothing is, or when it is all done."""
    notes: list[str]
    """Remarks on parts that are left out."""


class JobCount(Model):
    """The answer to a dry run."""

    matched: int
    """The number of records that match now."""
    complete: bool
    """True if there was time to count all; if not, there are more."""


def job_document(job: Job, served: ServedTopic) -> JobDocument:
    """Return what a caller may see of a job."""
    hides = not served.writable and job.selector.key_prefix is not None
    selector = job.selector.model_copy(update={"key_prefix": None}) if hides else job.selector
    nearest = job.left[0].due_ms if job.left else -1
    return JobDocument(
        id=job.id,
        action=job.action,
        deliver_at=job.due_ms,
        move_by_ms=job.shift_ms,
        selector=selector,
        state=job.state,
        message=job.message,
        created_by=job.created_by or None,
        created_ms=job.created_ms,
        updated_ms=job.updated_ms,
        ended_ms=job.ended_ms,
        expected=job.expected,
        matched=job.matched,
        written=job.written,
        skipped={str(reason): count for reason, count in job.skipped.items()},
        batches=job.batches,
        done_up_to_ms=nearest if nearest >= 0 else None,
        notes=[f"the selector has {OTHERS_KEY}"] if hides else [],
    )


def _shift_ms(text: str) -> int:
    sign = -1 if text.startswith("-") else 1
    return sign * duration(text.removeprefix("-")).ms
