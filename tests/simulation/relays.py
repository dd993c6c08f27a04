"""One relay of a history: the production loop and core on simulated clients."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tests.simulation.clocks import SimulatedClock
from tests.simulation.faults import Crash, Fault, Gate
from tests.simulation.kafka import Kafka
from tests.simulation.plan import Setup
from tests.simulation.source_client import SimulatedSource
from tests.simulation.strands import Strand
from tests.simulation.target_client import SimulatedTarget
from tests.simulation.witness import Witness

from delaytopic_api.choices import Partitioning
from delaytopic_relay.addressing import Addressing
from delaytopic_relay.dialects.native import NativeDialect
from delaytopic_relay.dialects.policy import NativePolicy, TopicGlobs
from delaytopic_relay.loop import Loop, Parts
from delaytopic_relay.pacing import Pace
from delaytopic_relay.shelves.protocol import Shelf
from delaytopic_relay.shelving import Shelving
from delaytopic_relay.suspension import Suspension
from delaytopic_relay.takeover import Takeover

SOURCE, TARGET, DEAD, OTHER = "source", "target", "dead", "other"
HORIZON_MS = 10_000
MAX_DELAY_MS = 8_640_000_000
LARGEST_BATCH = 1 << 20
SUSPENSIONS: Mapping[str, Suspension] = {
    "": Suspension(),
    "ingest": Suspension(ingest=True),
    "delivery": Suspension(delivery=True),
    "both": Suspension(ingest=True, delivery=True),
}


def dialect_of(setup: Setup) -> NativeDialect:
    """Up to a hundred days, ids, and one other topic."""
    return NativeDialect(NativePolicy(TARGET, TopicGlobs([OTHER]), MAX_DELAY_MS, delay_ms=setup.delay_ms))


class Relay:
    """A process: it steps, freezes, wakes up and dies."""

    def __init__(
        self,
        kafka: Kafka,
        setup: Setup,
        name: str,
        connect: Callable[[Gate], Shelf] | None,
        happen: Callable[[Relay, Fault], None],
        suspended: str = "",
    ) -> None:
        """`connect` opens the shelf; `happen` carries out what happens to the process."""
        self.kafka = kafka
        self.name = name
        self.suspended = suspended
        self.gate = Gate(kafka.counts, lambda fault: happen(self, fault))
        self.clock = SimulatedClock(kafka)
        self.source = SimulatedSource(kafka, self.gate, name, setup.chunk, setup.deaf_ms)
        self.target = SimulatedTarget(kafka, self.gate, self.clock, name, transactional=setup.transactional)
        self.target.lingers = setup.lingers
        self.journal = Witness(kafka.counts, self.target.recovered)
        self.loop = self._loop(setup, connect(self.gate) if connect is not None else None)
        self.strand: Strand | None = None
        self._wakes_at_ms: int | None = None
        self._frozen_at_commit = 0
        self.loop.start()

    def _loop(self, setup: Setup, shelf: Shelf | None) -> Loop:
        addressing = Addressing(SOURCE, TARGET, DEAD, Partitioning.BY_KEY, 4, lambda topic: LARGEST_BATCH)
        addressing.certain_bytes = LARGEST_BATCH // 2
        return Loop(
            Parts(
                source=self.source,
                target=self.target,
                dialect=dialect_of(setup),
                addressing=addressing,
                shelving=Shelving(shelf, self.clock, self.journal) if shelf is not None else None,
                takeover=Takeover(self.source, self.target, shelf, self.name, HORIZON_MS, self.journal),
                pace=Pace(setup.precision_ms, setup.transactional),
                memory_bytes=setup.memory_bytes,
                clock=self.clock,
                journal=self.journal,
                suspension=SUSPENSIONS[self.suspended],
            )
        )

    @property
    def frozen(self) -> bool:
        """Whether it stands still in the middle of a call."""
        return self.strand is not None

    def step(self) -> None:
        """One turn of the loop; it may end frozen. Raises `Crash`."""
        self.run(self.loop.step)

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
        except Crash:
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
        """Whether it stood still long enough."""
        if self._wakes_at_ms is not None:
            return self._wakes_at_ms <= self.kafka.now_ms
        return any(commit.relay != self.name for commit in self.kafka.commits[self._frozen_at_commit :])

    def die(self) -> None:
        """No heartbeats any more."""
        if self.source.member is not None:
            self.kafka.group.silent(self.source.member, self.kafka.now_ms)
