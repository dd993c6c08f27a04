"""Chains of records that recur, as a relay leaves them on the topics: whole, or with a fault of which it is known."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from heapq import heappop, heappush

from tests.support.audit.delay_topics import Headers
from tests.support.audit.runs import CONFIG, ROLES, SOURCE, TARGET
from tests.support.audit.truth import Sent
from tests.unit.audit.messages import FakeMessage

from delaytopic_api.records import OCCURRENCE, RECEIPT, RESTATED, Receipt
from delaytopic_api.recurrence import Occurrence, first_occurrence, next_occurrence, read_recurrence
from delaytopic_audit.reading.decoding import Row, decoder_for

ON_TIME_MS = 5
"""From an instant to what a relay does then."""


@dataclass(frozen=True)
class Chain:
    """A record that recurs from a time on, at most so many times.

    `late` are occurrences by number that leave so much after their time, `skips` those that go on with the slot behind
    the next, `repeats` those that go on with their own slot, and `written_twice` those with two that follow.
    """

    headers: dict[str, bytes]
    begins_ms: int
    count: int
    breaks_after: int | None = None
    cancelled_before: int | None = None
    late: dict[int, int] = field(default_factory=dict)
    skips: tuple[int, ...] = ()
    repeats: tuple[int, ...] = ()
    written_twice: tuple[int, ...] = ()
    drops_the_second: bool = False
    """True: of what was written twice one is delivered, as a relay without transactions does."""

    @property
    def controls(self) -> dict[str, bytes]:
        """All headers that are about recurrence."""
        return {**self.headers, "deliver-count": b"%d" % self.count}


@dataclass
class Chains:
    """All that is on the topics for some chains, in the order of its time."""

    sent: list[tuple[Sent, int]] = field(default_factory=list)
    """Each record and its offset."""
    offsets: dict[tuple[bytes, int], list[int]] = field(default_factory=dict)
    """Of the occurrences of an id by number; 0 is the record itself."""

    def rows(self) -> list[tuple[int, Row]]:
        """Return append times, and what an audit reads."""
        found = []
        for sent, offset in self.sent:
            at = (sent.topic, 0, offset)
            row = decoder_for(ROLES[sent.topic], sent.topic, CONFIG)(FakeMessage(at, sent.headers, sent.append_ms))
            found.append((sent.append_ms, row))
        return found

    def at(self, identity: bytes, number: int, which: int = 0) -> int:
        """Return the offset of an occurrence."""
        return self.offsets[identity, number][which]

    def append(self, at_ms: int, topic: str, headers: Headers) -> int:
        """Append a record, and return its offset."""
        offset = sum(sent.topic == topic for sent, _ in self.sent)
        self.sent.append((Sent(at_ms, topic, 0, headers), offset))
        return offset


@dataclass(order=True)
class _Step:
    """Something that happens to an occurrence, or to the record itself."""

    at_ms: int
    place: int
    number: int = field(compare=False)
    offset: int = field(compare=False)
    occurrence: Occurrence | None = field(compare=False)
    ends: bool = field(compare=False, default=False)


def chains_of(chains: dict[bytes, Chain]) -> Chains:
    """Return what relays write for these chains by id, each at its time."""
    world, steps = Chains(), list[_Step]()
    for place, chain in enumerate(chains.values()):
        heappush(steps, _Step(chain.begins_ms, place, 0, -1, None))
    ids = list(chains)
    while steps:
        step = heappop(steps)
        identity = ids[step.place]
        for following in _happen(world, identity, chains[identity], step):
            heappush(steps, following)
    return world


def _happen(world: Chains, identity: bytes, chain: Chain, step: _Step) -> Iterable[_Step]:
    own: Headers = [("deliver-id", identity), *chain.controls.items()]
    if step.ends:
        world.append(step.at_ms, SOURCE, [("deliver-id", identity), ("deliver-action", b"cancel")])
        return
    if step.occurrence is None and step.offset < 0:
        offset = world.append(step.at_ms, SOURCE, own)
        world.offsets[identity, 0] = [offset]
        yield _Step(step.at_ms + ON_TIME_MS, step.place, 0, offset, None)
        return
    following = _following(identity, chain, step)
    if step.occurrence is not None:
        receipt = Receipt(step.occurrence.due_ms, 0, step.offset, step.at_ms, SOURCE).encode()
        world.append(step.at_ms, TARGET, [(RECEIPT, receipt)])
    if following is None or step.number == chain.breaks_after:
        return
    for copy in range(2 if step.number in chain.written_twice else 1):
        restated = b"%d:0:%d:%d:%b" % (following.due_ms, step.offset, step.offset, SOURCE.encode())
        offset = world.append(step.at_ms, SOURCE, [*own, (OCCURRENCE, following.encode()), (RESTATED, restated)])
        world.offsets.setdefault((identity, following.number), []).append(offset)
        leaves_ms = max(step.at_ms, following.due_ms) + chain.late.get(following.number, 0) + ON_TIME_MS
        if following.number == chain.cancelled_before:
            yield _Step(following.due_ms - 600_000, step.place, following.number, offset, following, ends=True)
        elif not (copy and chain.drops_the_second):
            yield _Step(leaves_ms, step.place, following.number, offset, following)


def _following(identity: bytes, chain: Chain, step: _Step) -> Occurrence | None:
    number, slot = step.number, step.occurrence
    since_ms = chain.begins_ms if slot is None else slot.nominal_ms
    recurrence = read_recurrence(chain.controls, since_ms)
    assert recurrence is not None
    if slot is not None and number in chain.repeats:
        return slot._replace(number=number + 1, due_ms=step.at_ms)
    if slot is None:
        found, _ = first_occurrence(recurrence, identity, step.at_ms)
    else:
        found, _ = next_occurrence(recurrence, identity, slot, step.at_ms)
    if found is not None and number in chain.skips:
        found, _ = next_occurrence(recurrence, identity, found._replace(number=number), found.due_ms)
    return found
