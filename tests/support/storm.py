"""Histories full of faults, each decided by one seed: crashes, zombies, a shelf that loses writes, commits in doubt."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

from tests.support.relay_in_world import PLENTY, Relay, Setup, StrictTarget, start
from tests.support.world import Crash, World, WorldClock

from delaytopic_relay.addressing import Outgoing
from delaytopic_relay.calendar import ENTRY_BYTES
from delaytopic_relay.errors import CommitUnknown, ShelfUnavailable
from delaytopic_relay.ports import Refusal
from delaytopic_relay.progress import Progress, decode_progress
from delaytopic_relay.receipts import whose_record
from delaytopic_relay.shelves.memory import MemoryShelf, Snapshot

SHARDS = (0, 1)
TURNS = 400
QUIET_TURNS = 600
REFUSED = b"refused"
"""The value of records that Kafka refuses."""

T = TypeVar("T")


class Storm(NamedTuple):
    """What may happen, besides crashes and zombies; shares are those of calls."""

    produce: Callable[[World, random.Random], object]
    transactional: bool = True
    delay_ms: int | None = None
    rollbacks: bool = True
    shelf_away_share: float = 0
    doubt_share: float = 0
    hand_over_share: float = 0
    rebalance_share: float = 0
    most_skew_ms: int = 0


class Taken(NamedTuple):
    """From this time on, all offsets of a shard below the position were committed as taken in."""

    at_ms: int
    shard: int
    position: int


class StormyShelf(MemoryShelf):
    """Whose every call may be the last of the process, or go unanswered before or after its effect."""

    def __init__(self, history: History) -> None:
        super().__init__()
        self._history = history

    def _call(self, name: str, effect: Callable[[], T]) -> T:
        self._history.disturb(f"before {name}")
        done = effect()
        self._history.disturb(f"after {name}")
        return done

    def position(self, *args: Any) -> Any:
        return self._call("position", lambda: super(StormyShelf, self).position(*args))

    def put(self, *args: Any) -> None:
        self._call("put", lambda: super(StormyShelf, self).put(*args))

    def slices(self, *args: Any) -> Any:
        return self._call("slices", lambda: super(StormyShelf, self).slices(*args))

    def load(self, *args: Any) -> Any:
        return self._call("load", lambda: super(StormyShelf, self).load(*args))

    def load_first(self, *args: Any) -> Any:
        return self._call("load", lambda: super(StormyShelf, self).load_first(*args))

    def ids(self, *args: Any) -> Any:
        return self._call("ids", lambda: super(StormyShelf, self).ids(*args))

    def drop(self, *args: Any) -> None:
        self._call("drop", lambda: super(StormyShelf, self).drop(*args))


class StormyClock(WorldClock):
    """A wall clock that may be wrong, and be set right again."""

    skew_ms = 0

    def now_ms(self) -> int:
        return self.world.now_ms + self.skew_ms


class StormyTarget(StrictTarget):
    """Refuses some records for good, without saying which at first; leaves some commits in doubt."""

    history: History
    vague = True

    def send(self, records: Any) -> None:
        self.refuse = self._refusal
        super().send(records)

    def _refusal(self, record: Outgoing) -> Refusal | None:
        if record.value != REFUSED or record.topic == "dead":
            return None
        if self.vague:
            self.vague = False
            return Refusal("invalid record", too_large=False)
        return Refusal("invalid record", False, *whose_record(record.headers)[:2])

    def commit(self, progress: Mapping[int, Progress], group: object) -> None:
        self.history.doubt()
        super().commit(progress, group)
        self.history.doubt()


class History:
    """Faults for a while, then quiet until everything has left."""

    def __init__(self, seed: int, storm: Storm) -> None:
        self.rng = random.Random(seed)
        self.storm = storm
        self.crash_share = self.rng.choice([0, 0.002, 0.01, 0.05])
        self.calm = False
        self.world = World()
        self.world.crash = self.disturb
        self.shelf = StormyShelf(self)
        self.snapshot: Snapshot | None = None
        self.relays: list[Relay] = []
        self.taken: list[Taken] = []

    def disturb(self, point: str) -> None:
        """Any effect may be the last; those of the shelf may go unanswered."""
        if self.calm:
            return
        if self.rng.random() < self.crash_share:
            raise Crash(point)
        of_shelf = not point.endswith(("produce", "commit"))
        if of_shelf and self.rng.random() < self.storm.shelf_away_share:
            raise ShelfUnavailable(point)

    def doubt(self) -> None:
        """A commit may go unanswered before or after it happened."""
        if not self.calm and self.rng.random() < self.storm.doubt_share:
            raise CommitUnknown("no answer")

    def run(self) -> History:
        """The whole history."""
        for turn in range(TURNS):
            self.storm.produce(self.world, self.rng)
            self.disturb_the_shelf()
            self.world.now_ms += self.rng.choice([0, 10, 100, 1_000])
            self.change_relays(turn)
            self.step_all()
        self.calm, idle_turns = True, 0
        for turn in range(QUIET_TURNS):
            self.world.now_ms += 2_000 if turn < 100 else 20_000
            self.relays = [relay for relay in self.relays if relay.source.generation in (-1, self.world.generation)]
            if not self.relays:
                self.start_one(f"last-{turn}")
            for relay in self.relays:
                assert isinstance(relay.clock, StormyClock)
                relay.clock.skew_ms = 0
            self.step_all()
            idle_turns = idle_turns + 1 if self.nothing_is_left() else 0
            if idle_turns > 20:
                break
        return self

    def disturb_the_shelf(self) -> None:
        if not self.storm.rollbacks:
            return
        if self.rng.random() < 0.01:
            self.snapshot = self.shelf.snapshot()
        if self.rng.random() < 0.004 and self.snapshot is not None:
            self.shelf.restore(self.snapshot)
        if self.rng.random() < 0.002:
            self.shelf.wipe()

    def change_relays(self, turn: int) -> None:
        """Sometimes one stops gracefully; there is always one, and sometimes another joins, which evicts it."""
        if self.relays and self.rng.random() < self.storm.hand_over_share:
            self.attempt(self.relays[-1], Relay.finish)
        if self.relays and self.rng.random() < self.storm.rebalance_share:
            self.attempt(self.relays[-1], self.rebalance)
        for relay in self.relays:
            self.set_clock(relay)
        if not self.relays or self.rng.random() < 0.01:
            self.start_one(f"relay-{turn}")

    def rebalance(self, relay: Relay) -> None:
        """The group takes shards away and gives them back, as far as they had been given."""
        if relay.source.generation < 0:
            return
        shards = self.rng.choice([[0], [1], [0, 1]])
        if self.rng.random() < 0.7:
            relay.loop.revoked(shards)
        else:
            relay.loop.lost(shards)
        relay.loop.assigned(shards)

    def set_clock(self, relay: Relay) -> None:
        """Wall clocks of relays are wrong now and then."""
        if self.storm.most_skew_ms and self.rng.random() < 0.02 and isinstance(relay.clock, StormyClock):
            relay.clock.skew_ms = self.rng.randrange(-self.storm.most_skew_ms, self.storm.most_skew_ms)

    def start_one(self, name: str) -> None:
        setup = Setup(
            shards=SHARDS,
            transactional=self.storm.transactional,
            delay_ms=self.storm.delay_ms,
            memory_bytes=self.rng.choice([4 * ENTRY_BYTES, PLENTY]),
            chunk=self.rng.choice([1, 3, 8]),
            target=self.target,
            clock=StormyClock,
        )
        self.relays.append(start(self.world, self.shelf, name, setup))

    def target(self, world: World, owner: str) -> StormyTarget:
        target = StormyTarget(world, owner)
        target.history = self
        return target

    def step_all(self) -> None:
        for relay in list(self.relays):
            self.attempt(relay, Relay.step)
            self.note_what_was_taken_in()

    def attempt(self, relay: Relay, action: Callable[[Relay], None]) -> None:
        try:
            action(relay)
        except Crash:
            self.relays.remove(relay)
        else:
            if action is Relay.finish:
                self.relays.remove(relay)

    def note_what_was_taken_in(self) -> None:
        for shard, committed in self.world.committed.items():
            position = decode_progress(*committed).position
            if not any(taken.shard == shard and taken.position >= position for taken in self.taken):
                self.taken.append(Taken(self.world.now_ms, shard, position))

    def nothing_is_left(self) -> bool:
        """Whether nothing waits any more; the last tick may still be open."""
        loop = self.relays[-1].loop
        idle = all(shard.pending == 0 and not shard.replaying for shard in loop.shards.values())
        ends = {shard: len(self.world.source.get(shard, ())) for shard in SHARDS}
        done = {shard: committed.offset for shard, committed in self.world.committed.items()}
        return idle and len(loop.shards) == len(SHARDS) and done == ends
