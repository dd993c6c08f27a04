"""The loop: takes records in, delivers what is due, and commits both in ticks.

One tick is one transaction: whatever was taken in is in the backlog or still below the committed
offset, whatever was due is produced, and (L, P, C) of every shard is committed with it. After any
doubt the memory is dropped and the committed state read again; nothing is ever put back by hand.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence, Set
from typing import Any, NamedTuple

from delaytopic_api.relay import RelayState
from delaytopic_relay.backlog.protocol import BacklogManager, Shard
from delaytopic_relay.core.admission_limits import NEVER_MS
from delaytopic_relay.core.commands import OCCURRENCE, Command, Leaving, Record, Rewritten, written_again
from delaytopic_relay.core.progress import Progress
from delaytopic_relay.core.rules import succeed
from delaytopic_relay.core.suspension import NOTHING_DUE_MS, Suspension
from delaytopic_relay.delivery.dead_letters import DeadLetters
from delaytopic_relay.delivery.outcomes import Outcomes
from delaytopic_relay.delivery.record_writer import NOTHING_AGAIN, Again, RecordWriter
from delaytopic_relay.delivery.refusals import Refusal, dead_letters_for
from delaytopic_relay.engine.due_time import DueTime
from delaytopic_relay.engine.holding import Holding
from delaytopic_relay.engine.pacing import LARGEST_FAR_BYTES, Pace, TickState, closes_at_ms, sleep_ms
from delaytopic_relay.engine.partitions import ASSIGNED, Owned, Partitions
from delaytopic_relay.engine.reading import Reading
from delaytopic_relay.engine.recovery import Takeover
from delaytopic_relay.engine.sent import SentBatches
from delaytopic_relay.engine.snapshot import LoopSnapshot
from delaytopic_relay.engine.unreadable import Unreadable
from delaytopic_relay.errors import (
    BucketLost,
    CommitUnknown,
    Fenced,
    ProducerOutdated,
    RecordsRefused,
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

    `outcomes` tell how schedules ended; None where nobody asks for it.
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
    outcomes: Outcomes | None = None


POLL_LIMIT = 1_000
DUE_LIMIT = 2_000
RESUME_SHARE = 0.75
RETRY_MS = 1_000
AWAITING_MS = 3
"""The longest wait for records while something comes from the backlog that may be due."""
STILL_MS = 5_000
"""The time between two looks at partitions that stand still until a person says how they go on."""


class Loop:
    """One relay at work. All methods are called from one thread."""

    def __init__(self, parts: Parts) -> None:
        """Take the parts of a relay; nothing is read before `start`."""
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
        self._outcomes = parts.outcomes
        self._unreadable = Unreadable()
        self._clock = parts.clock
        self._due = DueTime(parts.clock, parts.second_clock, suspended=parts.suspension.delivery)
        self._events = parts.events
        self.partitions = Partitions()
        self._owned = self.partitions.owned
        self.joined = False
        self._retry_at_ms = 0
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

    @property
    def shards(self) -> Mapping[int, Shard]:
        """The shards at work."""
        return self.partitions.shards

    @property
    def waiting(self) -> Mapping[int, str]:
        """The partitions that wait to be recovered, and why."""
        return self.partitions.waiting

    # -- the group's decisions, called from inside `Source.poll`

    def assigned(self, partitions: Sequence[int]) -> None:
        """Shards that came to us wait until they are recovered."""
        self.partitions.wait(partitions, ASSIGNED)
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
        self.partitions.forget(partitions)
        self._reading.forget(partitions)
        self._unreadable.forget(partitions)
        self._takeover.forget(partitions)
        self._writer.refusals.forget(partitions)
        if self._outcomes is not None:
            self._outcomes.forget(partitions)

    # -- running

    def start(self) -> None:
        """Join the group. The second clock is asked first: it has answered by the time that there are shards."""
        self._due.compare()
        self._source.subscribe(self)

    def snapshot(self) -> LoopSnapshot:
        """Return what is at work here, for the status page."""
        return LoopSnapshot(
            RelayState.RUNNING,
            self.shards,
            dict(self.waiting),
            {partition: each.committed for partition, each in self._owned.items()},
            frozenset(partition for partition, each in self._owned.items() if each.paused),
            self._source.ends(self._owned),
            dict(self._manager.unreadable),
            frozenset(partition for partition, each in self._owned.items() if each.moving),
            self.partitions.having(lambda each: each.rules_wait),
            {**self._takeover.still, **self._unreadable.still},
            dict(self._takeover.missing),
            frozenset(self.partitions.having(lambda each: each.deferred)),
            self._due.state,
            self._suspension.delivery,
            self._source.open_transactions(self._owned),
            {partition: each for partition, each in self._holding.held.items() if partition in self.partitions},
            dict(self._holding.refused),
        )

    def finish(self) -> None:
        """Commit, hand the shards over and leave the group."""
        self.revoked([*self._owned])
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
            self._follow_clock()
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
        longest_ms = sleep_ms(now_ms, wake_ms, self._clock.monotonic_ms(), self._closes_at_ms())
        awaits = now_ms != NOTHING_DUE_MS and self._manager.awaits
        return min(longest_ms, AWAITING_MS) if awaits else longest_ms

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
        dropped = [*self._owned]
        self.partitions.wait(dropped, lost.cause)
        try:
            self._source.pause(dropped)
        except Unavailable as error:
            self._events.unavailable(error)
        self._reading.forget(dropped)
        self._unreadable.forget(dropped)
        if self._outcomes is not None:
            self._outcomes.forget_all()
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
            shard.tells_ends = self._outcomes is not None
            owned = Owned(shard, plan.progress, plan.backend_changed, plan.rules_wait, look_ahead_until)
            cause = self.partitions.recovered(partition, owned)
            # Before anything is read by it: a record that counts from a later time would be due beyond all limits.
            self._clock.move(plan.progress.generations[-1].rules.shift_ms)
            self._reading.follow(partition, plan.progress.generations)
            self._events.recovered(partition, cause, plan)
        if self.waiting and self.waiting.keys() <= self._takeover.still.keys():
            # It takes a person: others here deliver meanwhile, and to look costs their time.
            self._retry_at_ms = self._clock.monotonic_ms() + STILL_MS

    # -- taking in

    def _ingest(self, partition: int, chunk: Chunk) -> None:
        owned = self._owned.get(partition)
        if owned is None:
            return
        shard = owned.shard
        still = self._unreadable.note(partition, chunk, self._clock.monotonic_ms())
        if still is not None:
            self._events.stuck(partition, still)
        commands: Sequence[Command] = chunk.commands
        end = chunk.end
        if owned.look_ahead_until is not None:
            self._look_ahead(shard, commands)
            reached = max(end or 0, commands[-1].offset + 1 if commands else 0)
            owned.looked_ahead = owned.looked_ahead or reached >= owned.look_ahead_until
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
        self._apply(partition, owned, [*owned.deferred, *commands] if owned.deferred is not None else commands)
        if end is not None and owned.deferred is None and end > shard.position:
            shard.reached_end(end)
            self._note_moved()

    def _look_ahead(self, shard: Shard, commands: Sequence[Command]) -> None:
        """Note what relays have written into the source; what lies in front of it is read with that in mind."""
        rewritten = [again for command in commands if (again := written_again(command)) is not None]
        if rewritten:
            shard.look_ahead(rewritten, self._manager.look_up(shard, shard.unknown_ids(rewritten)))

    def _end_looking_ahead(self) -> None:
        """Read what was looked through."""
        for partition, owned in self._owned.items():
            if owned.looked_ahead:
                self._source.read_from(partition, owned.committed.offset)
                owned.look_ahead_until, owned.looked_ahead = None, False
                owned.shard.looks_ahead = False

    def _apply(self, partition: int, owned: Owned, commands: Sequence[Command]) -> None:
        """Take commands in, up to the first that may not leave yet: it is deferred, with all behind it."""
        shard, owned.deferred = owned.shard, None
        if not self._holding.takes_in(partition):
            owned.deferred = commands
            return
        now_ms = self._due.now_ms() if self._holding.delivers(partition) else NOTHING_DUE_MS
        shard.come_back(self._clock.now_ms())
        if now_ms == NOTHING_DUE_MS or shard.cursor.due_ms > now_ms:
            kept = shard.without_departures(commands, now_ms)
            if len(kept) < len(commands):
                owned.deferred = commands[len(kept) :]
            commands = kept
        if not commands:
            return
        self._note_moved()
        self._taken += len(commands)
        next_position = commands[-1].offset + 1
        ids_share = shard.ids_bytes * len(self._owned) / max(1, self._id_bytes)
        shard.renew_admission_limits(self._clock.now_ms(), ids_share=ids_share)
        found = self._manager.look_up(shard, shard.unknown_ids(commands))
        leaving = shard.ingest(commands, next_position, found)
        self._send(partition, leaving, now_ms if now_ms != NOTHING_DUE_MS else self._clock.now_ms())

    def _apply_deferred(self) -> None:
        """Commands wait, and reading with them, while the cursor is ahead of the time up to which records are due."""
        if self._due.now_ms() == NOTHING_DUE_MS:
            return
        for partition, owned in self._owned.items():
            if owned.deferred is not None:
                self._apply(partition, owned, owned.deferred)

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
        held = self._holding.held
        return [each.shard for partition, each in self._owned.items() if not held or self._holding.delivers(partition)]

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
        if self._outcomes is not None and leaving.ends:
            self._outcomes.ended(partition, leaving.ends, decided_ms)
        if not leaving.schedules and not leaving.rejects and not leaving.rewritten:
            return
        if self._learn is not None and (named := {s.target for s in leaving.schedules if s.target is not None}):
            self._learn(named)
            self._holding.sending(partition, named)
        now_ms = max(decided_ms, self._due.now_ms())
        again = (
            self._write_again(partition, leaving.rewritten, decided_ms, now_ms) if leaving.rewritten else NOTHING_AGAIN
        )
        schedules = leaving.schedules
        if again.rejects:
            # What cannot be followed by its next occurrence is a dead letter that says so, and no delivery.
            refused = {reject.offset for reject in again.rejects}
            schedules = [schedule for schedule in schedules if schedule.offset not in refused]
        records, late_rejects = self._writer.packed(partition, schedules, now_ms)
        records += again.records
        rejects = [*leaving.rejects, *late_rejects, *again.rejects]
        self._begin()
        if not self._sent:
            self._tick_started_ms = self._clock.monotonic_ms()
        if not self._pace.transactional:
            self._tick_sent.add(partition, [*schedules, *(each.schedule for each in leaving.rewritten)])
        self._sent += len(schedules) + len(leaving.rewritten) + len(leaving.rejects)
        self._target.send(records)
        if rejects:
            self._target.send(self._dead_letters.records(partition, rejects, now_ms))
        if self._outcomes is not None:
            self._outcomes.sent(partition, schedules, rejects, now_ms)
        self._events.sent(schedules, rejects, late_rejects, now_ms)
        if leaving.rewritten:
            refused = {reject.offset for reject in rejects}
            going_on = (each.schedule for each in leaving.rewritten if each.goes_on)
            left = [each for each in going_on if each.control == OCCURRENCE and each.offset not in refused]
            self._events.recurred(left, again.missed, now_ms)

    def _write_again(self, partition: int, rewritten: Sequence[Rewritten], decided_ms: int, now_ms: int) -> Again:
        """Return what goes into the source again, and tell the shard what does not."""
        again = self._writer.rewritten(partition, rewritten, now_ms)
        if again.ended or again.rejects:
            ends = self._owned[partition].shard.not_written([*again.ended, *(each.offset for each in again.rejects)])
            if self._outcomes is not None:
                self._outcomes.ended(partition, ends, decided_ms)
        return again

    # -- committing

    def _closes_at_ms(self) -> int | None:
        far_bytes = sum(each.shard.far_bytes for each in self._owned.values())
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
        if self._outcomes is not None:
            self._write(self._outcomes)
        if self._stored:
            self._events.put(self._clock.monotonic_ms() - put_ms)
        owner = self._target.owner
        progress = {
            partition: _takeovers_kept(each.committed, each.shard.progress(owner))
            if partition not in handing_over
            else each.shard.progress("")._replace(takeovers=0)
            for partition, each in self._owned.items()
        }
        changed = {partition: new for partition, new in progress.items() if self._owned[partition].committed != new}
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
        for partition, new in changed.items():
            owned = self._owned[partition]
            owned.committed, owned.shard.committed_offset = new, new.offset
            owned.shard.settled()
        self._last_commit_ms = self._clock.monotonic_ms() - started_ms
        self._events.committed(self._last_commit_ms)
        self._writer.refusals.settled(committed=True)
        self._manager.drop_done(self.shards.values())
        self._manager.hand_over(shard for shard in self.shards.values() if shard.partition in handing_over)

    def _write(self, outcomes: Outcomes) -> None:
        """Send what has ended, and wait until it is acknowledged."""
        records = outcomes.records(self._target.take_places())
        if records:
            self._begin()
            self._target.store(records)
            self._writer.note_refusals(self._target.flush(self._holding.in_vain))
            self._holding.settled()
            self._events.ended(outcomes.counts())
            outcomes.forget_all()

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
            ends = self._owned[partition].shard.not_written([reject.offset for reject in of_shard])
            self._target.send(self._dead_letters.records(partition, of_shard, now_ms))
            if self._outcomes is not None:
                self._outcomes.ended(partition, ends, now_ms)
                self._outcomes.sent(partition, [], of_shard, now_ms)
            self._events.sent([], of_shard, [], now_ms)
        return [*unknown, *self._target.flush(self._holding.in_vain)]

    # -- memory

    @property
    def size(self) -> int:
        """Return about how many bytes of memory the schedules take."""
        return sum(each.shard.size for each in self._owned.values())

    def _load_and_throttle(self) -> None:
        """Load what comes within the horizon, and stop reading while memory is full."""
        held = sum(self._owned[each].shard.size for each in self._holding.held.keys() & self._owned.keys())
        size = self.size - held
        # What waits for a topic that does not answer leaves the others half of the memory.
        memory_bytes = self._memory_bytes - min(held, self._memory_bytes // 2)
        self._manager.list_next([*self.shards.values()])
        room_bytes = memory_bytes - size
        if self._due.now_ms() != NOTHING_DUE_MS and self._manager.load_next(self._delivering(), room_bytes):
            self._note_moved()
        # Entries that were never committed came with what was loaded: until they are put right nothing more is loaded.
        if not self._moved and any(shard.must_put for shard in self.shards.values()):
            self._note_moved()
        self._drop_lost()
        self._begin_rules()
        paused = {partition for partition, each in self._owned.items() if each.paused}
        full = size >= memory_bytes * (RESUME_SHARE if paused - self._holding.held.keys() else 1)
        no_room = dict.fromkeys(self._holding.held, held >= self._memory_bytes // 2)
        wanted = {each for each, owned in self._owned.items() if self._can_wait(each, owned, no_room.get(each, full))}
        if wanted - paused:
            self._source.pause(wanted - paused)
        if paused - wanted:
            self._source.resume(paused - wanted)
        for partition, owned in self._owned.items():
            owned.paused = partition in wanted

    def _follow_clock(self) -> None:
        """Take those over anew in which records count from an earlier time than a person has moved the clock to.

        What comes counts from there once it is committed where the source ends, which a new owner does.
        """
        shift_ms = max(self._clock.asked_ms, self._clock.shift_ms)
        if shift_ms > self._reading.declared.rules.shift_ms:
            self._reading.move(shift_ms)
            if behind := {each for each, shown_ms in self.shown_ms.items() if shown_ms < shift_ms}:
                self._recover_again(behind, "clock")

    @property
    def shown_ms(self) -> Mapping[int, int]:
        """The shift of the clock that is committed for what comes, of each partition at work."""
        return {partition: each.committed.generations[-1].rules.shift_ms for partition, each in self._owned.items()}

    @property
    def at_rest(self) -> bool:
        """Return whether all that is due by now, of what was taken in, has left and is committed."""
        now_ms = self._due.now_ms()
        if now_ms == NOTHING_DUE_MS or self._open or self.waiting:
            return False
        return all(
            not each.shard.replaying and each.deferred is None and _is_later(each.shard.next_due_ms(), now_ms)
            for each in self._owned.values()
        )

    def _drop_lost(self) -> None:
        """Recover those alone whose backlog lost something."""
        if lost := self._owned.keys() & self._manager.lost():
            self._recover_again(lost, BucketLost.cause)

    def _begin_rules(self) -> None:
        """Take those over anew in which nothing keeps the relay's own rules from taking effect any more.

        What is read by them has to be committed first, which a new owner does.
        """
        waiting = [partition for partition, each in self._owned.items() if each.rules_wait is not None]
        if not waiting:
            return
        ends = self._source.ends(waiting)
        ready = {partition for partition in waiting if self._may_begin(self._owned[partition], ends.get(partition))}
        if ready:
            self._recover_again(ready, "rules")

    def _may_begin(self, owned: Owned, end: int | None) -> bool:
        if end is None or owned.shard.replaying:
            return False
        was, declared = owned.committed, self._reading.declared
        return succeed(was.generations, was.floor, declared, was.position, was.cursor, end).waits is None

    def _recover_again(self, partitions: Set[int], cause: str) -> None:
        """Recover some shards from what is committed; what they did is committed first, with that of the others."""
        if self._open or self._moved:
            self._close_tick()
        self._source.pause(partitions)
        self._forget(frozenset(partitions))
        self.partitions.wait(partitions, cause)
        self._retry_at_ms = 0

    def _can_wait(self, partition: int, owned: Owned, full: bool) -> bool:
        """Return whether reading a shard pauses; while it reads again what it needs to deliver, only if neither the
        backlog nor memory has room for it.
        """
        shard = owned.shard
        if owned.deferred is not None or self._unreadable.waits(partition, self._clock.monotonic_ms()):
            return True
        if shard.replaying:
            return shard.share is not None and shard.share.refused_bytes >= LARGEST_FAR_BYTES
        return full or self._suspension.ingest or shard.full(self._clock.now_ms(), paused=owned.paused)


def _is_later(due_ms: int | None, now_ms: int) -> bool:
    return due_ms is None or due_ms > now_ms


def _takeovers_kept(was: Progress, new: Progress) -> Progress:
    """Return progress that counts the takeovers as long as the position stays where it was then."""
    return new._replace(takeovers=was.takeovers if new.position == was.position else 0)
