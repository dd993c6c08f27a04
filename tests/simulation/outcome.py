"""The outcome of a history: the final logs, read as an auditor would."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from tests.simulation.lives import LIFE, Lives
from tests.simulation.plans.plan import Setup
from tests.simulation.reading import Verdicts
from tests.simulation.relays import DEAD, HISTORY, OUTCOMES
from tests.simulation.world.kafka import Commit, Kafka, Life, Sent, Silence
from tests.simulation.world.source_log import SourceRecord
from tests.simulation.world.transactions import State

from delaytopic_api.records import ENDED, RESTATED
from delaytopic_api.relay import Outcome as Document
from delaytopic_relay.core.commands import Cancel, Command, DueKey, Postpone, Reject, Schedule, rank_of
from delaytopic_relay.core.progress import Progress
from delaytopic_relay.delivery.batches import again, source_of

Place = tuple[int, int]
"""Shard and source offset."""


class Accepted(NamedTuple):
    """A source record and what it means."""

    record: SourceRecord
    command: Command
    place: Place

    @property
    def commit(self) -> int | None:
        """The commit that made a record visible which a relay has written; None without transactions."""
        return self.record.transaction.number if self.record.transaction is not None else None

    @property
    def key(self) -> DueKey:
        """Of a schedule."""
        assert isinstance(self.command, Schedule)
        return DueKey(self.command.due_ms, self.command.offset)


class Delivered(NamedTuple):
    """A record that a reader of the target or dead-letter topic sees."""

    sent: Sent
    place: Place
    dead: bool
    commit: int | None
    """The commit that made it visible; None without transactions."""
    number: int = -1
    """Its place in the log of all targets."""

    @property
    def life(self) -> Life:
        return self.sent.life


class Told(NamedTuple):
    """An outcome that a reader sees."""

    document: Document
    place: Place
    sent: Sent

    @property
    def commit(self) -> int | None:
        return self.sent.transaction.number if self.sent.transaction is not None else None

    @property
    def text(self) -> str:
        by = f" by {self.document.ended_by.offset}" if self.document.ended_by is not None else ""
        return f"{self.document.outcome} of {self.place[0]}:{self.place[1]}{by}, commit {self.commit}"


def told(sent: Sequence[Sent]) -> Sequence[Told]:
    """Read the records of the topic of outcomes."""
    found = []
    for each in sent:
        document = Document.model_validate_json(each.record.value or b"")
        found.append(Told(document, (document.source.partition, document.source.offset), each))
    return found


@dataclass(frozen=True)
class Outcome:
    """The logs of one history at its end."""

    setup: Setup
    rested: bool
    """True if everything came to rest once there were no more faults."""
    source: Mapping[Place, Accepted]
    delivered: Sequence[Delivered]
    """The records that a `read_committed` reader sees, in order."""
    commits: Sequence[Commit]
    probes: Set[Place]
    counts: Mapping[str, int]
    stones: Sequence[Delivered] = ()
    """Tombstones in the source, by the schedule that they are for."""
    copies: Sequence[Delivered] = ()
    """Records of the history topic, likewise."""
    told: Sequence[Told] = ()
    """Records of the topic of outcomes."""
    silences: Sequence[Silence] = ()
    """The times in which targets took nothing."""
    last_lives: Set[int] = frozenset()
    """The shards of the last lives of the source (see `lives`)."""

    behind: Set[Place] = frozenset()
    """The records that count from an earlier time than the clock showed when they were produced."""

    def before(self, partition: int, commit: int) -> Progress | None:
        """Return what was committed for a shard before this commit."""
        for number in range(commit - 1, -1, -1):
            if partition in self.commits[number].progress:
                return self.commits[number].progress[partition]
        return None

    def taken_in_by(self, place: Place) -> int | None:
        """The first commit that says that this offset was taken in."""
        partition, offset = place
        for number, commit in enumerate(self.commits):
            if partition in commit.progress and commit.progress[partition].position > offset:
                return number
        return None

    def passed_by(self, place: Place, key: DueKey) -> int | None:
        """The first commit that says that this schedule is done, and was taken in."""
        partition, offset = place
        for number, commit in enumerate(self.commits):
            progress = commit.progress.get(partition)
            if progress is not None and progress.position > offset and progress.done.has(*key):
                return number
        return None

    def later_commands(self, accepted: Accepted) -> list[Accepted]:
        """Later schedules and cancels with the same id."""
        command = accepted.command
        name = command.id if isinstance(command, Reject) and command.rank is not None else _name(command)
        return [
            other
            for other in self._by_name.get((accepted.place[0], name), ())
            if _rank(other.command) > _rank(accepted.command)
            # What recurs is no later command than what it follows.
            and not (self.setup.recurs and _rank(other.command) != other.place[1])
        ]

    @cached_property
    def _by_name(self) -> Mapping[tuple[int, bytes | None], Sequence[Accepted]]:
        """Return the commands of each shard with an id, by the id."""
        found: dict[tuple[int, bytes | None], list[Accepted]] = {}
        for accepted in self.source.values():
            if (name := _name(accepted.command)) is not None:
                found.setdefault((accepted.place[0], name), []).append(accepted)
        return found

    def former(self, accepted: Accepted) -> Place:
        """Return the place of the record that one stands for, or follows, which a relay has written."""
        (text,) = (value for name, value in accepted.record.record_headers or () if name == RESTATED)
        _, _, offset, _ = (text or b"").split(b":", 3)
        return accepted.place[0], int(offset)

    def origin(self, accepted: Accepted) -> Accepted:
        """Return the record of an application that a schedule began as, however often a relay has put it off."""
        while isinstance(accepted.command, Schedule) and accepted.command.rank is not None:
            accepted = self.source[self.former(accepted)]
        return accepted

    def of_applications(self, partition: int, name: bytes) -> list[Accepted]:
        """Return the commands with an id that applications have produced, in their order."""
        return [
            accepted
            for place, accepted in sorted(self.source.items())
            if place[0] == partition
            and isinstance(accepted.command, Schedule | Cancel | Postpone)
            and accepted.command.id == name
            and _rank(accepted.command) == place[1]
        ]


def _rank(command: Command) -> int:
    if isinstance(command, Reject) and command.rank is not None:
        return command.rank
    return rank_of(command) if isinstance(command, Schedule | Cancel) else command.offset


def _name(command: Command) -> bytes | None:
    return command.id if isinstance(command, Schedule | Cancel) else None


def outcome_of(setup: Setup, kafka: Kafka, probes: Set[Place], *, rested: bool) -> Outcome:
    """Read the logs."""
    verdicts = Verdicts(kafka, setup)
    read = verdicts.read
    lives = Lives(kafka)
    accepted = {
        (partition, record.place): Accepted(record, read(record), (partition, record.place))
        for partition, record in lives.records()
    }
    stones = [
        _delivered(sent, lives) for sent in kafka.stones if sent.transaction is None or sent.transaction.number >= 0
    ]
    source = {place: entry for place, entry in accepted.items() if not _is_stone(entry.record) and not _is_end(entry)}
    visible = kafka.read_committed()
    numbers = {id(sent): number for number, sent in enumerate(kafka.target)}
    seen = [
        _delivered(lives.renamed(sent), lives)._replace(number=numbers[id(sent)])
        for sent in visible
        if sent.record.topic != OUTCOMES
    ]
    delivered = [each for each in seen if each.sent.record.topic != HISTORY]
    copies = [each for each in seen if each.sent.record.topic == HISTORY]
    counts = {**kafka.counts, "aborted records": _aborted(kafka)}
    there = {(partition + LIFE * lives.last[partition], offset) for partition, offset in probes}
    last_lives = {partition + LIFE * life for partition, life in lives.last.items()}
    silences = kafka.silences
    behind = {
        place
        for place, entry in source.items()
        if verdicts.shift_ms(entry.record) < kafka.counts_from.get((entry.record.shard, entry.record.place), 0)
    }
    return Outcome(
        setup,
        rested,
        source,
        delivered,
        lives.commits(),
        there,
        counts,
        stones,
        copies,
        told([sent for sent in visible if sent.record.topic == OUTCOMES]),
        silences,
        last_lives,
        behind,
    )


def _is_stone(record: SourceRecord) -> bool:
    """Return whether a relay has written it: no application of these histories says that something has ended."""
    return record.record_value is None and any(name == ENDED for name, _ in record.record_headers or ())


def _is_end(entry: Accepted) -> bool:
    """Return whether a relay has written it, to end a message: no application has a part in it."""
    names = {name for name, _ in entry.record.record_headers or ()}
    return ENDED in names or (RESTATED in names and isinstance(entry.command, Cancel))


def _delivered(sent: Sent, lives: Lives) -> Delivered:
    partition, offset, dead = source_of(sent.record.headers)
    assert partition is not None
    assert offset is not None
    offset = offset if offset >= 0 else again(offset)
    assert dead == (sent.record.topic == DEAD)
    place = (lives.shard_of(sent, partition), offset)
    return Delivered(sent, place, dead, sent.transaction.number if sent.transaction is not None else None)


def _aborted(kafka: Kafka) -> int:
    """Records that a `read_uncommitted` reader sees, and no other."""
    return sum(
        sent.transaction is not None and sent.transaction.state is State.ABORTED for sent in kafka.read_uncommitted()
    )
