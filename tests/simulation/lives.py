"""Several lives of one history: the source, or the group's offsets, became others in between, and relays began again.

The promises hold for each life by itself. In its outcome the shards of a life that began after the first change have
numbers from 100 on, after the second from 200 on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from tests.simulation.world.kafka import Commit, Kafka, Life, Sent
from tests.simulation.world.source_log import SourceLog, SourceRecord

from delaytopic_relay.core.progress import Progress

LIFE = 100


class _TakenIn(NamedTuple):
    """The last record below a committed position: its leader epoch, and the place behind it."""

    epoch: int
    behind: int


class Lives:
    """The life in which each commit was made: relays begin again at most once for each change before it."""

    def __init__(self, kafka: Kafka) -> None:
        self._kafka = kafka
        self._of_commits: list[dict[int, int]] = []
        self._taken_in: dict[tuple[int, int], list[_TakenIn]] = {}
        """Of each shard and life, how far it was taken in."""
        self.last: dict[int, int] = dict.fromkeys(kafka.source, 0)
        """The last life of each shard."""
        was: dict[int, Progress] = {}
        for number, commit in enumerate(kafka.commits):
            changes = sum(before <= number for before in kafka.changes)
            for partition, progress in commit.progress.items():
                if changes > self.last[partition] and (partition not in was or _begins(was[partition], progress)):
                    self.last[partition] = changes
                was[partition] = progress
                taken_in = self._taken_in.setdefault((partition, self.last[partition]), [])
                identity = progress.identity
                taken_in.append(_TakenIn(identity.epoch, progress.position - identity.gap))
            self._of_commits.append({partition: self.last[partition] for partition in commit.progress})

    def records(self) -> Iterator[tuple[int, SourceRecord]]:
        """Yield the accepted records of each life, with the shard's number in it."""
        lives = {*self._taken_in, *self.last.items()}
        for partition, life in sorted(lives):
            yield from ((partition + LIFE * life, record) for record in self._log_of(partition, life).accepted())

    def _log_of(self, partition: int, life: int) -> SourceLog:
        """Return the log that a life has read: up to the change that took away what it had taken in."""
        logs = [*(former[partition] for former in self._kafka.former), self._kafka.source[partition]]
        for change in range(life, len(self._kafka.changes)):
            if self._was_taken_away(change, partition, life, logs[change + 1]):
                return logs[change]
        return logs[-1]

    def _was_taken_away(self, change: int, partition: int, life: int, after: SourceLog) -> bool:
        """Return whether a change has taken away a record that a life had taken in, by the log that followed."""
        before, end = self._kafka.former[change][partition], self._kafka.cuts[change][partition]
        gone = next((record.place for record in before.accepted() if record.place >= end), None)
        if gone is None:
            return False
        # A position without an epoch was set by a tool, or has passed nothing that anybody reads.
        return any(
            0 <= epoch <= before.epoch and behind > gone for epoch, behind in self._taken_in.get((partition, life), [])
        )

    def commits(self) -> list[Commit]:
        """Return the commits, with the shards' numbers in their lives."""
        return [
            commit._replace(
                progress={partition + LIFE * lives[partition]: each for partition, each in commit.progress.items()}
            )
            for commit, lives in zip(self._kafka.commits, self._of_commits, strict=True)
        ]

    def renamed(self, sent: Sent) -> Sent:
        """Return a record whose sender has recovered shards of these lives."""
        before = _number_of(sent)
        recoveries = {
            partition + LIFE * self._life_of(partition, progress, before): progress
            for partition, progress in sent.life.recoveries.items()
        }
        return replace(sent, life=Life(sent.life.relay, recoveries))

    def shard_of(self, sent: Sent, partition: int) -> int:
        """Return the shard's number in the life in which a record was sent."""
        number = _number_of(sent)
        lives = self._of_commits[number] if number is not None else {}
        life = lives.get(partition)
        if life is None:
            life = self._life_of(partition, sent.life.recoveries.get(partition), number)
        return partition + LIFE * life

    def _life_of(self, partition: int, progress: Progress | None, before: int | None) -> int:
        """Return the life that a relay recovered a shard in, by the progress that it found or committed then."""
        commits = [*zip(self._kafka.commits, self._of_commits, strict=True)][:before]
        found = [lives[partition] for commit, lives in commits if commit.progress.get(partition) == progress]
        return found[-1] if found else self.last[partition]


def _number_of(sent: Sent) -> int | None:
    """Return the commit that made a record visible; None without transactions."""
    return sent.transaction.number if sent.transaction is not None and sent.transaction.number >= 0 else None


def _begins(was: Progress, now: Progress) -> bool:
    """Tell whether a relay began again: it committed less than before, or forgot the leader epoch."""
    if was.identity[:2] != now.identity[:2] or now.identity.epoch < was.identity.epoch:
        return True
    return now.position < was.position or now.done.last_ms < was.cursor.due_ms
