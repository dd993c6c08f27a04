"""Edge: what the loop reports, turned into metrics, log lines and the pages' documents."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from operator import attrgetter
from typing import NamedTuple

import structlog

from delaytopic_api.records import is_ancient, objection_to_instant, resembled_header
from delaytopic_api.relay import Ending, RelayConfig, RelayState, RelayStatus
from delaytopic_process.pages import JSON, Answer
from delaytopic_relay.core.commands import Leaving, Reject, Schedule
from delaytopic_relay.core.recovery import Plan
from delaytopic_relay.engine.loop import DUE_LIMIT, Loop
from delaytopic_relay.engine.snapshot import LoopSnapshot
from delaytopic_relay.errors import BacklogUnavailable, RelayError, StandsStill, StateInDoubt
from delaytopic_relay.pending.page import PendingPage
from delaytopic_relay.ports import Clock
from delaytopic_relay.telemetry.last_occurrences import LastOccurrences
from delaytopic_relay.telemetry.metrics import RelayMetrics
from delaytopic_relay.telemetry.server import Health, PageServer, Readers
from delaytopic_relay.telemetry.status import Counters, relay_status

SNAPSHOT_MS = 1_000
STALLED_MS = 60_000
"""A loop that has not turned for so long is not healthy; longer than any single wait of it."""
REPEAT_MS = 10_000
"""The time after which the same trouble is worth another line."""
BUSY_MS = 200
"""A window with less work says nothing about capacity."""

log = structlog.get_logger()
_due_ms = attrgetter("due_ms")


class _Window(NamedTuple):
    """The counts at the begin of a span of time over which the relay's rate is measured; `at_ms` is monotonic."""

    at_ms: int
    delivered: int
    idle_ms: int
    overdue: int


