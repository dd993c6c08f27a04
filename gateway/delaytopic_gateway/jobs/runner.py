"""Carries out one job, page by page. It decides nothing that Kafka does not have: killed anywhere, it goes on there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol

from delaytopic_gateway.client.new_records import OutgoingRecord
from delaytopic_gateway.errors import (
    ApiServerUnreachableError,
    ConflictError,
    KafkaUnreachableError,
    RelayUnreachableError,
    TopicError,
)
from delaytopic_gateway.jobs.job import (
    BEFORE_ALL,
    Action,
    Batch,
    Job,
    Part,
    Place,
    State,
    batch_of,
    demand_possible,
    portions,
)
from delaytopic_gateway.jobs.relays import PartPage, Relays
from delaytopic_gateway.service.served_topics import ServedTopic, ServedTopics
from delaytopic_process.errors import ProgramError

FRESH_MS: Final = 10_000
"""Moves are written so soon after relays had read the source to its end: so far they can be behind, at the most. It is
well within the guard, in which they have to read what came since, and the move.
"""
POLL_S: Final = 0.1
HEARTBEAT_MS: Final = 10_000
"""The interval at which a job is written, even while it waits."""
MISSING_MS: Final = 600_000
"""A job fails when its DelayTopic is not served for so long."""


class Fenced(ProgramError):
    """Somebody else has taken the job over, or ended it."""


class InDoubt(ProgramError):
    """A transaction may be there or not: what is there has to be read again."""


class CommandTooLarge(ProgramError):
    """Kafka refuses a command for its size, and with it the transaction."""

    def __init__(self, number: int) -> None:
        """`number` counts the commands of the batch."""
        super().__init__(f"command {number} is too large")
        self.number = number


class JobWriter(Protocol):
    """The right to write one job, until somebody else takes it."""

    def commit(self, job: Job, topic: str = "", partition: int = 0, commands: Sequence[OutgoingRecord] = ()) -> None:
        """Write commands and the job in one transaction.

        Raises `Fenced`, `InDoubt`, `CommandTooLarge`, and `TopicError` where Kafka refuses it; then nothing is there.
        """
        ...

    def close(self) -> None:
        """Give it up; what is open is aborted."""
        ...


class Runner:
    """Carries out a job, for as long as it is given the right to write it."""

    def __init__(
        self,
        job: Job,
        topics: ServedTopics,
        relays: Relays,
        ends: Callable[[str], Mapping[int, int]],
        now_ms: Callable[[], int],
        pause: Callable[[float], None],
        put_off: Callable[[], None],
    ) -> None:
        """`ends` tells the offset behind the last record of each partition of a topic.

        `pause` is called between two batches, and while relays read; `put_off` where the job has to wait for others.
        Both may raise to end a `run`, after which another one goes on.
        """
        self.job = job
        self.waits = 0
        """The number of times that it had to wait since it got on."""
        self._topics = topics
        self._relays = relays
        self._ends = ends
        self._now_ms = now_ms
        self._pause = pause
        self._put_off = put_off
        self._counting = Counting(relays, job)
        self._written_ms = now_ms()
        self._missing_since_ms: int | None = None

    def take(self, writer: JobWriter) -> None:
        """Write that another one works on the job. Raises `Fenced` and `InDoubt`."""
        self._writer = writer
        self._commit(self.job.taken(self._now_ms()))

    def run(self, writer: JobWriter) -> Job:
        """Work until the job is over. Raises `Fenced` and `InDoubt`."""
        self._writer = writer
        while not self.job.is_over:
            try:
                self._turn()
                self.waits = 0
            except (RelayUnreachableError, ApiServerUnreachableError, KafkaUnreachableError) as error:
                self._wait(str(error))
            except (ConflictError, TopicError) as error:
                self._commit(self.job.ended(State.FAILED, self._now_ms(), str(error)))
        return self.job

    def _turn(self) -> None:
        served = self._served()
        demand_possible(served, self.job.action)
        if self.job.source != served.source:
            raise ConflictError(f"the source of {served.full_name} is {served.source} now; the job began with another")
        if self.job.expected is None:
            self._count(served)
        elif self.job.left:
            self._write(served)
        else:
            self._commit(self.job.ended(State.DONE, self._now_ms()))
        self._pause(0)

    def _served(self) -> ServedTopic:
        now_ms = self._now_ms()
        found = next((served for served in self._topics.all() if self.job.belongs_to(served)), None)
        if found is not None:
            self._missing_since_ms = None
            return found
        since_ms = self._missing_since_ms = now_ms if self._missing_since_ms is None else self._missing_since_ms
        name = f"{self.job.namespace}/{self.job.name}"
        if now_ms - since_ms > MISSING_MS:
            raise ConflictError(f"there is no DelayTopic {name} here any more")
        raise RelayUnreachableError(f"{name} is not served now")

    def _wait(self, why: str) -> None:
        now_ms = self._now_ms()
        if why != self.job.message or now_ms - self._written_ms >= HEARTBEAT_MS:
            self._commit(self.job.waiting(why, now_ms))
        self.waits += 1
        self._put_off()

    # -- counting

    def _count(self, served: ServedTopic) -> None:
        self._counting.step(served)
        now_ms = self._now_ms()
        if self._counting.done:
            self._commit(self.job.counted(self._counting.records, now_ms))
        elif now_ms - self._written_ms >= HEARTBEAT_MS:
            self._commit(self.job.waiting(f"counting: {self._counting.records} up to now", now_ms))

    # -- writing

    def _write(self, served: ServedTopic) -> None:
        """Write a page of each partition whose end relays have just read."""
        began_ms, before = self._now_ms(), self.job
        read = self._read_to_the_end(served, began_ms)
        for part in self.job.left:
            if part.partition in read and self._is_fresh(began_ms):
                contents = self.job.action is not Action.CANCEL
                page = self._relays.page(served, self.job, part, part.place, read[part.partition], contents=contents)
                self._write_page(served, part.partition, page, began_ms)
        if self.job is before:
            raise RelayUnreachableError("relays answer too slowly for records to be moved in time")

    def _is_fresh(self, began_ms: int) -> bool:
        # A cancel that comes too late does nothing.
        return self.job.action is Action.CANCEL or self._now_ms() - began_ms < FRESH_MS

    def _read_to_the_end(self, served: ServedTopic, began_ms: int) -> dict[int, int]:
        """Return the ends, as of now, of those partitions that relays have read so far.

        Whatever was written up to now is then known to them. So a move that follows within `FRESH_MS` has only few
        records before it, and a list takes account of all commands that this job has written.
        """
        ends = self._ends(served.source)
        wanted = {part.partition: ends.get(part.partition, 0) for part in self.job.left}
        while True:
            ingested = self._relays.ingested(served)
            read = {partition: end for partition, end in wanted.items() if ingested.get(partition, -1) >= end}
            if len(read) == len(wanted) or self._now_ms() - began_ms >= FRESH_MS // 2:
                break
            self._pause(POLL_S)
        if not read:
            behind = ", ".join(map(str, sorted(wanted)))
            raise RelayUnreachableError(f"relays have records of partitions {behind} still to read")
        return read

    def _write_page(self, served: ServedTopic, partition: int, page: PartPage, began_ms: int) -> None:
        for records, end in portions(page.records, page.end):
            if not self._is_fresh(began_ms):
                return
            too_large: set[int] = set()
            while True:
                batch = batch_of(self.job, served, partition, records, end, self._now_ms(), too_large)
                try:
                    self._commit_batch(served, batch)
                    break
                except CommandTooLarge as error:
                    too_large.add(batch.offsets[error.number])
            self._pause(0)

    def _commit_batch(self, served: ServedTopic, batch: Batch) -> None:
        self._commit(batch.job, served.source, batch.partition, batch.commands)

    def _commit(self, job: Job, topic: str = "", partition: int = 0, commands: Sequence[OutgoingRecord] = ()) -> None:
        self._writer.commit(job, topic, partition, commands)
        self.job = job
        self._written_ms = self._now_ms()


class Counting:
    """Counts the records that a job is about, a page at a time."""

    def __init__(self, relays: Relays, job: Job) -> None:
        """Begins at the beginning."""
        self._relays = relays
        self._job = job
        self._left: list[tuple[Part, Place]] = [(part, BEFORE_ALL) for part in job.left]
        self.records = 0

    @property
    def done(self) -> bool:
        """True if all are counted."""
        return not self._left

    def step(self, served: ServedTopic) -> None:
        """Count a page. Raises `RelayUnreachableError`."""
        part, place = self._left[0]
        page = self._relays.page(served, self._job, part, place, part.before_offset, contents=False)
        self.records += sum(record.offset < part.before_offset for record in page.records)
        self._left[:1] = [] if page.end is None else [(part, page.end)]
