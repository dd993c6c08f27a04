"""The end of a history: no more faults, until everything has left; then probes, which must leave on time."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.simulation.history import History

TURN_MS = 100
LONGEST_TURNS = 3_000
"""A long history has some hundred due times, each of which takes a few turns; with buckets, what is far moves from one
to the next besides, each time with a commit."""
RESTED_TURNS = 3
BELIEVED_MS = 400_000
"""More than the longest time for which relays do not believe what looks well."""
LONGEST_STEP_MS = 4_000
"""Relays that take a turn this often stay in their group."""


class Quiet:
    """Waits as production does, in ever longer steps while nothing happens."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._kafka = history.kafka
        self._records = -1
        self._due_ms: list[int] = []
        self._spared: frozenset[int] = frozenset()
        """Shards that need not come to rest, as what they send to takes nothing."""

    def run(self) -> bool:
        """Return whether everything came to rest, and the probes left."""
        self._history.calm()
        if self._history.setup.stays_silent:
            self._spared = frozenset([0])
        if not self._wait():
            return False
        self._history.fill(0)
        if self._kafka.silences:
            self._forgive()
        self._history.applications.produce_warm_up()  # a producer that was fenced learns it when it is used
        if not self._wait():
            return False
        for due_ms in self._history.applications.produce_probes():
            while self._kafka.manual_ms < due_ms - TURN_MS:
                self._history.pass_time(min(due_ms - TURN_MS - self._kafka.manual_ms, LONGEST_STEP_MS))
            for _ in range(5):
                self._history.pass_time(TURN_MS)
        return self._wait()

    def _forgive(self) -> None:
        """Let everything answer for so long that relays believe it."""
        self._kafka.end_silences()
        self._spared = frozenset()
        until_ms = self._kafka.now_ms + BELIEVED_MS
        while self._kafka.now_ms < until_ms:
            self._history.pass_time(LONGEST_STEP_MS)

    def _wait(self) -> bool:
        rested, step_ms = 0, TURN_MS
        for _ in range(LONGEST_TURNS):
            before = self._traces()
            self._history.pass_time(step_ms)
            still = self._traces() == before and not self._recovering()
            rested = rested + 1 if still and self._nothing_is_left() else 0
            if rested >= RESTED_TURNS:
                return True
            step_ms = min(2 * step_ms, self._to_next_due_ms()) if still else TURN_MS
        return False

    def _recovering(self) -> bool:
        """Return whether a relay is taking over, or reads again what it needs."""
        loops = [relay.loop for relay in self._history.relays]
        return any(
            loop.waiting or any(shard.replaying for number, shard in loop.shards.items() if number not in self._spared)
            for loop in loops
        )

    def _to_next_due_ms(self) -> int:
        now_ms, records = self._kafka.manual_ms, sum(len(log.entries) for log in self._kafka.source.values())
        if records != self._records:
            self._records, self._due_ms = records, sorted(self._history.applications.due_times())
        return next((due_ms - now_ms for due_ms in self._due_ms if due_ms > now_ms), 1_000) or TURN_MS

    def _traces(self) -> tuple[int, ...]:
        return (len(self._kafka.target), *(self._kafka.counts[name] for name in ("sent", "puts", "commits")))

    def _nothing_is_left(self) -> bool:
        kafka = self._kafka
        if kafka.requests_under_way() or kafka.transactions.unfinished() or not kafka.group.settled:
            return False
        done = {shard: committed.offset for shard, committed in kafka.committed.items()}
        shards = kafka.source.keys() - self._spared
        if any(done.get(shard, 0) < kafka.source[shard].end_of_records for shard in shards):
            return False
        held = [
            shard
            for relay in self._history.relays
            for shard, state in relay.loop.shards.items()
            if shard in shards and not state.replaying and state.pending == 0 and not state.former_rules
        ]
        return sorted(held) == sorted(shards)
