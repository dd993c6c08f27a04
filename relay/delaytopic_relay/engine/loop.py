"""The loop: takes records in, delivers what is due, and commits both in ticks.

One tick is one transaction: whatever was taken in is in the backlog or still below the committed
offset, whatever was due is produced, and (L, P, C) of every shard is committed with it. After any
doubt the memory is dropped and the committed state read again; nothing is ever put back by hand.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from delaytopic_api.relay import RelayState
from delaytopic_process.open_transactions import OpenTransaction
from delaytopic_relay.backlog.protocol import BacklogManager, Shard
from delaytopic_relay.core.admission_limits import NEVER_MS
from delaytopic_relay.core.commands import Cancel, Command, Leaving, Record, Reject, Schedule
from delaytopic_relay.core.progress import Progress
from delaytopic_relay.core.rules import succeed
from delaytopic_relay.core.second_clock import ClockState
from delaytopic_relay.core.suspension import NOTHING_DUE_MS, Suspension
from delaytopic_relay.delivery.dead_letters import DeadLetters
from delaytopic_relay.delivery.reachability import Trouble
from delaytopic_relay.delivery.record_writer import RecordWriter
from delaytopic_relay.delivery.refusals import Refusal, dead_letters_for
from delaytopic_relay.engine.due_time import DueTime
from delaytopic_relay.engine.holding import Holding
from delaytopic_relay.engine.pacing import LARGEST_FAR_BYTES, Pace, TickState, closes_at_ms, sleep_ms
from delaytopic_relay.engine.reading import Reading
from delaytopic_relay.engine.recovery import Takeover
from delaytopic_relay.engine.sent import SentBatches
from delaytopic_relay.engine.unreadable import Unreadable
from delaytopic_relay.errors import (
    BucketLost,
    CommitUnknown,
    Fenced,
    ProducerOutdated,
    RecordsRefused,
    StandsStill,
    StateInDoubt,
    TransactionAborted,
    Unanswered,
    Unavailable,
)
from delaytopic_relay.ports import Chunk, Clock, LoopEvents, SecondClock, Source, Target


class Parts(NamedTuple):
    """The clients of a loop, and its settings.

    `manager` is that of the backlog. `id_bytes` is for ids whose schedules are there, of all shards.

    `learn` is told which topics the next records name, so that all are asked about at once; None where none may be.

    Nothing is due before `second_clock` says that `clock` is not ahead of it; None where `clock` is believed.
    """

    source: Source
    target: Target
    reading: Reading
    writer: RecordWriter
    dead_letters: DeadLetters
    manager: BacklogManager[Any]
    takeover: Takeover
    holding: Holding
    pace: Pace
    memory_bytes: int
    clock: Clock
    events: LoopEvents
    suspension: Suspension = Suspension()
    id_bytes: int = NEVER_MS
    learn: Callable[[Collection[str]], None] | None = None
    second_clock: SecondClock | None = None


POLL_LIMIT = 1_000
DUE_LIMIT = 2_000
RESUME_SHARE = 0.75
RETRY_MS = 1_000
STILL_MS = 5_000
"""Between two looks at partitions that stand still until a person says how they go on."""
ASSIGNED = "assigned"
"""The reason for which a shard waits that came to us; others were ours until something happened."""


@dataclass(frozen=True)
class LoopSnapshot:
    """The state of the loop at one moment: shards at work, why others wait or fail, what is committed, where the source
    ends.
    """

    state: RelayState
    shards: Mapping[int, Shard] = field(default_factory=dict)
    waiting: Mapping[int, str] = field(default_factory=dict)
    committed: Mapping[int, Progress] = field(default_factory=dict)
    paused: frozenset[int] = frozenset()
    ends: Mapping[int, int] = field(default_factory=dict)
    unreadable: Mapping[int, str] = field(default_factory=dict)
    moving: frozenset[int] = frozenset()
    """Shards whose backlog was on another backend, and is not yet read again."""
    rules_wait: Mapping[int, str] = field(default_factory=dict)
    """Shards in which the relay's own rules are not in force yet, and why."""
    still: Mapping[int, StandsStill] = field(default_factory=dict)
    """Shards that stand still until a person says how they go on, and why."""
    missing: Mapping[int, int] = field(default_factory=dict)
    """Shards that were to read what the source no longer has, and how many offsets that were."""
    deferring: frozenset[int] = frozenset()
    """Shards that read no further, as a record there would have to leave at once, and may not."""
    clock: ClockState | None = None
    """The comparison with the second clock; None without one."""
    suspended: bool = False
    """True while delivery is suspended."""
    open_transactions: Mapping[int, OpenTransaction] = field(default_factory=dict)
    """Shards that a producer's transaction keeps from being read further."""
    held: Mapping[int, Trouble] = field(default_factory=dict)
    """Shards that stand still while what they send to does not answer."""
    refused: Mapping[str, Trouble] = field(default_factory=dict)
    """Further targets that do not answer, for which records are dead letters meanwhile."""


