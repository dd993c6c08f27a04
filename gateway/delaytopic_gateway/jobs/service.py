"""The jobs of a gateway: who may ask for one, which are under way here, and which others have left."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from delaytopic_gateway.access.rights import ANYBODY, CALLER, demand
from delaytopic_gateway.errors import ConflictError, KafkaUnreachableError, RecordMissingError, RelayUnreachableError
from delaytopic_gateway.jobs.job import Action, Job, Part, Selector, State, demand_possible, job_key
from delaytopic_gateway.jobs.relays import Relays
from delaytopic_gateway.jobs.runner import Counting, Fenced, InDoubt, JobWriter, Runner
from delaytopic_gateway.jobs.turns import Turns
from delaytopic_gateway.service.gateway import Gateway
from delaytopic_gateway.service.served_topics import ServedTopic
from delaytopic_process.errors import ProgramError

SILENT_S: Final = 30.0
"""A job that nobody has written for so long is taken over: three heartbeats."""
LOOK_S: Final = 1.0
LONGEST_WAIT_S: Final = 8.0
"""The longest time by which a job that has to wait for others is put off: less than a heartbeat."""
CLOSE_S: Final = 5.0
"""A batch ends within it, or is not committed."""
COUNT_S: Final = 10.0
"""The time for which a dry run counts."""


class Order(NamedTuple):
    """A job that somebody asks for."""

    id: str
    action: Action
    selector: Selector
    due_ms: int | None = None
    """The new time; else it is the old one and `shift_ms`."""
    after_ms: int | None = None
    """The time from now until the new due time."""
    shift_ms: int | None = None


class Count(NamedTuple):
    """The number of records that match now."""

    matched: int
    complete: bool
    """True if there was time to count all."""


class SeenJob(NamedTuple):
    """A job as it was last written, and since when nothing was."""

    job: Job
    seen_s: float
    """The time by the monotonic clock of this process."""


class JobLog(Protocol):
    """The place that keeps jobs."""

    def jobs(self) -> Sequence[SeenJob]:
        """Return all that is known of, as of the last time that it was read."""
        ...

    def catch_up(self) -> None:
        """Read everything that is there by now. Raises `KafkaUnreachableError`."""
        ...

    def prepare(self) -> None:
        """Make the place if there is none. Raises `KafkaUnreachableError`."""
        ...

    def open(self, key: str) -> JobWriter:
        """Take the right to write a job from whoever has it. Raises `TopicError`, `Fenced`, `InDoubt`."""
        ...


class _Stopped(Exception):
    """Raised in a job's thread when the gateway ends."""


class _PutOff(Exception):
    """Raised in a job's thread when its turn is over: it has to wait, or one of another namespace does."""

    def __init__(self, wait_s: float) -> None:
        """The next turn comes after so many seconds, at the earliest."""
        super().__init__(f"put off for {wait_s} s")
        self.wait_s = wait_s


@dataclass(slots=True)
class _UnderWay:
    """A job that is under way here."""

    job: Job
    """The job as it was last known here: if it is another one in the log, somebody else works on it."""
    runner: Runner | None = None
    thread: threading.Thread | None = None