class Telemetry:
    """Implements `LoopEvents`, and serves the pages."""

    def __init__(self, config: RelayConfig, relay: str, clock: Clock) -> None:
        self._config = config
        self._relay = relay
        self._clock = clock
        self._started_at_ms = clock.now_ms()
        self._done = Counters()
        self._loop_snapshot = LoopSnapshot(RelayState.STARTING)
        self._status: RelayStatus | None = None
        """As of the last count. The first is made when it is asked for, as its model takes longer than the rest."""
        self._turned_ms = self._snapshot_ms = clock.monotonic_ms()
        self._window = _Window(self._snapshot_ms, 0, 0, 0)
        # A window says what a relay can do if a whole batch is due at its begin and at its end. With less it delivers
        # what there is, however long the commit takes, and small batches are no measure of large ones. What waits for a
        # fixed delay is in the source: nobody here knows how much of it is due.
        self._least_due = DUE_LIMIT if config.schedule.fixed_delay is None else 0
        self._trouble: str | None = "starting"
        self._said: dict[str, int] = {}
        self._uncommitted: list[tuple[list[int], int]] = []
        self._dead_letters: list[str] = []
        self._outcomes: Mapping[Ending, int] = {}
        self._missed = 0
        self._occurrences = LastOccurrences()
        self.metrics = RelayMetrics(config.namespace, config.name)
        self.pending = PendingPage(config, self._counted)
        self._pages = PageServer(
            config.http.host,
            config.http.port,
            health=self._health,
            readiness=self._readiness,
            metrics=self.metrics.render,
            status=self._counted,
            pending=self.pending.answer,
            readers=Readers(config.http.pending, config.http.pending_token_sha256),
        )
        self._pages.add("/occurrence", self._occurrences.page)

    # -- the pages

    def start(self) -> None:
        """Serve the pages."""
        self._pages.start()
        log.info("http listening", host=self._config.http.host, port=self._pages.port)

    def add_page(self, path: str, document: Callable[[], str]) -> None:
        """Serve a JSON document beside the pages that each relay has."""
        self._pages.add(path, lambda _: Answer(HTTPStatus.OK, JSON, document().encode()))

    def stop(self) -> None:
        """Serve them no more."""
        self._pages.stop()

    def _health(self) -> Health:
        silent_ms = self._clock.monotonic_ms() - self._turned_ms
        return Health(silent_ms < STALLED_MS, f"the loop turned {silent_ms} ms ago")

    def _readiness(self) -> Health:
        return Health(self._trouble is None, self._trouble or "running")

    # -- the loop's turns

    def waiting_for(self, what: str) -> None:
        """The relay cannot start yet."""
        self._turned_ms = self._clock.monotonic_ms()
        self._trouble = what
        self._say("waiting", what)

    def draining(self) -> None:
        """The relay was told to stop."""
        self._trouble = "draining"
        self._loop_snapshot = LoopSnapshot(RelayState.DRAINING)
        log.info("draining")

    def turn(self, loop: Loop) -> None:
        """The loop has turned once; now and then, count everything."""
        self._turned_ms = self._clock.monotonic_ms()
        self.pending.serve(loop)
        if self._turned_ms - self._snapshot_ms >= SNAPSHOT_MS:
            self._snapshot_ms = self._turned_ms
            self._take_snapshot(loop)

    def _take_snapshot(self, loop: Loop) -> None:
        self._loop_snapshot = loop.snapshot()
        self._trouble = None if loop.joined else "waiting for the group to assign shards"
        clock = self._loop_snapshot.clock
        if clock is not None and clock.message is not None:
            self._say("clocks differ", clock.message, key="clocks")
        status = self._status = self.status()
        self._measure_capacity(loop.idle_ms, status.overdue)
        self.metrics.set_backlog(status)
        for partition, found in self._loop_snapshot.open_transactions.items():
            if found.lasts(status.as_of_ms):
                self._say("source held back", found.describe(), key=f"held {partition}", partition=partition)

    def _measure_capacity(self, idle_ms: int, overdue: int) -> None:
        begun, now = self._window, _Window(self._turned_ms, self._done.delivered, idle_ms, overdue)
        busy_ms = now.at_ms - begun.at_ms - (now.idle_ms - begun.idle_ms)
        done = now.delivered - begun.delivered
        if busy_ms >= BUSY_MS and done and min(begun.overdue, now.overdue) >= self._least_due:
            self._done.busy_rate = done * 1_000 / busy_ms
        self._window = now

    def _counted(self) -> RelayStatus:
        return self._status or self.status()

    def status(self) -> RelayStatus:
        """Return what this relay does, as of now."""
        now_ms = self._clock.now_ms()
        return relay_status(self._config, self._relay, self._started_at_ms, now_ms, self._done, self._loop_snapshot)

    # -- the journal

    def commands(self, leaving: Leaving) -> None:
        """See `LoopEvents.commands`."""
        self._done.superseded += leaving.superseded
        self._done.cancelled += leaving.cancelled
        self.metrics.add_commands(leaving.superseded, leaving.cancelled, leaving.too_late)

    def sent(
        self, schedules: Sequence[Schedule], rejects: Sequence[Reject], withheld: Sequence[Reject], sent_ms: int
    ) -> None:
        """See `LoopEvents.sent`."""
        held = {reject.offset for reject in withheld}
        going = [schedule for schedule in schedules if schedule.offset not in held] if held else schedules
        if going:
            self._uncommitted.append((list(map(_due_ms, going)), sent_ms))
        self._dead_letters += [reject.reason.value for reject in rejects]

    def recurred(self, left: Sequence[Schedule], missed: int, sent_ms: int) -> None:
        """See `LoopEvents.recurred`."""
        self._missed += missed
        self._occurrences.sent(left, sent_ms)

    def ended(self, outcomes: Mapping[Ending, int]) -> None:
        """See `LoopEvents.ended`."""
        self._outcomes = outcomes

    def committed(self, duration_ms: int) -> None:
        """See `LoopEvents.committed`."""
        for due_times_ms, sent_ms in self._uncommitted:
            self._done.delivered += len(due_times_ms)
            self.metrics.observe_delivered(due_times_ms, sent_ms)
            if is_ancient(first_ms := min(due_times_ms)):
                self._note_ancient(first_ms, sum(map(is_ancient, due_times_ms)))
        self._done.dead_lettered += len(self._dead_letters)
        for reason in self._dead_letters:
            self.metrics.add_dead_letter(reason)
        self.metrics.add_outcomes(self._outcomes)
        self.metrics.add_missed_slots(self._missed)
        self._occurrences.committed()
        self.metrics.observe_commit(duration_ms)
        self._uncommitted, self._dead_letters, self._outcomes, self._missed = [], [], {}, 0

    def _note_ancient(self, first_ms: int, records: int) -> None:
        self._done.ancient += records
        # Without a time header and without a timestamp a record is due at 0, and nobody wrote that.
        objection = objection_to_instant(first_ms) if first_ms > 0 else None
        if objection is not None:
            self._say("delivered at once: its time is in another unit", objection, key="ancient")

    def put(self, duration_ms: int) -> None:
        """See `LoopEvents.put`."""
        self.metrics.observe_put(duration_ms)

    def reset(self, lost: StateInDoubt) -> None:
        """See `LoopEvents.reset`."""
        self._uncommitted, self._dead_letters, self._outcomes, self._missed = [], [], {}, 0
        self._occurrences.reset()
        log.warning("starting over", cause=lost.cause, reason=str(lost))

    def recovered(self, partition: int, cause: str, plan: Plan) -> None:
        """See `LoopEvents.recovered`."""
        self.metrics.add_recovery(cause)
        offset, replay = plan.progress.offset, plan.replay
        log.info("shard recovered", partition=partition, cause=cause, offset=offset, replay=replay)
        if plan.backend_changed:
            log.info("the backlog moves here from another backend", partition=partition, offsets=replay)
        if plan.lost_records is not None:
            self.metrics.add_lost_records(plan.lost_records)
            log.error(
                "another topic was accepted in place of the former one, with which this is lost",
                partition=partition,
                records=plan.lost_records,
                topic=plan.progress.identity.topic,
            )
        if plan.missing_offsets:
            self.metrics.add_missing_offsets(plan.missing_offsets)
            log.error(
                "records were to be read again that the source no longer has",
                partition=partition,
                offsets=plan.missing_offsets,
            )

    def fenced(self, owner: str) -> None:
        """See `LoopEvents.fenced`."""
        log.info("former owner fenced", owner=owner)

    def foreign(self, partition: int, where: str) -> None:
        """See `LoopEvents.foreign`. All are counted, and of each shard one is logged in a while: there may be
        millions.
        """
        self.metrics.add_foreign_entry()
        self._say("skipped what no relay of this group wrote", where, key=f"foreign {partition}", partition=partition)

    def stuck(self, partition: int, error: RelayError) -> None:
        """See `LoopEvents.stuck`."""
        if isinstance(error, StandsStill):
            self._say("shard stands still", str(error), partition=partition, cause=error.reason.value)
        else:
            self._say("shard cannot be recovered yet", str(error), partition=partition)

    def unavailable(self, error: RelayError) -> None:
        """See `LoopEvents.unavailable`."""
        if isinstance(error, BacklogUnavailable):
            self.metrics.add_backlog_error()
        self._say("not available", str(error))

    def misspelt(self, name: str) -> None:
        """Count a record without a control header whose header `name` resembles one."""
        self._done.misspelt += 1
        self._done.misspelt_header = name
        self.metrics.add_misspelt()
        meant = f"the header {name!r} is no control header; did its producer mean {resembled_header(name)}?"
        self._say("delivered as if it named no time", meant, key="misspelt")

    def _say(self, event: str, reason: str, *, key: str | None = None, **more: int | str) -> None:
        """Log a trouble, and the same again only after a while; `key` tells what the same is, if not the reason."""
        now_ms, key = self._clock.monotonic_ms(), key or reason
        if now_ms - self._said.get(key, -REPEAT_MS) >= REPEAT_MS:
            self._said = {said: at_ms for said, at_ms in self._said.items() if now_ms - at_ms < REPEAT_MS}
            self._said[key] = now_ms
            log.warning(event, reason=reason, **more)
