"""Several lives of one history: the source, or the group's offsets, became others in between, and relays began again.

The promises hold for each life by itself. In its outcome the shards of a life that began after the first change have
numbers from 100 on, after the second from 200 on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tests.simulation.world.kafka import Commit, Kafka, Life, Sent
from tests.simulation.world.source_log import SourceLog, SourceRecord

from delaytopic_relay.core.progress import Progress

LIFE = 100


class Lives:
    """The life in which each commit was made: relays begin again at most once for each change before it."""

    def __init__(self, kafka: Kafka) -> None:
        self._kafka = kafka
        self._of_commits: list[dict[int, int]] = []
        self._positions: dict[tuple[int, int], dict[int, int]] = {}
        """Of each shard and life, how far it was taken in, by leader epoch."""
        self.last: dict[int, int] = dict.fromkeys(kafka.source, 0)
        """The last life of each shard."""
        was: dict[int, Progress] = {}
        for number, commit in enumerate(kafka.commits):
            changes = sum(before <= number for before in kafka.changes)
            for shard, progress in commit.progress.items():
                if changes > self.last[shard] and (shard not in was or _begins(was[shard], progress)):
                    self.last[shard] = changes
                was[shard] = progress
                place = (shard, self.last[shard])
                positions = self._positions.setdefault(place, {})
                epoch = progress.identity.epoch
                positions[epoch] = max(positions.get(epoch, 0), progress.position)
            self._of_commits.append({shard: self.last[shard] for shard in commit.progress})

    def records(self) -> Iterator[tuple[int, SourceRecord]]:
        """Yield the accepted records of each life, with the shard's number in it."""
        lives = {*self._positions, *self.last.items()}
        for shard, life in sorted(lives):
            yield from ((shard + LIFE * life, record) for record in self._log_of(shard, life).accepted())

    def _log_of(self, shard: int, life: int) -> SourceLog:
        """Return the log that a life has read: up to the change that took away what it had taken in."""
        positions = self._positions.get((shard, life), {})
        for former, ends in zip(self._kafka.former[life:], self._kafka.cuts[life:], strict=True):
            log = former[shard]
            position = max((at for epoch, at in positions.items() if epoch <= log.epoch), default=0)
            if ends[shard] < position:
                return log
        return self._kafka.source[shard]

    def commits(self) -> list[Commit]:
        """Return the commits, with the shards' numbers in their lives."""
        return [
            commit._replace(progress={shard + LIFE * lives[shard]: each for shard, each in commit.progress.items()})
            for commit, lives in zip(self._kafka.commits, self._of_commits, strict=True)
        ]

    def renamed(self, sent: Sent) -> Sent:
        """Return a record whose sender has recovered shards of these lives."""
        before = _number_of(sent)
        recoveries = {
            shard + LIFE * self._life_of(shard, progress, before): progress
            for shard, progress in sent.life.recoveries.items()
        }
        return replace(sent, life=Life(sent.life.relay, recoveries))

    def shard_of(self, sent: Sent, shard: int) -> int:
        """Return the shard's number in the life in which a record was sent."""
        number = _number_of(sent)
        lives = self._of_commits[number] if number is not None else {}
        life = lives.get(shard)
        if life is None:
            life = self._life_of(shard, sent.life.recoveries.get(shard), number)
        return shard + LIFE * life

    def _life_of(self, shard: int, progress: Progress | None, before: int | None) -> int:
        """Return the life that a relay recovered a shard in, by the progress that it found or committed then."""
        commits = [*zip(self._kafka.commits, self._of_commits, strict=True)][:before]
        found = [lives[shard] for commit, lives in commits if commit.progress.get(shard) == progress]
        return found[-1] if found else self.last[shard]


def _number_of(sent: Sent) -> int | None:
    """Return the commit that made a record visible; None without transactions."""
    return sent.transaction.number if sent.transaction is not None and sent.transaction.number >= 0 else None


def _begins(was: Progress, now: Progress) -> bool:
    return was.identity[:2] != now.identity[:2] or now.position < was.position or now.done.last_ms < was.cursor.due_ms
