"""The fleets whose pages are read along with another one's, shortly before their looks. Pure but for its lock.

A look that has to wait for pages gives its processor away, and finds its caches cold when it comes back: that costs
more than the look. Of thousands of DelayTopics some are always due within the same half second, and their pages are
read at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from threading import Lock
from typing import Final

from delaytopic_operator.observe.exchanges import Answer, Peer

Fleet = tuple[Peer, ...]
"""The pods of one DelayTopic that are asked."""
Answers = Sequence[Answer | None]
"""The answer of each pod of a fleet; None: nothing yet."""

MOST_PODS: Final = 64
"""The pods that are asked at once for several DelayTopics."""
MOST_OF_FLEET: Final = 8
"""A DelayTopic with more pods than that is read alone."""
MOST_BYTES: Final = 1 << 16
"""A DelayTopic whose pages are larger together is read alone: some hundred partitions."""
LONGEST_S: Final = 0.25
"""The longest time that pages of several DelayTopics are waited for: what a pod that hangs costs the others, once."""
AHEAD: Final = 1 / 30
"""The part of the time until the next look by which a page may be read before it: 500 ms of 15 s."""
KEPT: Final = 1 / 15
"""The part of that time for which it counts: the rest is for looks that come late."""


class PagesAhead:
    """Thread-safe. A fleet that did not answer whole, soon and briefly is read alone until it does: no other one waits
    for it.
    """

    def __init__(self, poll_s: float) -> None:
        """Each fleet is asked for about every `poll_s`."""
        self._poll_s = poll_s
        self._lock = Lock()
        self._asked: dict[Fleet, float] = {}
        """The time at which each fleet that answers well was asked for last, in the order of these times."""
        self._read: dict[Fleet, tuple[float, Sequence[bytes]]] = {}
        self._is_reading = False

    def take(self, fleet: Fleet, now_s: float) -> Sequence[bytes] | None:
        """Return what was read ahead for a fleet, once; None where nothing was, or too long ago."""
        with self._lock:
            at_s, bodies = self._read.pop(fleet, (now_s, None))
            if bodies is None or now_s - at_s > self._poll_s * KEPT:
                return None
            self._put_last(fleet, now_s)
            return bodies

    def begin(self, fleet: Fleet, now_s: float) -> list[Fleet]:
        """Return the fleets to read along with this one, after which `end` is called; none: it is read alone."""
        with self._lock:
            along = self._soon(fleet, now_s) if fleet in self._asked and not self._is_reading else []
            self._is_reading = self._is_reading or bool(along)
            return along

    def end(self, fleet: Fleet, found: Mapping[Fleet, Answers], now_s: float) -> Sequence[bytes] | None:
        """Take in what was read for a fleet and those along with it; return what is its own, if it is whole."""
        own = None
        with self._lock:
            self._is_reading = False
            for each, answers in found.items():
                bodies = _whole(answers)
                if bodies is None:
                    self._asked.pop(each, None)
                elif each == fleet:
                    own = bodies
                    self._put_last(fleet, now_s)
                else:
                    self._read[each] = now_s, bodies
        return own

    def note(self, fleet: Fleet, answers: Answers, now_s: float) -> None:
        """Take in what a fleet has answered that was read alone, and soon."""
        bodies = _whole(answers)
        if bodies is not None and sum(map(len, bodies)) <= MOST_BYTES and len(fleet) <= MOST_OF_FLEET:
            with self._lock:
                self._put_last(fleet, now_s)

    def _soon(self, fleet: Fleet, now_s: float) -> list[Fleet]:
        """List the fleets that are looked at soon, those first that were asked for longest ago; forget those that were
        read ahead, and whose look did not come: they may be gone.
        """
        along, pods, gone = [], len(fleet), []
        for each, asked_s in self._asked.items():
            if asked_s + self._poll_s * (1 - AHEAD) > now_s or pods + len(each) > MOST_PODS:
                break
            read = self._read.get(each)
            if read is not None and now_s - read[0] > self._poll_s * KEPT:
                gone.append(each)
            elif read is None and each != fleet:
                along.append(each)
                pods += len(each)
        for each in gone:
            del self._asked[each], self._read[each]
        return along

    def _put_last(self, fleet: Fleet, now_s: float) -> None:
        self._asked.pop(fleet, None)
        self._asked[fleet] = now_s


def _whole(answers: Answers) -> list[bytes] | None:
    bodies = [each for each in answers if isinstance(each, bytes)]
    return bodies if len(bodies) == len(answers) else None
