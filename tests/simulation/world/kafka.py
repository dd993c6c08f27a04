"""The simulated Kafka: source and target logs, the group and its committed offsets, transactions, late requests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from tests.simulation.world.group import Group
from tests.simulation.world.source_log import SourceLog
from tests.simulation.world.transactions import State, Transaction, Transactions

from delaytopic_relay.core.commands import Record
from delaytopic_relay.core.progress import Progress, decode_progress, encode_metadata
from delaytopic_relay.core.recovery import NOTHING_ACCEPTED, SourceTopic
from delaytopic_relay.delivery.reachability import Destination, Sight
from delaytopic_relay.ports import Committed, Look

START_MS = 1_000_000_000
NEVER_CUT = 1 << 62
SOURCE = "source"
AGAIN = "~"
"""Stands before the number of a relay's further `transactional.id`."""


class Life(NamedTuple):
    """The relay that sent something, and how often it had recovered the shard before."""

    relay: str
    recoveries: Mapping[int, Progress]
    """The progress that it recovered each shard with, as of the sending."""


@dataclass(frozen=True, slots=True)
class Sent:
    """A record in the log of target and dead-letter topics; the log is one, as only the order matters."""

    record: Record
    at_ms: int
    shown_ms: int
    """The highest time that the sender's clock had shown by then."""
    shift_ms: int
    """The time by which it had been moved ahead by then."""
    life: Life
    transaction: Transaction | None


class Commit(NamedTuple):
    """A change of committed offsets."""

    at_ms: int
    relay: str
    progress: Mapping[int, Progress]


class Silence(NamedTuple):
    """A time in which a partition of a topic takes nothing; one that `looks_well` answers all other requests."""

    destination: Destination
    from_ms: int
    until_ms: int
    looks_well: bool


