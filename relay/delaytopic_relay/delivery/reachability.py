"""Topics that do not answer: who waits for them, what becomes of records for them, and when they are tried again. Pure.

That records have not been acknowledged is blamed on the partitions of topics that a look at them finds bad. Without
such a finding it is blamed on what did not answer while something else did, or has failed before, and else on nobody.

A trouble is of one partition of a topic of the DelayTopic's own, or of a further target as a whole:

| | waits | refused | tried |
| --- | --- | --- | --- |
| source partitions that sent there | stand still | deliver | deliver |
| records for it | wait | further targets: dead letters | are sent |
| a look finds it well | tried | tried | |
| a further target is bad for `LASTS_MS` | refused | | |
| records are not acknowledged | | | waits; a further target that looked well is refused |
| nothing more for `FORGIVEN_MS` | | | forgotten |

With each time that it looked well and was not, it is believed later: after 5 s, 10 s, and so on up to five minutes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final, NamedTuple

from delaytopic_relay.dialects.times import instant_text

LASTS_MS: Final = 4_500
"""The time since the record was sent after which those for a further target are dead letters."""
LOOK_MS: Final = 500
"""The time between two looks at what has failed just now."""
RARE_LOOK_MS: Final = 2_000
"""The time between two looks at what is bad for longer than `LASTS_MS`."""
DOUBT_MS: Final = 5_000
LONGEST_DOUBT_MS: Final = 300_000
FORGIVEN_MS: Final = 60_000
ANY: Final = -1
"""The partition of what is said of a whole topic."""


class Destination(NamedTuple):
    """A partition of a topic that records are sent to; `ANY` for the topic as a whole."""

    topic: str
    partition: int


Senders = Mapping[Destination, Collection[int]]
"""The source partitions that have sent to each destination."""
Sight = Mapping[Destination, str | None]
"""The findings of a look: the reason why a destination cannot be written to, None for one that can.

