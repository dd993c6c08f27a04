"""Runs a plan: one world, its relays, and what happens to them; then quiet, until everything has left."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from redis.exceptions import ConnectionError as NoConnection
from tests.simulation.applications import Applications
from tests.simulation.faults import OF_MEMBERS, Crash, Fault, Gate, What
from tests.simulation.outcome import Outcome, outcome_of
from tests.simulation.plans.plan import (
    Accept,
    Action,
    Advance,
    Arm,
    BacklogAway,
    BacklogCopied,
    BacklogDemoted,
    BacklogFull,
    BacklogRolledBack,
    BacklogWiped,
    BucketDamaged,
    ClockSilent,
    Edit,
    Pass,
    Plan,
    Produce,
    Remove,
    Retain,
    Rotate,
    RuleSet,
    SegmentReplaced,
    SetClock,
    Setup,
    SourceChanged,
    Start,
    StartTwin,
    Stop,
    TargetSilent,
)
from tests.simulation.quiet import Quiet
from tests.simulation.relays import OTHER, TARGET, Relay, compares, rules_by, rules_of
from tests.simulation.world.bucket_damage import damage
from tests.simulation.world.bucket_log import SimulatedBucketLog
from tests.simulation.world.clocks import SimulatedSecondClock
from tests.simulation.world.kafka import Kafka
from tests.simulation.world.redis_server import RedisServer, redis_store
from tests.simulation.world.store_client import DistantStore, Line
from tests.support.relay.backlog.memory_store import MemoryBacklogStore

from delaytopic_relay.backlog.redis import parts as redis_parts
from delaytopic_relay.backlog.redis import shard
from delaytopic_relay.backlog.store import BacklogStore
from delaytopic_relay.core.recovery import LONGEST_ACCEPTANCE_MS, NOTHING_ACCEPTED, Acceptance
from delaytopic_relay.core.rules import Declared
from delaytopic_relay.delivery.reachability import Destination
from delaytopic_relay.errors import BacklogUnavailable, QueueImpossible, SourceReplaced
from delaytopic_relay.ports import Committed

MOST_RELAYS = 5
FOR_EVER_MS = 1 << 50


class History:
    """One run of a plan."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.setup = plan.setup
        self.kafka = Kafka(plan.setup.shards, plan.setup.session_ms)
        self.applications = Applications(self.kafka, plan.setup)
        self.server: Any = RedisServer() if plan.setup.redis else MemoryBacklogStore()
        self.relays: list[Relay] = []
        self._copies: list[Any] = []
        self._away_until_ms = 0
        self._full_until_ms = 0
        self._silent_until_ms = 0
        self._started = 0
        self._coming: list[tuple[int, str | None, str]] = []
        """Relays that start again in place: when, their names in the group, and what is suspended there."""
        self._declared = [Declared(rules_of(plan.setup), int(plan.setup.declares))]
        self._gone: list[tuple[int, str]] = []
        """Names of relays that are gone for good, and when the operator takes them out of the group."""

    def run(self) -> Outcome:
        """The whole history, and what became of it."""
        with _small_portions(self.setup):
            try:
                for action in self.plan.actions:
                    self.do(action)
                rested = Quiet(self).run()
            finally:
                for relay in self.relays:
                    if relay.strand is not None:
                        relay.strand.kill()
        return outcome_of(self.setup, self.kafka, self.applications.probes, rested=rested)

    def do(self, action: Action) -> None:
        """One action of the plan."""
        if isinstance(action, Pass):
            self.pass_time(action.duration_ms)
        elif isinstance(action, Produce):
            self.applications.produce(action)
        elif isinstance(action, Arm):
            if self.relays:
                self._pick(action.relay).gate.arm(action.fault)
        else:
            self.kafka.counts[f"event: {_words(action)}"] += 1
            self._happens_around(action)

    def _happens_around(self, action: Action) -> None:
        match action:
            case Start(suspended) if len(self.relays) < MOST_RELAYS:
                self.start(suspended)
            case Edit(rules):
                self._edit(rules)
            case Stop(number) if self.relays:
                self.attempt(self._pick(number), Relay.finish)
            case StartTwin(number) if 0 < len(self.relays) < MOST_RELAYS:
                self.start("", self._pick(number).member_name)
            case Remove(number, fenced) if self.relays:
                self._remove(self._pick(number), fenced=fenced)
            case Rotate():
                self.kafka.group.rotate()
            case SetClock(number, wrong_ms, drift_permille) if self.relays:
                clock = self._pick(number).clock
                clock.wrong_ms, clock.drift_permille = wrong_ms, drift_permille
            case ClockSilent(duration_ms):
                self._silent_until_ms = self.kafka.now_ms + duration_ms
            case Retain():
                self.applications.retain()
            case _:
                self._happens_to_source_or_clock(action)

    def _happens_to_source_or_clock(self, action: Action) -> None:
        match action:
            case Advance(duration_ms):
                self.kafka.asked_shift_ms += duration_ms
            case SourceChanged(what, share):
                self._change(what, share)
            case Accept():
                self._accept()
            case TargetSilent(topic, partition, duration_ms, looks_well):
                self.kafka.silence(Destination(topic, partition), duration_ms, looks_well=looks_well)
            case _:
                self._happens_to_the_backlog(action)

    def _edit(self, rules: RuleSet) -> None:
        number = len(self._declared) + 1 if self.setup.declares else 0
        self._declared.append(Declared(rules_by(rules), number))

    def _happens_to_the_backlog(self, action: Action) -> None:
        match action:
            case BacklogAway(duration_ms):
                self._away_until_ms = self.kafka.now_ms + duration_ms
                if isinstance(self.server, RedisServer):
                    self.server.restart()
            case BacklogCopied():
                self._copies.append(self.server.snapshot())
            case BacklogRolledBack(copies) if len(self._copies) >= copies:
                self.server.restore(self._copies[-copies])
            case BacklogWiped():
                self.server.wipe()
            case BucketDamaged(bucket, what):
                damage(self.kafka, bucket, what)
            case _:
                self._happens_to_the_server(action)

    def _happens_to_the_server(self, action: Action) -> None:
        match action:
            case BacklogFull(duration_ms):
                self.fill(duration_ms)
            case BacklogDemoted():
                if isinstance(self.server, RedisServer):
                    self.server.demote()
            case SegmentReplaced(number):
                crowded = [segments for segments in self.server.lists() if len({*segments}) > 1]
                if crowded:
                    segments = crowded[number % len(crowded)]
                    segments[-1] = next(other for other in segments if other != segments[-1])
                    self.kafka.counts["path: segment replaced"] += 1

    def _change(self, what: str, share: float) -> None:
        """Let the source become another one; or the group's offsets, while no relay is in the group."""
        kafka = self.kafka
        kafka.accepted = NOTHING_ACCEPTED
        if what in ("made anew", "replaced", "mirrored"):
            number = len(kafka.changes) + 2
            kafka.make_anew(f"{number}" * 22, f"cluster {number}" if what == "mirrored" else None)
            if what == "made anew":
                kafka.committed.clear()  # as brokers do with a group's offsets of a topic that is deleted
            return
        if what == "cut":
            if kafka.reads_again:
                return  # what a former life left beyond P is believed
            # What lies behind P may be in Redis, by a tick that was aborted: that it was cut away is not noticed.
            kafka.note_change(share, below_position=not self.setup.backends)
            for shard, log in kafka.source.items():
                log.cut(kafka.cuts[-1][shard])
            return
        for relay in list(self.relays):
            self.attempt(relay, Relay.finish)
        if kafka.transactions.unfinished() or not kafka.group.is_empty or self.relays:
            return  # a tool refuses
        if kafka.has_unseen_cut:
            return  # nothing but the offsets tells of it
        kafka.note_change()
        if what == "lost":
            kafka.committed.clear()
        else:
            bare = {shard: Committed(committed.offset, "") for shard, committed in kafka.committed.items()}
            kafka.committed.update(bare)

    def _accept(self) -> None:
        """Somebody looks at the source, says that it is the right one, and starts relays that know it."""
        self.kafka.accepted = Acceptance(self.kafka.topic.topic_id, self.kafka.now_ms + LONGEST_ACCEPTANCE_MS)
        for relay in list(self.relays):
            self.attempt(relay, Relay.finish)

    def _pick(self, number: int) -> Relay:
        return self.relays[-1 - number % len(self.relays)]

    # -- relays

    def pass_time(self, duration_ms: int) -> None:
        """Time passes; who wakes up goes on, who is there takes a turn, who is missing is started."""
        self.kafka.pass_time(duration_ms)
        self._note_shown()
        if self.server.is_full and self.kafka.now_ms >= self._full_until_ms:
            self.server.is_full = False
        self._start_in_place()
        self._remove_gone()
        while self._running() + len(self._coming) < self.setup.relays and len(self.relays) < MOST_RELAYS:
            self.start("")
        for relay in list(self.relays):
            if not relay.frozen:
                self.attempt(relay, Relay.step)
            elif relay.wakes_up:
                self.wake(relay)

    def _note_shown(self) -> None:
        """Note how far all shards have followed the clock, as relays say that have committed it, zombies included."""
        shown: dict[int, int] = {}
        for relay in self.relays:
            for partition, shift_ms in relay.loop.shown_ms.items():
                shown[partition] = max(shift_ms, shown.get(partition, 0))
        if shown.keys() == self.kafka.source.keys():
            self.kafka.shown_shift_ms = max(self.kafka.shown_shift_ms, min(shown.values()))

    def _running(self) -> int:
        return sum(not relay.frozen for relay in self.relays)

    def _start_in_place(self) -> None:
        due = [coming for coming in self._coming if coming[0] <= self.kafka.now_ms]
        self._coming = [coming for coming in self._coming if coming[0] > self.kafka.now_ms]
        for _, member_name, suspended in due:
            self.start(suspended, member_name)

    def _remove_gone(self) -> None:
        due = [name for at_ms, name in self._gone if at_ms <= self.kafka.now_ms]
        self._gone = [(at_ms, name) for at_ms, name in self._gone if at_ms > self.kafka.now_ms]
        for name in due:
            if self.kafka.group.named(name) is not None:
                self.kafka.counts["path: taken out of the group"] += 1
                self.kafka.group.take_out(name, self.kafka.now_ms, fenced=False)

    def _remove(self, relay: Relay, *, fenced: bool) -> None:
        if relay.member_name is not None:
            self.kafka.group.take_out(relay.member_name, self.kafka.now_ms, fenced=fenced)

    def start(
        self, suspended: str, member_name: str | None = None, *, declared: Declared | None = None, queue: bool = True
    ) -> None:
        """A new process; with names in the group under its own, or under that of a former one.

        With a fixed delay it works as a `queue`, if that is possible; its rules are the latest if no others are given.
        """
        self._started += 1
        declared = declared or self._declared[-1]
        connect: Any = None if queue and declared.rules.delay_ms is not None else self._connect
        turns = self.setup.backends
        if connect is not None and turns and turns[(self._started - 1) % len(turns)] == "B":
            connect = self._buckets
        name = f"relay-{self._started}"
        member_name = (member_name or name) if self.setup.named else None
        second = self._second_clock(self._started)
        happen = self._happen
        self.relays.append(
            Relay(self.kafka, self.setup, name, connect, happen, declared, suspended, member_name, second_clock=second)
        )

    def _second_clock(self, number: int) -> SimulatedSecondClock | None:
        if not compares(self.setup, number):
            return None
        return SimulatedSecondClock(self.kafka, lambda: self.kafka.now_ms < self._silent_until_ms, self.setup.slow_ms)

    def _connect(self, gate: Gate) -> BacklogStore:
        if isinstance(self.server, RedisServer):
            return redis_store(self.server, self._line(gate, lambda: NoConnection("no answer")), self._mark)
        return DistantStore(self.server.of_topic(self._mark), self._line(gate, lambda: BacklogUnavailable("no answer")))

    @property
    def _mark(self) -> str:
        return self.kafka.topic.identity.topic

    def _buckets(self, gate: Gate) -> SimulatedBucketLog:
        return SimulatedBucketLog(self.kafka, gate, self.setup.portion)

    def _line(self, gate: Gate, silence: Callable[[], Exception]) -> Line:
        return Line(self.kafka, gate, self.backlog_is_away, silence, self.setup.load_ms)

    def backlog_is_away(self) -> bool:
        """Return whether the backlog's server does not answer now."""
        return self.kafka.now_ms < self._away_until_ms

    def attempt(self, relay: Relay, action: Callable[[Relay], None]) -> None:
        """Let a relay do something that may be its last."""
        if relay.frozen:
            return
        try:
            action(relay)
        except Crash as crash:
            self._bury(relay, crash)
        except QueueImpossible:
            self._open_a_backlog(relay)
        except SourceReplaced:
            self._begin_anew(relay)
        else:
            if action is Relay.finish:
                self._bury(relay)

    def _open_a_backlog(self, relay: Relay) -> None:
        """Go on with a backlog, as a process does whose fixed delay is no queue."""
        self.kafka.counts["path: no queue any more"] += 1
        suspended, name, declared = relay.suspended, relay.member_name, relay.declared
        self.attempt(relay, Relay.finish)
        self.start(suspended, name, declared=declared, queue=False)

    def _bury(self, relay: Relay, crash: Crash | None = None) -> None:
        relay.die()
        if crash is not None:
            self._note_crash(relay, crash)
        if relay.strand is not None and not relay.strand.over:
            relay.strand.kill()
            relay.strand = None
        self.relays.remove(relay)

    def _note_crash(self, relay: Relay, crash: Crash) -> None:
        removes_ms = self.setup.removes_gone_ms
        if crash.restarts_ms is not None:
            self._coming.append((self.kafka.now_ms + crash.restarts_ms, relay.member_name, relay.suspended))
        elif relay.member_name is not None and removes_ms is not None:
            self._gone.append((self.kafka.now_ms + removes_ms, relay.member_name))

    def wake(self, relay: Relay) -> None:
        """A frozen relay goes on in the middle of what it was doing."""
        member = relay.source.member
        assert member is not None
        self.kafka.group.heard(member, self.kafka.now_ms)
        self.kafka.counts["path: woke up in the middle of a tick"] += 1
        if member.evicted_at_ms is not None:
            self.kafka.counts["path: woke up as a zombie in the middle of a tick"] += 1
        self.attempt_to_resume(relay)

    def attempt_to_resume(self, relay: Relay) -> None:
        """Resume, with what it had in hand; it may die of it."""
        try:
            relay.resume()
        except Crash as crash:
            self._bury(relay, crash)
        except QueueImpossible:
            self._open_a_backlog(relay)
        except SourceReplaced:
            self._begin_anew(relay)

    def _begin_anew(self, relay: Relay) -> None:
        """A relay opens everything anew, with the topic as it is: here another process does."""
        self.kafka.counts["path: began anew"] += 1
        self.attempt(relay, Relay.finish)

    def _happen(self, relay: Relay, fault: Fault) -> None:
        """Let something happen to a process at an effect."""
        member = relay.source.member
        assert member is not None
        if fault.what in (What.CRASH, What.RESTART):
            raise Crash(fault.name, fault.length_ms if fault.what is What.RESTART else None)
        if fault.what is What.FREEZE:
            relay.freeze(fault.length_ms)
        elif fault.what is What.EVICTION:
            self.kafka.group.evict(member, self.kafka.now_ms)
        elif fault.what in OF_MEMBERS:
            self._remove(relay, fenced=fault.what is What.FENCING)
        else:
            self.kafka.group.rotate()

    def fill(self, duration_ms: int) -> None:
        """Let the backlog be full for so long."""
        self._full_until_ms = self.kafka.now_ms + duration_ms
        self.server.is_full = duration_ms > 0

    def calm(self) -> None:
        """No more faults: clocks are right, the backlog is there, what was frozen goes on, nothing is suspended."""
        self._away_until_ms = self._silent_until_ms = 0
        self.kafka.end_silences()
        if self.setup.stays_silent:
            self.kafka.counts["event: target silent"] += 1
            for topic in (TARGET, OTHER):
                self.kafka.silence(Destination(topic, 0), FOR_EVER_MS, looks_well=False)
        self.fill(FOR_EVER_MS if self.setup.stays_full else 0)
        self._coming = [(self.kafka.now_ms, name, suspended) for _, name, suspended in self._coming]
        self._start_in_place()
        for relay in list(self.relays):
            relay.gate.disarm()
            relay.clock.set_right()
            relay.source.chunk = max(relay.source.chunk, 8)
        for relay in list(self.relays):
            # What stood still inside an effect may stand still once more right after it.
            while relay.frozen:
                self.wake(relay)
        for relay in list(self.relays):
            if relay.suspended or relay.declared != self._declared[-1]:
                self.attempt(relay, Relay.finish)
        if self.kafka.changes:
            self._accept()  # those that were frozen have started before, and know of nothing


def _words(action: Action) -> str:
    name = type(action).__name__
    return "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in name).strip()


@contextmanager
def _small_portions(setup: Setup) -> Iterator[None]:
    """Let puts be several scripts and slices several portions even when they are small."""
    with (
        mock.patch.object(redis_parts, "MAX_ITEMS", setup.part_items),
        mock.patch.object(shard, "FIRST_PORTION", setup.portion),
        mock.patch.object(shard, "LARGEST_PORTION", 16 * setup.portion),
        mock.patch.object(shard, "MOST_HELD_BYTES", setup.held_bytes),
        mock.patch.object(shard, "OFFERED_RECORDS", setup.offered),
    ):
        yield
