"""Records whose fate is known: what an audit of them has to find, made up from a seed."""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import dataclass, field

from tests.support.audit.delay_topics import HOUR_MS, AuditedTopic, Headers

from delaytopic_api.records import RECEIPT, DeadLetter, Receipt, dead_letter_headers

LATENESS_MS = 5_000
GRACE_MS = 65_000
HOURS = 3
TARGET_PARTITIONS = 4
"""The partitions of a topic over which arrivals are spread."""


@dataclass(eq=False)
class Ask:
    """A source record, and what is to be found of it. Its offset is its place among those of its partition."""

    append_ms: int
    due_ms: int = 0
    headers: Headers = field(default_factory=list)
    found: set[str] = field(default_factory=set)
    arrivals: list[tuple[int, str]] = field(default_factory=list)
    """Append time and topic."""
    letters: list[tuple[int, str]] = field(default_factory=list)
    """Append time and reason."""
    offset: int = -1


@dataclass(frozen=True)
class Sent:
    """A record to produce."""

    append_ms: int
    topic: str
    partition: int
    headers: Headers


class Truth:
    """One source partition's worth of records."""

    def __init__(self, topic: AuditedTopic, partition: int, seed: int, base_ms: int, each: int) -> None:
        """`each` is the number of records for each usual finding; of the rare ones there is a fifth."""
        self._topic, self.partition, self._base_ms = topic, partition, base_ms
        self._each, self._few = each, each // 5
        self._rng = random.Random(seed)
        self._asks: list[Ask] = []
        self._ids = 0
        self._make()
        self._asks.sort(key=lambda ask: ask.append_ms)
        for offset, ask in enumerate(self._asks):
            ask.offset = offset
        self._aliens = [(self._due_ms(), len(self._asks) + 1_000 + number) for number in range(self._few)]

    def expected(self) -> dict[str, set[tuple[int, int]]]:
        """Coordinates by finding."""
        found: defaultdict[str, set[tuple[int, int]]] = defaultdict(set)
        for ask in self._asks:
            for finding in ask.found:
                found[finding].add((self.partition, ask.offset))
        found["unknown"] = {(self.partition, offset) for _, offset in self._aliens}
        return dict(found)

    def asked(self) -> list[Sent]:
        """Return what is on the source, in order."""
        source = self._topic.source
        return [Sent(ask.append_ms, source, self.partition, ask.headers) for ask in self._asks]

    def outcomes(self) -> list[Sent]:
        """Return what is on the other topics."""
        found = [self._arrival(ask.offset, ask.due_ms, *arrival) for ask in self._asks for arrival in ask.arrivals]
        found += [self._arrival(offset, due_ms, due_ms + 3, self._topic.target) for due_ms, offset in self._aliens]
        return found + [self._letter(ask.offset, *letter) for ask in self._asks for letter in ask.letters]

    # -- the cases

    def _make(self) -> None:
        rng, target = self._rng, self._topic.target
        for _ in range(3 * self._each):
            self._delivered(rng.choice((-5, 0, 1, 40, LATENESS_MS)))
        for number in range(self._each):
            self._schedule().found.add("lost")
            self._duplicated(number)
            early = self._delivered(-rng.choice((6, 7, 1_000, 30_000)))
            early.found.add("early")
            late = self._delivered(LATENESS_MS + rng.choice((1, 2, 1_000, 10 * 60_000)))
            late.found.add("late")
            self._withdrawn("cancelled")
            self._withdrawn("replaced")
            letter = self._schedule()
            letter.letters.append((letter.due_ms + 10, rng.choice(("expired", "unknown-target", "too-large"))))
            letter.found.add("dead-lettered")
            self._rejected(number)
        for _ in range(self._few):
            self._overdue_on_arrival()
            self._raced()
            self._withdrawn_too_late()
            unwanted = self._withdrawn(None)
            unwanted.arrivals.append((unwanted.due_ms + 1, target))
            unwanted.found.add("unwanted")
            elsewhere = self._schedule()
            elsewhere.headers.append(("deliver-to", self._topic.other.encode()))
            elsewhere.arrivals.append((elsewhere.due_ms + 2, self._topic.other))
            astray = self._schedule()
            astray.arrivals.append((astray.due_ms + 2, self._topic.other))
            astray.found.add("misdirected")

    def _due_ms(self) -> int:
        """Anywhere in the hours, often at the edge of a minute or an hour."""
        rng = self._rng
        if rng.random() < 0.3:
            edge_ms = rng.choice((60_000, HOUR_MS))
            number = rng.randrange(1, HOURS * HOUR_MS // edge_ms)
            return self._base_ms + number * edge_ms + rng.choice((-1, 0, 1))
        return self._base_ms + rng.randrange(HOURS * HOUR_MS)

    def _schedule(self, *, identity: bytes | None = None, due_ms: int | None = None) -> Ask:
        rng = self._rng
        due_ms = self._due_ms() if due_ms is None else due_ms
        ask = Ask(due_ms - rng.randrange(300_000, 2 * HOUR_MS), due_ms)
        ask.headers = [("deliver-at", b"%d" % due_ms), ("n", b"x")]
        if identity is not None:
            ask.headers.append(("deliver-id", identity))
        elif rng.random() < 0.5:
            after_ms = due_ms - ask.append_ms
            ask.headers = [("deliver-after", b"%d" % after_ms)]
        self._asks.append(ask)
        return ask

    def _delivered(self, lateness_ms: int) -> Ask:
        ask = self._schedule()
        ask.arrivals.append((ask.due_ms + lateness_ms, self._topic.target))
        return ask

    def _duplicated(self, number: int) -> None:
        ask = self._delivered(1)
        for _ in range(1 + number % 2):
            ask.arrivals.append((ask.due_ms + self._rng.choice((2, 1_000, HOUR_MS)), self._topic.target))
        ask.found.add("duplicated")

    def _named(self) -> bytes:
        self._ids += 1
        return b"id %d" % self._ids

    def _withdrawn(self, how: str | None) -> Ask:
        """By a cancel or a replacement in good time; `how` None: by either, and nothing is to be found of it yet."""
        rng, identity = self._rng, self._named()
        ask = self._schedule(identity=identity)
        withdrawn_ms = rng.randint(ask.append_ms + 1, ask.due_ms - GRACE_MS)
        if (how or rng.choice(("cancelled", "replaced"))) == "cancelled":
            self._cancel(identity, withdrawn_ms)
        else:
            due_ms = max(withdrawn_ms + 1_000, self._due_ms())
            later = Ask(withdrawn_ms, due_ms, [("deliver-at", b"%d" % due_ms), ("deliver-id", identity)])
            later.arrivals.append((due_ms + 1, self._topic.target))
            self._asks.append(later)
        ask.found |= {how} if how else set()
        return ask

    def _cancel(self, identity: bytes, append_ms: int) -> None:
        self._asks.append(Ask(append_ms, 0, [("deliver-id", identity), ("deliver-action", b"cancel")]))

    def _raced(self) -> None:
        """The cancel came about when the record was due: it may have arrived, or not."""
        identity = self._named()
        ask = self._schedule(identity=identity)
        self._cancel(identity, ask.due_ms + self._rng.choice((1 - GRACE_MS, -10, 0, 10, GRACE_MS)))
        if self._rng.random() < 0.5:
            ask.arrivals.append((ask.due_ms + 1, self._topic.target))
        else:
            ask.found.add("cancelled")

    def _withdrawn_too_late(self) -> None:
        identity = self._named()
        ask = self._schedule(identity=identity)
        ask.found.add("lost")
        self._cancel(identity, ask.due_ms + GRACE_MS + self._rng.choice((1, 100_000)))

    def _rejected(self, number: int) -> None:
        ask = Ask(self._due_ms(), 0, [("deliver-at", b"tomorrow")])
        self._asks.append(ask)
        if number % 4:
            ask.letters.append((ask.append_ms + 5, "malformed-header"))
            ask.found.add("dead-lettered")
        else:
            ask.found.add("lost")

    def _overdue_on_arrival(self) -> None:
        """Long due when it was produced: late is what arrives late after that."""
        ask = Ask(self._due_ms(), self._rng.choice((0, 1_000, self._base_ms - HOUR_MS)))
        ask.headers = [("deliver-at", b"%d" % ask.due_ms)]
        lateness_ms = self._rng.choice((1, LATENESS_MS, LATENESS_MS + 1, None))
        if lateness_ms is None:
            ask.found.add("lost")
        else:
            ask.arrivals.append((ask.append_ms + lateness_ms, self._topic.target))
            ask.found |= {"late"} if lateness_ms > LATENESS_MS else set()
        self._asks.append(ask)

    # -- on the wire

    def _arrival(self, offset: int, due_ms: int, append_ms: int, topic: str) -> Sent:
        receipt = Receipt(due_ms, self.partition, offset, append_ms - 1, self._topic.source).encode()
        return Sent(append_ms, topic, self._rng.randrange(TARGET_PARTITIONS), [("n", b"x"), (RECEIPT, receipt)])

    def _letter(self, offset: int, append_ms: int, reason: str) -> Sent:
        letter = DeadLetter(reason, "why", self._topic.source, self.partition, offset, append_ms)
        return Sent(append_ms, self._topic.dead_letter, 0, list(dead_letter_headers(letter)))
