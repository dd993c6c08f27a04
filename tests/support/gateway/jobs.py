"""Jobs kept in memory, and a DelayTopic whose relays read what jobs write: for tests without Kafka."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import urlencode

from tests.support.gateway.gateway import NOW_MS, REMINDERS, Scene
from tests.support.relay.statuses import relay_status, shard

from delaytopic_api.records import DELIVER_ACTION, DELIVER_AT, DELIVER_ID, Headers
from delaytopic_api.relay import ShardState
from delaytopic_gateway.access.rights import Access, LoopbackAccess
from delaytopic_gateway.app import gateway_app
from delaytopic_gateway.client.new_records import OutgoingRecord
from delaytopic_gateway.client.relay_listing import RelayAnswer
from delaytopic_gateway.jobs.job import Job
from delaytopic_gateway.jobs.runner import Fenced
from delaytopic_gateway.jobs.service import Jobs, SeenJob
from delaytopic_gateway.server import serving
from delaytopic_gateway.service.gateway import Gateway
from delaytopic_gateway.service.served_topics import ServedTopic
from delaytopic_gateway.service.state import UNKNOWN, State
from delaytopic_relay.core.commands import Schedule
from delaytopic_relay.pending.document import Subject, pending_list
from delaytopic_relay.pending.query import parse_query
from delaytopic_relay.pending.search import Listed, PendingResult
from delaytopic_relay.pending.snapshot import Copies, ShardCopy

Write = Callable[[str, int, OutgoingRecord], None]


class MemoryJobLog:
    """A `JobLog` in memory, which many gateways may share."""

    def __init__(self, write: Write) -> None:
        """`write` gets the commands, with the topic and the partition, when their transaction is committed."""
        self.write = write
        self.written: dict[str, Job] = {}
        self.epochs: dict[str, int] = {}
        self.before_commit: Callable[[], None] = lambda: None
        self.after_commit: Callable[[], None] = lambda: None

    def jobs(self) -> Sequence[SeenJob]:
        return [SeenJob(job, time.monotonic()) for job in [*self.written.values()]]

    def catch_up(self) -> None:
        """Nothing: it is never behind."""

    def prepare(self) -> None:
        """Nothing to make."""

    def open(self, key: str) -> MemoryJobWriter:
        self.epochs[key] = self.epochs.get(key, 0) + 1
        return MemoryJobWriter(self, key, self.epochs[key])


class MemoryJobWriter:
    """A `JobWriter` that the next one of the same job fences."""

    def __init__(self, log: MemoryJobLog, key: str, epoch: int) -> None:
        self._log, self._key, self._epoch = log, key, epoch

    def commit(self, job: Job, topic: str = "", partition: int = 0, commands: Sequence[OutgoingRecord] = ()) -> None:
        self._log.before_commit()
        if self._log.epochs[self._key] != self._epoch:
            raise Fenced(self._key)
        for command in commands:
            self._log.write(topic, partition, command)
        # Only what is in the document is there for the next one.
        self._log.written[self._key] = Job.model_validate_json(job.model_dump_json(by_alias=True))
        self._log.after_commit()

    def close(self) -> None:
        """Nothing is open."""


@dataclass
class World:
    """A DelayTopic of native records: its source, and a relay that has read a part of it."""

    source: dict[int, list[Schedule | bytes]] = field(default_factory=lambda: {0: [], 1: []})
    """By partition and offset: a schedule, or the id of a cancel."""
    read: dict[int, int] = field(default_factory=dict)
    """Up to which offset the relay has; else all."""
    now_ms: int = NOW_MS
    most: int = 10_000
    """Records in an answer."""
    before_answer: Callable[[], None] = lambda: None

    def add(self, partition: int, due_ms: int, name: bytes | None, **more: int) -> None:
        """Let a record be there."""
        source = self.source[partition]
        headers: Headers = [("own", b"x"), *([(DELIVER_ID, name)] if name is not None else [])]
        source.append(Schedule(due_ms, len(source), name, b"v", headers, id=name, expires_ms=more.get("expires_ms")))

    def write(self, topic: str, partition: int, record: OutgoingRecord) -> None:
        """Take a command, as the relay will understand it."""
        assert topic == REMINDERS.source
        headers = dict(record.headers)
        name = headers[DELIVER_ID]
        assert name is not None
        if DELIVER_ACTION in headers:
            self.source[partition].append(name)
        else:
            self.add(partition, int(headers[DELIVER_AT] or b""), name)

    def ends(self, topic: str) -> Mapping[int, int]:
        return {partition: len(records) for partition, records in self.source.items()}

    def waiting(self, partition: int) -> list[Schedule]:
        """Return the records in effect that the relay knows of."""
        found: dict[bytes | int, Schedule] = {}
        for offset, record in enumerate(self.source[partition][: self.ingested(partition)]):
            if isinstance(record, bytes):
                found.pop(record, None)
            else:
                found[record.id if record.id is not None else offset] = record
        return [schedule for schedule in found.values() if schedule.due_ms > self.now_ms]

    def ingested(self, partition: int) -> int:
        return min(self.read.get(partition, 1 << 40), len(self.source[partition]))

    # -- what a job asks for

    def clock(self) -> int:
        return self.now_ms

    def pause(self, seconds: float) -> None:
        self.now_ms += round(1_000 * seconds) or 1

    def all(self) -> Sequence[ServedTopic]:
        return [REMINDERS]

    def state(self, served: ServedTopic) -> State:
        return UNKNOWN

    def relay_urls(self, served: ServedTopic) -> Sequence[str]:
        return ["relay"]

    def ask(self, urls: Sequence[str], parameters: Mapping[str, int | str]) -> list[RelayAnswer]:
        self.before_answer()
        query = parse_query(urlencode({**parameters, "limit": min(self.most, int(parameters["limit"]))}))
        wanted = [partition for partition in self.source if query.partition in (None, partition)]
        found = sorted(
            Listed.of(partition, schedule, contents=query.contents)
            for partition in wanted
            for schedule in self.waiting(partition)
            if query.selection.takes(partition, schedule) and schedule.due_ms < query.due_before_ms
        )
        status = relay_status(
            delay_topic=REMINDERS.full_name, shards=[shard(each, ShardState.DELIVERING) for each in self.source]
        )
        copies = Copies({each: ShardCopy(each, [], ingested=self.ingested(each)) for each in wanted}, {})
        subject = Subject(REMINDERS.source, len(self.source), REMINDERS.target)
        document = pending_list(status, subject, query, copies, PendingResult(found[: query.limit + 1]))
        return [RelayAnswer("relay", document)]


class Desk(Scene):
    """A gateway that keeps jobs over a world, and a client of it."""

    world: World
    log: MemoryJobLog
    lines: list[str]
    """Its lines for people."""


@contextmanager
def gateway_with_jobs(world: World, access: Access | None = None, log: MemoryJobLog | None = None) -> Iterator[Desk]:
    """Serve a gateway while the body runs; to everybody on this machine unless `access` is given."""
    desk = Desk()
    desk.world, desk.log, desk.lines = world, log or MemoryJobLog(world.write), []
    gateway = Gateway(world, desk, world.ask, world.clock)
    jobs = Jobs(gateway, desk.log, world.ends, desk.lines.append)
    app = gateway_app(gateway, access or LoopbackAccess(), desk.audit.append, jobs)
    jobs.start()
    try:
        with serving(app, forwarded=access is None) as desk.url:
            yield desk
    finally:
        jobs.close()