class Kafka:
    """Everything of Kafka that survives a relay, and the world's time."""

    def __init__(self, partitions: int, session_ms: int) -> None:
        self.now_ms = START_MS
        self.asked_shift_ms = 0
        """The time by which a person has moved the clock of the relays ahead of this one."""
        self.shown_shift_ms = 0
        """The part of it of which he knows that all shards have it."""
        self.counts_from: dict[tuple[int, int], int] = {}
        """That part when a record was produced, by shard and offset: the record counts from there at least."""
        self.topic = SourceTopic(SOURCE, "a cluster", "1" * 22)
        self.changes: list[int] = []
        """The commits that there were when the source, or the group's offsets, became others."""
        self.former: list[Mapping[int, SourceLog]] = []
        """The logs of the source at each change."""
        self.cuts: list[Mapping[int, int]] = []
        """Where each change ended these logs, by shard."""
        self.accepted = NOTHING_ACCEPTED
        """The losses that a person has accepted for the relays that start."""
        self.source = {partition: SourceLog(partition) for partition in range(partitions)}
        self.target: list[Sent] = []
        self.stored: dict[tuple[str, int], list[Sent | None]] = {}
        """Bucket topics, by topic and partition; None is what retention, or somebody, deleted."""
        self.committed: dict[int, Committed] = {}
        self.commits: list[Commit] = []
        self.group = Group(range(partitions), session_ms)
        self.transactions = Transactions(self._transaction_committed, self._transaction_aborted, self.silent)
        self.stones: list[Sent] = []
        """Tombstones that relays have written into the source; they are in its logs, too."""
        self.silences: list[Silence] = []
        self.counts: Counter[str] = Counter()
        self._later: list[tuple[int, Callable[[], object]]] = []

    @property
    def manual_ms(self) -> int:
        """The time as the moved clock shows it: to whoever produces, and waits."""
        return self.now_ms + self.shown_shift_ms

    def make_anew(self, topic_id: str, cluster_id: str | None = None) -> None:
        """Somebody deletes the source and makes another of its name, perhaps in another cluster; offsets stay."""
        self.note_change(0)
        self.topic = SourceTopic(SOURCE, cluster_id or self.topic.cluster_id, topic_id)
        for partition in self.source:
            self.source[partition] = SourceLog(partition)

    def note_change(self, kept: float | None = None, *, below_position: bool = False) -> None:
        """From now on relays may begin again; None if logs stay and grow, else the share of each that is kept.

        Or that share of what was taken in.
        """
        self.changes.append(len(self.commits))
        wholes = {partition: len(log.entries) for partition, log in self.source.items()}
        if below_position:
            taken = {partition: decode_progress(*committed).position for partition, committed in self.committed.items()}
            wholes = {partition: min(whole, taken.get(partition, 0)) for partition, whole in wholes.items()}
        share = {partition: int((kept or 0) * whole) for partition, whole in wholes.items()}
        if below_position:
            share = {
                partition: end if wholes[partition] else len(self.source[partition].entries)
                for partition, end in share.items()
            }
        self.cuts.append({partition: end if kept is not None else NEVER_CUT for partition, end in share.items()})
        self.former.append({partition: log.copied() for partition, log in self.source.items()})

    @property
    def reads_again(self) -> bool:
        """Return whether less is committed, or nothing, than was of these very logs; a tool's offset says nothing."""
        cuts = [number for number, ends in zip(self.changes, self.cuts, strict=True) if min(ends.values()) < NEVER_CUT]
        was: dict[int, int] = {}
        for commit in self.commits[max(cuts, default=0) :]:
            for partition, progress in commit.progress.items():
                was[partition] = max(was.get(partition, 0), progress.position)
        bare = {partition for partition, committed in self.committed.items() if not committed.metadata}
        now = {partition: decode_progress(*committed).position for partition, committed in self.committed.items()}
        return any(now.get(partition, -1) < position for partition, position in was.items() if partition not in bare)

    @property
    def has_unseen_cut(self) -> bool:
        """Return whether a log was cut below what is committed, and not accepted since."""
        taken = {partition: decode_progress(*committed) for partition, committed in self.committed.items()}
        ends = {partition: min(cuts[partition] for cuts in self.cuts) for partition in taken} if self.cuts else {}
        return any(
            ends[partition] < progress.position and progress.identity.epoch < self.source[partition].epoch
            for partition, progress in taken.items()
            if partition in ends
        )

    def take(self, sent: Sent) -> None:
        """Append a record: to a bucket topic, to the source, or to what the readers of targets see."""
        record = sent.record
        if record.topic.startswith("source.delay."):
            self.stored.setdefault((record.topic, record.partition), []).append(sent)
        elif record.topic == SOURCE:
            self._take_stone(sent)
        else:
            self.target.append(sent)

    def _take_stone(self, sent: Sent) -> None:
        record, within = sent.record, None
        log = self.source[record.partition]
        if sent.transaction is not None:
            within = sent.transaction.in_source.get(record.partition) or log.begin()
            sent.transaction.in_source[record.partition] = within
        log.append(self.now_ms, record.key, record.value, [*record.headers], within)
        self.stones.append(sent)

    def silence(self, destination: Destination, duration_ms: int, *, looks_well: bool) -> None:
        """Let a partition of a topic take nothing for so long."""
        self.silences.append(Silence(destination, self.now_ms, self.now_ms + duration_ms, looks_well))

    def end_silences(self) -> None:
        """Let everything answer again."""
        self.silences = [each._replace(until_ms=min(each.until_ms, self.now_ms)) for each in self.silences]

    def silent(self) -> dict[Destination, Silence]:
        """Return what takes nothing now."""
        return {each.destination: each for each in self.silences if each.from_ms <= self.now_ms < each.until_ms}

    def look_at(self, topics: Collection[str]) -> Look:
        """See `ports.LookAt`: each topic has the partitions of the source."""
        looks_bad = {each for each, silence in self.silent().items() if not silence.looks_well}
        places = [Destination(topic, partition) for topic in topics for partition in self.source]
        found: Sight = {each: "it has no leader" if each in looks_bad else None for each in places}
        return lambda: found

    def later(self, delay_ms: int, action: Callable[[], object]) -> None:
        """A request that is still on its way."""
        self._later.append((self.now_ms + delay_ms, action))

    def requests_under_way(self) -> int:
        """Return how many requests may still arrive."""
        return len(self._later)

    def pass_time(self, duration_ms: int) -> None:
        """Move the time on; what was under way arrives, transactions and sessions expire."""
        self.now_ms += duration_ms
        arrived = [action for at_ms, action in self._later if at_ms <= self.now_ms]
        self._later = [entry for entry in self._later if entry[0] > self.now_ms]
        for action in arrived:
            action()
        self.counts["transaction expired"] += self.transactions.expire(self.now_ms)
        self.group.pass_time(self.now_ms)

    def commit_offsets(self, progress: Mapping[int, Progress], relay: str) -> None:
        """Without a transaction: at once."""
        self._take(committed_of(progress), relay)

    def _transaction_aborted(self, transaction: Transaction) -> None:
        for partition, within in transaction.in_source.items():
            self.source[partition].end(within, commit=False)

    def _transaction_committed(self, transaction: Transaction) -> int:
        for partition, within in transaction.in_source.items():
            within.number = len(self.commits)
            self.source[partition].end(within, commit=True)
        return self._take(transaction.offsets, transaction.owner.partition(AGAIN)[0])

    def _take(self, offsets: Mapping[int, Committed], relay: str) -> int:
        self.committed.update(offsets)
        progress = {partition: decode_progress(*committed) for partition, committed in offsets.items()}
        self.commits.append(Commit(self.now_ms, relay, progress))
        return len(self.commits) - 1

    def read_committed(self) -> list[Sent]:
        """Return what a `read_committed` consumer sees: up to the first open transaction, nothing aborted."""
        seen: list[Sent] = []
        for sent in self.target:
            state = State.COMMITTED if sent.transaction is None else sent.transaction.state
            if state in (State.OPEN, State.DECIDED):
                break
            if state is State.COMMITTED:
                seen.append(sent)
        return seen

    def read_uncommitted(self) -> list[Sent]:
        """Return what a `read_uncommitted` consumer sees: everything."""
        return list(self.target)


def committed_of(progress: Mapping[int, Progress]) -> dict[int, Committed]:
    """Progress as the group coordinator keeps it."""
    return {partition: Committed(new.offset, encode_metadata(new)) for partition, new in progress.items()}