class Loop:
    """One relay at work. All methods are called from one thread."""

    def __init__(self, parts: Parts) -> None:
        """Nothing is read before `start`."""
        self._source = parts.source
        self._target = parts.target
        self._reading = parts.reading
        self._writer, self._dead_letters = parts.writer, parts.dead_letters
        self._manager = parts.manager
        self._takeover = parts.takeover
        self._holding = parts.holding
        self._pace = parts.pace
        self._memory_bytes = parts.memory_bytes
        self._suspension = parts.suspension
        self._learn = parts.learn
        self._id_bytes = parts.id_bytes
        self._deferred: dict[int, Sequence[Command]] = {}
        self._looking_ahead: dict[int, int] = {}
        """The offsets up to which partitions are looked through, before they are read from where they stand."""
        self._looked_ahead: set[int] = set()
        self._unreadable = Unreadable()
        self._clock = parts.clock
        self._due = DueTime(parts.clock, parts.second_clock, suspended=parts.suspension.delivery)
        self._events = parts.events
        self.shards: dict[int, Shard] = {}
        self.waiting: dict[int, str] = {}
        self.joined = False
        self._retry_at_ms = 0
        self._committed: dict[int, Progress] = {}
        self._paused: set[int] = set()
        self._moving: set[int] = set()
        self._rules_wait: dict[int, str] = {}
        """Partitions that are read by former rules alone, and the reason."""
        self._open = self._moved = self._stored = self._behind = self._idle = False
        self._tick_started_ms = 0
        self._sent = self._taken = self._came_ms = 0
        self._tick_sent = SentBatches()
        self._last_commit_ms = 0
        self._held_until_ms = 0
        self._lost: StateInDoubt | None = None
        self._target_is_spent = False
        self.idle_ms = 0
        """The time for which the loop has waited in vain for records."""

    # -- the group's decisions, called from inside `Source.poll`

    def assigned(self, partitions: Sequence[int]) -> None:
        """Shards that came to us wait until they are recovered."""
        self.waiting.update(dict.fromkeys(partitions, ASSIGNED))
        self.joined = True
        self._retry_at_ms = 0

    def revoked(self, partitions: Sequence[int]) -> None:
        """Commit what was done for the shards that leave, with no owner named, and drop them.

        Nothing is committed any more once a tick has failed: what is in memory may no longer be true.
        """
        going = frozenset(partitions)
        if self._lost is None:
            try:
                self._close_tick(handing_over=going)
                if not self._target_is_spent:
                    # An aborted tick has dropped what is named here, and it is not recovered.
                    self._takeover.release([each for each in going if self.waiting.get(each, ASSIGNED) != ASSIGNED])
            except (StateInDoubt, Unavailable) as error:
                self._lost = error if isinstance(error, StateInDoubt) else TransactionAborted(str(error))
        self._forget(going)

    def lost(self, partitions: Sequence[int]) -> None:
        """Drop shards that are somebody else's; an open transaction may hold their records."""
        self._forget(frozenset(partitions))
        if self._open:
            self._lost = TransactionAborted(f"partitions {sorted(partitions)} were lost")

    def _forget(self, partitions: frozenset[int]) -> None:
        for partition in partitions:
            self.shards.pop(partition, None)
            self.waiting.pop(partition, None)
            self._committed.pop(partition, None)
            self._deferred.pop(partition, None)
            self._looking_ahead.pop(partition, None)
            self._rules_wait.pop(partition, None)
        self._reading.forget(partitions)
        self._paused -= partitions
        self._looked_ahead -= partitions
        self._unreadable.forget(partitions)
        self._takeover.forget(partitions)
        self._writer.refusals.forget(partitions)

    # -- running

    def start(self) -> None:
        """Join the group. The second clock is asked first: it has answered by the time that there are shards."""
        self._due.compare()
        self._source.subscribe(self)

    def snapshot(self) -> LoopSnapshot:
        """Return what is at work here, for the status page."""
        return LoopSnapshot(
            RelayState.RUNNING,
            dict(self.shards),
            dict(self.waiting),
            dict(self._committed),
            frozenset(self._paused),
            self._source.ends(self.shards),
            dict(self._manager.unreadable),
            frozenset(self._moving),
            dict(self._rules_wait),
            {**self._takeover.still, **self._unreadable.still},
            dict(self._takeover.missing),
            frozenset(self._deferred),
            self._due.state,
            self._suspension.delivery,
            self._source.open_transactions(self.shards),
            {partition: each for partition, each in self._holding.held.items() if self._is_here(partition)},
            dict(self._holding.refused),
        )

    def _is_here(self, partition: int) -> bool:
        return partition in self.shards or partition in self.waiting

    def finish(self) -> None:
        """Commit, hand the shards over and leave the group."""
        self.revoked(list(self.shards))
        self._target.abort()
        self._source.close()
        self._target.close()
        self._due.close()

    def step(self) -> None:
        """One turn: whatever arrives, whatever is due, and the commit when its time has come.

        Raises `QueueImpossible` and `SourceReplaced`.
        """
        try:
            self._holding.turn()
            self._writer.unavailable = self._holding.refused
            chunks = self._poll()
            if self._lost is not None:
                raise self._lost
            self._due.compare()
            for partition, chunk in chunks.items():
                self._ingest(partition, chunk)
            self._end_looking_ahead()
            self._apply_deferred()
            if self._hold_ms() == 0:
                self._store(self._manager.put_early(self.shards.values()))
            self._recover_assigned()
            self._deliver()
            if self._tick_is_due():
                self._close_tick()
            self._load_and_throttle()
            self._tick_sent.forget_some()
        except StateInDoubt as lost:
            self._reset(lost)
        except Unavailable as error:
            self._events.unavailable(error)

    def _poll(self) -> dict[int, Chunk]:
        started_ms = self._clock.monotonic_ms()
        chunks = self._source.poll(POLL_LIMIT, self._timeout_ms(), self._reading.read_all)
        self._idle = not chunks
        if self._idle:
            self.idle_ms += self._clock.monotonic_ms() - started_ms
        else:
            self._came_ms = self._clock.monotonic_ms()
        return chunks

    def _timeout_ms(self) -> int:
        # Nothing is waited for that may not leave when its time comes.
        now_ms = self._due.now_ms()
        delivering = self._delivering() if now_ms != NOTHING_DUE_MS else []
        wakes = [wake for shard in delivering if (wake := shard.wake_ms()) is not None]
        wake_ms = max(min(wakes), now_ms + self._hold_ms()) if wakes else None
        return sleep_ms(now_ms, wake_ms, self._clock.monotonic_ms(), self._closes_at_ms())

    def _reset(self, lost: StateInDoubt) -> None:
        """Drop everything in memory; all shards are recovered from what is committed."""
        self._events.reset(lost)
        self._lost = None
        self._holding.dropped(lost, self._tick_started_ms)
        self._writer.refusals.settled(committed=False)
        self._target.abort()
        self._target_is_spent = self._target_is_spent or isinstance(
            lost, Fenced | CommitUnknown | RecordsRefused | Unanswered | ProducerOutdated
        )
        self.waiting.update(dict.fromkeys(self.shards, lost.cause))
        try:
            self._source.pause(self.shards)
        except Unavailable as error:
            self._events.unavailable(error)
        self._reading.forget(self.shards)
        self._unreadable.forget(self.shards)
        self.shards.clear()
        self._committed.clear()
        self._paused.clear()
        self._deferred.clear()
        self._looking_ahead.clear()
        self._looked_ahead.clear()
        self._rules_wait.clear()
        self._open = self._moved = self._stored = False
        self._sent = self._taken = 0
        self._tick_sent.settle()
        self._retry_at_ms = 0

    # -- owning

    def _recover_assigned(self) -> None:
        """Recover the shards that wait for it. Raises `QueueImpossible` and `SourceReplaced`."""
        if not self.waiting or self._clock.monotonic_ms() < self._retry_at_ms:
            return
        wanted = {partition: cause for partition, cause in self.waiting.items() if self._holding.recovers(partition)}
        if self._open or self._moved:
            self._close_tick()
        self._retry_at_ms = self._clock.monotonic_ms() + RETRY_MS
        if self._target_is_spent:
            self._target.replace()
            self._target_is_spent = False
        for partition, (shard, plan, look_ahead_until) in self._takeover.recover(wanted).items():
            if look_ahead_until is not None:
                self._looking_ahead[partition] = look_ahead_until
            cause = self.waiting.pop(partition)
            self.shards[partition] = shard
            self._reading.follow(partition, plan.progress.generations)
            self._committed[partition] = plan.progress
            if plan.rules_wait is not None:
                self._rules_wait[partition] = plan.rules_wait
            self._moving = self._moving | {partition} if plan.backend_changed else self._moving - {partition}
            self._events.recovered(partition, cause, plan)
        if self.waiting and self.waiting.keys() <= self._takeover.still.keys():
            # It takes a person: others here deliver meanwhile, and to look costs their time.
            self._retry_at_ms = self._clock.monotonic_ms() + STILL_MS

    # -- taking in

    def _ingest(self, partition: int, chunk: Chunk) -> None:
        shard = self.shards.get(partition)
        if shard is None:
            return
        still = self._unreadable.note(partition, chunk, self._clock.monotonic_ms())
        if still is not None:
            self._events.stuck(partition, still)
        commands: Sequence[Command] = chunk.commands
        end = chunk.end
        if partition in self._looking_ahead:
            self._look_ahead(partition, shard, commands, end)
            return
        known = shard.epochs.note(chunk.epochs)
        if known is not None:
            raise TransactionAborted(
                f"records of an earlier leader epoch follow those of {known} in partition {partition}: it is another "
                "log than was read before, and what is committed is judged again"
            )
        if self._suspension.ingest:
            commands = [command for command in commands if command.offset < shard.replay_until]
            end = min(end, shard.replay_until) if end is not None else None
        if partition in self._deferred:
            commands = [*self._deferred.pop(partition), *commands]
        self._apply(partition, shard, commands)
        if end is not None and partition not in self._deferred and end > shard.position:
            shard.reached_end(end)
            self._note_moved()

    def _look_ahead(self, partition: int, shard: Shard, commands: Sequence[Command], end: int | None) -> None:
        """Note what relays have written into the source; what lies in front of it is read with that in mind."""
        rewritten = [c for c in commands if isinstance(c, Schedule | Cancel) and c.rank is not None]
        if rewritten:
            shard.look_ahead(rewritten, self._manager.look_up(shard, shard.unknown_ids(rewritten)))
        reached = max(end or 0, commands[-1].offset + 1 if commands else 0)
        if reached >= self._looking_ahead[partition]:
            self._looked_ahead.add(partition)

    def _end_looking_ahead(self) -> None:
        """Read what was looked through."""
        for partition in [*self._looked_ahead]:
            self._source.read_from(partition, self._committed[partition].offset)
            self._looked_ahead.discard(partition)
            del self._looking_ahead[partition]
            self.shards[partition].looks_ahead = False

    def _apply(self, partition: int, shard: Shard, commands: Sequence[Command]) -> None:
        if not self._holding.takes_in(partition):
            self._deferred[partition] = commands
            return
        now_ms = self._due.now_ms() if self._holding.delivers(partition) else NOTHING_DUE_MS
        shard.come_back(self._clock.now_ms())
        if now_ms == NOTHING_DUE_MS or shard.cursor.due_ms > now_ms:
            kept = shard.without_departures(commands, now_ms)
            if len(kept) < len(commands):
                self._deferred[partition] = commands[len(kept) :]
            commands = kept
        if not commands:
            return
        self._note_moved()
        self._taken += len(commands)
        next_position = commands[-1].offset + 1
        ids_full = shard.ids_bytes > self._id_bytes // len(self.shards)
        shard.renew_admission_limits(self._clock.now_ms(), ids_full=ids_full)
        found = self._manager.look_up(shard, shard.unknown_ids(commands))
        leaving = shard.ingest(commands, next_position, found)
        self._send(partition, leaving, now_ms if now_ms != NOTHING_DUE_MS else self._clock.now_ms())

    def _apply_deferred(self) -> None:
        """Commands wait, and reading with them, while the cursor is ahead of the time up to which records are due."""
        for partition in [] if self._due.now_ms() == NOTHING_DUE_MS else [*self._deferred]:
            self._apply(partition, self.shards[partition], self._deferred.pop(partition))

    def _note_moved(self) -> None:
        if not self._moved and not self._sent:
            self._tick_started_ms = self._clock.monotonic_ms()
        self._moved = True

    # -- delivering

    def _deliver(self) -> None:
        now_ms = self._due.now_ms()
        if now_ms == NOTHING_DUE_MS or self._hold_ms() > 0:
            return
        self._behind = False
        for shard in self._delivering():
            partition, before = shard.partition, (shard.cursor, shard.former_rules)
            leaving = shard.take_due(now_ms, DUE_LIMIT)
            self._behind = self._behind or len(leaving.schedules) >= DUE_LIMIT
            if leaving.schedules or leaving.rejects or leaving.rewritten:
                self._send(partition, leaving, now_ms)
            elif (shard.cursor, shard.former_rules) != before:
                # The cursor has passed what was refused after all, or former rules have ended while nothing is due.
                self._note_moved()

    def _delivering(self) -> Sequence[Shard]:
        shards = self.shards.values()
        return (
            [shard for shard in shards if self._holding.delivers(shard.partition)] if self._holding.held else [*shards]
        )

    def _hold_ms(self) -> int:
        """Return how long the next transaction waits for the last one's markers; with more to send than time it does
        not.
        """
        return 0 if self._open or self._behind else max(0, self._held_until_ms - self._clock.monotonic_ms())

    def _send(self, partition: int, leaving: Leaving, decided_ms: int) -> None:
        """Send what was decided to leave at that time; a clock that was set back since does not make it early, nor one
        that has jumped ahead expired.
        """
        self._events.commands(leaving)
        if not leaving.schedules and not leaving.rejects and not leaving.rewritten:
            return
        if self._learn is not None and (named := {s.target for s in leaving.schedules if s.target is not None}):
            self._learn(named)
            self._holding.sending(partition, named)
        now_ms = max(decided_ms, self._due.now_ms())
        records, late_rejects = self._writer.packed(partition, leaving.schedules, now_ms)
        not_written: list[Reject] = []
        if leaving.rewritten:
            rewritten, not_written = self._writer.rewritten(partition, leaving.rewritten, now_ms)
            records += rewritten
            self.shards[partition].not_written([reject.offset for reject in not_written])
        rejects = [*leaving.rejects, *late_rejects, *not_written]
        self._begin()
        if not self._sent:
            self._tick_started_ms = self._clock.monotonic_ms()
        if not self._pace.transactional:
            self._tick_sent.add(partition, [*leaving.schedules, *(each.schedule for each in leaving.rewritten)])
        self._sent += len(leaving.schedules) + len(leaving.rewritten) + len(leaving.rejects)
        self._target.send(records)
        if rejects:
            self._target.send(self._dead_letters.records(partition, rejects, now_ms))
        self._events.sent(leaving.schedules, rejects, late_rejects, now_ms)

    # -- committing

    def _closes_at_ms(self) -> int | None:
        far_bytes = sum(shard.far_bytes for shard in self.shards.values())
        tick = TickState(
            self._tick_started_ms, self._sent, self._moved, far_bytes, self._taken, self._idle, self._came_ms
        )
        return closes_at_ms(tick, self._pace, self._last_commit_ms)

    def _tick_is_due(self) -> bool:
        close_ms = self._closes_at_ms()
        return close_ms is not None and self._clock.monotonic_ms() >= close_ms

    def _close_tick(self, handing_over: frozenset[int] = frozenset()) -> None:
        """Put, settle, commit, drop: in this order, each acknowledged before the next."""
        put_ms = self._clock.monotonic_ms()
        self._store(self._manager.put_all(self.shards.values()))
        started_ms = self._clock.monotonic_ms()
        self._writer.note_refusals(self._flush())
        self._holding.settled()
        if self._stored:
            self._events.put(self._clock.monotonic_ms() - put_ms)
        owner = self._target.owner
        progress = {
            partition: self._takeovers_kept(partition, shard.progress(owner))
            if partition not in handing_over
            else shard.progress("")._replace(takeovers=0)
            for partition, shard in self.shards.items()
        }
        changed = {partition: new for partition, new in progress.items() if self._committed.get(partition) != new}
        if changed or self._open:
            if self._target.owner:
                self._begin()
                self._target.commit(changed, self._source.group_metadata())
                self._held_until_ms = self._clock.monotonic_ms() + self._pace.hold_ms()
            else:
                self._source.commit(changed)
        self._open = self._moved = self._stored = False
        self._sent = self._taken = 0
        self._tick_sent.settle()
        self._committed.update(changed)
        for partition, new in changed.items():
            self.shards[partition].committed_offset = new.offset
        self._last_commit_ms = self._clock.monotonic_ms() - started_ms
        self._events.committed(self._last_commit_ms)
        self._writer.refusals.settled(committed=True)
        self._manager.drop_done(self.shards.values())
        self._manager.hand_over(shard for shard in self.shards.values() if shard.partition in handing_over)

    def _takeovers_kept(self, partition: int, new: Progress) -> Progress:
        """Return progress that counts the takeovers as long as the position stays where it was then."""
        was = self._committed[partition]
        return new._replace(takeovers=was.takeovers if new.position == was.position else 0)

    def _begin(self) -> None:
        if not self._open:
            self._target.begin()
            self._open = True

    def _store(self, records: Sequence[Record]) -> None:
        """Send what a backlog in Kafka takes: it is part of the transaction."""
        if records:
            self._begin()
            self._holding.storing({record.topic for record in records})
            self._target.store(records)
            self._stored = True

    def _flush(self) -> Sequence[Refusal]:
        """Wait until all is acknowledged; what cannot be settled by a dead letter alone is returned."""
        refusals = self._target.flush(self._holding.in_vain)
        if not refusals or self._pace.transactional:
            return refusals
        rejects, unknown = dead_letters_for(refusals, self._tick_sent.batches)
        now_ms = self._clock.now_ms()
        for partition, of_shard in rejects.items():
            self.shards[partition].not_written([reject.offset for reject in of_shard])
            self._target.send(self._dead_letters.records(partition, of_shard, now_ms))
            self._events.sent([], of_shard, [], now_ms)
        return [*unknown, *self._target.flush(self._holding.in_vain)]

    # -- memory

    @property
    def size(self) -> int:
        """Return about how many bytes of memory the schedules take."""
        return sum(shard.size for shard in self.shards.values())

    def _load_and_throttle(self) -> None:
        """Load what comes within the horizon, and stop reading while memory is full."""
        held = sum(self.shards[each].size for each in self._holding.held.keys() & self.shards.keys())
        size = self.size - held
        # What waits for a topic that does not answer leaves the others half of the memory.
        memory_bytes = self._memory_bytes - min(held, self._memory_bytes // 2)
        self._manager.list_next([*self.shards.values()])
        room_bytes = memory_bytes - size
        if self._due.now_ms() != NOTHING_DUE_MS and self._manager.load_next(self._delivering(), room_bytes):
            self._note_moved()
        self._drop_lost()
        self._begin_rules()
        full = size >= memory_bytes * (RESUME_SHARE if self._paused - self._holding.held.keys() else 1)
        no_room = dict.fromkeys(self._holding.held, held >= self._memory_bytes // 2)
        wanted = {each for each, shard in self.shards.items() if self._can_wait(each, shard, no_room.get(each, full))}
        if wanted - self._paused:
            self._source.pause(wanted - self._paused)
        if self._paused - wanted:
            self._source.resume(self._paused - wanted)
        self._paused = wanted

    def _drop_lost(self) -> None:
        """Recover those alone whose backlog lost something."""
        if lost := self.shards.keys() & self._manager.lost():
            self._recover_again(lost, BucketLost.cause)

    def _begin_rules(self) -> None:
        """Take those over anew in which nothing keeps the relay's own rules from taking effect any more.

        What is read by them has to be committed first, which a new owner does.
        """
        if not self._rules_wait:
            return
        ends = self._source.ends(self._rules_wait)
        ready = {partition for partition in self._rules_wait if self._may_begin(partition, ends.get(partition))}
        if ready:
            self._recover_again(ready, "rules")

    def _may_begin(self, partition: int, end: int | None) -> bool:
        if end is None or self.shards[partition].replaying:
            return False
        was, declared = self._committed[partition], self._reading.declared
        return succeed(was.generations, was.floor, declared, was.position, was.cursor, end).waits is None

    def _recover_again(self, partitions: Set[int], cause: str) -> None:
        """Recover some shards from what is committed; what they did is committed first, with that of the others."""
        if self._open or self._moved:
            self._close_tick()
        self._source.pause(partitions)
        self._forget(frozenset(partitions))
        self.waiting.update(dict.fromkeys(partitions, cause))
        self._retry_at_ms = 0

    def _can_wait(self, partition: int, shard: Shard, full: bool) -> bool:
        """Return whether reading a shard pauses; while it reads again what it needs to deliver, only if neither the
        backlog nor memory has room for it.
        """
        if partition in self._deferred or self._unreadable.waits(partition, self._clock.monotonic_ms()):
            return True
        if shard.replaying:
            return shard.share is not None and shard.share.refused_bytes >= LARGEST_FAR_BYTES
        return full or self._suspension.ingest or shard.full(self._clock.now_ms(), paused=partition in self._paused)
