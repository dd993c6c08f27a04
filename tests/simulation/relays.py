"""One relay of a history: the production loop and core on simulated clients."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache

from tests.simulation.faults import Crash, Fault, Gate
from tests.simulation.plans.plan import RuleSet, Setup
from tests.simulation.witness import Witness
from tests.simulation.world.bucket_log import HORIZON_MS, NAMES, RULES, SimulatedBucketLog
from tests.simulation.world.clocks import SimulatedClock, SimulatedSecondClock
from tests.simulation.world.kafka import SOURCE, Kafka
from tests.simulation.world.refusing import DEAD_LIMIT, TARGET_LIMIT
from tests.simulation.world.source_client import SimulatedSource
from tests.simulation.world.strands import Strand
from tests.simulation.world.target_client import SimulatedTarget
from tests.support.relay.background import Background

from delaytopic_api.relay import Ending
from delaytopic_api.values import Dialect, Ids, Partitioning, source_mark
from delaytopic_relay.backlog.fixed import FixedBacklog
from delaytopic_relay.backlog.kafka.backlog import BucketBacklog
from delaytopic_relay.backlog.kafka.partition import BucketShard
from delaytopic_relay.backlog.protocol import Backlog, EmptyReader
from delaytopic_relay.backlog.redis.backlog import RedisBacklog
from delaytopic_relay.backlog.redis.manager import Writing
from delaytopic_relay.backlog.signing import SegmentSigner
from delaytopic_relay.backlog.store import BacklogStore
from delaytopic_relay.core.rules import Declared, Rules, target_mark
from delaytopic_relay.core.suspension import Suspension
from delaytopic_relay.delivery.dead_letters import DeadLetters
from delaytopic_relay.delivery.further_targets import FurtherTargets
from delaytopic_relay.delivery.outcomes import Outcomes
from delaytopic_relay.delivery.record_writer import RecordWriter
from delaytopic_relay.delivery.refusals import Refusals
from delaytopic_relay.dialects import Forms, dialect_by
from delaytopic_relay.dialects.reading import RoutePolicy, TopicGlobs
from delaytopic_relay.dialects.recurring import RecurringWriter
from delaytopic_relay.dialects.redelivery import RedeliveryDialect
from delaytopic_relay.dialects.scheduler import SchedulerDialect, SchedulerRules
from delaytopic_relay.dialects.writing import ReadBy
from delaytopic_relay.engine.holding import Holding, OwnTopics
from delaytopic_relay.engine.loop import Loop, Parts
from delaytopic_relay.engine.pacing import Pace
from delaytopic_relay.engine.reading import Reading
from delaytopic_relay.engine.recovery import Origin, Takeover
from delaytopic_relay.errors import QueueImpossible, SourceReplaced
from delaytopic_relay.kafka.split_target import SplitTarget
from delaytopic_relay.ports import Target

TARGET, DEAD, OTHER, HISTORY, OUTCOMES = "target", "dead", "other", "history", "outcomes"
KEYS: Sequence[Sequence[bytes]] = [(), (b"first key",), (b"second key", b"first key"), (b"third key",)]
"""Keys set, rotated, replaced and removed, in a rolling update that never ends."""
MAX_DELAY_MS = 8_640_000_000
SUSPENSIONS: Mapping[str, Suspension] = {
    "": Suspension(),
    "ingest": Suspension(ingest=True),
    "delivery": Suspension(delivery=True),
    "both": Suspension(ingest=True, delivery=True),
}


POLICY = RoutePolicy(TARGET, TopicGlobs([OTHER]), MAX_DELAY_MS)
SCHEDULER = SchedulerDialect(POLICY, SchedulerRules(history=HISTORY))
REDELIVERY = RedeliveryDialect(POLICY)


@cache
def forms_by(rules: Rules) -> Forms:
    """The forms of what leaves a relay that is started with these rules.

    The dead letters of all are those of Redelivery, which leave out a header that Scheduler never has.
    """
    recurring = RecurringWriter(POLICY._replace(max_delay_ms=rules.max_delay_ms))
    return Forms(
        {
            int(ReadBy.SCHEDULER): SCHEDULER.write,
            int(ReadBy.REDELIVERY): REDELIVERY.write,
            int(ReadBy.OCCURRENCE): recurring.write,
        },
        REDELIVERY.letter,
        {
            int(ReadBy.REDELIVERY): REDELIVERY.rewrite,
            int(ReadBy.TO_BE_RESOLVED): recurring.rewrite,
            int(ReadBy.OCCURRENCE): recurring.rewrite,
        },
    )


def rules_of(setup: Setup) -> Rules:
    """The rules that a history begins with: up to a hundred days, ids, and one other topic."""
    if setup.rules is not None:
        return rules_by(setup.rules)
    rules = rules_by(RuleSet(delay_ms=setup.delay_ms))
    if setup.scheduler:
        return rules._replace(dialect=Dialect.SCHEDULER, options="+")
    return rules._replace(dialect=Dialect.REDELIVERY) if setup.redelivery else rules


def rules_by(edited: RuleSet) -> Rules:
    """The rules that relays make of these settings."""
    ids = Ids.BY_HEADER if edited.ids else Ids.DISABLED
    allowed = (OTHER,) if edited.allowed else ()
    delays = (edited.default_delay_ms, edited.delay_ms)
    return Rules(Dialect.NATIVE, edited.max_delay_ms, target_mark(TARGET), *delays, ids, allowed=allowed)


def limit_of(topic: str) -> int:
    """The largest batch that a topic takes."""
    return DEAD_LIMIT if topic == DEAD else TARGET_LIMIT


def compares(setup: Setup, number: int) -> bool:
    """Return whether the relay of this number compares its clock with another one."""
    return setup.second_clocks == "all" or (setup.second_clocks == "some" and number % 2 == 0)


class Relay:
    """A process: it steps, freezes, wakes up and dies."""

    def __init__(
        self,
        kafka: Kafka,
        setup: Setup,
        name: str,
        connect: Callable[[Gate], BacklogStore | SimulatedBucketLog] | None,
        happen: Callable[[Relay, Fault], None],
        declared: Declared,
        suspended: str = "",
        member_name: str | None = None,
        *,
        second_clock: SimulatedSecondClock | None = None,
    ) -> None:
        """`connect` opens the backlog; `happen` carries out what happens to the process; `declared` are its rules."""
        self.kafka = kafka
        self.setup = setup
        self.name = name
        self.declared = declared
        self.suspended = suspended
        self.member_name = member_name
        """The name that it was started with; another may have it by now."""
        self.origin = Origin(kafka.topic, "group", kafka.accepted)
        self.gate = Gate(kafka.counts, lambda fault: happen(self, fault))
        number = int(name.rpartition("-")[2])
        self.clock = SimulatedClock(kafka, told=setup.told == "all" or number % 2 == 0)
        self.second_clock = second_clock
        self.source = SimulatedSource(kafka, self.gate, name, setup.chunk, setup.deaf_ms, member_name)
        sender = SimulatedTarget(kafka, self.gate, self.clock, name, transactional=setup.transactional)
        sender.lingers, sender.notes_places = setup.lingers, setup.outcomes
        self.events = Witness(kafka.counts, sender.recovered)
        backlog = self._backlog(connect(self.gate) if connect is not None else None)
        self.target: Target = sender
        if backlog.transactional and not setup.transactional:
            self.target = SplitTarget(sender, SimulatedTarget(kafka, self.gate, self.clock, name, transactional=True))
        self.loop = self._loop(setup, backlog)
        self.strand: Strand | None = None
        self._ranges: dict[int, tuple[int, ...]] = {}
        self._back: set[int] = set()
        self._wakes_at_ms: int | None = None
        self._frozen_at_commit = 0
        self.loop.start()

    @property
    def signer(self) -> SegmentSigner:
        """By the relay's number where keys change."""
        number = int(self.name.rpartition("-")[2]) if self.setup.keys == "changing" else 1
        return SegmentSigner("sim", KEYS[number % len(KEYS)] if self.setup.keys else ())

    def _loop(self, setup: Setup, backlog: Backlog) -> Loop:
        by_key = Partitioning.BY_KEY
        further = FurtherTargets(self.declared.rules.allowed or (), "sim")
        refusals = Refusals()
        refusals.compress = self.target.compress
        forms = forms_by(self.declared.rules)
        writer = RecordWriter(SOURCE, TARGET, by_key, 4, limit_of, further, refusals, forms)
        writer.packs = self.target.packs
        writer.certain_bytes = TARGET_LIMIT // 2
        reading = Reading(self.declared, lambda rules: dialect_by(rules, TARGET))
        return Loop(
            Parts(
                source=self.source,
                target=self.target,
                reading=reading,
                writer=writer,
                dead_letters=DeadLetters(SOURCE, DEAD, limit_of, refusals, forms.letter),
                manager=backlog.manager,
                takeover=Takeover(
                    self.source, self.target, backlog, self.events, lambda owner: True, reading, self.origin, self.clock
                ),
                holding=Holding(
                    OwnTopics(SOURCE, TARGET, DEAD, HISTORY, OUTCOMES), further, self.kafka.look_at, self.clock
                ),
                pace=Pace(setup.precision_ms, setup.transactional),
                memory_bytes=setup.memory_bytes,
                clock=self.clock,
                events=self.events,
                suspension=SUSPENSIONS[self.suspended],
                second_clock=self.second_clock,
                learn=lambda topics: None,
                outcomes=Outcomes(OUTCOMES, [*Ending], SOURCE, TARGET, DEAD) if setup.outcomes else None,
            )
        )

    def _backlog(self, store: BacklogStore | SimulatedBucketLog | None) -> Backlog:
        """Return the backlog over this backlog; None stands for a fixed delay."""
        if store is None:
            return FixedBacklog(HORIZON_MS)
        if isinstance(store, SimulatedBucketLog):
            mark = source_mark(SOURCE, self.origin.topic.identity.topic)
            rules = RULES._replace(key=self.signer.key_id, source_id=mark)
            return BucketBacklog(store, NAMES, rules, self.clock, self.events, lambda _: EmptyReader(), self.signer)
        early = self.setup.early
        writing = Writing(self.signer, Background(early) if early is not None else None, early_bytes=1)
        return RedisBacklog(store, self.name, HORIZON_MS, self.clock, self.events, EmptyReader, writing)

    @property
    def frozen(self) -> bool:
        """Return whether it stands still in the middle of a call."""
        return self.strand is not None

    def step(self) -> None:
        """One turn of the loop; it may end frozen. Raises `Crash`."""
        self.run(self.loop.step)
        self._note_ranges()
        self._note_clocks()

    def _note_clocks(self) -> None:
        """Count the turns in which delivery was held, and the cursors that have gone back."""
        if self.second_clock is not None:
            clock = self.loop.snapshot().clock
            self.kafka.counts["path: delivery held"] += clock is not None and not clock.believed
        back = {partition for partition, shard in self.loop.shards.items() if shard.done.ahead is not None}
        self.kafka.counts["path: cursor went back"] += len(back - self._back)
        self._back = back

    def _note_ranges(self) -> None:
        """Count ranges of buckets that were split or merged since the last turn."""
        shards = [shard for shard in self.loop.shards.values() if isinstance(shard, BucketShard)]
        ranges = {id(shard): tuple(shard.ranges.waits_ms) for shard in shards}
        for identity, waits_ms in ranges.items():
            for before_ms, after_ms in zip(self._ranges.get(identity, waits_ms), waits_ms, strict=True):
                if before_ms != after_ms:
                    self.kafka.counts["path: range split" if after_ms < before_ms else "path: range merged"] += 1
        self._ranges = ranges

    def finish(self) -> None:
        """A graceful stop."""
        self.run(self.loop.finish)

    def run(self, call: Callable[[], None]) -> None:
        """Do something that may freeze."""
        if self.gate.may_freeze:
            self.strand = Strand(call)
            self.resume()
        else:
            call()

    def resume(self) -> None:
        """Go on with what it was doing."""
        assert self.strand is not None
        strand = self.strand
        try:
            strand.resume()
        except (Crash, QueueImpossible, SourceReplaced):
            self.strand = None
            raise
        if strand.over:
            self.strand = None

    def freeze(self, length_ms: int) -> None:
        """From inside a call: stand still until somebody resumes it; no heartbeats meanwhile.

        With a length of 0 that is as soon as somebody else has taken over.
        """
        assert self.strand is not None
        assert self.source.member is not None
        self._wakes_at_ms = self.kafka.now_ms + length_ms if length_ms else None
        self._frozen_at_commit = len(self.kafka.commits)
        self.kafka.group.silent(self.source.member, self.kafka.now_ms)
        self.strand.pause()

    @property
    def wakes_up(self) -> bool:
        """Return whether it stood still long enough."""
        if self._wakes_at_ms is not None:
            return self._wakes_at_ms <= self.kafka.now_ms
        return any(commit.relay != self.name for commit in self.kafka.commits[self._frozen_at_commit :])

    def die(self) -> None:
        """No heartbeats any more."""
        if self.source.member is not None:
            self.kafka.group.silent(self.source.member, self.kafka.now_ms)