Empty if the cluster itself does not answer.
"""


class Phase(Enum):
    """A state of the table above."""

    WAITS = auto()
    REFUSED = auto()
    TRIED = auto()


@dataclass
class Trouble:
    """A destination that did not answer; `since_ms` is a time of the wall clock, the others are monotonic."""

    destination: Destination
    further: bool
    since_ms: int
    sent_ms: int
    """The time at which the first of the records was sent that were not acknowledged."""
    seen: str
    """The latest that is known to be wrong."""
    phase: Phase = Phase.WAITS
    senders: set[int] = field(default_factory=set)
    partitions: set[int] = field(default_factory=set)
    is_bad: bool = False
    """True if the latest look has found it so."""
    failures: int = 1
    """The times that it failed in a row, each but the first after it had looked well."""
    believed_from_ms: int = 0
    look_at_ms: int = 0
    tried_at_ms: int = 0

    @property
    def name(self) -> str:
        """Return the topic, with the partition where only that is meant."""
        topic, partition = self.destination
        return topic if partition == ANY else f"{topic}[{partition}]"

    @property
    def text(self) -> str:
        """Return a sentence for people."""
        return f"{self.name} has not answered since {instant_text(self.since_ms)}: {self.seen}"


def blamed(
    senders: Senders, found: Sight, *, acknowledged: bool, tried: Collection[Destination] = ()
) -> dict[Destination, str]:
    """Return the destinations that are to blame for records that were not acknowledged, each with the reason.

    `acknowledged` tells whether others were, `tried` are destinations that are being tried again.
    """
    wrong = {destination: reason for destination, reason in found.items() if reason is not None}
    bad = {each: wrong[near] for each in senders for near in _nearest(each, wrong)}
    if bad:
        return bad
    silent = senders if acknowledged else [each for each in senders if each in tried and found]
    return dict.fromkeys(silent, "it looks well, and does not acknowledge what is sent to it")


def _nearest(destination: Destination, found: Mapping[Destination, str]) -> list[Destination]:
    """Return what says something of a destination; of a record whose partition was not chosen yet, of any of them."""
    topic, partition = destination
    of_it = [each for each in found if each.topic == topic and partition in (ANY, each.partition)]
    return of_it[:1] or [each for each in found if each == (topic, ANY)]


class Reachability:
    """The troubles of one relay."""

    def __init__(self, is_further: Callable[[str], bool]) -> None:
        """`is_further` tells targets that records name from the topics without which the DelayTopic is none."""
        self._is_further = is_further
        self._troubles: dict[Destination, Trouble] = {}

    def __len__(self) -> int:
        """Return how many destinations are in trouble, or were a while ago."""
        return len(self._troubles)

    # -- what happens

    def unanswered(self, senders: Senders, reasons: Mapping[Destination, str], sent_ms: int, since_ms: int) -> None:
        """Take note that what these have sent there, from `sent_ms` on, was not acknowledged, for these reasons.

        `since_ms` is the same time by the wall clock.
        """
        for destination, reason in reasons.items():
            further = self._is_further(destination.topic)
            key = Destination(destination.topic, ANY) if further else destination
            trouble = self._troubles.get(key)
            if trouble is None:
                trouble = self._troubles[key] = Trouble(key, further, since_ms, sent_ms, reason)
            elif trouble.phase is Phase.TRIED:
                trouble.failures += 1
                doubt_ms = min(DOUBT_MS << min(trouble.failures - 2, 16), LONGEST_DOUBT_MS)
                trouble.believed_from_ms = sent_ms + doubt_ms
                # One that is found well, and takes nothing all the same, has had its time.
                trouble.phase, trouble.is_bad = Phase.REFUSED if further else Phase.WAITS, False
                trouble.seen, trouble.sent_ms, trouble.since_ms = reason, sent_ms, since_ms
                trouble.senders.clear()
            trouble.senders.update(senders[destination])
            trouble.partitions.add(destination.partition)

    def seen(self, found: Sight, now_ms: int) -> None:
        """Take note of what a look has found; of one without an answer nothing is known."""
        for trouble in self._troubles.values():
            known = [found[each] for each in found if self._is_part(each, trouble)]
            if not known or trouble.phase is Phase.TRIED:
                continue
            wrong = next((reason for reason in known if reason is not None), None)
            trouble.is_bad = wrong is not None
            if wrong is not None:
                trouble.seen = wrong
            elif now_ms >= trouble.believed_from_ms:
                trouble.phase, trouble.tried_at_ms = Phase.TRIED, now_ms

    def _is_part(self, destination: Destination, trouble: Trouble) -> bool:
        of_it = ANY in trouble.partitions or destination.partition in (ANY, *trouble.partitions)
        return destination.topic == trouble.destination.topic and of_it

    def pass_time(self, now_ms: int) -> None:
        """Refuse what has been bad for long enough, and forget what was tried again and has not failed since."""
        for key, trouble in [*self._troubles.items()]:
            if trouble.phase is Phase.TRIED:
                if now_ms - trouble.tried_at_ms >= FORGIVEN_MS:
                    del self._troubles[key]
            elif trouble.further and trouble.is_bad and now_ms >= trouble.sent_ms + LASTS_MS:
                trouble.phase = Phase.REFUSED

    # -- what follows from it

    def to_look_at(self, now_ms: int) -> set[str]:
        """Return the topics that are to be looked at now, and take note that they are."""
        due = [each for each in self._now(Phase.WAITS, Phase.REFUSED) if now_ms >= each.look_at_ms]
        for trouble in due:
            fresh = now_ms < trouble.sent_ms + LASTS_MS
            trouble.look_at_ms = now_ms + (LOOK_MS if fresh else RARE_LOOK_MS)
        return {each.destination.topic for each in due}

    def held(self) -> dict[int, Trouble]:
        """Return the source partitions that stand still, and what they wait for."""
        return {sender: trouble for trouble in self._now(Phase.WAITS) for sender in trouble.senders}

    def wait_for(self, topic: str, sender: int) -> Trouble | None:
        """Let a source partition wait, too, if nothing is decided yet about a further target, which is returned."""
        trouble = self._troubles.get(Destination(topic, ANY))
        if trouble is None or trouble.phase is not Phase.WAITS:
            return None
        trouble.senders.add(sender)
        return trouble

    def tried(self) -> set[Destination]:
        """Return what is being tried again."""
        tried = self._now(Phase.TRIED)
        return {Destination(each.destination.topic, partition) for each in tried for partition in each.partitions}

    def refused(self) -> dict[str, Trouble]:
        """Return the further targets whose records are dead letters now."""
        return {each.destination.topic: each for each in self._now(Phase.REFUSED)}

    def _now(self, *phases: Phase) -> Iterator[Trouble]:
        return (each for each in self._troubles.values() if each.phase in phases)
