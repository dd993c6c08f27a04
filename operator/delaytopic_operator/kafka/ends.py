"""The offsets of a cluster's topics, asked for many topics together. Pure but for its lock; times are arguments.

A fleet is looked at every few seconds, and each look asks where its source begins and ends. Three requests for each of
some thousand sources cost more than all else of their looks; three for all of them together cost next to nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from heapq import nsmallest
from typing import Final

from delaytopic_operator.errors import OperatorError
from delaytopic_operator.model.kafka_view import PartitionOffsets, TopicFacts

NEAR: Final = 0.8
"""The part of the time for which an answer counts: a topic whose next look is nearer than that is read along with
others. The rest is for looks that come late."""
FEWEST_ALONG: Final = 20
"""The topics that are read along, where they are looked at soon, however few were asked for lately."""
UNASKED_S: Final = 600.0
"""A topic that nobody has asked for since is not read along with others. Looks that come minutes late, as there is too
much to do, must not be what makes each of them ask alone."""


@dataclass(frozen=True, slots=True)
class SourceEnds:
    """The offsets of one topic, by partition; one without a leader is left out."""

    offsets: Mapping[int, PartitionOffsets]
    stable: Mapping[int, int]
    """The offset up to which relays can read: the end, or the first record of an open transaction."""
    as_of_ms: int
    """The time at which they were read."""


ReadEnds = Callable[[Iterable[TopicFacts]], Mapping[str, SourceEnds]]
"""Reads topics now; raises errors of the operator's tree."""


class EndsTogether:
    """Thread-safe. A topic of which a partition did not answer is read alone: nobody else waits for its brokers."""

    def __init__(self, read: ReadEnds, poll_s: float) -> None:
        """`read` asks Kafka; each topic is asked for about every `poll_s`.

        An answer counts for a third of that. A topic is read along with others shortly before its next look, so that
        the look finds an answer that counts although it comes a little late.
        """
        self._read = read
        self._poll_s = poll_s
        self._kept_s = poll_s / 3
        self._lock = threading.Lock()
        self._line_lock = threading.Lock()
        self.in_line: dict[str, TopicFacts] = {}
        """The topics of those who wait for the lock: they are read along by whoever has it."""
        self._asked: dict[str, tuple[float, TopicFacts]] = {}
        self._answers: dict[str, tuple[float, SourceEnds]] = {}
        self._alone: set[str] = set()

    def of(self, topic: TopicFacts, now_s: Callable[[], float]) -> SourceEnds | None:
        """Return the offsets of a topic, and when they were read; None where nothing answered.

        Raises what the reading raises.
        """
        with self._line_lock:
            self.in_line[topic.name] = topic
        with self._lock:
            with self._line_lock:
                self.in_line.pop(topic.name, None)
            self._asked[topic.name] = now_s(), topic
            if topic.name not in self._alone:
                # The time passed for whoever waited for the lock, and finds what the one before has read.
                return self._together(topic, now_s())
        found = self._read([topic]).get(topic.name)
        with self._lock:
            self._note(topic, found)
        return found

    def _together(self, topic: TopicFacts, now_s: float) -> SourceEnds | None:
        known = self._answers.get(topic.name)
        if known is not None and now_s - known[0] < self._kept_s and _is_whole(known[1], topic):
            return known[1]
        self._forget(now_s)
        soon = {name: self._asked[name][1] for name in self._along(topic.name, now_s)}
        along = list({topic.name: topic, **self._waiting(now_s), **soon}.values())
        try:
            answers = self._read(along)
        except OperatorError:
            # Which of them it was is not known: each is read alone until it has answered.
            self._alone.update(facts.name for facts in along)
            raise
        for facts in along:
            found = answers.get(facts.name)
            self._note(facts, found)
            if found is not None:
                self._answers[facts.name] = now_s, found
        return answers.get(topic.name)

    def _waiting(self, now_s: float) -> dict[str, TopicFacts]:
        """Return the topics of those who wait for this question to end, and would find no answer that counts."""
        with self._line_lock:
            waiting = dict(self.in_line)
        answers = {name: self._answers.get(name) for name in waiting.keys() - self._alone}
        old = {name for name, known in answers.items() if known is None or now_s - known[0] >= self._kept_s}
        return {name: waiting[name] for name in sorted(old)}

    def _along(self, name: str, now_s: float) -> list[str]:
        """List the topics to read along, those first that were asked for longest ago.

        Where looks come late, all are due; those are read that get their turn while the answer counts, by how many did
        lately.
        """
        soon = [each for each in self._asked if each != name and self._soon(each, now_s)]
        lately = sum(now_s - asked_s < self._kept_s for asked_s, _ in self._asked.values())
        most = max(FEWEST_ALONG, 2 * lately)
        return soon if len(soon) <= most else nsmallest(most, soon, key=lambda each: self._asked[each][0])

    def _soon(self, name: str, now_s: float) -> bool:
        """Tell if the next look at a topic is near, and would find no answer that counts."""
        if name in self._alone:
            return False
        known = self._answers.get(name)
        if known is None:
            return True
        look_s = max(now_s, self._asked[name][0] + self._poll_s)
        return look_s - now_s < NEAR * self._kept_s and look_s - known[0] >= self._kept_s

    def _note(self, topic: TopicFacts, found: SourceEnds | None) -> None:
        if _is_whole(found, topic):
            self._alone.discard(topic.name)
        else:
            self._alone.add(topic.name)

    def _forget(self, now_s: float) -> None:
        unasked_s = max(UNASKED_S, 6 * self._kept_s)
        for name in [name for name, (asked_s, _) in self._asked.items() if now_s - asked_s > unasked_s]:
            del self._asked[name]
            self._answers.pop(name, None)
            self._alone.discard(name)


def _is_whole(found: SourceEnds | None, topic: TopicFacts) -> bool:
    return found is not None and len(found.offsets) == len(found.stable) == topic.partitions