class Jobs:
    """The jobs of the DelayTopics of a gateway. All methods but `start` and `close` raise `ProgramError`s.

    Those that have a turn have a thread, and the right to write; one that waits has neither. What they are and how far
    is in the log alone.
    """

    def __init__(
        self,
        gateway: Gateway,
        log: JobLog,
        ends: Callable[[str], Mapping[int, int]],
        say: Callable[[str], None],
    ) -> None:
        """`ends` tells the offset behind the last record of each partition of a topic; `say` gets lines for people."""
        self._gateway = gateway
        self._log = log
        self._ends = ends
        self._say = say
        self._relays = Relays(gateway.topics, gateway.ask)
        self._closed = threading.Event()
        self._has_read = False
        self._turns = Turns()
        self._lock = threading.Lock()
        self._here: dict[str, _UnderWay] = {}
        self._looking = [
            threading.Thread(target=target, name=name, daemon=True)
            for target, name in ((self._look, "unfinished jobs"), (self._give_turns, "turns of jobs"))
        ]

    def start(self) -> None:
        """Take up what is not finished, now and whenever another gateway leaves something."""
        for thread in self._looking:
            thread.start()

    def close(self) -> None:
        """Stop between two batches; what is not finished is taken up later, here or elsewhere."""
        self._closed.set()
        with self._lock:
            threads = [each.thread for each in self._here.values() if each.thread is not None]
        give_up_s = time.monotonic() + CLOSE_S
        for thread in threads:
            thread.join(max(0.0, give_up_s - time.monotonic()))

    # -- for who asks

    def all(self, served: ServedTopic) -> list[Job]:
        """Return the jobs of a DelayTopic, the last one first."""
        self._read_once()
        found = (seen.job for seen in self._log.jobs())
        return sorted((job for job in found if job.belongs_to(served)), key=lambda job: (-job.created_ms, job.id))

    def job(self, served: ServedTopic, job_id: str) -> Job:
        """Return one of them. Raises `RecordMissingError`."""
        self._read_once()
        key = job_key(served.namespace, served.name, job_id)
        found = self._find(key)
        if found is None:
            # Another gateway may have written it just now.
            self._log.catch_up()
            found = self._find(key)
        if found is None:
            raise RecordMissingError(f"{served.full_name} has no job {job_id}; ended ones are forgotten after 30 days")
        return found

    def count(self, served: ServedTopic, order: Order) -> Count:
        """Return how many records match now."""
        demand(served.writable, served.namespace)
        job = self._new(served, order)
        counting, give_up_s = Counting(self._relays, job), time.monotonic() + COUNT_S
        while not counting.done and time.monotonic() < give_up_s:
            try:
                counting.step(served)
            except RelayUnreachableError:
                if time.monotonic() + LOOK_S >= give_up_s:
                    raise
                self._closed.wait(LOOK_S / 5)
        return Count(counting.records, counting.done)

    def create(self, served: ServedTopic, order: Order) -> Job:
        """Write a job down and begin with it; one of the same name that asks for the same is that job.

        Raises `ConflictError` for one that asks for something else, and while another job of the DelayTopic runs.
        """
        demand(served.writable, served.namespace)
        job = self._new(served, order)
        self._log.prepare()
        self._log.catch_up()
        known = self._same(job)
        if known is not None:
            return known
        try:
            return self._create(served, job)
        except InDoubt as error:
            raise KafkaUnreachableError(f"{error}; ask again with the same id: {job.id}") from error

    def _create(self, served: ServedTopic, job: Job) -> Job:
        with closing(self._log.open(job.key)) as writer:
            try:
                # Whoever wrote one of this name at the same time is fenced by now, or has fenced this one.
                self._log.catch_up()
                known = self._same(job)
                if known is None:
                    self._one_at_a_time(served)
                    writer.commit(job)
            except Fenced:
                self._log.catch_up()
                known = self._same(job)
                if known is None:
                    raise ConflictError(f"another job {job.id} was asked for at the same time; ask again") from None
        if known is not None:
            return known
        self._log.catch_up()
        self._begin(job)
        return job

    def stop(self, served: ServedTopic, job_id: str) -> Job:
        """End a job wherever it is under way; what was written stays. Raises `ConflictError` for one that is over."""
        demand(served.writable, served.namespace)
        self._log.catch_up()
        key = self.job(served, job_id).key
        while True:
            self._refuse_over(self.job(served, job_id))
            with closing(self._log.open(key)) as writer:
                self._log.catch_up()
                job = self.job(served, job_id)
                self._refuse_over(job)
                who = _caller()
                ended = job.ended(State.CANCELLED, self._gateway.now_ms(), f"stopped by {who}" if who else "stopped")
                try:
                    writer.commit(ended)
                except Fenced:
                    continue
            self._log.catch_up()
            return ended

    @staticmethod
    def _refuse_over(job: Job) -> None:
        if job.is_over:
            raise ConflictError(f"the job {job.id} is {job.state} already")

    def _new(self, served: ServedTopic, order: Order) -> Job:
        demand_possible(served, order.action)
        now_ms = self._gateway.now_ms()
        wanted = order.selector.partition
        ends = self._ends(served.source)
        if wanted is not None and wanted not in ends:
            raise ConflictError(f"{served.source} has {len(ends)} partitions, from 0 on; {wanted} is none of them")
        parts = [Part(partition=each, before_offset=end) for each, end in ends.items() if wanted in (None, each)]
        return Job(
            id=order.id,
            namespace=served.namespace,
            name=served.name,
            source=served.source,
            action=order.action,
            due_ms=order.due_ms if order.after_ms is None else now_ms + order.after_ms,
            after_ms=order.after_ms,
            shift_ms=order.shift_ms,
            selector=order.selector,
            created_by=_caller(),
            created_ms=now_ms,
            updated_ms=now_ms,
            skipped={},
            parts=tuple(parts),
        )

    def _read_once(self) -> None:
        """Read the log to its end, unless that was done."""
        if not self._has_read:
            self._log.catch_up()
            self._has_read = True

    def _find(self, key: str) -> Job | None:
        return next((seen.job for seen in self._log.jobs() if seen.job.key == key), None)

    def _same(self, job: Job) -> Job | None:
        known = self._find(job.key)
        if known is not None and not known.selects_as(job):
            raise ConflictError(f"there is a job {job.id} that asks for something else; choose another id")
        return known

    def _one_at_a_time(self, served: ServedTopic) -> None:
        running = next((job for job in self.all(served) if not job.is_over), None)
        if running is not None:
            raise ConflictError(f"the job {running.id} of {served.full_name} is running; wait for it, or stop it")

    # -- carrying out

    def _look(self) -> None:
        """Take up unfinished jobs: all when this begins, and later those that nobody works on."""
        first, said = True, ""
        while not self._closed.is_set():
            try:
                self._read_once()
                left = [job for job, seen_s in self._log.jobs() if first or time.monotonic() - seen_s > SILENT_S]
                self._take_up([job for job in left if not job.is_over])
                first, said = False, ""
            except ProgramError as error:
                if str(error) != said:
                    self._say(f"jobs: {error}")
                said = str(error)
            self._closed.wait(LOOK_S)

    def _take_up(self, left: Sequence[Job]) -> None:
        """Begin with those of them that this gateway serves."""
        if not left:
            return
        there = {(served.namespace, served.name, served.source) for served in self._gateway.topics.all()}
        for job in left:
            if (job.namespace, job.name, job.source) in there:
                self._begin(job)

    def _begin(self, job: Job) -> None:
        with self._lock:
            if job.key in self._here or self._closed.is_set():
                return
            self._here[job.key] = _UnderWay(job)
            self._turns.wait(job.key, job.namespace, time.monotonic())
        self._start_some()

    def _give_turns(self) -> None:
        """Give turns to those that were put off."""
        while not self._closed.wait(LOOK_S / 5):
            self._start_some()

    def _start_some(self) -> None:
        with self._lock:
            while not self._closed.is_set() and (key := self._turns.next(time.monotonic())) is not None:
                here = self._here[key]
                here.thread = threading.Thread(target=self._work, args=(key, here), name=f"job {key}", daemon=True)
                here.thread.start()

    def _work(self, key: str, here: _UnderWay) -> None:
        wait_s = None
        try:
            self._carry_out(key, here)
        except _PutOff as turn:
            wait_s = turn.wait_s
        except Fenced:
            self._tell_of_successor(key)
        except _Stopped:
            pass
        except Exception as error:
            # It is unfinished in the log, and taken up again when it was silent for a while.
            self._say(f"job {key}: {type(error).__name__}: {error}")
        with self._lock:
            here.thread = None
            if wait_s is not None:
                self._turns.wait(key, here.job.namespace, time.monotonic() + wait_s)
            else:
                self._turns.leave(key)
                self._here.pop(key)
        self._start_some()

    def _carry_out(self, key: str, here: _UnderWay) -> None:
        self._log.catch_up()
        if self._find(key) != here.job:
            # It was written since it was last known here: whoever did so works on it, or has ended it.
            self._tell_of_successor(key)
            return
        while True:
            try:
                with closing(self._log.open(key)) as held:
                    # By now nobody else can write it, and what was under way is there or not.
                    self._log.catch_up()
                    job = self._find(key)
                    if job is None or job.is_over:
                        return
                    runner = here.runner
                    if runner is None or runner.job != job:
                        runner = here.runner = self._runner(key, job)
                        runner.take(held)
                    try:
                        ended = runner.run(held)
                    finally:
                        here.job = runner.job
                    self._say(f"job {key}: {ended.state}, {ended.written} of {ended.matched} written")
                    return
            except InDoubt as error:
                self._say(f"job {key}: {error}")
                self._pause(LOOK_S)

    def _runner(self, key: str, job: Job) -> Runner:
        gateway = self._gateway

        def pause(seconds: float) -> None:
            self._pause(seconds)
            with self._lock:
                is_over = not seconds and self._turns.should_yield(key, time.monotonic())
            if is_over:
                raise _PutOff(0)

        def put_off() -> None:
            self._pause(0)
            raise _PutOff(min(2.0 ** (runner.waits - 1), LONGEST_WAIT_S))

        runner = Runner(job, gateway.topics, self._relays, self._ends, gateway.now_ms, pause, put_off)
        return runner

    def _pause(self, seconds: float) -> None:
        if self._closed.wait(seconds):
            raise _Stopped

    def _tell_of_successor(self, key: str) -> None:
        try:
            self._log.catch_up()
        except ProgramError:
            return
        job = self._find(key)
        if job is not None and not job.is_over:
            self._say(f"job {key}: another gateway has taken it over")


def _caller() -> str:
    """Return the name of who asks; empty where people have none."""
    return CALLER.get(ANYBODY).name
