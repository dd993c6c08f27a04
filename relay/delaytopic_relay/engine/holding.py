"""Holds source partitions back whose records go to a topic that does not answer, so that the others deliver on."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Set
from typing import Final, NamedTuple

from delaytopic_relay.delivery.further_targets import FurtherTargets
from delaytopic_relay.delivery.reachability import Destination, Reachability, Sight, Trouble, blamed
from delaytopic_relay.errors import TransactionAborted, Unanswered
from delaytopic_relay.ports import Clock, Look, LookAt

PATIENCE_MS: Final = 1_000
"""The time without any acknowledgement after which the topics are looked at."""
LONGEST_PATIENCE_MS: Final = 8_000
TRIED_MS: Final = 3_000
"""The time that something has to acknowledge which has failed before and looks well again."""
LONGEST_TICK_MS: Final = 15_000
"""The time from the first record to the end of the wait for acknowledgements; what is longer is of another tick."""
AGAIN_MS: Final = 1_000
"""The time between two looks while it is waited on."""


class OwnTopics(NamedTuple):
    """The topics without which a DelayTopic is none."""

    source: str
    target: str
    dead_letter: str
    history: str | None = None
    outcomes: str | None = None

    @property
    def names(self) -> frozenset[str]:
        """Return their names."""
        return frozenset(name for name in self if name is not None)


class Holding:
    """The topics that do not answer, and the partitions that wait for them; all is called from the loop's thread."""

    def __init__(self, own: OwnTopics, further: FurtherTargets, look_at: LookAt, clock: Clock) -> None:
        """`look_at` looks at topics without waiting, and without writing to them."""
        self._own = own
        self._look_at = look_at
        self._clock = clock
        self._reachability = Reachability(
            lambda topic: topic not in own.names and further.objection(topic, own.target) is None
        )
        self._named: set[str] = set()
        """The further targets that the tick has sent to, or tried to."""
        self._look: Look | None = None
        self._found: Sight = {}
        self._asked_ms = 0
        self._patience_ms = PATIENCE_MS
        self.held: Mapping[int, Trouble] = {}
        """The source partitions that stand still, and what they wait for."""
        self.refused: Mapping[str, Trouble] = {}
        """The further targets whose records are dead letters now."""

    # -- what the loop asks

    def delivers(self, partition: int) -> bool:
        """Tell whether a source partition may deliver."""
        return partition not in self.held

    def takes_in(self, partition: int) -> bool:
        """Tell whether a source partition may be read: one whose dead letters or outcomes have no place may not."""
        trouble = self.held.get(partition)
        return trouble is None or trouble.destination.topic not in (self._own.dead_letter, self._own.outcomes)

    def recovers(self, partition: int) -> bool:
        """Tell whether a source partition may be taken over: one whose backlog does not answer may not."""
        trouble = self.held.get(partition)
        return trouble is None or trouble.further or trouble.destination.topic in self._own.names

    # -- a tick

    def sending(self, partition: int, topics: Set[str]) -> None:
        """Take note that records of a source partition go to these topics.

        Raises `TransactionAborted` if that would have to be waited for in vain.
        """
        self._named |= topics
        for topic in topics if len(self._reachability) else ():
            trouble = self._reachability.wait_for(topic, partition)
            if trouble is not None:
                self._follow()
                raise TransactionAborted(f"{trouble.name} does not answer, and is being looked at: {trouble.seen}")

    def storing(self, topics: Set[str]) -> None:
        """Take note that records of the backlog go to these topics."""
        self._named |= topics

    def in_vain(self, silent_ms: int) -> bool | None:
        """Tell whether it is of no use to wait any longer, when nothing was acknowledged for so long.

        It is not if a topic that records may have gone to is bad: that is looked up meanwhile. None until it is.
        """
        if silent_ms < self._patience_ms:
            return False
        now_ms = self._clock.monotonic_ms()
        if self._look is None:
            if now_ms < self._asked_ms + AGAIN_MS:
                return False
            self._ask(self._own.names | self._named, now_ms)
        found = self._answer()
        if found is None:
            return None
        self._found = found
        bad = any(reason is not None for reason in found.values())
        return bad or (silent_ms >= TRIED_MS and bool(found) and bool(self._reachability.tried()))

    def settled(self) -> None:
        """All that the tick has sent is acknowledged."""
        self._named.clear()
        self._patience_ms = PATIENCE_MS

    def dropped(self, lost: Exception, begun_ms: int) -> None:
        """Take note that the tick was given up in which the first record was sent at `begun_ms`."""
        self._named.clear()
        found, self._found = self._found, {}
        if not isinstance(lost, Unanswered):
            return
        senders = {Destination(*place): partitions for place, partitions in lost.senders.items()}
        tried = self._reachability.tried()
        reasons = blamed(senders, found, acknowledged=lost.acknowledged, tried=tried)
        if not reasons:
            # What was found bad is not what the tick has waited for.
            self._patience_ms = min(2 * self._patience_ms, LONGEST_PATIENCE_MS)
        now_ms = self._clock.monotonic_ms()
        lasted_ms = min(now_ms - begun_ms, LONGEST_TICK_MS)
        self._reachability.unanswered(senders, reasons, now_ms - lasted_ms, self._clock.now_ms() - lasted_ms)
        self._reachability.seen(found, now_ms)
        self._follow()

    def turn(self) -> None:
        """Look at what is in trouble, and go on with what answers again."""
        if not len(self._reachability):
            return
        now_ms = self._clock.monotonic_ms()
        if self._look is not None:
            found = self._answer()
            if found is not None:
                self._reachability.seen(found, now_ms)
        elif topics := self._reachability.to_look_at(now_ms):
            self._ask(topics, now_ms)
        self._reachability.pass_time(now_ms)
        self._follow()

    def _ask(self, topics: Collection[str], now_ms: int) -> None:
        self._look, self._asked_ms = self._look_at(topics), now_ms

    def _answer(self) -> Sight | None:
        """Return what the look has found; None while it is under way."""
        found = self._look() if self._look is not None else None
        if found is not None:
            self._look = None
        return found

    def _follow(self) -> None:
        self.held, self.refused = self._reachability.held(), self._reachability.refused()
